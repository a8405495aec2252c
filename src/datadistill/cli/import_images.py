"""``datadistill import``: distilled images of other methods."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from .. import hints
from ..errors import FileError
from ..files import check_writable
from .choices import DataChoice
from .console import Switch, out


@dataclass(frozen=True, kw_only=True)
class Import(DataChoice):
    """Make an artefact of images that another method has distilled.

    Reads tensors that torch.save wrote: DD-Ranking's images.pt, labels.pt and lr.pt, MTT's
    images_best.pt and labels_best.pt, and DC's res_DC_*.pt, which holds images and labels. Nothing
    in them is executed.

    Examples:
        datadistill import images.pt labels.pt --data mnist --model convnet3
        datadistill import res_DC_CIFAR10.pt --data cifar10 --model convnet3
    """

    images: tyro.conf.Positional[Path]
    """File of the images, in normalised space."""
    labels: tyro.conf.Positional[Path | None] = None
    """File of the labels. By default those of the first file, or all classes in order."""
    data: str
    """Data set that the images stand for."""
    model: str
    """Network that they were made for: a built-in one by name, or your own as file.py:Class."""
    model_args: tuple[str, ...] = ()
    """Arguments of its constructor, e.g. --model-args width=64."""
    lr: str = "0.01"
    """Learning rate: a number, or a file such as lr.pt."""
    mean: tuple[float, ...] | None = None
    """Mean of each channel that the images were normalised with. By default the data set's."""
    std: tuple[float, ...] | None = None
    """Standard deviation of each channel, likewise."""
    output: Path | None = None
    """File for the artefact. By default IMAGES with .safetensors."""
    overwrite: Switch = False
    """Replace the file if it exists."""

    def run(self) -> None:
        """Reads the tensors and writes the artefact."""
        from .. import models
        from ..exchange import import_images

        output = self.output or self.images.with_suffix(".safetensors")
        if output.exists() and not self.overwrite:
            raise FileError(f"{output} exists.", "Choose another --output, or pass --overwrite.")
        train, _ = self.load(self.data)
        shape = train.input_shape
        distilled = import_images(
            self.images,
            self.labels,
            data=train,
            module=models.find_for(self.model, shape, train.classes, self.model_args),
            rate=self.lr,
            mean=self.mean,
            std=self.std,
        )
        check_writable(output)
        distilled.save(output)
        out.print(f"distilled data: {output}", markup=False)
        evaluate = hints.command("evaluate", output, "--ordinary", *self._needed())
        self.say(f"Evaluate them: {evaluate}")

    def _needed(self) -> list[str]:
        """The words that name own data and code, which no file names."""
        from ..data import DATA_SETS

        data = [] if self.data in DATA_SETS else ["--data", self.data]
        if ":" not in self.model:
            return data
        arguments = ["--model-args", *self.model_args] if self.model_args else []
        return [*data, "--model", self.model, *arguments]
