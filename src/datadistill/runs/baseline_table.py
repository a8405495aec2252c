"""The paper's Table 1 for any distilled data: beside them every baseline and reference."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from ..artefact import DistilledData
from ..baselines import average_real, k_means, random_real
from ..baselines.optimised_real import DRAWN, KEPT
from ..baselines.paper import Experiment, Figure, paper_figures
from ..core.distilled import Steps
from ..core.initialization import networks_for
from ..core.network import Network
from ..core.objective import Classification
from ..core.random import stream
from ..data import LabelledData
from ..data.fingerprint import data_hash
from ..errors import ConfigError
from ..evaluation import DEFAULT_BYTES
from ..evaluation.evaluate import HELD_OUT_NETWORKS, check_inputs
from ..models.description import weights_hash
from ..pools import at_most, check_enough
from ..progress import ProgressCallback, silent
from ..version import __version__
from .bench import Bench, Counts, Images, Select
from .featured import Entering
from .fine_tuning import FINE_TUNING, fine_tuning
from .parts import Parts

HELD_OUT = 0.1  # of the training data, to choose on

PAPER_COUNTS = Counts(sets=10, drawn=DRAWN, kept=KEPT)


@dataclass(frozen=True)
class Row:
    """One way to train or classify, and what it reaches.

    Attributes:
        name: Which, e.g. ``random real``.
        values: The accuracy of every network, for every set of images.
        chosen: The learning rate and epochs, or norm and K, that were chosen; empty if none.
        paper: The paper's figure in percent, if it has this experiment.
    """

    name: str
    values: tuple[tuple[float, ...], ...]
    chosen: str = ""
    paper: Figure | None = None

    @property
    def sets(self) -> int:
        """How many sets of images."""
        return len(self.values)

    @property
    def networks(self) -> int:
        """How many networks were trained on each set; 1 stands also for no network."""
        return len(self.values[0])

    @property
    def mean(self) -> float:
        """Mean over all sets and networks."""
        return float(self._all().mean())

    @property
    def std(self) -> float | None:
        """Standard deviation over all pairs of set and network; None for a single one."""
        return float(self._all().std()) if self._all().numel() > 1 else None

    def _all(self) -> torch.Tensor:
        return torch.tensor(self.values, dtype=torch.float64)


@dataclass(frozen=True)
class BaselineTable:
    """Distilled data beside every baseline and reference.

    Attributes:
        rows: In the paper's order, between the references.
        data: The data set.
        test_examples: How many examples of it were tested on.
        network: The network.
        initialization: ``random`` or ``fixed``.
        images: Distilled images in all steps.
        steps: Steps they are divided into.
        select: What the learning rates, epochs, norms and K were chosen on.
    """

    rows: tuple[Row, ...]
    data: str
    test_examples: int
    network: str
    initialization: str
    images: int
    steps: int
    select: Select

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def summary(self) -> dict[str, object]:
        """All figures as JSON: accuracies between 0 and 1, the paper's in percent."""
        own = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "rows"}
        rows = {
            row.name: {
                "mean": row.mean,
                "std": row.std,
                "sets": row.sets,
                "networks": row.networks,
                "chosen": row.chosen,
                "paper_percent": list(row.paper) if row.paper else None,
            }
            for row in self.rows
        }
        return {**own, "rows": rows}


def baseline_table(
    distilled: DistilledData,
    train: LabelledData,
    test: LabelledData,
    *,
    select: Select = "train",
    networks: int | None = None,
    seed: int = 0,
    module: nn.Module | None = None,
    device: str = "auto",
    memory: int = DEFAULT_BYTES,
    counts: Counts = PAPER_COUNTS,
    results: Path | None = None,
    progress: ProgressCallback = silent,
) -> BaselineTable:
    """Measures distilled data, all baselines and references by the paper's protocol.

    Args:
        distilled: The distilled data to compare with; classification only.
        train: The real training data, of which a tenth is held out to choose on.
        test: The real test data. They choose nothing unless ``select`` is ``test``.
        select: On what learning rates, epochs, norms and K are chosen.
        networks: Held-out networks for each figure; 200, or 1 for a fixed initialization.
        seed: Which held-out networks; others choose.
        module: The network, where it is not built in.
        device: Where to compute: auto, cpu, cuda or mps.
        memory: Bound of bytes for networks that are trained side by side.
        counts: How many sets and networks; the paper's by default.
        results: A ``results.json`` in which every finished part is kept at once, so that a call
            that was interrupted can be continued; other content of the file stays.
        progress: Called often.
    """
    if networks is None:
        most = 1 if distilled.initialization.fixed else HELD_OUT_NETWORKS
        networks = at_most(distilled.initialization, most)
    _check(distilled, networks)
    check_enough(distilled.initialization, networks)
    network = distilled.network(module, device)
    _check_data(distilled, network, train, test)
    if distilled.header.configuration.get("augment") is False:
        train = dataclasses.replace(train, augmentation=None)
    parts = Parts.read(results, _context(distilled, network, seed, train, test))
    entering = Entering.of(distilled, network, train, test, progress)
    images, _ = train.hold_out(HELD_OUT, seed=0)
    rest, held_out = entering.train.hold_out(HELD_OUT, seed=0)
    bench = Bench(
        distilled=entering.distilled,
        network=entering.network,
        images=entering.images(functools.partial(_images, distilled), network, images, rest),
        train=entering.train,
        test=entering.test,
        choosing=_some(
            held_out if select == "train" else entering.test, counts.examples, "choosing"
        ),
        picking=_some(held_out, counts.examples, "picking"),
        select=select,
        networks=networks,
        seed=seed,
        counts=counts,
        memory=memory,
        parts=parts,
        progress=progress,
    )
    table = _table(bench, _rows(bench))
    parts.write({"table": table.summary()})
    return table


def _rows(bench: Bench) -> list[Row]:
    untrained, distilled = bench.distilled_data()
    if bench.distilled.header.configuration.get("reset_head"):  # trained on other classes before
        return [
            Row("distilled", (distilled,)),
            Row("random real", *bench.random_real()),
            Row("optimised real", *bench.optimised_real()),
            Row("average real", *bench.average_real()),
            Row(FINE_TUNING, *fine_tuning(bench, HELD_OUT)),
        ]
    return [
        Row("untrained", (untrained,)),
        Row("distilled", (distilled,)),
        Row("random real", *bench.random_real()),
        Row("optimised real", *bench.optimised_real()),
        Row("k-means", *bench.k_means()),
        Row("average real", *bench.average_real()),
        Row("K-NN random real", *bench.neighbours("random real")),
        Row("K-NN k-means", *bench.neighbours("k-means")),
        Row("all real", *bench.all_real()),
    ]


def _table(bench: Bench, rows: Sequence[Row]) -> BaselineTable:
    header, images = bench.distilled.header, len(bench.distilled)
    record = header.initialization
    experiment = Experiment(bench.test.name, header.architecture.name, images, record.kind)
    shown = paper_figures(experiment, tuple(bench.test.input_shape), len(bench.test))
    if record.scheme != "xavier-normal" or header.data != bench.test.name:
        shown = {}
    return BaselineTable(
        rows=tuple(dataclasses.replace(row, paper=shown.get(row.name)) for row in rows),
        data=bench.test.name,
        test_examples=len(bench.test),
        network=header.architecture.name,
        initialization=record.kind,
        images=images,
        steps=header.schedule.steps,
        select=bench.select,
    )


def _images(distilled: DistilledData, network: Network, data: LabelledData) -> Images:
    """The images of each baseline, as many as are distilled and laid out like them."""
    schedule, classes = distilled.header.schedule, Classification().classes(network.outputs)
    counts = {
        "classes": classes,
        "steps": schedule.steps,
        "images_per_class": schedule.images // classes,
    }

    @functools.cache  # clustering takes long
    def centroids(number: int) -> Steps:
        return k_means(data, network, seed=number, **counts)

    def images(baseline: str, number: int) -> Steps:
        match baseline:
            case "random real":
                return random_real(data, network, seed=number, **counts)
            case "k-means":
                return centroids(number)
            case _:
                return average_real(data, network, **counts)

    return images


def _context(
    distilled: DistilledData,
    network: Network,
    seed: int,
    train: LabelledData,
    test: LabelledData,
) -> dict[str, object]:
    """All that every figure depends on; those of other images do not depend on the distilled."""
    # One network drawn by the initialization stands for all of them.
    theta0 = distilled.initial_weights(network, networks_for(seed, "held-out network", [0]))
    return {
        "schedule": [distilled.header.schedule.steps, distilled.header.schedule.images],
        "momentum": distilled.rule.momentum,
        "architecture": distilled.header.architecture.model_dump(mode="json"),
        "network": weights_hash({**network.constants, **theta0}),
        "device": network.device.type,
        "train": data_hash(train),
        "test": data_hash(test),
        "datadistill": __version__,
    }


def _some(data: LabelledData, examples: int, purpose: str) -> LabelledData:
    """A random sample of real data."""
    order = torch.randperm(len(data), generator=stream(0, purpose))
    return data.part(order[:examples], data.split)


def _check(distilled: DistilledData, networks: int) -> None:
    if distilled.header.objective != Classification.name:
        raise ConfigError(
            f"The baselines are for classification; these distilled data are for "
            f"{distilled.header.objective}.",
            "Evaluate them without baselines.",
        )
    if networks < 1 or (distilled.initialization.fixed and networks > 1):
        raise ConfigError(
            f"networks is {networks}.",
            "A fixed initialization is one network."
            if distilled.initialization.fixed
            else "Set networks to at least 1.",
        )


def _check_data(
    distilled: DistilledData, network: Network, train: LabelledData, test: LabelledData
) -> None:
    for data in (train, test):
        check_inputs(distilled.inputs.shape[2:], data)
        distilled.objective.check(network.outputs, data.labels, complete=data is train)
    classes, images = Classification().classes(network.outputs), distilled.inputs.shape[1]
    if images % classes:
        raise ConfigError(
            f"A step of these distilled data has {images} images for {classes} classes, so real "
            "images cannot be as many of every class.",
            "Evaluate them without baselines.",
        )
