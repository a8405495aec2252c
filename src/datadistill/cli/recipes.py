"""``datadistill recipes``: the experiments that come with the package."""

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich import box
from rich.table import Table

from ..runs.recipes import describe_recipe, recipe_file, recipe_names
from .console import Common, out, print_table

Name = Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[NAME]")]


@dataclass(frozen=True)
class Recipes(Common):
    """List the recipes, or show one.

    Examples:
        datadistill recipes
        datadistill recipes mnist-fixed-10 > mine.yaml
    """

    name: Name = None
    """Recipe to show."""

    def run(self) -> None:
        """Prints a table, or the file."""
        if self.name is not None:
            out.print(recipe_file(self.name).read_text("utf-8"), markup=False, end="")
            return
        table = Table("recipe", "description", box=box.SIMPLE, pad_edge=False)
        for name in recipe_names():
            table.add_row(name, describe_recipe(name))
        print_table(table)
        self.say("Run one:  datadistill distill NAME")
        self.say("Show one: datadistill recipes NAME")
