"""Recipes: how the settings of a spec become tasks, and their results become tables.

The methods of a recipe are functions of the spec and of what is stored, so that a run can stop and
go on at any point.
"""

from __future__ import annotations

from bsufs_paper.experiments.recipes._base import Frames, Recipe
from bsufs_paper.experiments.recipes.clustering import Fixed, Tuned
from bsufs_paper.experiments.recipes.single import Single
from bsufs_paper.experiments.recipes.synthetic import Recovery

__all__ = ["RECIPES", "Frames", "Recipe"]

RECIPES: dict[str, type[Recipe]] = {
    recipe.name: recipe for recipe in (Fixed, Recovery, Single, Tuned)
}
