"""The paper's Table 1 for any distilled data: beside them every baseline and reference."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

from torch import nn

from ..artefact import DistilledData
from ..baselines import average_real, k_means, random_real
from ..baselines.optimised_real import DRAWN, KEPT
from ..baselines.paper import Experiment, paper_figures
from ..core.distilled import Steps
from ..core.initialization import networks_for
from ..core.network import Network
from ..core.objective import Classification
from ..data import LabelledData
from ..data.fingerprint import data_hash
from ..errors import ConfigError
from ..evaluation import DEFAULT_BYTES
from ..evaluation.learners import HELD_OUT_NETWORKS, check_inputs, check_networks
from ..models.description import weights_hash
from ..pools import at_most, check_enough
from ..progress import ProgressCallback, silent
from ..version import __version__
from .adaptation import FewShot, others_of
from .context import Bench, Images
from .counts import Counts, Select
from .fine_tuning import FINE_TUNING, fine_tuning
from .frozen_features import Entering
from .references import all_real, neighbours
from .result_cache import Parts
from .rows import BaselineTable as BaselineTable
from .rows import Row as Row

HELD_OUT = 0.1  # of the training data, to choose on

PAPER_COUNTS = Counts(sets=10, drawn=DRAWN, kept=KEPT)


def baseline_table(
    distilled: DistilledData,
    train: LabelledData,
    test: LabelledData,
    *,
    select: Select = "train",
    networks: int | None = None,
    seed: int = 0,
    module: nn.Module | None = None,
    source: LabelledData | None = None,
    device: str = "auto",
    memory: int = DEFAULT_BYTES,
    counts: Counts = PAPER_COUNTS,
    results: Path | None = None,
    progress: ProgressCallback = silent,
) -> BaselineTable:
    """Measures distilled data, all baselines and references by the paper's protocol.

    Args:
        distilled: The distilled data to compare with; classification only.
        train: The real training data, augmented as distillation saw them; a tenth is held out to
            choose on.
        test: The real test data. They choose nothing unless ``select`` is ``test``.
        select: On what learning rates, epochs, norms and K are chosen.
        networks: Held-out networks for each figure; 200, or 1 for a fixed initialization.
        seed: Which held-out networks; others choose.
        module: The network, where it is not built in.
        source: Training data of another data set that the networks were pre-trained on. Then the
            table is the paper's for domain adaptation: with few-shot adversarial adaptation,
            without K-NN.
        device: Where to compute: auto, cpu, cuda or mps.
        memory: Bound of bytes for networks that are trained side by side.
        counts: How many sets and networks; the paper's by default.
        results: A ``results.json`` in which every finished part is kept at once, so that a call
            that was interrupted can be continued; other content of the file stays.
        progress: Called often.
    """
    networks = _networks(distilled, networks)
    network = distilled.network(module, device)
    _check_data(distilled, network, train, test)
    parts = Parts.read(results, _context(distilled, network, seed, train, test))
    entering = Entering.of(distilled, network, train, test, progress)
    images, _ = train.hold_out(HELD_OUT, seed=0)
    rest, held_out = entering.train.hold_out(HELD_OUT, seed=0)
    choosing = held_out if select == "train" else entering.test
    bench = Bench(
        distilled=entering.distilled,
        network=entering.network,
        images=entering.images(functools.partial(_images, distilled), network, images, rest),
        train=entering.train,
        test=entering.test,
        choosing=choosing.sample(counts.examples, "choosing"),
        picking=held_out.sample(counts.examples, "picking"),
        select=select,
        networks=networks,
        seed=seed,
        others=others_of(distilled, network),
        counts=counts,
        memory=memory,
        parts=parts,
        progress=progress,
    )
    table = _table(bench, _rows(bench, source), source)
    parts.write({"table": table.summary()})
    return table


def _rows(bench: Bench, source: LabelledData | None) -> list[Row]:
    untrained, distilled = bench.distilled_data()
    if bench.distilled.header.configuration.get("reset_head"):  # trained on other classes before
        return [
            Row("distilled", (distilled,)),
            Row("random real", *bench.random_real()),
            Row("optimised real", *bench.optimised_real()),
            Row("average real", *bench.average_real()),
            Row(FINE_TUNING, *fine_tuning(bench, HELD_OUT)),
        ]
    images = [
        Row("random real", *bench.random_real()),
        Row("optimised real", *bench.optimised_real()),
        Row("k-means", *bench.k_means()),
        Row("average real", *bench.average_real()),
    ]
    if source is not None:
        return [
            Row("no adaptation", (untrained,)),
            Row("distilled", (distilled,)),
            *images,
            Row("few-shot adversarial", *FewShot(bench, source).figures()),
            Row("full target", *all_real(bench)),
        ]
    return [
        Row("untrained", (untrained,)),
        Row("distilled", (distilled,)),
        *images,
        Row("K-NN random real", *neighbours(bench, "random real")),
        Row("K-NN k-means", *neighbours(bench, "k-means")),
        Row("all real", *all_real(bench)),
    ]


def _table(bench: Bench, rows: Sequence[Row], source: LabelledData | None) -> BaselineTable:
    header, images = bench.distilled.header, len(bench.distilled)
    record = header.initialization
    origin = source.name if source else None
    experiment = Experiment(bench.test.name, header.architecture.name, images, record.kind, origin)
    shown = paper_figures(experiment, tuple(bench.test.input_shape), len(bench.test))
    if record.scheme != "xavier-normal" or header.data != bench.test.name:
        shown = {}
    return BaselineTable(
        rows=tuple(dataclasses.replace(row, paper=shown.get(row.name)) for row in rows),
        data=bench.test.name,
        test_examples=len(bench.test),
        network=header.architecture.name,
        initialization=record.kind,
        source=origin,
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


def _networks(distilled: DistilledData, networks: int | None) -> int:
    """How many held-out networks there are for each figure, if they can be had."""
    fixed = distilled.initialization.fixed
    if networks is None:
        networks = at_most(distilled.initialization, 1 if fixed else HELD_OUT_NETWORKS)
    if distilled.header.objective != Classification.name:
        raise ConfigError(
            f"The baselines are for classification; these distilled data are for "
            f"{distilled.header.objective}.",
            "Evaluate them without baselines.",
        )
    check_networks(networks, fixed=fixed)
    check_enough(distilled.initialization, networks)
    return networks


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
