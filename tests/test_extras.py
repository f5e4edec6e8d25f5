"""Without an extra, the rest of the library works, and what needs it says what to install."""

import json
import subprocess
import sys

import pytest

from bsufs._extras import MissingExtraError, needs

EXTRAS = (
    "PIL",
    "anndata",
    "dask",
    "distributed",
    "jinja2",
    "matplotlib",
    "pandas",
    "polars",
    "pooch",
    "pyarrow",
    "rich",
    "skops",
    "starlette",
    "typer",
    "uvicorn",
    "yaml",
)

# The finders are wrapped, not preceded: a package that is hidden is absent to whoever asks.
HIDING = """
import json, sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in {packages!r}
        return None if hidden else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Hiding(finder) for finder in sys.meta_path]
"""

TRYING = """
messages = []
for statement in {statements!r}:
    try:
        exec(statement, {{}})
    except ImportError as error:
        messages.append(str(error))
    else:
        messages.append(None)
print(json.dumps(messages))
"""

# Every part of the library that an installation without extras has.
LIBRARY = """
import numpy as np
import bsufs.graphs, bsufs.tuning.criteria
from bsufs import ConsensusSelector, LabelFreeSearch, bsufs_path
from bsufs.metrics import redundancy
from bsufs.selectors import all_selectors

X = np.random.default_rng(0).standard_normal((30, 6))
for selector in all_selectors().values():
    assert selector(2).fit(X).transform(X).shape == (30, 2)
search = LabelFreeSearch(n_features_to_select=[2, 3]).fit(X)
assert sorted(search.criteria_["rank"])[0] == 1
ConsensusSelector(n_features_to_select=2, n_pairs=1).fit(X)
bsufs_path(X)
redundancy(X)
foreign = {name.partition(".")[0] for name in sys.modules} & set(HIDDEN)
assert not foreign, foreign
"""


def run_without(packages, program):
    """Run a program for which packages are not installed; return what it printed."""
    hidden = HIDING.format(packages=set(packages))
    command = [sys.executable, "-c", f"HIDDEN = {packages!r}{hidden}{program}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def messages_without(packages, *statements):
    return json.loads(run_without(packages, TRYING.format(statements=statements)))


def test_the_library_works_without_any_extra():
    run_without(EXTRAS, LIBRARY)


def test_each_part_names_its_extra_when_it_is_imported():
    expected = {
        "from bsufs import explain": ("bsufs.explain", "tables"),
        "from bsufs import make_report": ("bsufs.inspection.page", "report"),
    }
    messages = messages_without(EXTRAS, *expected)
    for (part, extra), message in zip(expected.values(), messages, strict=True):
        assert message.startswith(f"{part} needs ")
        assert message.endswith(f': pip install "bsufs[{extra}]"')


def test_what_is_imported_when_it_is_used():
    (message,) = messages_without(
        ("matplotlib",),
        "import numpy as np; from bsufs import BSUFS; "
        "from bsufs.inspection import plot_scores; plot_scores(BSUFS(1).fit(np.eye(3)))",
    )
    assert message == 'bsufs.inspection.plots needs matplotlib: pip install "bsufs[plot]"'


@pytest.mark.parametrize(
    ("package", "words", "message"),
    [
        ("typer", ["select", "t.csv"], 'the command line needs typer: pip install "bsufs[cli]"'),
        (
            "pyarrow",
            ["select", "t.csv"],
            'error: this command needs pyarrow: pip install "bsufs[cli]"',
        ),
        (
            "jinja2",
            ["select", "t.csv", "--report", "p.html"],
            'error: bsufs.inspection.page needs jinja2: pip install "bsufs[report]"',
        ),
        ("uvicorn", ["app"], 'error: the app needs uvicorn: pip install "bsufs[app]"'),
    ],
)
def test_a_command_says_in_one_line_what_it_lacks(tmp_path, monkeypatch, package, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n0,1\n1,0\n2,2\n")
    program = f"""
import contextlib, io
sys.argv = ["bsufs", *{words!r}]
from bsufs.cli import main
said = io.StringIO()
with contextlib.suppress(SystemExit), contextlib.redirect_stderr(said):
    main()
print(said.getvalue(), end="")
"""
    assert run_without([package], program) == f"bsufs: {message}\n"


def test_a_missing_module_of_our_own_is_a_defect():
    with pytest.raises(ModuleNotFoundError) as raised, needs("bsufs.inspection.plots", "plot"):
        import bsufs.nowhere  # noqa: F401 - it is not there
    assert not isinstance(raised.value, MissingExtraError)
