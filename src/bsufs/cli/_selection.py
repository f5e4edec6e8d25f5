"""The steps of ``bsufs select``: check, read, fit, tell, compare, and what the files hold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bsufs._typing import Indices
from bsufs.cli import _comparison as comparison
from bsufs.cli import _methods as methods
from bsufs.cli import _tuning as tuning
from bsufs.cli._base import Input
from bsufs.cli._clustering import Classes, Clustering
from bsufs.cli._console import Reporter, one_line
from bsufs.cli._input import open_input
from bsufs.cli._request import Request, Targets
from bsufs.scatter import Scatter

# What clusters best without labels; see the documentation on choosing without labels.
DEFAULT_METHOD = "AlignedBSUFS"
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


def checked(request: Request) -> Request:
    """Return a request whose methods, parameters and criterion there are.

    A large table is not read before that is known.
    """
    untried = validate_request(request)
    criterion = tuning.criterion_name(request.criterion) if request.tune else None
    others = request.others
    if others is not None:
        others = comparison.others_than(type(untried).__name__, others)
    return replace(request, criterion=criterion, others=others)


def validate_request(request: Request) -> Any:
    """Return a selector that shows what is wrong with a request, table or no table."""
    return methods.make_selector(
        request.method or DEFAULT_METHOD,
        request.numbers[0],
        seed=request.seed,
        settings=request.settings,
        keep={
            "must_keep": range(len(request.must_keep)),
            "never_keep": range(len(request.never_keep)),
        },
    )


def read(request: Request, targets: Targets, report: Reporter) -> Input:
    """Read the table, or open it where it is too large to hold."""
    found = open_input(
        request.table,
        request.reading,
        report,
        memory=request.memory,
        needs_all=_options_that_need_all(request, targets),
    )
    for number in request.numbers:
        methods.check_number(number, found.table)
    return found


def _options_that_need_all(request: Request, targets: Targets) -> list[str]:
    method, output = request.method, targets.output
    needs_all = {
        "--report": targets.report is not None,
        f"--method {method}": method is not None
        and not hasattr(validate_request(request), "partial_fit"),
        "--tune": request.tune,
        "--compare": request.others is not None,
        f"-o {output}": output is not None and output.lower().endswith((".npy", ".npz")),
    }
    return [option for option, does in needs_all.items() if does]


def fit(request: Request, found: Input, report: Reporter) -> Selection:
    """Select, and find out what the selection is worth."""
    label = request.reading.label
    classes = None if label is None else found.classes(label)
    selector = _selector(request, found)
    name = type(selector).__name__
    start = time.perf_counter()
    with (
        report.busy(f"selecting from {found.table.n_features} features with {name}"),
        # The threads of a search are those that try settings.
        methods.at_most_threads(1 if request.tune and request.jobs is not None else request.jobs),
    ):
        fitted = _search(request, found, selector) if request.tune else selector
        best_first = found.fit(fitted)
        seconds = time.perf_counter() - start
        selector = fitted.best_estimator_ if request.tune else fitted
        scatter = found.scatter(selector)
        return Selection(
            found=found,
            fitted=fitted,
            selector=selector,
            best_first=best_first,
            seconds=seconds,
            features=_features(found, scatter, selector, best_first),
            dominant=_dominant(found, scatter) if request.reading.scale == "none" else None,
            classes=classes,
            clustering=(
                {} if classes is None else found.clustering(best_first, classes, request.seed)
            ),
            tuning=tuning.tuning_document(fitted) if request.tune else None,
        )


def _selector(request: Request, found: Input) -> Any:
    return methods.make_selector(
        request.method or DEFAULT_METHOD,
        request.numbers[0],
        seed=request.seed,
        jobs=request.jobs,
        settings=request.settings,
        keep={
            "must_keep": methods.column_numbers(request.must_keep, found.table, "--must-keep"),
            "never_keep": methods.column_numbers(request.never_keep, found.table, "--never-keep"),
        },
    )


def _search(request: Request, found: Input, selector: Any) -> Any:
    return tuning.make_search(
        selector,
        found.whole.X,
        request.numbers,
        criterion=request.criterion,
        fixed=request.settings,
        seed=request.seed,
        jobs=request.jobs,
    )


def _dominant(found: Input, scatter: Scatter) -> str | None:
    """Return the column that hides all others by its variance, in words, if there is one."""
    variances = scatter.diagonal()
    largest, total = int(variances.argmax()), float(variances.sum())
    if variances.size <= 2 or variances[largest] <= _MOST_OF_IT * total:
        return None
    name = one_line(found.table.names[largest])
    return f"{name!r} alone has {variances[largest] / total:.1%} of the variance"


def _features(
    found: Input, scatter: Scatter, selector: Any, best_first: Indices
) -> list[dict[str, Any]]:
    """Return what is known of the selected features, best first."""
    variances = scatter.diagonal()
    total = float(variances.sum())
    # Of data that do not vary nothing is left to explain.
    curve = scatter.explained_curve(best_first) if total > 0 else [1.0] * len(best_first)
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


def tell(selection: Selection, report: Reporter) -> None:
    """Say in a few lines what came of it."""
    if selection.tuning is not None:
        tuning.say_tuning(selection.tuning, report)
    table = selection.found.table
    report.say(
        f"{selection.method} selected {len(selection.best_first)} of {table.n_features} features "
        f"from {table.n_rows} rows in {selection.seconds:.2f} s; they explain "
        f"{selection.features[-1]['explained_variance']:.1%} of the variance"
    )
    if selection.dominant is not None:
        report.say(
            f"{selection.dominant}: if the columns have different units, --scale standard lets the "
            "others count"
        )
    for which, scores in selection.clustering.items():
        report.say(f"k-means on {which} columns: {_in_percent(scores)}")


def _in_percent(scores: Clustering) -> str:
    return f"ACC {100 * scores.accuracy:.1f}, NMI {100 * scores.information:.1f}"


def compare(request: Request, selection: Selection, report: Reporter) -> list[comparison.Outcome]:
    """Run the other methods that were asked for, and show them beside the selection."""
    if request.others is None:
        return []
    best_first = selection.best_first
    with methods.at_most_threads(request.jobs):
        judge = comparison.Judge(selection.found.whole, selection.classes, request.seed)
        row = judge.row(selection.method, [best_first], selection.seconds, None)
        outcomes = [
            comparison.Outcome(row, selection.selector, best_first),
            *comparison.compare_methods(
                request.others, len(best_first), judge, request.jobs, report, best_first
            ),
        ]
    comparison.say_comparison([outcome.row for outcome in outcomes], report)
    return outcomes


def document(
    request: Request, selection: Selection, outcomes: Sequence[comparison.Outcome]
) -> dict[str, Any]:
    """Return all results, for JSON."""
    found = selection.found
    return {
        "method": selection.method,
        "parameters": selection.selector.get_params(),
        "table": request.table,
        "n_rows": found.table.n_rows,
        "n_features": found.table.n_features,
        "missing": vars(found.missing),
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
    report: Reporter,
    *,
    n_subsamples: int,
    command: str,
) -> str:
    """Return the report as one HTML page."""
    from bsufs.cli._page import make_page

    with report.busy("writing the report"), methods.at_most_threads(request.jobs):
        return make_page(
            selection.fitted,
            selection.found.whole,
            about=_about(request, selection),
            comparison=comparison.page_comparison(outcomes, request.tune) if outcomes else None,
            n_subsamples=n_subsamples,
            seed=request.seed,
            command=command,
        )


def _about(request: Request, selection: Selection) -> dict[str, str]:
    """Return what the page says of the data."""
    about = {"Table": request.table, "Scale": request.reading.scale}
    for which, scores in selection.clustering.items():
        about[f"k-means on {which} columns"] = (
            f"{_in_percent(scores)} (labels were not used to select)"
        )
    return about
