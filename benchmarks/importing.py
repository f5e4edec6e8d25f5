"""What it costs to begin: importing the package and a first fit, beside importing scikit-learn.

Each row is a process of its own with bytecode already compiled. Processor time is counted, which
other programs on the machine disturb less than the clock; the shortest of several runs counts.
"""

import os
import resource
import subprocess
import sys
import tempfile

from benchmarks.timing import markdown_table

DATA = "import numpy as np; X = np.random.default_rng(0).standard_normal((100, 20)); "
PROGRAMS = {
    "Python alone": "pass",
    "import sklearn": "import sklearn",
    "import sklearn.feature_selection": "import sklearn.feature_selection",
    "scikit-learn's PCA, first fit": f"{DATA}from sklearn.decomposition import PCA; PCA(5).fit(X)",
    "import bsufs": "import bsufs",
    "BSUFS, first fit": f"{DATA}from bsufs import BSUFS; BSUFS(5).fit(X)",
}
REPEATS = 5


def processor_seconds(program, bytecode):
    # Threads that wait for each other would count as work.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    with tempfile.TemporaryDirectory() as bytecode:
        for program in PROGRAMS.values():
            processor_seconds(program, bytecode)
        # In turn, so that a busy minute disturbs all of them alike.
        rounds = [
            {name: processor_seconds(program, bytecode) for name, program in PROGRAMS.items()}
            for _ in range(REPEATS)
        ]
    shortest = {name: min(one[name] for one in rounds) for name in PROGRAMS}
    sklearn = shortest["import sklearn"]
    print(
        markdown_table(
            ("program", "processor time, ms", "against import sklearn", "more than it, ms"),
            [
                (name, f"{1000 * t:.0f}", f"{t / sklearn:.2f}", f"{1000 * (t - sklearn):+.0f}")
                for name, t in shortest.items()
            ],
        )
    )


if __name__ == "__main__":
    main()
