import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill.errors import ArtefactError
from tests.helpers import FrozenBody
from tests.processes import finished

TINY: dict[str, Any] = {"iterations": 2, "batch_size": 16, "validation": 0.0, "device": "cpu"}


@pytest.fixture(scope="module")
def fixed(digits: tuple[dd.LabelledData, dd.LabelledData]) -> dd.DistilledData:
    return dd.distill(
        digits[0], dd.models.LeNet(), steps=2, initialization=dd.FixedInit(seed=1), **TINY
    )


@pytest.fixture(scope="module")
def random(digits: tuple[dd.LabelledData, dd.LabelledData]) -> dd.DistilledData:
    return dd.distill(digits[0], dd.models.MLP(hidden=8), networks=2, **TINY)


def reloaded(distilled: dd.DistilledData, folder: Path) -> dd.DistilledData:
    distilled.save(folder / "a.safetensors")
    return dd.load(folder / "a.safetensors")


def test_everything_survives_saving_and_loading(fixed: dd.DistilledData, tmp_path: Path) -> None:
    again = reloaded(fixed, tmp_path)
    assert torch.equal(again.inputs, fixed.inputs)
    assert torch.equal(again.labels, fixed.labels)
    assert torch.equal(again.learning_rates, fixed.learning_rates)
    assert again.header == fixed.header
    assert again.carried.keys() == fixed.carried.keys()
    assert again.class_names == list("0123456789")
    assert again.header.data == "digits"
    assert again.header.schedule.model_dump() == {"steps": 2, "epochs": 3, "images": 10}
    assert again.header.configuration["iterations"] == 2


def test_saving_twice_gives_the_same_bytes(fixed: dd.DistilledData, tmp_path: Path) -> None:
    fixed.save(tmp_path / "a.safetensors")
    dd.load(tmp_path / "a.safetensors").save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.safetensors", "b.safetensors"]


def test_training_gives_a_plain_module_with_the_updates_of_the_schedule(
    fixed: dd.DistilledData,
) -> None:
    module = dd.models.LeNet()
    named = dict(module.named_parameters())
    with torch.no_grad():
        for name, value in fixed.carried.items():
            named[name.removeprefix("initial/")].copy_(value)
    for epoch in range(3):
        for step in range(2):
            loss = nn.functional.cross_entropy(module(fixed.inputs[step]), fixed.labels[step])
            gradients = torch.autograd.grad(loss, list(named.values()))
            with torch.no_grad():
                for weight, gradient in zip(named.values(), gradients, strict=True):
                    weight -= fixed.learning_rates[epoch, step] * gradient
    trained = fixed.train()
    assert type(trained) is dd.models.LeNet
    for name, weight in trained.named_parameters():
        torch.testing.assert_close(weight, named[name], rtol=1e-4, atol=1e-6)


def test_a_process_without_any_data_set_trains_to_exactly_the_same_accuracy(
    digits: tuple[dd.LabelledData, dd.LabelledData], fixed: dd.DistilledData, tmp_path: Path
) -> None:
    before = dd.evaluate(fixed, digits[1], device="cpu")
    fixed.save(tmp_path / "a.safetensors")
    script = """
import sys, torch, safetensors.torch
sys.modules["sklearn"] = None  # the digits cannot be read here
torch.set_num_threads(1)
import datadistill as dd
network = dd.load("a.safetensors").train(device="cpu")
safetensors.torch.save_file(network.state_dict(), "trained.safetensors")
"""
    environment = {"DATADISTILL_DATA": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
    done = finished("-c", script, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    import safetensors.torch

    module = dd.models.LeNet()
    module.load_state_dict(safetensors.torch.load_file(tmp_path / "trained.safetensors"))
    inputs, labels = digits[1].batch(slice(None), torch.device("cpu"), torch.float32)
    correct = (module(inputs).argmax(1) == labels).double().mean()
    assert float(correct) == before.mean
    assert dd.evaluate(tmp_path / "a.safetensors", digits[1], device="cpu") == before


def test_an_own_module_of_the_same_architecture_is_trained_and_left_alone(
    fixed: dd.DistilledData, tmp_path: Path
) -> None:
    own = dd.models.LeNet()
    before = copy.deepcopy(own.state_dict())
    trained = reloaded(fixed, tmp_path).train(own)
    assert all(torch.equal(before[n], w) for n, w in own.state_dict().items())
    for name, weight in fixed.train().state_dict().items():
        assert torch.equal(weight, trained.state_dict()[name])


def test_training_can_start_from_the_modules_own_weights(fixed: dd.DistilledData) -> None:
    own = dd.models.LeNet()
    trained = fixed.train(own, keep_weights=True)
    usual = fixed.train(own)
    distance = (trained.fc1.weight - own.fc1.weight).norm()  # pyright: ignore
    far = (usual.fc1.weight - own.fc1.weight).norm()  # pyright: ignore
    assert distance < 0.2 * far


def test_a_random_initialization_trains_the_network_of_the_seed(
    random: dd.DistilledData,
) -> None:
    first, again, other = (random.train(seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[n], again[n]) for n in first)
    assert not torch.equal(first["fc1.weight"], other["fc1.weight"])


def test_a_module_of_another_architecture_is_refused(fixed: dd.DistilledData) -> None:
    with pytest.raises(ArtefactError, match=r"'conv1.weight' is missing.*\[6, 1, 5, 5\]"):
        fixed.train(dd.models.Linear())
    with pytest.raises(ArtefactError, match=r"'conv1.weight' is \[6, 3, 5, 5\]"):
        fixed.train(dd.models.LeNet(channels=3))


def test_a_users_own_class_is_never_imported_but_asked_for(
    digits: tuple[dd.LabelledData, dd.LabelledData], tmp_path: Path
) -> None:
    inputs, labels = digits[0].batch(slice(None), torch.device("cpu"), torch.float32)
    data = (torch.nn.functional.avg_pool2d(inputs[:, :, :24, :24], 4), labels)
    made = dd.distill(data, FrozenBody(10), initialization=dd.FixedInit(), **TINY)
    again = reloaded(made, tmp_path)
    assert again.header.architecture.name == "tests.helpers:FrozenBody"
    with pytest.raises(ArtefactError, match="not built in"):
        again.train()
    # Frozen weights are part of the file: another module's own are replaced by them.
    trained, expected = again.train(FrozenBody(10)), made.train()
    for name, value in expected.state_dict().items():
        assert torch.equal(trained.state_dict()[name], value)


def test_weights_too_large_to_carry_are_checked_by_their_hash(
    fixed: dd.DistilledData, tmp_path: Path
) -> None:
    fixed.save(tmp_path / "a.safetensors", carry_limit=1000)
    assert (tmp_path / "a.safetensors").stat().st_size < 100_000
    again = dd.load(tmp_path / "a.safetensors")
    with pytest.raises(ArtefactError, match="not those it was distilled for"):
        again.train(dd.models.LeNet())
    original = dd.models.LeNet()
    state = {n.removeprefix("initial/"): w for n, w in fixed.carried.items()}
    original.load_state_dict(state)
    for name, value in fixed.train().state_dict().items():
        assert torch.equal(again.train(original).state_dict()[name], value)


def test_it_is_a_torch_dataset(fixed: dd.DistilledData) -> None:
    loader = torch.utils.data.DataLoader(fixed, batch_size=7)
    images = torch.cat([inputs for inputs, _ in loader])
    labels = torch.cat([labels for _, labels in loader])
    assert isinstance(fixed, torch.utils.data.Dataset)
    assert torch.equal(images, fixed.inputs.flatten(0, 1))
    assert torch.equal(labels, fixed.labels.flatten())
    assert torch.equal(fixed[-1][0], fixed.inputs[-1, -1])
    with pytest.raises(IndexError):
        fixed[20]


def test_images_are_shown_as_pixels(fixed: dd.DistilledData) -> None:
    norm = fixed.normalization
    assert norm is not None
    torch.testing.assert_close(norm.apply(fixed.images), fixed.inputs)


def test_progress_is_reported_after_every_update(fixed: dd.DistilledData) -> None:
    seen: list[dd.Progress] = []
    fixed.train(progress=seen.append)
    assert [p.done for p in seen] == [1, 2, 3, 4, 5, 6]
    assert {p.total for p in seen} == {6}


def test_a_float64_run_stays_float64(
    digits: tuple[dd.LabelledData, dd.LabelledData], tmp_path: Path
) -> None:
    made = dd.distill(digits[0], dd.models.Linear(), dtype="float64", networks=1, **TINY)
    again = reloaded(made, tmp_path)
    assert again.inputs.dtype == torch.float64
    weights: list[Tensor] = list(again.train().parameters())
    assert {w.dtype for w in weights} == {torch.float64}
