"""Select 16 of the 64 pixels of handwritten digits, without looking at a label.

Prints the pixels that `ClusterAlignment` selects, compares k-means on them with k-means on those of
`BSUFS`, on all and on random pixels, and draws two pictures into a folder (``demo-output`` unless
another is given): the chosen pixels, and the path of `BSUFS`.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from bsufs import BSUFS, ClusterAlignment, bsufs_path

N_PIXELS = 16
N_RANDOM_DRAWS = 20
INK, ACCENT, MUTED = "#1b3a4b", "#e4572e", "#7a8b99"


def cluster_agreement(X, labels):
    """Return how well k-means on X finds the digits: NMI and adjusted Rand index, in percent."""
    clusters = KMeans(10, n_init=10, random_state=0).fit_predict(X)
    return 100 * np.array(
        [normalized_mutual_info_score(labels, clusters), adjusted_rand_score(labels, clusters)]
    )


def print_selection(selector, X):
    spread = X.var(axis=0)
    print(f"\nThe {N_PIXELS} pixels of {X.shape[1]} that ClusterAlignment selects:\n")
    print("  rank  pixel (row, column)   share of variance   of it, between clusters")
    for rank, pixel in enumerate(selector.selected_features_, start=1):
        row, column = divmod(pixel, 8)
        share = spread[pixel] / spread.sum()
        between = selector.cluster_shares_[pixel]
        print(f"  {rank:4d}       ({row}, {column})             {share:6.1%}{between:19.2f}")
    explained = selector.explained_variance_ratio_
    print(f"\n  Regression on these {N_PIXELS} explains {explained:.1%} of the variance of all 64.")


def print_comparison(selector, of_the_path, X, labels):
    rng = np.random.default_rng(0)
    varying = np.flatnonzero(X.std(axis=0) > 0)
    draws = [
        cluster_agreement(X[:, rng.choice(varying, N_PIXELS, replace=False)], labels)
        for _ in range(N_RANDOM_DRAWS)
    ]
    rows = [
        (f"the {N_PIXELS} selected pixels", cluster_agreement(X[:, selector.support_], labels), ""),
        (f"{N_PIXELS} pixels of BSUFS", cluster_agreement(X[:, of_the_path.support_], labels), ""),
        ("all 64 pixels", cluster_agreement(X, labels), ""),
        (
            f"{N_PIXELS} random pixels",
            np.mean(draws, axis=0),
            f"   (mean of {N_RANDOM_DRAWS} draws; deviation {np.std(draws, axis=0)[0]:.1f})",
        ),
    ]
    print("\nk-means with 10 clusters against the true digits, which the selection never saw:\n")
    print("                             NMI    adjusted Rand")
    for name, (nmi, rand), note in rows:
        print(f"  {name:25s} {nmi:5.1f}        {rand:5.1f}{note}")


def draw_pixels(selector, X, labels, picture):
    """Draw the chosen pixels over the mean image of each digit."""
    figure, axes = plt.subplots(2, 5, figsize=(8.4, 4.0), layout="constrained")
    chosen = np.flatnonzero(selector.support_)
    for digit, axis in enumerate(axes.flat):
        mean = X[labels == digit].mean(axis=0).reshape(8, 8)
        axis.imshow(mean, cmap="Greys", vmin=0, vmax=18)
        for pixel in chosen:
            row, column = divmod(pixel, 8)
            axis.add_patch(
                Rectangle((column - 0.44, row - 0.44), 0.88, 0.88, fill=False, ec=ACCENT, lw=1.8)
            )
        axis.set(xticks=[], yticks=[])
        axis.set_title(str(digit), fontsize=10, color=INK)
        for spine in axis.spines.values():
            spine.set_color("#d5dde3")
    figure.suptitle(
        f"{N_PIXELS} of 64 pixels, chosen without labels, over the mean digits", color=INK
    )
    figure.savefig(picture, dpi=150)
    plt.close(figure)


def draw_path(path, n_components, picture):
    """Draw what the best features explain, and the weight of the row penalty that leaves them."""
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(6.4, 4.6), sharex=True, layout="constrained", height_ratios=(2, 1)
    )
    explained = 100 * path.explained_variance_ratio
    upper.plot(path.n_alive, explained, color=INK, lw=2, marker="o", ms=3.5)
    at_choice = np.interp(N_PIXELS, path.n_alive[::-1], explained[::-1])
    upper.plot(N_PIXELS, at_choice, "o", color=ACCENT, ms=8)
    upper.annotate(
        f"{N_PIXELS} pixels explain {at_choice:.0f} %",
        (N_PIXELS, at_choice),
        xytext=(8, -14),
        textcoords="offset points",
        color=ACCENT,
    )
    upper.set_ylim(0, 105)
    upper.set_ylabel("variance explained, %")
    upper.set_title(f"The path of BSUFS on the digits, {n_components} components", color=INK)
    # The first to be eliminated are constant pixels, which need no weight.
    lower.plot(
        path.n_alive, np.where(path.lambda_row > 0, path.lambda_row, np.nan), color=INK, lw=2
    )
    lower.set_yscale("log")
    lower.set_ylabel(r"$\lambda_{row}$")
    lower.set_xlabel("remaining pixels")
    lower.set_xticks([7, 16, 24, 32, 40, 48, 56, 64])
    for axis in (upper, lower):
        axis.axvline(N_PIXELS, color=ACCENT, lw=1.2, ls="--")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#e6ebef")
        axis.tick_params(colors=MUTED, which="both")
    figure.savefig(picture, dpi=150)
    plt.close(figure)


def main(folder):
    X, labels = load_digits(return_X_y=True)
    selector, of_the_path = ClusterAlignment(N_PIXELS).fit(X), BSUFS(N_PIXELS).fit(X)
    print_selection(selector, X)
    print_comparison(selector, of_the_path, X, labels)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [folder / "digits-pixels.png", folder / "digits-path.png"]
    draw_pixels(selector, X, labels, pictures[0])
    draw_path(bsufs_path(X), of_the_path.n_components_, pictures[1])
    print("\nPictures:")
    for picture in pictures:
        print(f"  {picture.resolve()}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
