"""Experiments: what to run (specs), how (executors), and where results stay (a store)."""

from bsufs_paper.experiments.engine import FAILURES, collect, run_specs
from bsufs_paper.experiments.executors import dask_workers, local_workers
from bsufs_paper.experiments.protocol import Protocol
from bsufs_paper.experiments.specs import Method, Spec, load_spec, paper_specs, with_needed
from bsufs_paper.experiments.store import Outcome, Part, ResultStore, Status
from bsufs_paper.experiments.tasks import Task

__all__ = [
    "FAILURES",
    "Method",
    "Outcome",
    "Part",
    "Protocol",
    "ResultStore",
    "Spec",
    "Status",
    "Task",
    "collect",
    "dask_workers",
    "load_spec",
    "local_workers",
    "paper_specs",
    "run_specs",
    "with_needed",
]
