"""The paper's Table 1 for any distilled data: compared with every baseline and reference."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from ..artefact import DistilledData
from ..artefact.real_data import real_data
from ..baselines import Baseline, Layout
from ..baselines.paper import PaperSetting, paper_figures
from ..core.distilled import Steps
from ..core.grad_mode import with_gradients
from ..core.initialization import networks_for
from ..core.network import Network
from ..core.objective import Classification
from ..data import LabelledData
from ..data.fingerprint import data_hash
from ..errors import ConfigError
from ..evaluation.learners import HELD_OUT_NETWORKS, check_inputs, check_networks
from ..given import typed
from ..models.description import weights_hash
from ..pools import at_most, check_enough
from ..progress import ProgressCallback
from ..showing import shown
from ..version import __version__
from .adaptation import FewShot
from .context import TableContext, TableData, TableFeatures, TableNetworks, TableSettings
from .image_sets import baselines_of_table
from .references import all_real, fine_tuning, neighbours
from .result_cache import ResultCache, rule_key
from .rows import BaselineTable, TableRow
from .trained_images import TrainedImages, distilled_figures

DEFAULTS = TableSettings()


@typed
@with_gradients
def baseline_table(
    distilled: DistilledData,
    train: LabelledData,
    test: LabelledData,
    *,
    baselines: Sequence[Baseline | str] = (),
    settings: TableSettings = DEFAULTS,
    source: LabelledData | None = None,
    results: Path | None = None,
    progress: bool | ProgressCallback = False,
) -> BaselineTable:
    """Measures distilled data, all baselines and references by the paper's protocol.

    Args:
        distilled: The distilled data to compare with; classification only.
        train: The real training data, augmented as in distillation; a tenth is held out to choose
            on.
        test: The real test data. They choose nothing unless ``settings.select`` is ``test``.
        baselines: Your own baselines, each a row beside the built-in ones: objects, or references
            such as ``file.py:Class``.
        settings: How it is measured.
        source: Training data of another data set that the networks were pre-trained on. Then the
            table is the paper's for domain adaptation: with few-shot adversarial adaptation,
            without K-NN.
        results: A ``results.json`` in which every finished part is saved at once, so that an
            interrupted call can be continued; other sections of the file stay.
        progress: True for bars, or a callback, called often.
    """
    train = real_data(distilled, train, "train")
    test = real_data(distilled, test, "test")
    count = _networks(distilled, settings.networks)
    network = distilled.network(device=settings.device)
    without = ["k-means"] if _other_classes(distilled) else []
    compared = baselines_of_table(baselines, without=without)
    _check_data(distilled, network, train, test)
    cache = ResultCache.read(results, _context(distilled, network, settings.seed, train, test))
    with shown(progress) as show:
        entering = TableFeatures(distilled, network, train, test).extract(show)
        context = TableContext(
            TableNetworks(
                entering.distilled, entering.network, count, settings.seed, settings.memory
            ),
            TableData.of(entering.train, entering.test, settings.select, settings.counts.examples),
            entering.images_of(train, network),
            settings.counts,
            cache,
            show,
        )
        rows = _rows(context, distilled.steps, compared, source)
        table = _table(context, rows, source)
    cache.write({"table": table.summary()})
    return table


def _rows(
    context: TableContext,
    artefact: Steps,
    baselines: Sequence[Baseline],
    source: LabelledData | None,
) -> list[TableRow]:
    """The rows of the paper's table of this kind, with the user's own baselines."""
    images = TrainedImages(context.counts, context)
    sets = [images.sets_of(baseline) for baseline in baselines]
    untrained, trained = distilled_figures(context, artefact)
    distilled, rows = TableRow("distilled", (trained,)), [images.row(one) for one in sets]
    if _other_classes(context.distilled):
        return [distilled, *rows, fine_tuning(context)]
    if source is not None:
        return [
            TableRow("no adaptation", (untrained,)),
            distilled,
            *rows,
            FewShot(context, source).row(),
            dataclasses.replace(all_real(context), name="full target"),
        ]
    return [
        TableRow("untrained", (untrained,)),
        distilled,
        *rows,
        *(neighbours(context, one) for one in sets if one.baseline.neighbours),
        all_real(context),
    ]


def _other_classes(distilled: DistilledData) -> bool:
    """Whether the network was pre-trained on other classes, so that its last layer is new."""
    return bool(distilled.header.configuration.get("reset_head"))


def _table(
    context: TableContext, rows: Sequence[TableRow], source: LabelledData | None
) -> BaselineTable:
    header, images = context.distilled.header, len(context.distilled)
    record = header.initialization
    origin = source.name if source else None
    test, name = context.data.test, header.architecture.name
    setting = PaperSetting(test.name, name, images, record.kind, origin)
    shown = paper_figures(setting, tuple(test.input_shape), len(test))
    if record.scheme != "xavier-normal" or header.data != test.name:
        shown = {}
    return BaselineTable(
        rows=tuple(dataclasses.replace(row, paper=shown.get(row.name)) for row in rows),
        data=test.name,
        test_examples=len(test),
        network=name,
        initialization=record.kind,
        source=origin,
        images=images,
        steps=header.schedule.steps,
        select=context.data.select,
        train_examples=len(context.data.train),
    )


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
        **rule_key(distilled.rule),
        "architecture": distilled.header.architecture.model_dump(mode="json"),
        "network": weights_hash({**network.constants, **theta0}),
        "device": network.device.type,
        "train": data_hash(train),
        "test": data_hash(test),
        "datadistill": __version__,
    }


def _networks(distilled: DistilledData, networks: int | None) -> int:
    """How many held-out networks there are for each figure, if they are available."""
    fixed = distilled.initialization.fixed
    if networks is None:
        networks = at_most(distilled.initialization, 1 if fixed else HELD_OUT_NETWORKS)
    if distilled.header.objective != Classification().record():
        raise ConfigError(
            f"The baselines are for classification; these distilled data are for "
            f"{distilled.objective.text}.",
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
    Layout.of(network, *distilled.inputs.shape[:2])  # as many images of every class
