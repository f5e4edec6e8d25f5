"""Parameters and attributes that repeat in docstrings, said once.

A line `%(name)s` in the docstring of a selector, or of what shows one, stands for the text of that
name here, and {name} for its own. Other percent signs and braces mean nothing, so formulas stay as
they are.
"""

import re
from textwrap import indent
from typing import TypeVar

Documented = TypeVar("Documented")

_PLACEHOLDER = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)

_TEXTS = {
    "n_features_to_select": """\
n_features_to_select : int, float or "auto", default="auto"
    How many features to keep: a number, a share of all, or "auto", half of them.""",
    "n_components": """\
n_components : int, float or "auto", default="auto"
    Number of components m; a share of the total variance that they reach; or "auto", the
    number of principal components above the noise edge (parallel analysis), at most 64.""",
    "n_neighbors": """\
n_neighbors : int, default=5
    Neighbors of each sample; fewer where there are too few samples.""",
    "compat": """\
compat : {"publication", "reference"}, default="publication"
    Whether to do what the publication means or what the authors' public code does, see Notes.""",
    "random_state": """\
random_state : int, RandomState instance or None, default=None
    Seed for ``init="random"``; nothing else is random.""",
    "must_keep": """\
must_keep : sequence of str or int, optional
    Features that are always selected; the others are judged beside them.""",
    "never_keep": """\
never_keep : sequence of str or int, optional
    Features that are never selected: the fit goes as if they were not there.""",
    "groups": """\
groups : sequence or dict, optional
    Columns that are kept or left out together: a label for each column, or a dict from the name
    of a group to its columns, in which columns may be left out. `n_features_to_select` then
    counts groups, and `must_keep` and `never_keep` may name a group or any column of it.
costs : sequence or dict, optional
    What a column costs, a positive number, for each column or by name; the costs of a group are
    those of its columns together, unless given for the group. Needs a `budget`.
budget : float, optional
    The most that the selected columns may cost together; instead of `n_features_to_select`.""",
    "adjust_for": """\
adjust_for : str, int, list of these, or array, series or data frame of n_samples rows, optional
    What must not decide, such as a batch or a sequencing depth: names or numbers of columns of X,
    which are then never selected, or values for each row. Numbers are taken as numbers; text,
    categories and booleans as groups. All columns are cleared of what a linear regression with
    intercept on it explains; `transform` still returns them as they came.""",
    "center_rows": """\
center_rows : bool, default=False
    Whether to take off each row its mean over the columns (without those of `never_keep` and
    `adjust_for`) first, for data whose rows share a level.""",
    "fitted": """\
ranking_ : array of int of shape (n_features,)
    1 for the best feature; the features of a group come one after another.
support_ : array of bool of shape (n_features,)
    The selected features.
selected_features_ : array of shape (n_features_to_select,)
    Names, or column numbers where there are no names, best first.
selected_groups_ : array
    Labels of the selected groups, best first; only where there are groups.
groups_ : array of shape (n_features,)
    The label of the group of each feature; only where there are groups.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : array of str
    Their names, if all are strings.""",
    "components_": """\
n_components_ : int
    The number of components.
components_ : array of shape (n_components, n_features)
    The orthonormal W, transposed.""",
    "explained_variance": """\
explained_variance_ratio_ : float
    Share of the total variance that linear regression on the selected features explains; NaN
    for more than 4096 of them where there are more samples than that.
explained_variance_curve_ : array of shape (n_features_to_select,)
    The same for the best feature alone, the best two, and so on; with groups, the best group.""",
    "example": """\
Examples
--------
>>> from sklearn.datasets import load_iris
>>> from bsufs.selectors import {name}
>>> selector = {name}(2).fit(load_iris().data)
>>> selector.transform(load_iris().data).shape
(150, 2)""",
    "solution": """\
n_iter_ : int
    Iterations done.
stopping_reason_ : str
    "converged" or "max_iter".
objective_history_ : array
    The objective after each iteration.""",
    # Of what shows a fitted selector.
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


def fill_docstring(documented: Documented) -> Documented:
    """Put the shared texts in the place of their names."""
    name = getattr(documented, "__name__", "")
    # Under `python -OO` there is no docstring.
    if documented.__doc__:
        documented.__doc__ = _PLACEHOLDER.sub(
            lambda match: indent(_TEXTS[match[2]].replace("{name}", name), match[1]),
            documented.__doc__,
        )
    return documented
