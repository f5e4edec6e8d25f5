"""Recipes: how the settings of a spec become tasks, and their results become tables.

A recipe is a class in a module of this folder with a `name`; adding a file adds a recipe. Its
methods are functions of the spec and of what is stored, so that a run can stop and go on at any
point.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from bsufs_paper.experiments.recipes._base import Frames, Recipe

__all__ = ["Frames", "Recipe", "find_recipe"]


@cache
def _recipes() -> dict[str, type[Recipe]]:
    found: dict[str, type[Recipe]] = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            members = vars(importlib.import_module(f"{__name__}.{module.name}")).values()
            for member in members:
                if (
                    inspect.isclass(member)
                    and issubclass(member, Recipe)
                    and not inspect.isabstract(member)
                ):
                    found[member.name] = member
    return found


def find_recipe(name: str) -> type[Recipe]:
    """Return a recipe by name."""
    recipes = _recipes()
    if name not in recipes:
        raise ValueError(f"recipe must be one of {', '.join(sorted(recipes))}, got {name!r}.")
    return recipes[name]
