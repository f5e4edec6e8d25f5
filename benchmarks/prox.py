"""Time the proximal factor: what a general exponent costs against the closed forms.

Run with ``python -m benchmarks.prox``.
"""

import timeit

import numpy as np

from bsufs.penalties import shrink_factor, strength_for_threshold

CLOSED_FORMS = (1 / 2, 2 / 3)
EXPONENTS = (0.0, 1e-3, 0.1, 0.3, *CLOSED_FORMS, 0.6, 0.8, 0.9, 0.999, 1 - 1e-9, 1.0)
SHAPES = ((1024, 20), (1_000_000,))
# One element in ten falls below the threshold.
SURVIVING = 0.9


def measure(repeats: int = 15) -> list[dict]:
    """Return nanoseconds per element for every shape and exponent, the least over the repeats.

    Parameters
    ----------
    repeats : int
        How often each time is taken.

    Returns
    -------
    list of dict
        Rows with ``shape``, ``exponent``, ``ns_per_element``, and the ratios ``to_faster`` and
        ``to_slower`` to the faster and the slower of the closed forms at 1/2 and 2/3.
    """
    rows = []
    for shape in SHAPES:
        magnitude = np.abs(np.random.default_rng(0).standard_normal(shape))
        cut = float(np.quantile(magnitude, 1 - SURVIVING))
        number = max(1, 200_000 // magnitude.size)
        best = dict.fromkeys(EXPONENTS, np.inf)
        # The exponents take turns, so that a busy moment of the machine hits all alike.
        for _ in range(repeats):
            for exponent in EXPONENTS:
                strength = strength_for_threshold(cut, exponent)
                seconds = timeit.timeit(
                    lambda m=magnitude, t=strength, s=exponent: shrink_factor(m, t, s),
                    number=number,
                )
                best[exponent] = min(best[exponent], 1e9 * seconds / number / magnitude.size)
        closed = [best[exponent] for exponent in CLOSED_FORMS]
        rows += [
            {
                "shape": shape,
                "exponent": exponent,
                "ns_per_element": nanoseconds,
                "to_faster": nanoseconds / min(closed),
                "to_slower": nanoseconds / max(closed),
            }
            for exponent, nanoseconds in best.items()
        ]
    return rows


def main() -> None:
    """Print the measurements as a plain table."""
    print(f"{'shape':>12} {'exponent':>12} {'ns/element':>11} {'to faster':>10} {'to slower':>10}")
    for row in measure():
        shape = " x ".join(map(str, row["shape"]))
        print(
            f"{shape:>12} {row['exponent']:>12.9f} {row['ns_per_element']:>11.1f} "
            f"{row['to_faster']:>10.2f} {row['to_slower']:>10.2f}"
        )


if __name__ == "__main__":
    main()
