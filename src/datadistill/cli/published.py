"""``datadistill artefacts``: the distilled data that come with the package."""

from dataclasses import dataclass

from rich import box
from rich.table import Table

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
        from ..artefact.published import published_names

        columns = ("artefact", "images", "network", "initialization", "accuracy")
        table = Table(*columns, box=box.SIMPLE, pad_edge=False)
        for name in published_names():
            distilled = load(name)
            header, images = distilled.header, distilled.inputs.shape[:2].numel()
            network, start = header.architecture.name, header.initialization.name
            table.add_row(name, str(images), network, start, str(distilled.claim))
        if not table.row_count:
            out.print("This installation has none.")
            return
        print_table(table)
        self.say("Use one in Python:  dd.load(NAME)")
        self.say("Train a network:    datadistill train NAME")
