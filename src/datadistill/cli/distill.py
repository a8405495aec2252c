"""``datadistill distill``: distil a data set into an artefact."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from .. import models
from ..core.adjoint import Adjoint, BackGradient, StoredGraph, Truncated
from ..core.device import DeviceName, DtypeName
from ..core.distiller import DistillerConfig
from ..core.initialization import FixedInit, Initialization, RandomInit, Scheme
from ..data import LabelledData
from ..errors import ConfigError, FileError
from ..evaluation import evaluate
from ..files import check_writable
from ..report import draw
from ..runs import distill
from .choices import DataChoice
from .console import out


@dataclass(frozen=True)
class Distill(DataChoice):
    """Distil a data set into a few synthetic images; writes an artefact and a picture.

    The defaults are the settings of the paper. Example, ten images for MNIST:
    datadistill distill --data mnist --initialization fixed
    """

    data: str = "digits"
    """Data set by name (datadistill data lists them), a folder of images or an .npz file."""
    model: str = "lenet"
    """Network: lenet, alexcifarnet, alexnet, largenet, vgg11, squeezenet, convnet3, linear, mlp,
    or your own as package.module:Class or file.py:Class."""
    model_args: tuple[str, ...] = ()
    """Arguments of the network's constructor, e.g. --model-args width=64 bias=false."""
    initialization: Literal["random", "fixed"] = "random"
    """Initial weights to distil for: many random networks, or one fixed network."""
    init_seed: int = 0
    """Which network a fixed initialization is."""
    scheme: Scheme = "xavier-normal"
    """How initial weights are drawn."""
    adjoint: Literal["back-gradient", "stored-graph", "truncated"] = "back-gradient"
    """How the gradient travels back through the updates."""
    window: int | None = None
    """Updates that the truncated adjoint differentiates."""
    settings: DistillerConfig = field(default_factory=DistillerConfig)
    validation: float = 0.1
    """Share of the training data held out to measure progress."""
    keep: Literal["last", "best"] = "last"
    """Which distilled data to write: the last, as in the paper, or the best on held-out data."""
    test_networks: int | None = None
    """Held-out networks to test on at the end: 1 for fixed, 200 for random initializations."""
    device: DeviceName = "auto"
    """Where to compute."""
    dtype: DtypeName = "float32"
    """What to compute in."""
    output: Path | None = None
    """File to write; DATA-MODEL-INITIALIZATION.safetensors by default."""
    overwrite: bool = False
    """Replace the file if it exists."""

    def run(self) -> None:
        """Distils, tests once on the test set, and writes the artefact and its picture."""
        output = self.output or Path(
            f"{Path(self.data).stem}-{_stem(self.model)}-{self.initialization}"
        )
        output = output.with_suffix(".safetensors")
        if output.exists() and not self.overwrite:
            raise FileError(f"{output} exists.", "Name another --output, or pass --overwrite.")
        train, test = self.load(self.data)
        module = models.find(
            self.model,
            models.arguments_for(train.input_shape, train.classes) if ":" not in self.model else {},
            models.parse_arguments(self.model_args),
        )
        adjoint, initialization = self._adjoint(), self._initialization()
        check_writable(output)
        settings = self.settings
        self.say(
            f"Distilling {len(train):,} examples of {train.name} for {self.model}, "
            f"{self.initialization} initialization: steps {settings.steps}, epochs "
            f"{settings.epochs}, outer steps {settings.iterations:,}."
        )
        with self.bars() as progress:
            distilled = distill(
                train,
                module,
                initialization=initialization,
                adjoint=adjoint,
                validation=self.validation,
                keep=self.keep,
                device=self.device,
                dtype=self.dtype,
                progress=progress,
                **asdict(settings),
            )
            tested = evaluate(
                distilled, test, networks=self.test_networks, device=self.device, progress=progress
            )
        distilled = distilled.with_claim(tested.claim())
        distilled.save(output)
        out.print(str(tested))
        out.print(f"distilled data: {output}")
        if _drawable(train):
            draw(distilled, output.with_suffix(".png"))
            out.print(f"picture: {output.with_suffix('.png')}")
        self.say(f"Use them: datadistill train {output}")

    def _initialization(self) -> Initialization:
        if self.initialization == "fixed":
            return FixedInit(self.init_seed, self.scheme)
        return RandomInit(self.scheme)

    def _adjoint(self) -> Adjoint:
        if self.window is not None and self.adjoint != "truncated":
            raise ConfigError(
                f"--window has no meaning with the {self.adjoint} adjoint.",
                "Add --adjoint truncated, or leave --window out.",
            )
        if self.adjoint == "truncated":
            if self.window is None:
                raise ConfigError(
                    "The truncated adjoint needs a window.", "Add --window, e.g. --window 10."
                )
            return Truncated(self.window)
        return StoredGraph() if self.adjoint == "stored-graph" else BackGradient()


def _stem(model: str) -> str:
    return model.rpartition(":")[2].lower()


def _drawable(train: LabelledData) -> bool:
    return len(train.input_shape) == 3 and train.input_shape[0] in (1, 3)
