"""What the user is shown at the end of a run."""

from ..artefact import DistilledData
from ..core.seam import parse
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
    command.say(f"Use them: datadistill train {folder.distilled}{_needed(distilled)}")


def _needed(distilled: DistilledData) -> str:
    """The flags that ``datadistill train`` needs: the pool, and the user's own code."""
    given = distilled.header.configuration
    flags = [f"--pool {distilled.pool.path}"] if distilled.pool else []
    for setting in ("model", "objective", "update_rule", "initialization"):
        if ":" in (given.get(setting) or ""):
            flags.append(f"--{setting.replace('_', '-')} {parse(given[setting])[0]}")
            if setting == "model" and given["model_args"]:
                flags.append(f"--model-args {' '.join(given['model_args'])}")
    return "".join(f" {flag}" for flag in flags)
