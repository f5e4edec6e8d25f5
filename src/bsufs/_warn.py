"""Warnings that point at the line of the caller, however deep in the library they arise."""

import sys
import warnings

_INSIDE = ("bsufs", "sklearn", "joblib")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that belongs neither to this library nor to scikit-learn."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
