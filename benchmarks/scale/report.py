"""Results as tables and as a picture."""

import numpy as np

from benchmarks.timing import markdown_table


def slope(sizes, seconds):
    """Return the exponent of the power law through some points."""
    return np.polyfit(np.log(sizes), np.log(seconds), 1)[0]


def series(entries, axis):
    """Return the sizes along an axis and the results, of those that differ in it alone.

    Rows grow at 500 features, features at 200 samples; other sizes and other schedulers are left
    out.
    """
    fixed = {"n": {"d": 500}, "d": {"n": 200}}[axis]
    chosen = sorted(
        (entry["size"][axis], entry["result"])
        for entry in entries
        if {key: value for key, value in entry["size"].items() if key != axis} == fixed
    )
    return [size for size, _ in chosen], [result for _, result in chosen]


def table_of(title, entries):
    """Return the results of one measurement as Markdown, with the slopes of time against size."""
    columns = list(dict.fromkeys(key for entry in entries for key in entry["size"]))
    found = list(dict.fromkeys(key for entry in entries for key in entry["result"]))
    rows = [
        [_cell(entry["size"].get(key, "")) for key in columns]
        + [_cell(entry["result"].get(key, "")) for key in found]
        for entry in entries
    ]
    lines = [f"### {title}", "", markdown_table([*columns, *found], rows)]
    for axis in "nd":
        sizes, results = series(entries, axis)
        if len(sizes) > 2 and "cpu_seconds" in results[0]:
            seconds = [result["cpu_seconds"] for result in results]
            lines += ["", f"Processor time grows like {axis}^{slope(sizes, seconds):.2f}."]
    return "\n".join(lines)


def _cell(value):
    if isinstance(value, float):
        return f"{value:.2f}" if value < 100 else f"{value:.0f}"
    return f"{value:_}" if isinstance(value, int) else str(value)


def plot(titles, results, path):
    """Draw time and peak memory against rows and against features."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 9), layout="constrained")
    colors = {name: f"C{number}" for number, name in enumerate(titles)}
    for (times, peaks), axis in zip(axes, "nd", strict=True):
        for name, title in titles.items():
            entries = [entry for entry in results if entry["name"] == name]
            sizes, found = series(entries, axis)
            if len(sizes) < 2 or "cpu_seconds" not in found[0]:
                continue
            seconds = [result["cpu_seconds"] for result in found]
            label = f"{title}: {axis}^{slope(sizes, seconds):.2f}"
            times.loglog(sizes, seconds, marker="o", color=colors[name], label=label)
            _draw_peaks(peaks, title, sizes, found, colors[name])
        fixed = {"n": "rows, of 500 features", "d": "features, of 200 samples"}[axis]
        shortest, longest = times.get_xlim()
        bytes_each = 8 * {"n": 500, "d": 200}[axis] / 2**20
        ends = np.array([shortest, longest])
        peaks.loglog(ends, ends * bytes_each, ":", color="grey", label="X itself")
        times.set(xlabel=fixed, title="processor seconds, of all processes")
        peaks.set(xlabel=fixed, title="peak of memory of a process, MB", ylim=(100, None))
        for one in (times, peaks):
            one.set_xlim(shortest, longest)
            one.grid(alpha=0.3)
            # Room for the legend above the lines.
            one.set_ylim(top=20 * one.get_ylim()[1])
            one.legend(fontsize="small", loc="upper left", frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _draw_peaks(axis, title, sizes, results, color):
    """Draw the peak of the process, or those of the client and of the largest worker."""
    styles = {"peak_mb": ("-", ""), "worker_peak_mb": ("-", ", worker"),
              "client_peak_mb": ("--", ", client")}  # fmt: skip
    for key, (style, who) in styles.items():
        if key in results[0]:
            values = [result[key] for result in results]
            axis.loglog(sizes, values, style, marker="o", color=color, label=title + who)
