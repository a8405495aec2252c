"""Weights come from files that are only read, and a report says what became of each."""

import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

from datadistill.core.network import Network
from datadistill.errors import ModelError
from datadistill.models import AlexNet, LeNet, SqueezeNet, load_weights


def small(classes: int = 3) -> SqueezeNet:
    return SqueezeNet(3, 32, classes, width=4)


def save(tensors: dict[str, Tensor], path: Path) -> Path:
    if path.suffix == ".safetensors":
        save_file(tensors, path)
    else:
        torch.save(tensors, path)
    return path


def copy_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("suffix", [".safetensors", ".pth", ".pt", ".PTH"])
def test_weights_that_were_saved_come_back(tmp_path: Path, suffix: str) -> None:
    saved, module = small(), small()
    path = save(copy_of(saved), tmp_path / f"weights{suffix}")
    report = load_weights(module, path)
    assert report.complete
    assert report.matched == tuple(module.state_dict())
    assert str(report) == "52 weights match"
    torch.testing.assert_close(copy_of(module), copy_of(saved), rtol=0, atol=0)


def test_old_files_wrapped_files_and_other_precisions_are_read(tmp_path: Path) -> None:
    saved = nn.Linear(3, 2)
    old, wrapped = tmp_path / "old.pth", tmp_path / "wrapped.pth"
    torch.save(saved.state_dict(), old, _use_new_zipfile_serialization=False)
    torch.save({"epoch": 3, "state_dict": saved.state_dict(), "note": "as programs do"}, wrapped)
    parameters = save(dict(saved.named_parameters()), tmp_path / "parameters.pth")
    double = {n: t.double() for n, t in copy_of(saved).items()}
    for path in (old, wrapped, parameters, save(double, tmp_path / "double.safetensors")):
        module = nn.Linear(3, 2)
        assert load_weights(module, path).complete
        assert torch.equal(module.weight, saved.weight)
        assert module.weight.requires_grad
        assert module.weight.dtype == torch.float32


def altered() -> dict[str, Tensor]:
    """Weights of LeNet, one of which is missing, one unknown, one of another shape or kind."""
    tensors = copy_of(LeNet())
    del tensors["conv1.bias"]
    tensors["extra"] = torch.zeros(2)
    tensors["fc3.weight"] = torch.zeros(5, 84)
    tensors["fc3.bias"] = torch.zeros(10, dtype=torch.int64)
    return tensors


def test_a_file_that_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path, module = save(altered(), tmp_path / "other.pth"), LeNet()
    before = copy_of(module)
    with pytest.raises(ModelError) as caught:
        load_weights(module, path)
    message = str(caught.value)
    assert f"{path} does not fit LeNet" in message
    assert "missing in the file: conv1.bias" in message
    assert "unknown to the network: extra" in message
    assert "fc3.weight float32[5, 84] in the file, float32[10, 84] in the network" in message
    assert "fc3.bias int64[10] in the file, float32[10] in the network" in message
    assert "partial=True" in message
    assert "reset_head=True" in message
    torch.testing.assert_close(copy_of(module), before, rtol=0, atol=0)


def test_what_fits_is_loaded_if_that_is_asked_for(tmp_path: Path) -> None:
    tensors, module = altered(), LeNet()
    before = copy_of(module)
    report = load_weights(module, save(tensors, tmp_path / "other.pth"), partial=True)
    assert not report.complete
    assert report.missing == ("conv1.bias",)
    assert report.unexpected == ("extra",)
    assert set(report.mismatched) == {"fc3.weight", "fc3.bias"}
    assert len(report.matched) == 7
    for name, value in module.state_dict().items():
        assert torch.equal(value, tensors[name] if name in report.matched else before[name])


def test_a_file_of_which_nothing_fits_is_refused_even_in_part(tmp_path: Path) -> None:
    path = save({"weight": torch.zeros(2, 2)}, tmp_path / "other.safetensors")
    with pytest.raises(ModelError, match="does not fit LeNet: 0 weights match"):
        load_weights(LeNet(), path, partial=True)


def test_one_name_of_a_shared_weight_is_enough(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    module[1].weight = module[0].weight
    path = save({"0.weight": torch.ones(3, 3)}, tmp_path / "shared.safetensors")
    assert load_weights(module, path).complete
    assert torch.equal(module[1](torch.ones(1, 3)), torch.full((1, 3), 3.0))


def test_the_last_layer_is_reset_for_other_classes(tmp_path: Path) -> None:
    tensors, module = copy_of(LeNet()), LeNet(classes=4)
    report = load_weights(module, save(tensors, tmp_path / "ten.pth"), reset_head=True)
    assert report.complete
    assert report.reset == ("fc3.weight", "fc3.bias")
    assert str(report) == "8 weights match; reset: fc3.weight, fc3.bias"
    assert not module.fc3.weight.any()
    assert not module(torch.ones(1, 1, 28, 28)).any()
    assert torch.equal(module.fc2.weight, tensors["fc2.weight"])


def test_another_layer_is_reset_by_its_name(tmp_path: Path) -> None:
    path, module = save(copy_of(LeNet()), tmp_path / "weights.pth"), LeNet()
    assert load_weights(module, path, reset_head="fc2").reset == ("fc2.weight", "fc2.bias")
    assert not module.fc2.weight.any()
    with pytest.raises(ModelError, match=r"no layer 'fc4'[\s\S]*fc3, fc2, fc1"):
        load_weights(module, path, reset_head="fc4")
    with pytest.raises(ModelError, match="no layer with a weight"):
        load_weights(nn.LayerNorm(3), path, reset_head=True)


def test_the_last_layer_of_squeezenet_learns_after_it_is_reset(tmp_path: Path) -> None:
    path, module = save(copy_of(small(7)), tmp_path / "seven.pth"), small(3)
    assert load_weights(module, path, reset_head=True).complete
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    network = Network(module, images)
    logits = module.eval()(images)
    assert torch.equal(logits, torch.ones(2, 3))  # equal, and not in the corner of ReLU
    weights = {n: w.requires_grad_() for n, w in network.stack([network.weights]).items()}
    network(weights, images).square().sum().backward()
    gradient = weights["classifier.1.weight"].grad
    assert gradient is not None
    assert gradient.any()


class Payload:
    """Makes a call where it is unpickled."""

    def __init__(self, call: Callable[..., object], argument: object) -> None:
        self.call = call
        self.argument = argument

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object]]:
        return self.call, (self.argument,)


PAYLOADS: dict[str, Callable[[Path], Payload]] = {
    "os.mkdir": lambda trace: Payload(os.mkdir, str(trace)),
    "Path.touch": lambda trace: Payload(Path.touch, trace),
    "eval": lambda trace: Payload(eval, f"__import__('os').mkdir({str(trace)!r})"),
    "exec": lambda trace: Payload(exec, f"import os; os.mkdir({str(trace)!r})"),
}


def write_torch(content: object, path: Path) -> None:
    torch.save(content, path)


def write_old_torch(content: object, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


def write_pickle(content: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(content, protocol=2))


def write_tar(content: object, path: Path) -> None:
    """The oldest of torch's formats."""
    with tarfile.open(path, "w") as archive:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            data = pickle.dumps(content, protocol=2)
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, BytesIO(data))


@pytest.mark.parametrize("write", [write_torch, write_old_torch, write_pickle, write_tar])
@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("forced", [False, True])
def test_nothing_in_a_file_is_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[object, Path], None],
    name: str,
    forced: bool,
) -> None:
    path, trace = tmp_path / "weights.pth", tmp_path / "trace"
    payload = PAYLOADS[name](trace)
    write({"weight": torch.ones(2, 2), "bias": payload}, path)
    if forced:  # an environment that asks torch to run whatever it reads
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(ModelError, match="Nothing in a file of weights is run"):
        load_weights(nn.Linear(2, 2), path)
    assert not trace.exists()
    pickle.loads(pickle.dumps(payload))  # noqa: S301 - elsewhere it does run
    assert trace.exists()


def test_a_file_with_a_whole_module_names_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "module.pth"
    torch.save(nn.Linear(2, 2), path)
    with pytest.raises(ModelError, match=r"Python object torch.nn.modules.linear.Linear[\s\S]*run"):
        load_weights(nn.Linear(2, 2), path)


@pytest.mark.parametrize("name", ["empty.pth", "cut.pth", "text.pth", "cut.safetensors"])
def test_a_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    whole = save(copy_of(nn.Linear(2, 2)), tmp_path / f"whole{path.suffix}").read_bytes()
    contents = {"empty": b"", "text": b"weights", "cut": whole[: len(whole) // 2]}
    path.write_bytes(contents[path.stem])
    with pytest.raises(ModelError, match="damaged"):
        load_weights(nn.Linear(2, 2), path)


@pytest.mark.parametrize(
    "content",
    [
        [torch.ones(2)],
        {"weight": "text"},
        {3: torch.ones(2)},
        {"weight": torch.eye(2).to_sparse()},
        {"weight": torch.ones(2, 2, device="meta")},
        {"epoch": 3, "model": {"weight": torch.ones(2, 2)}},
    ],
    ids=["list", "text", "numbered", "sparse", "meta", "nested"],
)
def test_a_file_of_anything_but_named_plain_tensors_is_refused(
    tmp_path: Path, content: object
) -> None:
    torch.save(content, tmp_path / "weights.pth")
    with pytest.raises(ModelError, match="does not hold tensors by name"):
        load_weights(nn.Linear(2, 2), tmp_path / "weights.pth")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_weights_that_are_not_finite_are_refused_and_change_nothing(
    tmp_path: Path, value: float
) -> None:
    module = nn.Linear(2, 2)
    before, tensors = copy_of(module), {n: t.double() for n, t in copy_of(module).items()}
    tensors["bias"][1] = value  # the last is too large for float32
    with pytest.raises(ModelError, match=r"'bias' in .* not finite"):
        load_weights(module, save(tensors, tmp_path / "weights.safetensors"))
    torch.testing.assert_close(copy_of(module), before, rtol=0, atol=0)


def test_places_without_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no file"):
        load_weights(nn.Linear(2, 2), tmp_path / "missing.pth")
    with pytest.raises(ModelError, match="There is no file"):
        load_weights(nn.Linear(2, 2), tmp_path)
    (tmp_path / "weights.npz").touch()
    with pytest.raises(ModelError, match=r"'.npz'[\s\S]*\.safetensors, \.pth or \.pt"):
        load_weights(nn.Linear(2, 2), tmp_path / "weights.npz")


def real(data_dir: Path, *parts: str) -> Path:
    path = data_dir.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)}: put it into {data_dir}")
    return path


def test_squeezenet_with_the_weights_of_imagenet_knows_what_is_on_photographs(
    data_dir: Path,
) -> None:
    weights = real(data_dir, "imagenet", "squeezenet1_1-imagenet.safetensors")
    photographs = real(data_dir, "caltech20", "test")
    module = SqueezeNet().eval()
    assert load_weights(module, weights).complete
    # Folder of photographs → number of the class in ImageNet.
    numbers = {"grand_piano": 579, "starfish": 327, "umbrella": 879, "Leopards": 288}
    hits: list[bool] = []
    for folder, number in numbers.items():
        images = [photograph(path) for path in sorted((photographs / folder).iterdir())[:6]]
        with torch.no_grad():
            best = module(torch.stack(images)).topk(5).indices
        hits += (best == number).any(1).tolist()
    assert sum(hits) >= 0.75 * len(hits)


def photograph(path: Path) -> Tensor:
    """The middle of a photograph at 224 px, normalised as for ImageNet."""
    with Image.open(path) as image:
        width, height = (256 * side // min(image.size) for side in image.size)
        image = image.convert("RGB").resize((width, height))
    left, top = (width - 224) // 2, (height - 224) // 2
    pixels = np.asarray(image.crop((left, top, left + 224, top + 224)), dtype=np.float32) / 255
    normal = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    return torch.from_numpy(normal.astype(np.float32)).permute(2, 0, 1)


def test_squeezenet_with_the_weights_of_imagenet_is_reset_for_other_classes(data_dir: Path) -> None:
    weights = real(data_dir, "imagenet", "squeezenet1_1-imagenet.safetensors")
    module = SqueezeNet(classes=20)
    with pytest.raises(ModelError, match=r"classifier.1.weight float32\[1000, 512, 1, 1\]"):
        load_weights(module, weights)
    report = load_weights(module, weights, reset_head=True)
    assert report.complete
    assert len(report.matched) == 50
    assert report.reset == ("classifier.1.weight", "classifier.1.bias")


def test_the_convolutions_of_alexnet_load_without_its_classifier(data_dir: Path) -> None:
    weights = real(data_dir, "imagenet", "alexnet-features-imagenet.safetensors")
    with torch.device("meta"):
        module = AlexNet()
    module.to_empty(device="cpu")  # 61 million weights need not be drawn to be replaced
    with pytest.raises(ModelError, match=r"missing in the file: classifier.1.weight"):
        load_weights(module, weights)
    report = load_weights(module, weights, partial=True)
    assert report.matched == tuple(n for n in module.state_dict() if n.startswith("features."))
    assert report.missing == tuple(n for n in module.state_dict() if n.startswith("classifier."))
    assert not report.unexpected
    assert not report.mismatched


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    whole = save({"weight": torch.zeros(2**20)}, tmp_path / "whole.pth")
    bomb = tmp_path / "bomb.pth"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    assert bomb.stat().st_size < whole.stat().st_size / 100
    with pytest.raises(ModelError, match="BadZipFile"):
        load_weights(LeNet(), bomb)
