"""Selectors that crash, hang or print, for workers in other processes."""

import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np


class Misbehaving:
    """Does what its parameter says, then ranks the columns as they come."""

    def __init__(self, n_features_to_select, *, how="well", once=None):
        self.how = how
        self.once = once

    def fit(self, X):
        if self.once is not None:
            if Path(self.once).exists():
                self.how = "well"
            Path(self.once).touch()
        getattr(self, f"_{self.how}")()
        self.ranking_ = np.arange(1, X.shape[1] + 1)
        self.scores_ = -self.ranking_.astype(float)
        return self

    def _well(self):
        warnings.warn("take care", UserWarning, stacklevel=2)

    def _crash(self):
        os.kill(os.getpid(), signal.SIGSEGV)

    def _exit(self):
        print("the last words", file=sys.stderr, flush=True)
        os._exit(3)

    def _hang(self):
        time.sleep(3600)

    def _print(self):
        print("{}\nnoise on the standard output")
        os.write(1, b"more noise\n")

    def _fail(self):
        raise ZeroDivisionError("by design")

    def _slow(self):
        time.sleep(0.3)
