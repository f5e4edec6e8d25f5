"""Feature selectors, one estimator a file."""

from bsufs.selectors._base import BaseSelector
from bsufs.selectors._checks import check_selector
from bsufs.selectors.bsufs import BSUFS, SparsityPath, bsufs_path
from bsufs.selectors.column_subset import ColumnSubset
from bsufs.selectors.fen_pcafs import FENPCAFS
from bsufs.selectors.fspca import FSPCA
from bsufs.selectors.max_variance import MaxVariance
from bsufs.selectors.pca_row_norms import PCARowNorms
from bsufs.selectors.random_selector import RandomSelector
from bsufs.selectors.spca_psd import SPCAPSD
from bsufs.selectors.spcafs import SPCAFS

__all__ = [
    "BSUFS",
    "FENPCAFS",
    "FSPCA",
    "SPCAFS",
    "SPCAPSD",
    "ColumnSubset",
    "MaxVariance",
    "PCARowNorms",
    "RandomSelector",
    "SparsityPath",
    "all_selectors",
    "bsufs_path",
    "check_selector",
]


def all_selectors() -> dict[str, type[BaseSelector]]:
    """Return every selector of the library by its name.

    Returns
    -------
    dict of str to class
        In alphabetical order.

    Examples
    --------
    >>> from bsufs.selectors import all_selectors
    >>> "FSPCA" in all_selectors()
    True
    """
    public = {name: globals()[name] for name in __all__}
    return {
        name: item
        for name, item in sorted(public.items())
        if isinstance(item, type) and issubclass(item, BaseSelector)
    }
