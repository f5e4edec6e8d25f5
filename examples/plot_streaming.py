"""
A file larger than the memory it may take
=========================================

A table need not fit into memory to select from it. ``bsufs select`` reads a file in batches of rows
when holding it would take more than ``--memory``, and writes the same columns as if it had read it
at once. Only `BSUFS` can do that: it needs the means and the scatter matrix, and these are sums.
"""

# %%
# A CSV file of 40 000 rows and 100 columns, in a folder that goes away afterwards. It follows eight
# hidden factors, so that some columns can stand for the others.
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyarrow import csv

folder = TemporaryDirectory()
big = Path(folder.name) / "big.csv"
rng = np.random.default_rng(0)
loadings = rng.standard_normal((8, 100)) * rng.uniform(0.2, 1.5, size=100)
names = [f"sensor{number:02d}" for number in range(100)]
with csv.CSVWriter(big, pa.schema([(name, pa.float64()) for name in names])) as writer:
    for _ in range(4):
        block = rng.standard_normal((10_000, 8)) @ loadings + rng.standard_normal((10_000, 100))
        writer.write(pa.table(list(np.round(block, 3).T), names=names))
(Path(folder.name) / "tiny.csv").write_text("a,b\n1,2\n3,5\n")
print(f"{big.stat().st_size / 1e6:.0f} MB of text")

# %%
# The same command twice, once with at most 10 MB for the table. What counts is the peak of the
# whole process, as Linux keeps it.
import subprocess
import sys

PROGRAM = """
from bsufs.cli import main

try:
    main()
finally:
    status = open("/proc/self/status").read()
    open("peak", "w").write(status.split("VmHWM:")[1].split()[0])
"""


def peak(*words):
    """Run the command line in a process of its own, and return its peak in MB."""
    subprocess.run([sys.executable, "-c", PROGRAM, *words], cwd=folder.name, check=True)
    return int((Path(folder.name) / "peak").read_text()) / 1024


select = ["select", "big.csv", "-k", "10", "--method", "BSUFS", "--quiet"]
peaks = {
    "a table of four numbers": peak("select", "tiny.csv", "--quiet", "--names", "tiny.txt"),
    "with --memory 10MB": peak(*select, "--memory", "10MB", "-o", "streamed.csv"),
    "read at once": peak(*select, "--memory", "8GB", "-o", "at-once.csv"),
}
written = [(Path(folder.name) / name).read_bytes() for name in ("streamed.csv", "at-once.csv")]
print("the same file is written:", written[0] == written[1])

# %%
# The program with its libraries takes most of it; the table adds little when it is streamed.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7.2, 2.6), layout="constrained")
bars = ax.barh(list(peaks), list(peaks.values()), color=["#8fa3b3", "#d55e00", "#0072b2"])
ax.bar_label(bars, fmt="{:.0f} MB", padding=4)
ax.set(xlabel="peak memory of the process, MB", xlim=(0, 1.15 * max(peaks.values())))
ax.spines[["top", "right"]].set_visible(False)

# %%
# The same from Python: `stream_table` hands out batches, ``partial_fit`` takes them. That equals a
# fit on all rows, and the selection can be asked for at any time: here is how soon it settles.
from bsufs import BSUFS
from bsufs.tables import stream_table

selector, seen, selections = BSUFS(10), [], []
for batch in stream_table(big, batch_rows=1_000):
    selector.partial_fit(batch.values)
    seen.append(1_000 + (seen[-1] if seen else 0))
    selections.append(set(selector.selected_features_))

same = [len(selection & selections[-1]) for selection in selections]
figure, ax = plt.subplots(figsize=(7.2, 3), layout="constrained")
ax.step(np.array(seen) / 1000, same, where="post", color="#d55e00", lw=2)
ax.set(xlabel="thousands of rows seen", ylabel="of the final 10 columns", ylim=(0, 10.5))
ax.set_title("How soon the selection settles", fontsize=11)
ax.spines[["top", "right"]].set_visible(False)
folder.cleanup()

# %%
# :doc:`/streaming` says how often a file is read, what must fit all the same, and what was measured
# with millions of rows.
