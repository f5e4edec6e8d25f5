"""How well clusters agree with classes: every function here needs the labels."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from bsufs._typing import Indices


def clustering_accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Return the share of samples that the best map of clusters to classes gets right (ACC).

    .. math:: \text{ACC} = \frac{1}{n} \max_{\pi} \sum_i [\pi(\hat y_i) = y_i]

    over all one-to-one maps :math:`\pi`, found by the Hungarian method. Where there are more
    clusters than classes, the clusters left over count as wrong; where there are fewer, the classes
    left over do.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The classes and the clusters: numbers or strings; how clusters are named means nothing.

    Returns
    -------
    float
        Between 0 and 1; larger is better.

    Examples
    --------
    >>> from bsufs.metrics import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 2])
    0.75
    """
    table = contingency_matrix(*_numbered(labels_true, labels_pred))
    best = linear_sum_assignment(table, maximize=True)
    return float(table[best].sum() / table.sum())


def normalized_mutual_information(
    labels_true: ArrayLike,
    labels_pred: ArrayLike,
    average: Literal["geometric", "arithmetic"] = "geometric",
) -> float:
    r"""Return the mutual information of clusters and classes over the mean of their entropies.

    .. math:: \text{NMI} = \frac{I(y; \hat y)}{\sqrt{H(y) H(\hat y)}}
        \quad\text{or}\quad \frac{2 I(y; \hat y)}{H(y) + H(\hat y)}

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The classes and the clusters: numbers or strings; how clusters are named means nothing.
    average : {"geometric", "arithmetic"}, default="geometric"
        The mean that normalizes. The text of the paper has the geometric one, its authors' code
        the arithmetic one, which is never larger.

    Returns
    -------
    float
        Between 0 and 1; larger is better. One cluster tells nothing about several classes, nor
        one class about several clusters: 0. One cluster and one class are the same partition: 1.

    See Also
    --------
    sklearn.metrics.normalized_mutual_info_score : What computes it, with other means.

    Examples
    --------
    >>> from bsufs.metrics import normalized_mutual_information
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8165
    >>> round(normalized_mutual_information([0, 0, 1, 1], [0, 0, 1, 2], "arithmetic"), 4)
    0.8
    """
    if average not in ("geometric", "arithmetic"):
        raise ValueError(f"average must be 'geometric' or 'arithmetic', got {average!r}.")
    numbers = _numbered(labels_true, labels_pred)
    # Rounding may leave the range by a last digit.
    return min(float(normalized_mutual_info_score(*numbers, average_method=average)), 1.0)


def purity(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    r"""Return the share of samples that belong to the most frequent class of their cluster.

    .. math:: \text{purity} = \frac{1}{n} \sum_k \max_c \#\{i : \hat y_i = k,\ y_i = c\}

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        The classes and the clusters: numbers or strings; how clusters are named means nothing.

    Returns
    -------
    float
        Between 0 and 1; larger is better. Never below `clustering_accuracy`, and 1 when each
        sample is a cluster of its own: compare it at equal numbers of clusters only.

    Examples
    --------
    >>> from bsufs.metrics import purity
    >>> purity(["a", "a", "b", "b"], [0, 0, 0, 1])
    0.75
    """
    table = contingency_matrix(*_numbered(labels_true, labels_pred))
    return float(table.max(axis=0).sum() / table.sum())


def _numbered(labels_true: ArrayLike, labels_pred: ArrayLike) -> tuple[Indices, Indices]:
    """Return classes and clusters as whole numbers, one for each sample."""
    numbers = []
    for name, labels in (("labels_true", labels_true), ("labels_pred", labels_pred)):
        if np.ndim(labels) != 1 or np.size(labels) == 0:
            raise ValueError(
                f"{name} must be one-dimensional and not empty, got shape {np.shape(labels)}."
            )
        numbers.append(np.unique(labels, return_inverse=True)[1])
    true, pred = numbers
    if true.size != pred.size:
        raise ValueError(
            "labels_true and labels_pred must have one entry per sample, got "
            f"{true.size} and {pred.size} entries."
        )
    return true, pred
