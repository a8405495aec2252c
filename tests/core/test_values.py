"""Public objects show themselves in one line, and can be compared with anything."""

import copy
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill.artefact import Header
from datadistill.baselines import AdversarialSettings, Layout
from datadistill.core.network import Network
from datadistill.core.values import equal
from datadistill.data import Affine, Normalization, Options, PadCropFlip, ResizedCropFlip
from datadistill.engine import EngineRecord
from datadistill.evaluation import (
    Attack,
    Attacked,
    ClassScore,
    Defence,
    Defended,
    FullTraining,
    HeldOut,
    Protocol,
    Verification,
    Victims,
)
from datadistill.models import WeightsReport
from datadistill.pools import HeldOutInit
from datadistill.report.making import Report
from datadistill.runs import experiment
from datadistill.runs.distillation import Distillation
from datadistill.runs.experiment import Experiment
from datadistill.runs.outcome import Outcome
from datadistill.runs.run import Run
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.tuning.trials import Trial
from datadistill.runs.tuning.tuning import Tuned
from datadistill.tables import (
    BaselineTable,
    Comparison,
    Counts,
    LinearBound,
    PoisoningRow,
    Robustness,
    TableRow,
)

LONGEST = 215
ROOMS = ("", ".data", ".models", ".pools", ".baselines", ".evaluation", ".tables", ".artefact")
ABSTRACT = {"Augmentation", "Stream"}  # protocols
MANY = tuple(0.5 + i / 1000 for i in range(200))


def public_classes() -> Iterator[type]:
    for room in ROOMS:
        module = importlib.import_module(f"datadistill{room}")
        for name in module.__all__:
            kind = getattr(module, name)
            skipped = inspect.isabstract(kind) or name in ABSTRACT
            # The repr of a network is the tree of its layers, as torch has it.
            if inspect.isclass(kind) and not skipped and not issubclass(kind, nn.Module):
                yield kind


def square(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.square().mean() + 0 * labels.sum()


def scores() -> ClassScore:
    return ClassScore("trouser", 1000, MANY)


def attacked() -> Attacked:
    return Attacked(scores(), scores(), scores(), (scores(),) * 10)


def evaluation() -> dd.Evaluation:
    by_class = (scores(),) * 10
    return dd.Evaluation(MANY, MANY, "accuracy", "fashion-mnist", "test", 10000, 0, by_class)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """An object, or several, of every public class, with much in it."""
    folder: Path = tmp_path_factory.mktemp("values")
    inputs = torch.randn(40, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    data = dd.LabelledData(inputs, torch.arange(40) % 4, class_names=("a", "b", "c", "d"))
    module = dd.models.Linear(channels=3, size=8, classes=4)
    pool = dd.pretrain(
        data, module, folder / "pool", networks=2, held_out=1, epochs=1, validation=0.0
    )
    made = dd.distill(data, module, iterations=1, networks=1)
    network = Network(module, inputs)
    held_out = HeldOut(network, lambda generators: network.stack([network.weights]))
    poisoning = dd.Poisoning(0, 1)
    steps, claim = made.steps, made.claim
    assert claim is not None
    config = dd.RunConfig(data="digits", data_dir=folder / ("x" * 150), iterations=7)
    loaded = experiment.load(dd.RunConfig(model="linear", iterations=1))
    distillation = loaded.prepare()
    state = distillation.start()
    return [
        *(dd.Adam(), dd.BackGradient(), dd.StoredGraph(), dd.Truncated(3), dd.RidgeHead()),
        dd.GradientDescent(),
        *(dd.Momentum(), dd.Nesterov(), dd.WeightDecay(0.1), dd.Plain(), dd.SoftLabels()),
        *(dd.Bases(), dd.LowResolution(), Protocol(dd.OrdinaryTraining(), 5), Report(folder)),
        Robustness(0.9, 0.8, 0.8, 0.5, 0.8, 0.5),
        *(dd.Classification(), dd.Regression(), poisoning, dd.OwnObjective.of(square)),
        *(dd.FixedInit(), dd.FixedInit.of(module), dd.RandomInit(), dd.PoolInit(pool)),
        *(HeldOutInit("mine", pool, {"a": list(range(500))}), pool),
        *(made, steps, next(iter(steps)), made.header, claim, data, network),
        dd.Learner(network.weights, {"velocity": network.weights}),
        dd.Parameters(network.weights, network.weights),
        *(config, config.mapping(), dd.DistillerConfig(), dd.DataDistillError("a" * 9, "b")),
        *(dd.TableSettings(), Counts(), dd.Progress("distilling", 1, 2), dd.OrdinaryTraining()),
        *(Affine(), PadCropFlip(), ResizedCropFlip(), Options(), FullTraining(), Layout(4)),
        Normalization(MANY, MANY),
        *dd.data.DATA_SETS.values(),
        dd.data.Decoder(("a long title",) * 50, lambda inputs: [("a",) for _ in inputs]),
        *(dd.Baseline.implementation(name)() for name in dd.Baseline.names()),
        AdversarialSettings(),
        WeightsReport(tuple(f"layer.{i}" for i in range(300)), ("a",), ("b",), {"c": "d"}, ()),
        *(evaluation(), Verification(claim, evaluation(), True), scores(), attacked()),
        Attack(attacked(), attacked(), poisoning, "mnist", "test", 10000, 0),
        *(Defence(), Defended(Defence(), attacked(), 0.1, 0.2), held_out),
        Victims(held_out, data, poisoning),
        BaselineTable(
            (TableRow("random", (MANY,)),), "mnist", 1, "lenet", "fixed", None, 1, 1, "test"
        ),
        *(TableRow("random", (MANY,) * 9), Comparison(0.1, 0.2, MANY, 0.1, 3, 0.9)),
        *(PoisoningRow("ours", attacked(), 0.1), LinearBound("mnist", 1, 1, 0.1, 0.2, 1, 0, ())),
        *(made.header.engines[0], loaded, distillation, state),
        Run(distillation, RunFolder(folder)),
        Outcome(made, made, made),
        Tuned(config, 0.9, (Trial({"outer_lr": 0.1}, 0.9, 1.0),) * 99, folder / "best.yaml"),
    ]


def test_every_public_class_is_tried(objects: list[Any]) -> None:
    tried = {type(one) for one in objects}
    images = {"ImageFiles", "ClaimError"}  # the first is tested with the folders that it reads
    missing = {kind.__name__ for kind in public_classes() if kind not in tried} - images
    assert not missing
    assert {Header, EngineRecord, Distillation, Experiment} <= tried


def test_a_repr_is_one_short_line(objects: list[Any]) -> None:
    for one in objects:
        if not isinstance(one, dict):
            assert "\n" not in repr(one), repr(one)
            assert len(repr(one)) <= LONGEST, repr(one)
            assert " object at 0x" not in repr(one), repr(one)


def test_objects_can_be_compared_with_themselves_copies_and_anything(objects: list[Any]) -> None:
    for one in objects:
        assert one == one, one
        assert (one != one) is False, one
        assert (one == 3) is False, one
        assert (one != 3) is True, one
        assert (one == copy.copy(one)) in (True, False)
        for other in objects:
            assert (one == other) in (True, False)


def test_data_and_steps_are_equal_if_all_their_tensors_are(
    objects: list[Any], tmp_path: Path
) -> None:
    made = next(one for one in objects if isinstance(one, dd.DistilledData))
    made.save(tmp_path / "made.safetensors")
    again = dd.load(tmp_path / "made.safetensors")
    assert again == made
    assert again.steps == made.steps
    steps = dd.Steps(made.inputs.clone(), made.labels.clone(), made.learning_rates.clone())
    assert steps == made.steps
    steps.inputs[0, 0, 0, 0, 0] += 1
    assert steps != made.steps
    assert next(iter(steps)) != next(iter(made.steps))
    assert next(iter(made.steps)) == next(iter(again.steps))


def test_fixed_initializations_differ_if_their_weights_do() -> None:
    one, other = dd.models.Linear(), dd.models.Linear()
    assert dd.FixedInit.of(one) == dd.FixedInit.of(one)
    assert dd.FixedInit.of(one) != dd.FixedInit.of(other)
    assert dd.FixedInit(seed=1) == dd.FixedInit(seed=1)
    assert dd.FixedInit(seed=1) != dd.FixedInit(seed=2)
    assert len({dd.FixedInit.of(one), dd.FixedInit.of(one)}) == 1


def test_a_configuration_shows_what_differs_from_the_defaults() -> None:
    assert repr(dd.RunConfig()) == "RunConfig()"
    assert repr(dd.RunConfig(steps=3, data="mnist")) == "RunConfig(steps=3, data='mnist')"


def test_tensors_of_other_types_and_shapes_are_not_equal() -> None:
    ones = torch.ones(2)
    assert equal(ones, torch.ones(2))
    assert not equal(ones, torch.ones(3))
    assert not equal(ones, torch.ones(2, dtype=torch.float64))
    assert not equal(ones, None)
    assert not equal(None, ones)
    assert equal({"a": [ones]}, {"a": [torch.ones(2)]})
    assert not equal({"a": (ones,)}, {"a": [torch.ones(2)]})
