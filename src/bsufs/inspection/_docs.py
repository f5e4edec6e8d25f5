"""Parameters that repeat in the docstrings of this folder, said once."""

from functools import partial

from bsufs.selectors import _docs

_TEXTS = {
    "selector": """\
selector : selector
    A fitted selector of the library; of a search, the selector that it found best is shown.""",
    "X": """\
X : array, data frame or sparse matrix of shape (n_samples, n_features)
    The data it was fitted to.""",
    "feature_names": """\
feature_names : sequence of str, optional
    Names of all columns, where X has none; ``x0``, ``x1``, ... otherwise.""",
    "subsamples": """\
n_subsamples : int, default=20
    How often the selector is fitted again to a random part of the rows; 0 to skip that. Of more
    than 5000 features, these fits choose among the 5000 (or twice the selected) that rank best.
subsample : float, default=0.5
    Share of the rows in each part, drawn without replacement.
random_state : int, RandomState instance or None, default=0
    Seed for drawing the parts, and for selectors that are random themselves.
n_jobs : int, optional
    Number of fits to run in parallel, as in joblib; the result does not depend on it.""",
    "axes": """\
ax : matplotlib.axes.Axes, optional
    Where to draw; new axes by default.

Returns
-------
matplotlib.axes.Axes
    The axes.

Examples
--------
>>> from sklearn.datasets import load_digits
>>> from bsufs import BSUFS, inspection
>>> X = load_digits().data
>>> selector = BSUFS(16).fit(X)""",
}

fill_docstring = partial(_docs.fill_docstring, texts=_TEXTS)
