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
        if self.once is not None and self.how != "fork_and_hang":
            if Path(self.once).exists():
                self.how = "well"
            Path(self.once).touch()
        self.ranking_ = np.arange(1, X.shape[1] + 1)
        self.scores_ = -self.ranking_.astype(float)
        getattr(self, f"_{self.how}")()
        return self

    def _well(self):
        warnings.warn("take care", UserWarning, stacklevel=2)

    def _crash(self):
        os.kill(os.getpid(), signal.SIGSEGV)

    def _exit(self):
        print("the last words", file=sys.stderr, flush=True)
        os._exit(3)

    def _real_time(self):
        os.kill(os.getpid(), 40)

    def _orphan(self):
        """Die while a child holds the pipe open."""
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(4)

    def _fork_and_hang(self):
        child = os.fork()
        if child:
            Path(self.once).write_text(str(child))
        time.sleep(3600)

    def _objects(self):
        self.scores_ = np.array([{}] * len(self.ranking_))

    def _matrix(self):
        self.ranking_ = self.ranking_[:, None]

    def _hang(self):
        time.sleep(3600)

    def _print(self):
        print("{}\nnoise on the standard output")
        os.write(1, b"more noise\n")

    def _fail(self):
        raise ZeroDivisionError("by design")

    def _slow(self):
        time.sleep(0.3)
