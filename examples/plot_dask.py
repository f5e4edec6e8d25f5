"""
Two workers, one selection
==========================

Data that are spread over a cluster stay there. `BSUFS.fit` takes a Dask array as it takes a NumPy
array, and gives the same answer; what travels between workers are small sums.
"""

# %%
# A cluster of two workers, here as threads of this process, which are there at once. Without
# ``processes=False`` each is a process of its own (a script then begins its work behind
# ``if __name__ == "__main__":``); on many machines it is the address of a scheduler that goes into
# ``Client``. Nothing else changes.
from distributed import Client, LocalCluster

cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
client = Client(cluster)
print(len(client.scheduler_info()["workers"]), "workers")

# %%
# 120 samples of 6000 features that follow five hidden factors, cut into blocks of 1500 columns.
# Nobody makes the whole array: every block is a task.
import dask.array as da
import numpy as np

random = da.random.default_rng(0)
factors = np.random.default_rng(1).standard_normal((120, 5))
strength = np.random.default_rng(2).gamma(1.0, 1.0, 6000)
loadings = random.standard_normal((5, 6000), chunks=(5, 1500)) * strength
X = factors @ loadings + random.standard_normal((120, 6000), chunks=(120, 1500))
X

# %%
# Fit, and keep a record of who did what.
from distributed import get_task_stream

from bsufs import BSUFS

with get_task_stream(client) as record:
    selector = BSUFS(12, n_components=5, drop_rate=0.3).fit(X)
print("selected:", *selector.selected_features_)

# %%
# The same as in one piece:
alone = BSUFS(12, n_components=5, drop_rate=0.3).fit(X.compute())
print("the same ranking:", bool((alone.ranking_ == selector.ranking_).all()))

# %%
# Each bar is a task; time runs to the right. Most steps of the path are a handful of short tasks on
# every block, and then one that adds up their sums.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
workers = sorted({task["worker"] for task in record.data})
start = min(span["start"] for task in record.data for span in task["startstops"])
for task in record.data:
    for span in task["startstops"]:
        working = span["action"] == "compute"
        ax.barh(
            workers.index(task["worker"]),
            span["stop"] - span["start"],
            left=span["start"] - start,
            height=0.7 if working else 0.3,
            color="#0072b2" if working else "#d55e00",
        )
ax.set_yticks(range(len(workers)), [f"worker {number + 1}" for number in range(len(workers))])
ax.set(xlabel="seconds since the first task began", xlim=(0, None))
ax.legend(
    handles=[
        plt.Rectangle((0, 0), 1, 1, color="#0072b2", label="computing"),
        plt.Rectangle((0, 0), 1, 1, color="#d55e00", label="moving data"),
    ],
    loc="lower center",
    bbox_to_anchor=(0.5, 1),
    ncols=2,
    frameon=False,
)
ax.spines[["top", "right"]].set_visible(False)

# %%
# For 6 MB of data this is slower than a fit in memory, as the gaps show: the point of a cluster is
# data that fit nowhere else. :doc:`/scale` says what travels, what was measured, and what happens
# when a worker dies.
client.close()
cluster.close()
