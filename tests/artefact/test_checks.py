"""Files that are whole but hostile: refused before anything is allocated for them."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill.artefact.container import read_container, write_container
from datadistill.cli.main import main
from datadistill.errors import ArtefactError, NonFiniteError
from datadistill.report import draw

Tensors = dict[str, Tensor]
Header = dict[str, Any]
Change = Callable[[Tensors, Header], object]
NAN, INF = torch.nan, torch.inf


class Masked(nn.Module):
    """A frozen layer, and a mask that is infinite on purpose."""

    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(64, 2)
        self.body.requires_grad_(False)
        self.head = nn.Linear(2, 3)
        self.register_buffer("mask", torch.tensor([0.0, -torch.inf]))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.body(images.flatten(1)) * self.mask.exp())


def made(module: nn.Module, folder: Path, **more: Any) -> tuple[Tensors, Header]:
    data = (torch.randn(6, 1, 8, 8), torch.arange(6) % 3)
    settings: dict[str, Any] = {"iterations": 1, "networks": 1, "validation": 0} | more
    dd.distill(data, module, **settings).save(folder / "a.safetensors")
    return read_container(folder / "a.safetensors")


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tensors, Header]:
    module = dd.models.Linear(size=8, classes=3)
    folder = tmp_path_factory.mktemp("fixed")
    return made(module, folder, initialization=dd.FixedInit(seed=1))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tensors, Header]:
    return made(Masked(), tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tensors, Header]:
    """An artefact that stores bases and coefficients in place of images."""
    how: dict[str, Any] = {"parametrisation": "bases", "bases": 2, "downscale": 2}
    module = dd.models.Linear(size=8, classes=3)
    return made(module, tmp_path_factory.mktemp("stored"), **how)


def changed(sound: tuple[Tensors, Header], change: Change, folder: Path) -> Path:
    """A correctly hashed artefact that is not sound."""
    tensors, header = dict(sound[0]), {**sound[1]}
    for name, part in header.items():
        header[name] = dict(part) if isinstance(part, dict) else part
    change(tensors, header)
    write_container(folder / "hostile.safetensors", tensors, header)
    return folder / "hostile.safetensors"


def tensor(name: str, value: Tensor) -> Change:
    return lambda tensors, _: tensors.update({name: value})


def without(name: str) -> Change:
    return lambda tensors, _: tensors.pop(name)


def nothing(_: Tensors, __: Header) -> None:
    """No change."""


def field(name: str, value: object) -> Change:
    return lambda _, header: header.update({name: value})


def nested(levels: int) -> Any:
    rule: Any = {"name": "gradient-descent"}
    for _ in range(levels):
        rule = {"name": "weight-decay", "decay": 0.1, "rule": rule}
    return rule


ONES = torch.ones(3, 64)
IMAGES = (1, 3, 1, 8, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (tensor("initial/fc.weight", ONES * NAN), "'initial/fc.weight' is not finite"),
        (tensor("initial/fc.weight", ONES * INF), "'initial/fc.weight' is not finite"),
        (tensor("initial/fc.weight", torch.ones(3, 63)), r"is \[3, 63\], that of its network"),
        (tensor("initial/fc.weight", ONES.long()), "is of type torch.int64"),
        (tensor("initial/other", ONES), "that of its network is missing"),
        (without("initial/fc.bias"), "is missing, that of its network"),
        (tensor("constants/other", ONES), "no frozen parameter or buffer 'other'"),
        (tensor("constants/fc.bias", torch.ones(3) * NAN), "'constants/fc.bias' is not finite"),
        (tensor("evil", ONES), "a tensor 'evil', which no artefact has"),
        (tensor("labels", torch.tensor([[0, 1, 3]])), "run from 0 to 3, but there are 3"),
        (tensor("labels", torch.tensor([[0, 1, -1]])), "run from -1 to 1"),
        (tensor("labels", torch.tensor([[0, 1, 2]]).int()), "labels of type torch.int32"),
        (tensor("labels", torch.zeros(1, 3, 4)), "labels of shape .* do not fit a network"),
        (tensor("labels", torch.zeros(1, 3).to(torch.complex64)), "type torch.complex64"),
        (tensor("labels", torch.zeros(1, 3, 0)), "labels of shape"),
        (tensor("inputs", torch.zeros(IMAGES).to(torch.float8_e5m2)), "inputs are not all"),
        (tensor("inputs", torch.zeros(1, 3, 1, 8, 9)), "do not fit linear"),
        (tensor("inputs", torch.zeros(1, 3)), "inputs of shape"),
        (field("normalization", {"mean": [0.5] * 10**5, "std": [1.0]}), "100000 values of mean"),
        (field("normalization", {"mean": [0.5], "std": [1.0, 1.0]}), "2 values of std"),
        (field("normalization", {"mean": [], "std": [1.0]}), "0 values of mean"),
        (field("data", "x" * 10**5), "data: .*at most 4096"),
        (field("left_out", "x"), "left_out"),
        (field("left_out", "0" * 64), "that it says it has left out"),
        (field("initialization", {"name": "random"}), "initial weights for a random init"),
        (field("update_rule", nested(40)), "nested deeper than 32"),
        (field("update_rule", {"name": "adam", "eps": NAN}), "update_rule: "),
        (field("update_rule", {"name": "adam", "eps": -1.0}), "eps is -1"),
        (field("update_rule", {"name": "weight-decay", "decay": INF}), "out of range"),
        (field("objective", {"name": "regression"}), "objective regression"),
    ],
)
def test_what_makes_no_sense_is_refused_at_load(
    fixed: tuple[Tensors, Header], change: Change, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ArtefactError, match=message) as caught:
        dd.load(changed(fixed, change, tmp_path))
    assert "hostile.safetensors is not a valid artefact" in caught.value.what
    assert len(str(caught.value).splitlines()) == 2


def sized(**arguments: int) -> Change:
    """A larger network, in arguments and weights alike."""

    def change(tensors: Tensors, header: Header) -> None:
        with torch.device("meta"):
            module = dd.models.build("linear", arguments)
        weights = {n: f"float32{list(p.shape)}" for n, p in module.named_parameters()}
        header["architecture"] |= {"arguments": arguments, "weights": weights}
        header["initialization"] = {"name": "random"}
        for name in [n for n in tensors if "/" in n]:
            del tensors[name]

    return change


def test_a_network_out_of_proportion_is_refused_with_the_figure_and_never_built(
    fixed: tuple[Tensors, Header], tmp_path: Path
) -> None:
    path = changed(fixed, sized(channels=1, size=8, classes=2**20), tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    distilled = dd.load(path)
    assert repr(distilled)
    with pytest.raises(ArtefactError, match=r"takes about 3,\d\d\d MB and .* allowed are 768 MB"):
        distilled.train()
    with pytest.raises(ArtefactError, match="allowed are 768 MB"):
        dd.evaluate(distilled, (torch.zeros(3, 1, 8, 8), torch.arange(3)), networks=1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_a_network_that_there_cannot_be_is_refused(
    fixed: tuple[Tensors, Header], tmp_path: Path
) -> None:
    def change(_: Tensors, header: Header) -> None:
        arguments = {"channels": 2**20, "size": 2**20, "classes": 2**20}
        header["architecture"] |= {"arguments": arguments}

    with pytest.raises(ArtefactError, match=r"no network linear\(channels=1048576"):
        dd.load(changed(fixed, change, tmp_path))


def test_a_network_that_the_user_passes_is_the_users_choice(
    fixed: tuple[Tensors, Header], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datadistill.artefact.cost.MEMORY", 0)
    monkeypatch.setattr("datadistill.artefact.cost.MEMORY_OF_FILE", 0)
    distilled = dd.load(changed(fixed, nothing, tmp_path))
    with pytest.raises(ArtefactError, match="pass the network yourself"):
        distilled.train()
    assert distilled.train(dd.models.Linear(size=8, classes=3))


def test_a_schedule_without_end_is_refused(fixed: tuple[Tensors, Header], tmp_path: Path) -> None:
    def change(tensors: Tensors, header: Header) -> None:
        tensors["learning_rates"] = torch.ones(100_001, 1)
        header["schedule"] |= {"epochs": 100_001}

    with pytest.raises(ArtefactError, match="100,001 updates, more than 100,000"):
        dd.load(changed(fixed, change, tmp_path))


def test_a_mask_may_be_infinite_where_a_weight_may_not(
    own: tuple[Tensors, Header], tmp_path: Path
) -> None:
    assert dd.load(changed(own, nothing, tmp_path)).train(Masked())
    hostile = changed(own, tensor("constants/mask", torch.tensor([0.0, NAN])), tmp_path)
    with pytest.raises(ArtefactError, match="'constants/mask' is not finite"):
        dd.load(hostile)
    weight = tensor("constants/body.bias", torch.tensor([0.0, INF]))
    with pytest.raises(ArtefactError, match=r"'body.bias' .* not finite"):
        dd.load(changed(own, weight, tmp_path)).train(Masked())
    kind = tensor("constants/mask", torch.tensor([0, 1]))
    with pytest.raises(ArtefactError, match=r"'mask' .* torch.int64"):
        dd.load(changed(own, kind, tmp_path)).train(Masked())


def test_labels_are_compared_with_a_network_of_ones_own(
    own: tuple[Tensors, Header], tmp_path: Path
) -> None:
    path = changed(own, tensor("labels", torch.tensor([[0, 1, 7]])), tmp_path)
    with pytest.raises(ArtefactError, match="run from 0 to 7, but there are 3 classes"):
        dd.load(path).train(Masked())


def test_a_network_that_diverges_is_neither_returned_nor_written(
    fixed: tuple[Tensors, Header],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    def change(tensors: Tensors, _: Header) -> None:
        tensors["inputs"] = torch.full(IMAGES, 1e20)
        tensors["learning_rates"] = torch.full((3, 1), 1e20)

    path = changed(fixed, change, tmp_path)
    with pytest.raises(NonFiniteError, match="has diverged: 'fc"):
        dd.load(path).train()
    assert main(["train", str(path)]) == 1
    assert "has diverged" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_a_picture_takes_text_as_it_is_and_draws_a_bounded_number(
    fixed: tuple[Tensors, Header], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datadistill.report.picture.MOST", 2)

    def change(tensors: Tensors, header: Header) -> None:
        tensors["inputs"] = 3e38 * torch.linspace(-1, 1, 192).reshape(IMAGES)
        header |= {"data": "$\\frac{$", "normalization": None}

    draw(dd.load(changed(fixed, change, tmp_path)), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").is_file()


def huge(tensors: Tensors, header: Header) -> None:
    """A few kilobytes that stand for terabytes of images."""
    tensors["stored/coefficients"] = torch.ones(10, 1000, 1)
    tensors["stored/bases"] = torch.ones(1, 1, 500, 500)
    header["parametrisation"] |= {"bases": 1, "downscale": 60}


BASES = {"name": "bases", "bases": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (tensor("stored/bases", torch.ones(2, 1, 4, 4) * NAN), "stored/bases is not finite"),
        (tensor("stored/bases", torch.ones(2, 1, 4, 4).long()), "stored/bases is not finite"),
        (tensor("stored/bases", torch.ones(2, 1, 4, 4).double()), "differ in type"),
        (tensor("stored/bases", torch.ones(3, 1, 4, 4)), "do not fit bases of shape"),
        (tensor("stored/bases", torch.ones(2, 4, 4)), "cannot be enlarged"),
        (tensor("stored/bases", torch.ones(2, 1, 4, 5)), "do not fit linear"),
        (tensor("stored/coefficients", torch.ones(1, 4, 2)), "do not fit its schedule"),
        (tensor("stored/coefficients", torch.tensor(1.0)), "do not fit bases"),
        (tensor("stored/evil", ONES), "it stores bases, coefficients, evil in place of inputs"),
        (without("stored/bases"), "it stores coefficients in place of inputs"),
        (tensor("inputs", torch.zeros(IMAGES)), "a tensor 'inputs', which no artefact has"),
        (field("parametrisation", None), "it has no tensor 'inputs'"),
        (field("parametrisation", {"name": "plain"}), "'plain', which stores inputs"),
        (field("parametrisation", {"name": "a.py:B"}), "'a.py:B', which stores inputs"),
        (field("parametrisation", {"name": ["bases"]}), "parametrisation: "),
        (field("parametrisation", BASES | {"downscale": -1}), "downscale is -1"),
        (field("parametrisation", BASES | {"downscale": "2"}), "parametrisation"),
        (field("parametrisation", BASES | {"downscale": 10**9}), "downscale is 10000"),
        (field("parametrisation", BASES | {"more": 1}), "no field 'more'"),
        (huge, "bytes are stored in place of inputs of 36,000,000,000,000 bytes"),
    ],
)
def test_parameters_that_make_no_inputs_are_refused(
    stored: tuple[Tensors, Header], change: Change, message: str, tmp_path: Path
) -> None:
    dd.load(changed(stored, nothing, tmp_path))
    with pytest.raises(ArtefactError, match=message):
        dd.load(changed(stored, change, tmp_path))
