"""How peak memory and time are measured."""

import time
from pathlib import Path


def peak_megabytes():
    """Return the largest resident size of this process since `forget_peak`."""
    return _status("VmHWM")


def resident_megabytes():
    """Return the resident size of this process."""
    return _status("VmRSS")


def _status(name):
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def forget_peak():
    """Let the peak start anew from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class Clock:
    """Adds up the time of the parts that count: by the clock, and of the processor.

    The latter hardly depends on what else the machine does.
    """

    def __init__(self):
        self.seconds = self.cpu_seconds = 0.0

    def __enter__(self):
        self._start = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        start, cpu_start = self._start
        self.seconds += time.perf_counter() - start
        self.cpu_seconds += time.process_time() - cpu_start
