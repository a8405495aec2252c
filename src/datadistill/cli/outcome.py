"""What the user is shown at the end of a run."""

from .. import hints
from ..artefact import DistilledData
from ..core.seam import parse
from ..data import decoder_of
from ..pixels import are_images
from ..report import draw
from ..report.decoded import write_decoded
from ..report.making import tell, write_page
from ..runs.store.folder import RunFolder
from .artefacts import config_of
from .console import Common, out


def show_result(command: Common, distilled: DistilledData, folder: RunFolder) -> None:
    """Draws the distilled data of a run, and prints their result and their files."""
    out.print(str(distilled.claim), markup=False)
    out.print(f"run: {folder.path}", markup=False)
    out.print(f"distilled data: {folder.distilled}", markup=False)
    config = config_of(folder.path)
    if decoder := config and decoder_of(config.data, config.data_dir):
        write_decoded(distilled, decoder, folder.decoded)
        out.print(f"as text: {folder.decoded}", markup=False)
    elif are_images(distilled.inputs.shape[2:]):
        draw(distilled, folder.picture)
        out.print(f"picture: {folder.picture}", markup=False)
    write_page(folder.report, [tell(folder.path, None)])
    out.print(f"report: {folder.report}", markup=False)
    command.say(f"More on that page: {hints.command('report', folder.path)}")
    command.say(f"Use them: {hints.command('train', folder.path, *_needed(distilled))}")


def _needed(distilled: DistilledData) -> list[str]:
    """The words that ``datadistill train`` needs: the user's own code, which no file names."""
    given, words = distilled.header.configuration, list[str]()
    for setting in ("model", "objective", "update_rule", "initialization"):
        if ":" in (given.get(setting) or ""):
            words += [hints.flag(setting), parse(given[setting])[0]]
            if setting == "model" and given["model_args"]:
                words += ["--model-args", *given["model_args"]]
    return words
