"""Experiments: what to run (specs), how (executors), and where results stay (a store)."""

from bsufs._extras import needs

with needs("bsufs.experiments", "experiments"):
    from bsufs.experiments.engine import FAILURES, collect, run_specs
    from bsufs.experiments.executors import DaskExecutor, LocalExecutor
    from bsufs.experiments.protocol import Protocol
    from bsufs.experiments.specs import Method, Spec, load_spec, paper_specs, with_needed
    from bsufs.experiments.store import Outcome, Part, ResultStore, Status
    from bsufs.experiments.tasks import Task

__all__ = [
    "FAILURES",
    "DaskExecutor",
    "LocalExecutor",
    "Method",
    "Outcome",
    "Part",
    "Protocol",
    "ResultStore",
    "Spec",
    "Status",
    "Task",
    "collect",
    "load_spec",
    "paper_specs",
    "run_specs",
    "with_needed",
]
