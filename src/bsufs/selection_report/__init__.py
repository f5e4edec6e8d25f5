"""One selection as one HTML page: what was kept, why, how sure it is, and how to repeat it."""

try:
    from bsufs.selection_report._comparison import Comparison
    from bsufs.selection_report._page import make_report
except ModuleNotFoundError as error:  # pragma: no cover - the tests have every extra
    if error.name is not None and error.name.split(".")[0] == "bsufs":
        raise
    raise ModuleNotFoundError(
        f'bsufs.selection_report needs {error.name}: pip install "bsufs[report]"', name=error.name
    ) from error

__all__ = ["Comparison", "make_report"]
