"""``datadistill bench``: how fast a network is distilled here."""

import json
from dataclasses import dataclass

from .choices import DataChoice
from .console import Switch, out

ITERATIONS = 1000
"""Outer steps of the run whose last is measured: updates are traced by then."""


@dataclass(frozen=True)
class Bench(DataChoice):
    """Measure how fast a network is distilled on this machine.

    One outer step on one thread, in processor time, against plain PyTorch that keeps all graphs;
    the share of the machine's peak; and how each layer is computed.

    Examples:
        datadistill bench --model lenet
        datadistill bench --model mine.py:Mine --data cifar10 --networks 4
    """

    model: str = "lenet"
    """Network by name, or your own: package.module:Class or file.py:Class."""
    model_args: tuple[str, ...] = ()
    """Arguments of its constructor, e.g. --model-args width=64 bias=false."""
    data: str = "digits"
    """Data set by name, or a path: it gives the shape of the inputs."""
    networks: int = 1
    """Networks per outer step."""
    steps: int = 10
    """Steps of distilled data."""
    epochs: int = 3
    """Passes over them."""
    images_per_class: int = 1
    """Distilled images per class and step."""
    batch_size: int = 256
    """Real examples per outer step."""
    json: Switch = False
    """Print the figures as JSON."""

    def run(self) -> None:
        """Measures, and prints what was found."""
        from ..runs.config import RunConfig
        from ..runs.experiment import load
        from ..runs.planning.speed import measure_speed

        names = ("model", "model_args", "data", "data_dir", "size", "channels", "networks")
        names += ("steps", "epochs", "images_per_class", "batch_size")
        settings = {name: getattr(self, name) for name in names}
        config = RunConfig(**settings, iterations=ITERATIONS, validation=0, device="cpu")
        distillation = load(config).prepare()
        self.say(
            f"{distillation.network}\nNetworks {self.networks}, steps {self.steps}, epochs "
            f"{self.epochs}, minibatch {self.batch_size}; {distillation.engine_record}."
        )
        found = measure_speed(distillation)
        if self.json:
            figures = {"networks": found.networks, "seconds": found.ours, "plain": found.plain}
            figures |= {"ratio": found.ratio, "share_of_peak": found.share}
            out.print_json(json.dumps({**figures, "updates": found.updates, "ways": found.ways}))
        else:
            out.print("\n".join(found.lines()), markup=False)
