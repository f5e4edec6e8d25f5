"""The work of ``bsufs select``: check, read, fit, tell, compare, and what the files hold."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bsufs._names import one_line, shortened
from bsufs._threads import at_most_threads
from bsufs._typing import Array, Indices
from bsufs.cli import _comparison as comparison
from bsufs.cli import _methods as methods
from bsufs.cli._columns import KEPT, column_costs, features_named
from bsufs.cli._console import Console, as_csv, print_table
from bsufs.cli._input import Classes, Input, open_input
from bsufs.cli._options import one_of
from bsufs.cli._page import findings_of, make_page, python_lines
from bsufs.selectors._agreement import TOLERANCE
from bsufs.solvers.components import common_level_in_words
from bsufs.tables._write import needs_whole_table
from bsufs.tuning import LabelFreeSearch
from bsufs.tuning.criteria import CRITERIA

if TYPE_CHECKING:
    from bsufs.inspection import Alternative
    from bsufs.inspection._features import FeatureFindings

# What clusters best without labels; see the documentation on choosing without labels.
DEFAULT_METHOD = "ClusterAlignment"
# With more than this share of the variance a column decides by its unit what is selected.
_MOST_OF_IT = 0.5
# So many features of an alternative are named on a terminal, in so many characters each.
_FIRST, _NAME_WIDTH = 3, 20
# So many settings that were tried are shown, under headings of their own for some.
_SETTINGS_SHOWN = 5
_HEADINGS = {
    "n_features": "k",
    "reconstruction": "held out",
    "clustering_agreement": "clusters agree",
    "restart_agreement": "restarts agree",
}


@dataclass(frozen=True)
class Selection:
    """What came of a command, and all results as JSON holds them."""

    given: Any
    found: Input
    fitted: Any
    selector: Any
    # Columns of the matrix, and the features they belong to.
    best_first: Indices
    features: Indices
    classes: Classes | None
    document: dict[str, Any]

    @cached_property
    def findings(self) -> FeatureFindings:
        """What a report and reasons tell of a table that is held."""
        return findings_of(self.given, self.found, self.fitted)


def read(given: Any, console: Console) -> Input:
    """Check the words of the command, and read the table, or open it where it is too large."""
    asked = {one: getattr(given, one) or getattr(given, f"{one}_matching") for one in KEPT}
    selector = _selector(given, asked | {"costs": given.costs, "budget": given.budget})
    if given.criterion is not None:
        name = given.criterion.replace("-", "_")
        given.criterion = one_of(name, list(CRITERIA), "--criterion")
    if given.others:
        given.others = comparison.others_than(type(selector).__name__, given.others)
    needs_all = {
        "--report": given.report_file is not None,
        f"--method {given.method}": not hasattr(selector, "fit_batches"),
        "--tune": given.tune,
        "--compare": bool(given.others),
        "--alternatives": given.alternatives > 0,
        # Also says where the extension is none that can be written.
        f"-o {given.output}": given.output is not None and needs_whole_table(given.output),
    }
    whole_for = next((option for option, does in needs_all.items() if does), None)
    found = open_input(given, console, whole_for)
    for number in given.numbers:
        methods.check_number(number, found.table)
    return found


def fit(given: Any, found: Input) -> Selection:
    """Select, and find out what the selection is worth."""
    table, console = found.table, found.console
    classes = None if given.label is None else found.classes(given.label)
    selector = _selector(given, _kept(given, found))
    method = type(selector).__name__
    start = time.perf_counter()
    with (
        console.busy(f"selecting from {table.n_features} features with {method}"),
        # The threads of a search are those that try settings.
        at_most_threads(1 if given.tune and given.jobs is not None else given.jobs),
    ):
        fitted = methods.make_search(selector, found.dense, given) if given.tune else selector
        best_first = found.fit(fitted)
        seconds = time.perf_counter() - start
        selector = fitted.best_estimator_ if given.tune else fitted
        features, ends = found.table.by_feature(best_first)
        data = found.fitted_data(selector)
        variances = data.variances[: len(table.matrix_names)]
        curve = data.explained_curve(best_first)
        clustering = found.clustering(best_first, classes, given.seed) if classes else {}
    if table.groups is not None:
        variances = np.asarray(np.bincount(table.groups, variances), dtype=np.float64)
    total = variances.sum()
    shares = variances / total if 0.0 < total < np.inf else np.zeros(variances.size)
    columns = _columns(found, selector)
    document = {
        "method": method,
        "parameters": {
            name: value
            for name, value in selector.get_params().items()
            if name not in ("adjust_for", "center_rows")
        },
        "table": given.table,
        "n_rows": table.n_rows,
        "n_features": table.n_features,
        "missing": vars(table.missing),
        "scale": table.scale,
        "adjust_for": given.adjust_for,
        "batch_key": given.batch_key,
        "center_rows": given.center_rows,
        "seed": given.seed,
        "seconds": seconds,
        "selected": [
            {
                "rank": rank,
                "name": table.names[feature],
                "column": feature,
                "group": columns[table.names[feature]]["group"],
                "score": columns[table.names[feature]]["score"],
                "variance_share": shares[feature],
                "explained_variance": curve[end],
            }
            for rank, (feature, end) in enumerate(zip(features, ends, strict=True), start=1)
        ],
        "columns": list(columns.values()),
        "agreement_curve": getattr(selector, "agreement_curve_", None),
        "clustering": clustering,
        "tuning": _tuning_document(fitted) if given.tune else None,
        "comparison": None,
        "alternatives": None,
        "python": python_lines(given, found, selector),
    }
    _tell(document, table.names, shares, console)
    if found.nuisance is None:
        shared = common_level_in_words(data.scatter, in_shell=True)
        if shared is not None:
            console.say(shared)
    return Selection(given, found, fitted, selector, best_first, features, classes, document)


def _columns(found: Input, selector: Any) -> dict[str, dict[str, Any]]:
    """Return for every column of the table what it was taken as, and what came of it."""
    table = found.table
    # Behind the columns of the matrix may stand what was adjusted for.
    best_first = np.argsort(selector.ranking_[: len(table.matrix_names)])
    features, ends = table.by_feature(best_first)
    # The score of a feature is that of its best column, which comes first.
    best = best_first[np.append(0, ends[:-1] + 1)]
    group = {feature: label for label, members in found.groups.items() for feature in members}
    nothing = dict.fromkeys(["rank", "score", "kept", "group"]) | {"kept": False}
    columns = {
        one.name: {"name": one.name, "kind": one.kind, "why": one.why} | nothing
        for one in table.columns
    }
    for rank, (feature, column) in enumerate(zip(features.tolist(), best, strict=True), start=1):
        columns[table.names[feature]] |= {
            "rank": rank,
            "score": float(selector.scores_[column]),
            "kept": bool(selector.support_[column]),
            "group": group.get(feature),
        }
    return columns


def ranking_as_csv(selection: Selection) -> str:
    """Return all columns, best first, with the reason for which each was kept or left out."""
    reasons: dict[str, str] = {}
    if selection.found.table.is_held:
        from bsufs.inspection.explanation import reasons_by_feature

        reasons = reasons_by_feature(selection.findings)
    rows = sorted(
        (
            row | {"reason": reasons.get(row["name"], row["why"])}
            for row in selection.document["columns"]
        ),
        key=lambda row: (row["rank"] is None, row["rank"]),
    )
    return as_csv(rows, ["rank", "name", "score", "kept", "group", "kind", "reason"])


def show(selection: Selection) -> None:
    """Print what was kept: a table with reasons on a terminal, names alone elsewhere."""
    document = selection.document
    rows = document["selected"]
    if not sys.stdout.isatty():
        print(*(one_line(row["name"]) for row in rows), sep="\n")
        return
    columns = {
        "rank": [str(row["rank"]) for row in rows],
        "feature": [row["name"] for row in rows],
        "explained so far": [f"{row['explained_variance']:.1%}" for row in rows],
    }
    if selection.found.table.is_held:
        from bsufs.inspection.explanation import represented

        stands_for = represented(selection.findings, _NAME_WIDTH)
        columns["stands for"] = [stands_for[row["name"]] for row in rows]
    print_table(
        f"{document['method']}: {len(rows)} of {document['n_features']} features",
        list(columns),
        list(zip(*columns.values(), strict=True)),
    )


def _kept(given: Any, found: Input) -> dict[str, Any]:
    """Return what a selector is to know of the columns of the matrix."""
    table, groups = found.table, found.groups
    must, never = (features_named(given, option, table, groups) for option in KEPT)
    both = set(must).intersection(never)
    if both:
        raise ValueError(
            f"--must-keep and --never-keep both name {table.names[min(both)]!r}. Take it out of "
            "one of them."
        )
    costs = column_costs(given, table, groups)
    if costs is not None and table.groups is not None:
        # The columns of a category share its cost.
        costs = (np.array(costs) / np.bincount(table.groups))[table.groups].tolist()
    return {
        "must_keep": table.places(must).tolist(),
        "never_keep": table.places(never).tolist(),
        "costs": costs,
        "budget": given.budget,
        "groups": found.kept_together,
    }


def _selector(given: Any, keep: dict[str, Any]) -> Any:
    method, number = given.method or DEFAULT_METHOD, given.numbers[0]
    return methods.make_selector(method, number, given.seed, given.jobs, given.settings, keep)


def _tuning_document(search: LabelFreeSearch) -> dict[str, Any]:
    # A data frame where there is pandas, else a dictionary: both are columns by name.
    columns = {name: list(search.criteria_[name]) for name in search.criteria_}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return {
        "criterion": search.criterion,
        "best_params": search.best_params_,
        "best_score": search.best_score_,
        "candidates": sorted(rows, key=lambda row: int(row["rank"])),
    }


def _tell_tuning(tuning: dict[str, Any], console: Console) -> None:
    """Show the best candidates."""
    rows = tuning["candidates"]
    best = ", ".join(f"{name}={value}" for name, value in tuning["best_params"].items())
    console.say(f"tried {len(rows)} settings without labels; {tuning['criterion']} chose {best}")
    columns = [name for name in rows[0] if name != "rank"]
    shown, by = rows[:_SETTINGS_SHOWN], tuning["criterion"].replace("_", " ")
    console.show(
        f"The {len(shown)} best of {len(rows)} settings, by {by}",
        # Without underscores a heading may break, and the table fits into 80 characters.
        [_HEADINGS.get(n, n.removeprefix("param_").replace("_", " ")) for n in columns],
        [[f"{row[n]:.3f}" if n in CRITERIA else str(row[n]) for n in columns] for row in shown],
    )


def _tell(document: dict[str, Any], names: Sequence[str], shares: Array, console: Console) -> None:
    """Say in a few lines what came of it."""
    if document["tuning"] is not None:
        _tell_tuning(document["tuning"], console)
    groups = {row["group"] for row in document["selected"]} - {None}
    in_groups = f" in {len(groups)} group{'s' * (len(groups) > 1)}" if groups else ""
    console.say(
        f"{document['method']} selected {len(document['selected'])} of {len(names)} features"
        f"{in_groups} from {document['n_rows']} rows in {document['seconds']:.2f} s; they explain "
        f"{document['selected'][-1]['explained_variance']:.1%} of the variance"
    )
    if document["agreement_curve"] is not None:
        pairs = zip(*document["agreement_curve"].values(), strict=True)
        tried = ", ".join(f"{agreement:.2f} with {number}" for number, agreement in pairs)
        console.say(
            "auto keeps the fewest columns that show the clusters it looked for within "
            f"{TOLERANCE} of the best: {tried}"
        )
    largest = int(shares.argmax())
    if document["scale"] == "none" and len(names) > 2 and shares[largest] > _MOST_OF_IT:
        console.say(
            f"{one_line(names[largest])!r} alone has {shares[largest]:.1%} of the variance: if the "
            "columns have different units, --scale standard lets the others count"
        )
    for which, scores in document["clustering"].items():
        console.say(f"k-means on {which} columns: {_in_percent(scores)}")


def _in_percent(scores: dict[str, float]) -> str:
    return f"ACC {100 * scores['accuracy']:.1f}, NMI {100 * scores['information']:.1f}"


def compare(given: Any, selection: Selection) -> comparison.MethodComparison | None:
    """Run the other methods that were asked for, and show them beside the selection."""
    if not given.others:
        return None
    document, console = selection.document, selection.found.console
    with at_most_threads(given.jobs):
        compared = comparison.MethodComparison(given, selection.found, selection.classes)
        fitted = [selection.selector]
        compared.add(document["method"], fitted, document["seconds"], document["n_rows"])
        compared.run(given.others, given.numbers[0])
    document["comparison"] = compared.rows
    console.show("Other methods", *comparison.short_table(compared.rows))
    for said in compared.sampled:
        console.say(said)
    comparison.complain_of_failures(compared.rows, "warning: ")
    return compared


def show_alternatives(given: Any, selection: Selection) -> list[Alternative]:
    """Select for other groups of the rows, where that was asked for, and show what came of it."""
    if not given.alternatives:
        return []
    from bsufs.inspection.alternative import alternatives

    found, main = selection.found, selection.selector
    with found.console.busy("looking for alternatives"), at_most_threads(given.jobs):
        others = alternatives(main, found.data, given.alternatives)
    documents = [other.document(found.table.matrix_names) for other in others]
    selection.document["alternatives"] = documents
    if len(others) < given.alternatives:
        found.console.say(f"alternatives for which the table has components: {len(others)}")
    found.console.show(
        "Alternatives",
        ("clusters in", "variance", "clusters", "stability", "overlap", "first features"),
        [
            [
                one["title"],
                f"{one['variance_share']:.1%}",
                str(len(one["cluster_sizes"])),
                f"{one['stability']:.2f}",
                f"{one['overlap']['selection']:.2f}",
                ", ".join(shortened(name, _NAME_WIDTH) for name in one["features"][:_FIRST]),
            ]
            for one in documents
        ],
    )
    return others


def page(
    given: Any,
    selection: Selection,
    compared: comparison.MethodComparison | None,
    others: Sequence[Alternative],
) -> str:
    """Return the report as one HTML page."""
    clusterings = {
        f"k-means on {which} columns": f"{_in_percent(scores)} (labels were not used to select)"
        for which, scores in selection.document["clustering"].items()
    }
    shown = None if compared is None else comparison.page_comparison(compared, given.tune)
    return make_page(given, selection.found, selection.findings, shown, clusterings, others)
