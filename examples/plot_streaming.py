"""
A file larger than the memory it may take
=========================================

A table need not fit into memory to select from it. ``bsufs select`` reads a file in batches of rows
when holding it would take more than ``--memory``, and writes the same columns as if it had read it
at once. `BSUFS` needs nothing but the means and the scatter matrix, which are sums; the default,
`ClusterAlignment`, also looks at a sample of rows and draws the same ones from a stream.
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
# The same command twice, first with at most 10 MB for the table, then without that limit; before
# both, a table of four numbers, to see what the program takes by itself. What counts is the peak of
# the whole process, as Linux keeps it. Each command needs more than the one before, so one process
# runs all three, and the peak so far is that of the last.
import subprocess
import sys

PROGRAM = """
import sys
from bsufs.cli.app import run

for command in sys.stdin:
    try:
        run(command.split())
    except SystemExit as ended:
        assert ended.code == 0, command
    print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""
COMMANDS = """\
select tiny.csv --quiet --names tiny.txt
select big.csv -k 10 --method BSUFS --quiet --memory 10MB -o streamed.csv
select big.csv -k 10 --method BSUFS --quiet --memory 8GB -o at-once.csv
"""
done = subprocess.run(
    [sys.executable, "-c", PROGRAM],
    input=COMMANDS,
    cwd=folder.name,
    check=True,
    text=True,
    stdout=subprocess.PIPE,
)
program, streamed, at_once = (int(peak) / 1024 for peak in done.stdout.split())
written = [(Path(folder.name) / name).read_bytes() for name in ("streamed.csv", "at-once.csv")]
print("the same file is written:", written[0] == written[1])

# %%
# The program with its libraries is the grey part. What the table adds to it is little when it is
# streamed, and does not grow with the number of rows.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7.6, 2.4), layout="constrained")
rows = ["--memory 10MB", "read at once"]
tables = [streamed - program, at_once - program]
ax.barh(rows, program, color="#8fa3b3", label="the program by itself", height=0.6)
bars = ax.barh(rows, tables, left=program, color=["#d55e00", "#0072b2"], height=0.6)
ax.bar_label(bars, [f"+ {extra:.0f} MB" for extra in tables], padding=4)
ax.bar_label(ax.containers[0], fmt="{:.0f} MB", label_type="center")
ax.set(xlabel="peak memory of the process, MB", xlim=(0, 1.15 * at_once))
ax.invert_yaxis()
ax.spines[["top", "right"]].set_visible(False)

# %%
# The same from Python: `open_table` hands out batches, and ``fit_batches`` takes them all;
# ``partial_fit`` takes one at a time and fits to all rows so far: here is how soon it settles.
from bsufs import BSUFS
from bsufs.tables import open_table

selector, seen, selections = BSUFS(10), [], []
for batch in open_table(big, batch_rows=2_000).batches():
    selector.partial_fit(batch)
    seen.append(2_000 + (seen[-1] if seen else 0))
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
