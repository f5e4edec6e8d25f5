import numpy as np
import pytest

from bsufs.metrics._information import normalized_information


@pytest.mark.parametrize("average", ["geometric", "arithmetic"])
@pytest.mark.parametrize("n", [6, 49, 1000])
def test_a_single_part_tells_nothing_to_the_last_digit(average, n):
    # Shares of n samples that are summed one by one miss 1 by rounding.
    singletons = np.ones((1, n, 1))
    assert normalized_information(singletons, average) == [0.0]
    assert normalized_information(singletons.transpose(0, 2, 1), average) == [0.0]
    assert normalized_information(np.full((1, 1, 1), float(n)), average) == [1.0]


def test_tables_are_told_apart():
    same, crossed = np.diag([3.0, 3.0]), np.full((2, 2), 3.0)
    found = normalized_information(np.array([same, crossed]))
    np.testing.assert_allclose(found, [1.0, 0.0], atol=1e-12)
