"""The work of ``bsufs select``: check, read, fit, tell, compare, and what the files hold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from bsufs._names import one_line
from bsufs._typing import Array, Indices
from bsufs.cli import _comparison as comparison
from bsufs.cli import _methods as methods
from bsufs.cli import _tuning as tuning
from bsufs.cli._clustering import Classes, Clustering
from bsufs.cli._console import Console
from bsufs.cli._input import Input, open_input
from bsufs.cli._page import make_page
from bsufs.tables import write_table
from bsufs.tables._write import needs_whole_table

if TYPE_CHECKING:
    from bsufs.cli.select import Request

# What clusters best without labels; see the documentation on choosing without labels.
DEFAULT_METHOD = "ClusterAlignment"
# With more than this share of the variance a column decides by its unit what is selected.
_MOST_OF_IT = 0.5


@dataclass(frozen=True)
class Selection:
    """What came of a request."""

    found: Input
    fitted: Any
    selector: Any
    best_first: Indices
    seconds: float
    features: list[dict[str, Any]]
    dominant: str | None
    classes: Classes | None
    clustering: dict[str, Clustering]
    tuning: dict[str, Any] | None

    @property
    def method(self) -> str:
        """Name of the method."""
        return type(self.selector).__name__


def validate_request(request: Request) -> Request:
    """Return a request whose methods, parameters and criterion exist, before a table is read."""
    method = type(_selector(request)).__name__
    criterion = tuning.criterion_name(request.criterion) if request.tune else None
    others = request.others
    if others is not None:
        others = comparison.others_than(method, others)
    return replace(request, criterion=criterion, others=others)


def read(request: Request, output: str | None, report: str | None, console: Console) -> Input:
    """Read the table, or open it where it is too large to hold."""
    needs_all = {
        "--report": report is not None,
        f"--method {request.method}": not hasattr(_selector(request), "fit_batches"),
        "--tune": request.tune,
        "--compare": request.others is not None,
        f"-o {output}": output is not None and needs_whole_table(output),
    }
    found = open_input(
        request.table,
        request.reading,
        console,
        memory=request.memory,
        whole_for=next((option for option, does in needs_all.items() if does), None),
    )
    for number in request.numbers:
        methods.check_number(number, found.table)
    return found


def fit(request: Request, found: Input, console: Console) -> Selection:
    """Select, and find out what the selection is worth."""
    label = request.reading.label
    classes = None if label is None else found.classes(label)
    selector = _selector(request, found)
    start = time.perf_counter()
    with (
        console.busy(
            f"selecting from {found.table.n_features} features with {type(selector).__name__}"
        ),
        # The threads of a search are those that try settings.
        methods.at_most_threads(1 if request.tune and request.jobs is not None else request.jobs),
    ):
        fitted = _search(request, found, selector) if request.tune else selector
        best_first = found.fit(fitted)
        seconds = time.perf_counter() - start
        selector = fitted.best_estimator_ if request.tune else fitted
        variances, curve = found.variances_and_curve(selector, best_first)
        clustering = {}
        if classes is not None:
            clustering = found.clustering(best_first, classes, request.seed)
    is_raw = request.reading.scale == "none"
    return Selection(
        found=found,
        fitted=fitted,
        selector=selector,
        best_first=best_first,
        seconds=seconds,
        features=_features(found, selector, best_first, variances, curve),
        dominant=_dominant(found.table.names, variances) if is_raw else None,
        classes=classes,
        clustering=clustering,
        tuning=tuning.tuning_document(fitted) if request.tune else None,
    )


def _selector(request: Request, found: Input | None = None) -> Any:
    """Return the selector asked for; without a table, one that shows what is wrong with it."""
    must_keep: Sequence[int] = range(len(request.must_keep))
    never_keep: Sequence[int] = range(len(request.never_keep))
    if found is not None:
        must_keep = methods.column_numbers(request.must_keep, found.table, "--must-keep")
        never_keep = methods.column_numbers(request.never_keep, found.table, "--never-keep")
    return methods.make_selector(
        request.method or DEFAULT_METHOD,
        request.numbers[0],
        seed=request.seed,
        jobs=request.jobs,
        settings=request.settings,
        keep={"must_keep": must_keep, "never_keep": never_keep},
    )


def _search(request: Request, found: Input, selector: Any) -> Any:
    return tuning.make_search(
        selector,
        found.dense,
        request.numbers,
        criterion=request.criterion,
        fixed=request.settings,
        seed=request.seed,
        jobs=request.jobs,
    )


def _dominant(names: Sequence[str], variances: Array) -> str | None:
    """Return the column that hides all others by its variance, in words, if there is one."""
    largest, total = int(variances.argmax()), float(variances.sum())
    if variances.size <= 2 or variances[largest] <= _MOST_OF_IT * total:
        return None
    share = variances[largest] / total
    return f"{one_line(names[largest])!r} alone has {share:.1%} of the variance"


def _features(
    found: Input, selector: Any, best_first: Indices, variances: Array, curve: Array
) -> list[dict[str, Any]]:
    """Return what is known of the selected features, best first."""
    total = float(variances.sum())
    return [
        {
            "rank": rank,
            "name": found.table.names[column],
            "column": int(column),
            "score": float(selector.scores_[column]),
            "variance_share": float(variances[column]) / total if total > 0 else 0.0,
            "explained_variance": float(explained),
        }
        for rank, (column, explained) in enumerate(zip(best_first, curve, strict=True), start=1)
    ]


def tell(selection: Selection, console: Console) -> None:
    """Say in a few lines what came of it."""
    if selection.tuning is not None:
        tuning.say_tuning(selection.tuning, console)
    table = selection.found.table
    console.say(
        f"{selection.method} selected {len(selection.best_first)} of {table.n_features} features "
        f"from {table.n_rows} rows in {selection.seconds:.2f} s; they explain "
        f"{selection.features[-1]['explained_variance']:.1%} of the variance"
    )
    if selection.dominant is not None:
        console.say(
            f"{selection.dominant}: if the columns have different units, --scale standard lets the "
            "others count"
        )
    for which, scores in selection.clustering.items():
        console.say(f"k-means on {which} columns: {_in_percent(scores)}")


def _in_percent(scores: Clustering) -> str:
    return f"ACC {100 * scores.accuracy:.1f}, NMI {100 * scores.information:.1f}"


def compare(request: Request, selection: Selection, console: Console) -> list[comparison.Outcome]:
    """Run the other methods that were asked for, and show them beside the selection."""
    if request.others is None:
        return []
    best_first = selection.best_first
    with methods.at_most_threads(request.jobs):
        judge = comparison.Judge(selection.found, selection.classes, request.seed)
        row = judge.row(selection.method, [best_first], selection.seconds, None)
        outcomes = [
            comparison.Outcome(row, selection.selector, best_first),
            *comparison.compare_methods(
                request.others, len(best_first), judge, request.jobs, console, best_first
            ),
        ]
    comparison.say_comparison([outcome.row for outcome in outcomes], console)
    return outcomes


def write(selection: Selection, output: str, order: Literal["table", "rank"], force: bool) -> None:
    """Write the reduced table."""
    write_table(selection.found.table, output, selection.best_first, order=order, force=force)


def document(
    request: Request, selection: Selection, outcomes: Sequence[comparison.Outcome]
) -> dict[str, Any]:
    """Return all results, for JSON."""
    table = selection.found.table
    return {
        "method": selection.method,
        "parameters": selection.selector.get_params(),
        "table": request.table,
        "n_rows": table.n_rows,
        "n_features": table.n_features,
        "missing": vars(table.missing),
        "scale": request.reading.scale,
        "seed": request.seed,
        "seconds": selection.seconds,
        "selected": selection.features,
        "clustering": {which: vars(scores) for which, scores in selection.clustering.items()},
        "tuning": selection.tuning,
        "comparison": [outcome.row for outcome in outcomes] or None,
    }


def page(
    request: Request,
    selection: Selection,
    outcomes: Sequence[comparison.Outcome],
    console: Console,
    n_subsamples: int,
    command: str,
) -> str:
    """Return the report as one HTML page."""
    clusterings = {
        f"k-means on {which} columns": f"{_in_percent(scores)} (labels were not used to select)"
        for which, scores in selection.clustering.items()
    }
    with console.busy("writing the report"), methods.at_most_threads(request.jobs):
        return make_page(
            selection.fitted,
            selection.found,
            scale=request.reading.scale,
            about=clusterings,
            comparison=comparison.page_comparison(outcomes, request.tune) if outcomes else None,
            n_subsamples=n_subsamples,
            seed=request.seed,
            command=command,
        )
