"""``datadistill artefacts``: the distilled data that come with the package."""

from dataclasses import dataclass

from rich import box
from rich.table import Table

from ..artefact.published import published_names
from .console import Common, out, print_table


@dataclass(frozen=True)
class Artefacts(Common):
    """List the distilled data that come with the package.

    Examples:
        datadistill artefacts
        datadistill train mnist-fixed-10
        datadistill evaluate mnist-fixed-10 --data-dir DIR
    """

    def run(self) -> None:
        """Prints a table."""
        from ..artefact import load

        table = Table("artefact", "distilled data", "claim", box=box.SIMPLE, pad_edge=False)
        for name in published_names():
            distilled = load(name)
            table.add_row(name, str(distilled), str(distilled.claim))
        if not table.row_count:
            out.print("This installation has none.")
            return
        print_table(table)
        self.say("Use one in Python:  dd.load(NAME)")
        self.say("Train a network:    datadistill train NAME")
