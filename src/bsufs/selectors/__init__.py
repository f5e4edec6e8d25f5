"""Feature selectors, one thin estimator per file."""

import pkgutil
from importlib import import_module

from bsufs.selectors._base import BaseSelector, ScoringSelector
from bsufs.selectors._checks import check_selector
from bsufs.selectors.bsufs import BSUFS, SparsityPath, bsufs_path
from bsufs.selectors.cluster_alignment import ClusterAlignment
from bsufs.selectors.column_subset import ColumnSubset
from bsufs.selectors.fen_pcafs import FENPCAFS
from bsufs.selectors.fspca import FSPCA
from bsufs.selectors.laplacian_score import LaplacianScore
from bsufs.selectors.max_variance import MaxVariance
from bsufs.selectors.mcfs import MCFS
from bsufs.selectors.neighbor_alignment import NeighborAlignment
from bsufs.selectors.nlgms import NLGMS
from bsufs.selectors.pca_row_norms import PCARowNorms
from bsufs.selectors.random_selector import RandomSelector
from bsufs.selectors.rne import RNE
from bsufs.selectors.sogfs import SOGFS
from bsufs.selectors.spca_psd import SPCAPSD
from bsufs.selectors.spcafs import SPCAFS
from bsufs.selectors.udfs import UDFS

__all__ = [
    "BSUFS",
    "FENPCAFS",
    "FSPCA",
    "MCFS",
    "NLGMS",
    "RNE",
    "SOGFS",
    "SPCAFS",
    "SPCAPSD",
    "UDFS",
    "ClusterAlignment",
    "ColumnSubset",
    "LaplacianScore",
    "MaxVariance",
    "NeighborAlignment",
    "PCARowNorms",
    "RandomSelector",
    "ScoringSelector",
    "SparsityPath",
    "all_selectors",
    "bsufs_path",
    "check_selector",
]


def all_selectors() -> dict[str, type[BaseSelector]]:
    """Return every selector of the library by its name, found in the files of this package.

    Returns
    -------
    dict of str to class
        The selectors in the order of their names.
    """
    found: dict[str, type[BaseSelector]] = {}
    for module_info in pkgutil.iter_modules(__path__):
        if module_info.name.startswith("_"):
            continue
        module = import_module(f"{__name__}.{module_info.name}")
        for name, item in vars(module).items():
            own = getattr(item, "__module__", None) == module.__name__
            if own and isinstance(item, type) and issubclass(item, BaseSelector):
                found[name] = item
    return dict(sorted(found.items()))
