import numpy as np

from bsufs.selectors import RandomSelector

X = np.random.default_rng(0).standard_normal((40, 7))


def test_features_differ_by_seed_and_agree_with_the_same():
    chosen = {tuple(RandomSelector(3, random_state=seed).fit(X).support_) for seed in range(20)}
    assert len(chosen) > 5
    first, second = (RandomSelector(3, random_state=1).fit(X).scores_ for _ in range(2))
    assert np.array_equal(first, second)


def test_every_feature_is_as_likely_as_another():
    counts = sum(RandomSelector(2, random_state=seed).fit(X).support_ for seed in range(350))
    np.testing.assert_allclose(counts, 100, atol=40)
