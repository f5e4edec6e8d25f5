"""How the documentation is built: `make docs`, without a network."""

from __future__ import annotations

import os
import re
import textwrap
from importlib.util import find_spec
from pathlib import Path

import typer
from sphinx.application import Sphinx
from sphinx_gallery.sorting import ExplicitOrder

import bsufs
import bsufs_paper.cli
from bsufs.cli._program import BSUFS, build_command, help_rows, usage

# Workers and commands that examples start are processes of their own; a picture has no window.
os.environ.setdefault("MPLBACKEND", "Agg")

project = "bsufs"
author = "The bsufs developers"
copyright = author
version = release = bsufs.__version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
root_doc = "index"
nitpicky = True
# Without a network there is no inventory of other projects.
nitpick_ignore_regex = [("py:.*", r"sklearn\..*")]

# --- Pages in Markdown: the same files that a code host shows -------------------------------------
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# On a code host a link to an example shows the script; here it leads to the page of the gallery.
_EXAMPLE_LINK = re.compile(r"\]\((?:\.\./)+examples/(plot_\w+)\.py\)")
_EXAMPLES_LINK = re.compile(r"\]\((?:\.\./)+examples/\)")
# A number at the margin pushes a formula that is wider than the page out of it; behind it, it does
# not.
_MARGIN_NUMBER = re.compile(r"\\tag\{(\w+)\}")
# Command lines describe themselves; their page shows that in tables.
_PROGRAMS = {program.name: build_command(program) for program in (BSUFS, bsufs_paper.cli.PROGRAM)}
_HELP_OF = re.compile(r"^<!-- help of (.+) -->$", flags=re.MULTILINE)


def _help(place: re.Match[str]) -> str:
    """Return what a command says of itself: words, a table for each group of options, examples."""
    name, *words = place[1].split()
    command = _PROGRAMS[name]
    for word in words:
        command = command.commands[word]
    parts = [_escaped(command.help), f"```text\n{place[1]} {usage(command)}\n```"]
    for group, rows in help_rows(command, typer.Context(command)).items():
        shown = [f"| `{names}` | {_escaped(words)} |" for names, words in rows]
        parts.append("\n".join([f"| {group} | |", "|---|---|", *shown]) if rows else "")
    if command.epilog:
        parts.append("```console\n" + textwrap.dedent(command.epilog).strip() + "\n```")
    return "\n\n".join(parts)


def _escaped(text: str) -> str:
    """Let nothing in plain words be taken for markup; options stand out."""
    text = re.sub(r"([\\|<>*_`$])", r"\\\1", text)
    return re.sub(r"(?<![\w-])(--[a-z-]+|-[a-z])\b", r"`\1`", text)


def _adapt(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = _EXAMPLE_LINK.sub(r"](/gallery/\1.rst)", source[0])
    source[0] = _EXAMPLES_LINK.sub("](/gallery/index.rst)", source[0])
    source[0] = _MARGIN_NUMBER.sub(r"\\qquad(\1)", source[0])
    source[0] = _HELP_OF.sub(_help, source[0])


def setup(app: Sphinx) -> None:
    """Connect the rules of this site to the build."""
    app.connect("source-read", _adapt)


# --- Reference from docstrings --------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "literal"
toc_object_entries_show_parents = "hide"

# --- Formulas: the reader's browser draws them from a file that lies beside the pages -------------
_mathjax = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
mathjax_path = "tex-svg.js"
# As large as the text around it. A formula wider than the page begins at its left end, so that all
# of it can be scrolled to.
# Its menu has entries that would fetch more, so there is none.
mathjax3_config = {
    "options": {"enableMenu": False},
    "svg": {"scale": 0.93, "displayAlign": "left", "displayIndent": "1em"},
}

# --- Gallery --------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo_digits\.py",
    "within_subsection_order": ExplicitOrder(
        [
            "plot_digits.py",
            "plot_genes.py",
            "plot_dartboard1.py",
            "plot_how_many.py",
            "plot_stability.py",
            "plot_streaming.py",
            "plot_dask.py",
            "plot_own_selector.py",
        ]
    ),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1,
    "write_computation_times": False,
    "remove_config_comments": True,
    "image_scrapers": ("matplotlib",),
    "capture_repr": ("_repr_html_",),
    "reset_modules": ("matplotlib",),
    "copyfile_regex": r"",
    # No larger than the pictures, which would be given a margin then.
    "thumbnail_size": (680, 368),
}

# --- Looks ----------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "bsufs"
html_favicon = "_static/logo.svg"
html_static_path = ["_static", str(_mathjax / "tex-svg.js")]
html_css_files = ["bsufs.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "bsufs", "image_light": "logo.svg", "image_dark": "logo.svg"},
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "methods": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# These pages have nothing beside them to lead to.
html_sidebars = {"index": [], "getting-started": []}
