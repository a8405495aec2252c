"""The seam: baselines by name, by reference and by record; one file adds one."""

import dataclasses
import importlib.util
import json
import pkgutil
import sys
from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill import baselines
from datadistill.baselines import (
    AverageReal,
    Baseline,
    KMeans,
    Layout,
    OptimisedReal,
    RandomReal,
    Stream,
)
from datadistill.core.distilled import Steps
from datadistill.core.network import Network
from datadistill.errors import ConfigError, DataDistillError
from datadistill.runs.seams import named

Digits = tuple[dd.LabelledData, dd.LabelledData]

OWN = '''
from dataclasses import dataclass

import torch

from datadistill.baselines import Baseline


@dataclass(frozen=True)
class Noise(Baseline):
    """Noise around a level."""

    level: float = 0.5
    title = "noise"

    def steps(self, data, layout, stream):
        shape = (layout.classes, layout.per_class, *data.input_shape)
        return layout.arrange(self.level + torch.randn(shape, generator=stream("noise")))


class Broken(Noise):
    def __init__(self, needed):
        pass


function = print
'''


@dataclasses.dataclass(frozen=True)
class Constant(Baseline):
    value: float = 1.0

    def steps(self, data: dd.LabelledData, layout: Layout, stream: Stream) -> Steps:
        shape = (layout.classes, layout.per_class, *data.input_shape)
        return layout.arrange(torch.full(shape, self.value))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "my_baselines.py"
    path.write_text(OWN)
    return path


def test_the_built_in_baselines_are_known_by_the_names_of_their_rows() -> None:
    kinds = {RandomReal, OptimisedReal, KMeans, AverageReal}
    assert kinds <= {Baseline.implementation(name) for name in Baseline.names()}
    for name in Baseline.names():
        assert named(Baseline, name).title == named(Baseline, name).name == name


@pytest.mark.parametrize(
    ("name", "near"), [("kmeans", "k-means"), ("random", "random real"), ("Average", "average")]
)
def test_an_unknown_name_is_an_error_that_names_the_nearest(name: str, near: str) -> None:
    for make in (lambda: named(Baseline, name), lambda: Baseline.from_record({"name": name})):
        with pytest.raises(ConfigError, match=f"no baseline '{name}'.*mean '{near}") as told:
            make()
        assert len(str(told.value).splitlines()) == 2


def test_records_are_plain_data_that_make_the_same_baseline(file: Path, digits: Digits) -> None:
    own = named(Baseline, f"{file}:Noise")
    for baseline in (RandomReal(), KMeans(), own, Constant(3.0)):
        record = json.loads(json.dumps(baseline.record()))
        again = Baseline.from_record(record)
        assert type(again) is type(baseline)
        assert again.record() == record
        made = [one.draw(digits[0], Layout(10), seed=3) for one in (baseline, again)]
        assert torch.equal(made[0].inputs, made[1].inputs)
    assert RandomReal().record() == {"name": "random real"}
    assert own.record() == {"name": f"{file}:Noise", "level": 0.5}
    loud = named(Baseline, f"{file}:Noise(level=2.0)")
    assert loud.record() == {"name": f"{file}:Noise", "level": 2.0}
    assert Constant(3.0).record()["value"] == 3.0


def test_a_row_without_a_title_is_called_like_the_class() -> None:
    assert Constant().title == "Constant"


def test_code_that_only_a_record_names_is_not_imported(file: Path) -> None:
    with pytest.raises(ConfigError, match="has not been imported, and files never import code"):
        Baseline.from_record({"name": f"{file.with_name('other.py')}:Other"})


def test_references_that_name_no_baseline_are_refused(file: Path) -> None:
    for reference, error, told in (
        (f"{file}:Nois", ConfigError, "Did you mean 'Noise'"),
        (f"{file}:function", ConfigError, "is not an implementation of Baseline"),
        (f"{file}:Broken", ConfigError, "cannot be made of"),
        ("nowhere.py:Mine", ConfigError, "There is no file"),
    ):
        with pytest.raises(error, match=told) as caught:
            named(Baseline, reference)
        assert isinstance(caught.value, DataDistillError)


def test_images_of_another_shape_are_refused(digits: Digits) -> None:
    class OneStep(Constant):
        title = "one step"

        def steps(self, data: dd.LabelledData, layout: Layout, stream: Stream) -> Steps:
            made = super().steps(data, layout, stream)
            return dataclasses.replace(made, inputs=made.inputs[:1])

    with pytest.raises(ConfigError, match=r"'one step' made inputs of shape \(1, 10, 1, 28, 28\)"):
        OneStep().draw(digits[0], Layout(10, steps=2))


def test_a_set_is_a_function_of_its_stream(digits: Digits, file: Path) -> None:
    own = named(Baseline, f"{file}:Noise")
    first, again, other = (own.draw(digits[0], Layout(10), seed=s).inputs for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_layout_of_a_network_has_its_classes_device_and_dtype(digits: Digits) -> None:
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)).double()
    network = Network(module, digits[0].example())
    assert Layout.of(network, 3, 20) == Layout(10, 3, 2, torch.float64, network.device)
    with pytest.raises(ConfigError, match="15 images for 10 classes"):
        Layout.of(network, 3, 15)


def test_no_name_of_the_package_hides_a_module() -> None:
    for module in pkgutil.iter_modules(baselines.__path__):
        name = f"{baselines.__name__}.{module.name}"
        assert importlib.util.find_spec(name) is not None
        assert getattr(baselines, module.name) is sys.modules[name]
