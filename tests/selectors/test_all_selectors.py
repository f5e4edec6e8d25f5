import pytest

from bsufs.selectors import all_selectors, check_selector


@pytest.mark.parametrize("name", all_selectors())
def test_every_selector_keeps_its_promises(name):
    check_selector(all_selectors()[name]())
