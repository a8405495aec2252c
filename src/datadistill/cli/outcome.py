"""What the user is shown at the end of a run."""

from .. import hints
from ..artefact import DistilledData
from ..data import decoder_of
from ..pixels import are_images
from ..report import draw
from ..report.decoded import write_decoded
from ..report.making import tell, write_page
from ..report.usage import needed
from ..runs.run import Ended
from ..runs.store.folder import RunFolder
from .artefacts import config_of
from .console import Common, out


def show_result(command: Common, ended: Ended, folder: RunFolder) -> None:
    """Draws the distilled data of a run, and prints their result and their files."""
    distilled = ended.distilled
    out.print(str(distilled.claim), markup=False)
    command.say(stored_text(distilled))
    out.print(f"run: {folder.path}", markup=False)
    out.print(f"distilled data: {folder.distilled}", markup=False)
    config = config_of(folder.path)
    if decoder := config and decoder_of(config.data, config.data_dir):
        write_decoded(distilled, decoder, folder.decoded)
        out.print(f"as text: {folder.decoded}", markup=False)
    elif are_images(distilled.inputs.shape[2:]):
        draw(distilled, folder.picture)
        out.print(f"picture: {folder.picture}", markup=False)
    write_page(folder.report, [tell(folder.path, None, state=ended.state)])
    out.print(f"report: {folder.report}", markup=False)
    command.say(f"More on that page: {hints.command('report', folder.path, *needed(distilled))}")
    command.say(f"Use them: {hints.command('train', folder.path, *needed(distilled))}")


def stored_text(distilled: DistilledData) -> str:
    """What distilled data take in their file, by which methods are compared."""
    rates = distilled.learning_rates.numel()
    return (
        f"Stored bytes: {distilled.stored_bytes:,} ({len(distilled)} inputs, their labels and "
        f"{rates} learning rate{'' if rates == 1 else 's'})."
    )
