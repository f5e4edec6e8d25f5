"""What to run: specs, read from YAML into frozen dataclasses.

A spec names datasets, methods with their settings, and a recipe: how settings become tasks and
results become tables. `load_spec` explains the fields by its errors; the files in ``paper`` are
examples.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from bsufs_paper.datasets import dataset_info
from bsufs_paper.experiments.protocol import INITIALIZATIONS, Protocol

ALL_FEATURES = "all"
# Stands for the number of classes of the dataset, where a method wants to be told.
N_CLASSES = "n_classes"

_METHOD_FIELDS = frozenset({"label", "selector", "parameters", "grid", "per_count", "options"})
_PROTOCOL_FIELDS = frozenset(field.name for field in fields(Protocol))


@dataclass(frozen=True)
class Method:
    """A column of a comparison: a selector and the settings that are tried."""

    label: str
    selector: str
    settings: tuple[dict[str, Any], ...] = ({},)
    per_count: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def settings_for(self, dataset: str) -> list[dict[str, Any]]:
        """Return the parameters of each setting, with the number of classes filled in."""
        n_classes = dataset_info(dataset).n_classes
        return [
            {name: n_classes if value == N_CLASSES else value for name, value in setting.items()}
            for setting in self.settings
        ]


@dataclass(frozen=True)
class Spec:
    """A run: what is compared, where, and by which rules.

    Parameters
    ----------
    name : str
        Name of the run.
    recipe : str
        How settings become tasks and results become tables; see `bsufs_paper.experiments.recipes`.
    datasets : tuple of str
        Registered names.
    methods : tuple of Method
        The columns.
    title : str, default=""
        What it shows.
    protocol : Protocol, default=Protocol()
        The rules.
    timeout : float or None, default=None
        Seconds after which a task is given up.
    winners_of : str or None, default=None
        A run whose winning settings are used, for methods of the same label.
    options : dict, default={}
        What else the recipe wants to know.
    initializations : tuple of str, default=()
        Other starts of k-means with which the winners are judged too.
    """

    name: str
    recipe: str
    datasets: tuple[str, ...]
    methods: tuple[Method, ...]
    title: str = ""
    protocol: Protocol = field(default_factory=Protocol)
    timeout: float | None = None
    winners_of: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    initializations: tuple[str, ...] = ()


_SPEC_FIELDS = frozenset(field.name for field in fields(Spec)) | {"quick"}


def load_spec(source: str | Path | Mapping[str, Any], *, quick: bool = False) -> Spec:
    """Read a spec.

    Parameters
    ----------
    source : path-like or mapping
        A YAML file, or what stands in one.
    quick : bool, default=False
        Whether to take the small version: what the field `quick` says goes over the rest.

    Returns
    -------
    Spec
        The run.

    Examples
    --------
    >>> from bsufs_paper.experiments import load_spec
    >>> spec = load_spec({
    ...     "name": "mine",
    ...     "recipe": "fixed",
    ...     "datasets": ["LUNG"],
    ...     "methods": [{"label": "BSUFS", "selector": "BSUFS",
    ...                  "grid": [{"p": [0, 0.5]}]}],
    ... })
    >>> spec.methods[0].settings
    ({'p': 0}, {'p': 0.5})
    """
    if isinstance(source, Mapping):
        return _spec(dict(source), "the spec", quick)
    path = Path(source)
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no spec {path}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(given, dict):
        raise ValueError(f"{path} must hold fields such as name, recipe, datasets and methods.")
    return _spec(given, str(path), quick)


def paper_specs(*, quick: bool = False) -> dict[str, Spec]:
    """Return the runs that the paper's tables and figures come from."""
    folder = Path(str(files(__package__))) / "paper"
    specs = [load_spec(path, quick=quick) for path in sorted(folder.glob("*.yaml"))]
    return {spec.name: spec for spec in specs}


def with_needed(names: Iterable[str], specs: Mapping[str, Spec]) -> list[Spec]:
    """Return the named runs and those whose winners they use, the latter first."""
    ordered: dict[str, Spec] = {}
    for name in names:
        if name not in specs:
            raise ValueError(f"there is no run {name!r}; choose from {', '.join(specs)}.")
        needed = specs[name].winners_of
        if needed is not None:
            ordered |= {spec.name: spec for spec in with_needed([needed], specs)}
        ordered[name] = specs[name]
    return list(ordered.values())


# ------------------------------------------------------------------------------------- from YAML


def _spec(given: dict[str, Any], where: str, quick: bool) -> Spec:
    smaller = _fields(given.pop("quick", None), f"quick of {where}")
    max_settings = smaller.pop("max_settings", None)
    _require_known(smaller, _SPEC_FIELDS, f"quick of {where}")
    if quick:
        rules = _fields(given.get("protocol"), f"protocol of {where}")
        rules |= _fields(smaller.get("protocol"), f"protocol in quick of {where}")
        given = given | smaller | {"protocol": rules}
    _require_known(given, _SPEC_FIELDS, where)
    for name in ("name", "recipe", "datasets", "methods"):
        if not given.get(name):
            raise ValueError(f"{where} must have the field {name}.")
    datasets = _different(given["datasets"], f"datasets of {where}")
    for dataset in datasets:
        dataset_info(dataset)
    methods = tuple(_method(m, where) for m in _listed(given["methods"], f"methods of {where}"))
    _different([method.label for method in methods], f"labels of methods in {where}")
    if quick and max_settings is not None:
        if not _is_positive(max_settings):
            raise ValueError(
                f"max_settings in quick of {where} must be a positive number, got {max_settings!r}."
            )
        methods = tuple(
            replace(method, settings=_thinned(method.settings, int(max_settings)))
            for method in methods
        )
    timeout = given.get("timeout")
    if timeout is not None and not _is_positive(timeout):
        raise ValueError(
            f"timeout of {where} must be a positive number of seconds, got {timeout!r}."
        )
    rules = _fields(given.get("protocol"), f"protocol of {where}")
    _require_known(rules, _PROTOCOL_FIELDS, f"protocol of {where}")
    protocol = Protocol(**rules)
    return Spec(
        name=str(given["name"]),
        recipe=given["recipe"],
        datasets=tuple(datasets),
        methods=methods,
        title=given.get("title", ""),
        protocol=protocol,
        timeout=timeout,
        winners_of=given.get("winners_of"),
        options=_fields(given.get("options"), f"options of {where}"),
        initializations=_other_starts(given.get("initializations"), protocol, where),
    )


def _other_starts(given: Any, protocol: Protocol, where: str) -> tuple[str, ...]:
    starts = _different(given or [], f"initializations of {where}")
    others = [init for init in INITIALIZATIONS if init != protocol.kmeans_init]
    for init in starts:
        if init not in others:
            raise ValueError(
                f"initializations of {where} must be among {', '.join(others)}, the others than "
                f"kmeans_init, got {init!r}."
            )
    return tuple(starts)


def _fields(given: Any, where: str) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(f"{where} must have fields, got {given!r}.")
    return dict(given)


def _listed(given: Any, where: str) -> list[Any]:
    if not isinstance(given, list | tuple):
        raise ValueError(f"{where} must be a list, got {given!r}.")
    return list(given)


def _different(given: Any, where: str) -> list[str]:
    names = _listed(given, where)
    doubled = [name for place, name in enumerate(names) if name in names[:place]]
    if doubled:
        raise ValueError(f"{where} must differ, got {doubled[0]!r} twice.")
    return names


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _method(given: Any, where: str) -> Method:
    given = _fields(given, f"each of methods in {where}")
    _require_known(given, _METHOD_FIELDS, f"a method in {where}")
    if not given.get("label"):
        raise ValueError(f"each of methods in {where} must have a label, got {given!r}.")
    where = f"the method {given['label']!r} of {where}"
    fixed = _fields(given.get("parameters"), f"parameters of {where}")
    grids = _listed(given.get("grid") or [{}], f"grid of {where}")
    settings = tuple(fixed | setting for grid in grids for setting in _product(grid, where))
    for setting in settings:
        for name, value in setting.items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{name} of {where} must be finite, got {value}.")
    return Method(
        label=str(given["label"]),
        selector=given.get("selector") or given["label"],
        settings=settings,
        per_count=bool(given.get("per_count", False)),
        options=_fields(given.get("options"), f"options of {where}"),
    )


def _product(grid: Any, where: str) -> list[dict[str, Any]]:
    """Return every combination of the values in a grid."""
    if not isinstance(grid, dict):
        raise ValueError(
            f"grid of {where} must be a list of fields with lists of values, got {grid!r}."
        )
    # {range: n} stands for 0, ..., n - 1: the seeds of n random rankings, say.
    values = [
        range(value["range"]) if isinstance(value, dict) and "range" in value else value
        for value in grid.values()
    ]
    for name, value in zip(grid, values, strict=True):
        if not isinstance(value, list | range) or not len(value):
            raise ValueError(f"{name} in a grid of {where} must be a list, got {value!r}.")
    return [dict(zip(grid, chosen, strict=True)) for chosen in itertools.product(*values)]


def _thinned(settings: tuple[dict[str, Any], ...], most: int) -> tuple[dict[str, Any], ...]:
    """Return at most so many settings, evenly spread."""
    if len(settings) <= most:
        return settings
    return tuple(settings[i * len(settings) // most] for i in range(most))


def _require_known(given: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(
            f"{where} has no field {', '.join(unknown)}; choose from {', '.join(sorted(known))}."
        )
