"""Small datasets in a folder of their own, so that workers in other processes find them."""

import hashlib
import json

import numpy as np

from bsufs_paper.experiments.tasks import _identity, _loaded


def write_dataset(folder, name, *, n=60, d=12, n_classes=3, seed=0, image_shape=None):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.standard_normal((n, d))
    X[:, : d // 2] += 3.0 * rng.standard_normal((n_classes, d // 2))[y]
    path = folder / f"{name}.npz"
    np.savez(path, X=X, y=y)
    entry = {
        "data_keys": ["X"],
        "target_keys": ["y"],
        "shape": [n, d],
        "n_classes": n_classes,
        "feature_prefix": "x",
        "description": "Blobs.",
        "citation": "None.",
    }
    if image_shape is not None:
        entry |= {"image_shape": image_shape, "image_order": "C"}
    file = {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    description = {"file": file, "datasets": {name: entry}}
    if name == "rings":
        noisy = {"shape": [n, d + 7], "n_noise_features": 7}
        description["datasets"]["rings-noise"] = entry | noisy
    (folder / f"{name}.dataset.json").write_text(json.dumps(description), encoding="utf-8")
    forget_datasets()


def forget_datasets():
    """Let the next task look at the files again; a run takes them for fixed."""
    _loaded.cache_clear()
    _identity.cache_clear()


def write_datasets(folder):
    """Write the datasets that the tests of the experiments use."""
    folder.mkdir()
    write_dataset(folder, "small")
    write_dataset(folder, "other", n=40, d=8, n_classes=2, seed=1)
    write_dataset(folder, "pictures", n=30, d=12, seed=2, image_shape=[3, 4])
    write_dataset(folder, "rings", n=50, d=2, n_classes=2, seed=3)
    return folder


def small_spec(**changes):
    """Return a spec of a search, small enough for a second."""
    return {
        "name": "trial",
        "recipe": "tuned",
        "datasets": ["small", "other"],
        "timeout": 60,
        "protocol": {
            "feature_counts": [2, 4],
            "search_repetitions": 3,
            "confirmation_repetitions": 5,
        },
        "methods": [
            {"label": "ALLfea", "selector": "all"},
            {"label": "Variance", "selector": "MaxVariance"},
            {
                "label": "BSUFS",
                "parameters": {"n_components": "n_classes"},
                "grid": [{"p": [0, 0.5], "lambda_element": [0.0, 0.5]}],
            },
            {"label": "FSPCA", "per_count": True, "parameters": {"n_components": 2}},
            {
                "label": "Random",
                "selector": "RandomSelector",
                "grid": [{"random_state": {"range": 4}}],
            },
        ],
    } | changes
