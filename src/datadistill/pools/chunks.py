"""Files of networks: stacked weights, and in their header what they are."""

import contextlib
import hashlib
from collections.abc import Generator
from pathlib import Path

import safetensors.torch
import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..core.network import Weights
from ..errors import PoolError
from ..files import write_atomically
from ..models.description import weights_hash
from ..reading import check_regular, open_regular
from .index import Chunk, Contents, Part, canonical

KEY = "datadistill-pool"
"""The one metadata entry of the safetensors file."""


def contents_of(
    weights: Weights,
    *,
    identity: str,
    part: Part,
    first: int,
    validation: list[float] | None,
    test: list[float] | None,
) -> Contents:
    """What the file of these stacked weights will say about itself."""
    networks = len(next(iter(weights.values())))
    hashes = [weights_hash(_one(weights, j)) for j in range(networks)]
    return Contents(
        identity=identity, part=part, first=first, hashes=hashes, validation=validation, test=test
    )


def write_chunk(folder: Path, weights: Weights, contents: Contents) -> Path:
    """Writes a file of networks atomically."""
    path = folder / contents.file_name
    tensors = {name: w.detach().cpu().contiguous() for name, w in weights.items()}
    metadata = {KEY: canonical(contents.model_dump())}
    write_atomically(path, safetensors.torch.save(tensors, metadata), make_folder=False)
    return path


def read_chunk(path: Path) -> Chunk:
    """What a file of networks says about itself, with the hash of its bytes."""
    with _opened(path) as file:
        text = (file.metadata() or {}).get(KEY)
    if text is None:
        raise PoolError(f"{path} is no file of a pool.", "Remove it from the pool's folder.")
    try:
        contents = Contents.model_validate_json(text)
    except (ValidationError, ValueError):
        raise damaged(path, "its header cannot be read") from None
    if contents.file_name != path.name:
        raise PoolError(f"{path} was {contents.file_name}.", "Give it back its name.")
    with _reading(path):
        size = path.stat().st_size
    return Chunk(**contents.model_dump(), bytes=size, sha256=file_hash(path))


def read_network(path: Path, chunk: Chunk, number: int) -> Weights:
    """Reads one network and nothing else of a file; checks that it is complete."""
    j = number - chunk.first
    try:
        with _opened(path) as file:
            weights: Weights = {name: file.get_slice(name)[j].clone() for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, IndexError, ValueError, RuntimeError, OSError) as error:
        raise damaged(path, str(error).partition("\n")[0]) from error
    if weights_hash(weights) != chunk.hashes[j]:
        raise damaged(path, f"network {number} does not match its hash")
    return weights


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with _reading(path), open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path: Path, chunk: Chunk, *, whole: bool = False) -> None:
    """Refuses a file that is missing or not as the index knows it.

    Args:
        path: Where it should be.
        chunk: What the index says.
        whole: Whether to read all of it, or only to look at its size.
    """
    with _reading(path):
        if not path.is_file():
            raise PoolError(
                f"The pool's file {path} is missing.",
                "Restore it, or train its networks again: run the command that made the pool.",
            )
        size = path.stat().st_size
    if size != chunk.bytes:
        raise damaged(path, f"it has {size} bytes, not {chunk.bytes}")
    if whole and file_hash(path) != chunk.sha256:
        raise damaged(path, "its bytes do not match their hash")


def damaged(path: Path, how: str) -> PoolError:
    """The error of a file that is not as it was written."""
    return PoolError(
        f"The pool's file {path} is damaged: {how}.",
        "Restore it; or remove it and run the command that made the pool, which makes it again.",
    )


@contextlib.contextmanager
def _reading(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise PoolError(
            f"The pool's file {path} cannot be read: {error.strerror or error}.", "Check the disk."
        ) from error


@contextlib.contextmanager
def _opened(path: Path) -> Generator["safe_open"]:
    try:
        check_regular(path)
        file = safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise damaged(path, str(error).partition("\n")[0]) from error
    with file as opened:
        yield opened


def _one(weights: Weights, j: int) -> dict[str, Tensor]:
    return {name: w[j] for name, w in weights.items()}


def finite(weights: Weights) -> Tensor:
    """Which of J networks have finite weights only, (J,)."""
    return torch.stack([w.isfinite().flatten(1).all(1) for w in weights.values()]).all(0)
