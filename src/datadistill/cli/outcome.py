"""What the user is shown at the end of a run."""

from ..artefact import DistilledData
from ..report import draw
from ..report.samples import can_be_drawn
from ..runs.store.folder import RunFolder
from .console import Common, out


def show_result(command: Common, distilled: DistilledData, folder: RunFolder) -> None:
    """Draws the distilled data of a run, and prints their result and their files."""
    out.print(str(distilled.claim), markup=False)
    out.print(f"run: {folder.path}", markup=False)
    out.print(f"distilled data: {folder.distilled}", markup=False)
    if can_be_drawn(distilled.inputs.shape[2:]):
        draw(distilled, folder.picture)
        out.print(f"picture: {folder.picture}", markup=False)
    needed = f" --pool {distilled.pool.path}" if distilled.pool else ""
    command.say(f"Use them: datadistill train {folder.distilled}{needed}")
