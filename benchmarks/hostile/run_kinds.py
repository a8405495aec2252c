"""Files of runs, pools and networks."""

import functools
import io
import math
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from pydantic import TypeAdapter
from tests.pools import helpers as pools
from tests.runs.helpers import go
from torch import nn

import datadistill as dd
from datadistill.models import load_weights
from datadistill.runs.recipes import read_recipe, recipe_names
from datadistill.runs.store.folder import RunFolder
from datadistill.runs.store.metrics import read_metrics
from datadistill.runs.store.yaml_files import read_config
from datadistill.tables.result_cache import ResultCache, Unit

from .kinds import (
    Kind,
    NotFiniteError,
    SilentChangeError,
    check_finite,
    either,
    in_header,
    in_json,
    in_zip,
)
from .mutation import changed, changed_lines

SHAPE = (1, 8, 8)


@functools.cache
def _run() -> Path:
    """A small finished run."""
    path = Path(tempfile.mkdtemp(prefix="hostile-run-"))
    go(path)
    return path


@functools.cache
def _pool() -> Path:
    path = Path(tempfile.mkdtemp(prefix="hostile-pool-"))
    pools.make(path, networks=4, held_out=2)
    return path


def _of_run(name: str, folder: Path) -> Path:
    shutil.copytree(_run(), folder, dirs_exist_ok=True)
    return folder / name


def _of_pool(name: str, folder: Path) -> Path:
    shutil.copytree(_pool(), folder, dirs_exist_ok=True)
    return folder / next(p.name for p in sorted(folder.iterdir()) if p.name.startswith(name))


def another(tensor: torch.Tensor, draw: random.Random) -> torch.Tensor:
    """A tensor of another shape, type or with other values."""
    match draw.randrange(6):
        case 0:
            return tensor.flatten()[: draw.randrange(4)]
        case 1:
            return tensor.to(draw.choice((torch.int64, torch.float64, torch.float8_e4m3fn)))
        case 2:
            return torch.zeros(draw.choice(((), (0,), (1, 1), (3, 0, 2))))
        case _:
            flat = tensor.clone().flatten().float()
            value = draw.choice((math.nan, math.inf, -1.0, 3e38))
            flat[draw.randrange(len(flat)) if len(flat) else slice(0)] = value
            return flat.reshape(tensor.shape).to(tensor.dtype)


def _use_metrics(path: Path) -> None:
    rows, found = read_metrics(_run() / "metrics.jsonl"), read_metrics(path)
    if found != rows[: len(found)]:
        raise SilentChangeError


def _use_results(path: Path) -> None:
    RunFolder(path.parent).read_results()
    cache = ResultCache.read(path, {})
    for key in ({}, {"a": 1}):
        cache = ResultCache(None, cache.context, cache.known)
        if not 0 <= cache.get(key, lambda: 0.5, TypeAdapter[float](Unit)) <= 1:
            raise NotFiniteError


def _make_results(folder: Path) -> Path:
    path = folder / "results.json"
    for key in ({}, {"a": 1}):
        ResultCache.read(path, {}).get(key, lambda: 0.25, TypeAdapter[float](Unit))
    return path


def check_plain_numbers(value: Any) -> None:
    """Raises an error unless all numbers in plain data are finite."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for one in value:
            check_plain_numbers(one)
    elif isinstance(value, float) and not math.isfinite(value):
        raise NotFiniteError


def _use_config(path: Path) -> None:
    check_plain_numbers(read_config(path).mapping())


def _make_recipe(folder: Path) -> Path:
    path = folder / "mine.yaml"
    name = recipe_names()[len(folder.name) % 3]
    path.write_bytes(read_recipe(name).path.read_bytes())
    return path


def _use_recipe(path: Path) -> None:
    for preset in ("fast", "paper"):
        check_plain_numbers(read_recipe(str(path), preset).config.mapping())


def _use_pool(path: Path) -> None:
    pool, original = dd.Pool(path.parent), dd.Pool(_pool())
    for part in ("train", "held-out"):
        # A pool may lose networks, but not change one.
        for number in range(min(pool.count(part), original.count(part))):
            found, wanted = pool.network(part, number), original.network(part, number)
            check_finite(*found.values())
            same = found.keys() == wanted.keys() and all(map(torch.equal, *_sorted(found, wanted)))
            if not same:
                raise SilentChangeError
        for accuracy in pool.accuracies(part):
            if not 0 <= accuracy <= 1:
                raise NotFiniteError
    repr(pool)
    if pool.count("train"):
        pool.fixed()
    pool.check_fits(original.origin.architecture, original.origin.data.input_shape)


def _sorted(*weights: Any) -> list[list[torch.Tensor]]:
    return [[one[name] for name in sorted(one)] for one in weights]


def _module() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))


def _make_weights(suffix: str, folder: Path) -> Path:
    path, weights = folder / f"weights.{suffix}", _module().state_dict()
    if suffix == "safetensors":
        safetensors.torch.save_file(weights, path)
    else:
        torch.save(weights, path, _use_new_zipfile_serialization=suffix == "pth")
    return path


def _use_weights(path: Path) -> None:
    for partial in (False, True):
        module = _module()
        try:
            load_weights(module, path, partial=partial)
        except dd.errors.DataDistillError:
            if partial:
                raise
        check_finite(*module.state_dict().values())
        check_finite(module.double().eval()(torch.ones(2, 4).double()))


def _make_images(folder: Path) -> Path:
    """Images and labels as DC saves them."""
    images, labels = torch.randn(6, *SHAPE), torch.arange(6) % 3
    torch.save({"data": [[images, labels]], "accs_all_exps": {}}, folder / "images.pt")
    return folder / "images.pt"


def _use_images(path: Path) -> None:
    made = dd.import_images(path, data=_data(), module=dd.models.Linear(size=8, classes=3))
    check_finite(made.inputs, made.labels, made.learning_rates)
    artefact = path.with_suffix(".safetensors")
    made.save(artefact)
    if dd.load(artefact) != made:
        raise SilentChangeError


def _other_images(content: bytes, draw: random.Random) -> bytes:
    """Whole files with other tensors, in other containers."""
    images, labels = torch.randn(6, *SHAPE), torch.arange(6) % 3
    soft = draw.choice((labels, torch.rand(6, 3), labels.to(torch.uint16)))
    if draw.random() < 0.5:
        images = another(images, draw)
    else:
        labels = another(soft, draw)
    one = torch.zeros(1)
    held: list[Callable[[], object]] = [
        lambda: {"images": images, "labels": labels},
        lambda: {"data": [(images, labels)]},
        lambda: images,
        lambda: [images, labels],
        lambda: {"data": images},
        lambda: nn.Parameter(images),
        lambda: one.expand(2**30),
        lambda: one.expand(2**44, *SHAPE),
        lambda: images.to_sparse(),
        lambda: images.to("meta"),
        lambda: {"images": labels, "labels": images},
        lambda: images.movedim(0, -1),
        lambda: images[::2],
    ]
    buffer = io.BytesIO()
    try:
        torch.save(draw.choice(held)(), buffer)
    except (RuntimeError, NotImplementedError, IndexError):  # there is no such tensor
        return changed(content, draw)
    return buffer.getvalue()


@functools.cache
def _data() -> dd.LabelledData:
    return dd.LabelledData(torch.randn(6, *SHAPE), torch.arange(6) % 3, name="digits")


def _named(name: str, make: Any) -> Any:
    return functools.partial(make, name)


KINDS = (
    Kind("metrics", _named("metrics.jsonl", _of_run), _use_metrics, either(changed, changed_lines)),
    Kind("config", _named("config.yaml", _of_run), _use_config, either(changed, changed_lines)),
    Kind("results", _make_results, _use_results, either(changed, in_json)),
    Kind("pool index", _named("index", _of_pool), _use_pool, either(changed, in_json, in_json)),
    Kind("pool networks", _named("train", _of_pool), _use_pool, either(changed, in_header)),
    Kind("recipe", _make_recipe, _use_recipe, either(changed, changed_lines, changed_lines)),
    Kind("weights", _named("safetensors", _make_weights), _use_weights, either(changed, in_header)),
    Kind("weights, zip", _named("pth", _make_weights), _use_weights, either(changed, in_zip)),
    Kind("weights, pickle", _named("pt", _make_weights), _use_weights),
    Kind("images", _make_images, _use_images, either(changed, in_zip, _other_images)),
)
