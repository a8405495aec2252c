"""The bytes of an artefact or a checkpoint: safetensors with a header and a content hash.

Nothing that is read is ever executed, and every byte is covered by the hash. The format is
described in ``docs/artefact.md``.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from ..errors import ArtefactError
from ..files import write_atomically
from ..reading import read_regular
from .bounds import VALUES, is_large

SCHEMA_VERSION = 2
NEWEST = 3
"""Of artefacts that earlier versions cannot use: inputs made of other tensors, or whitened."""
Kind = Literal["artefact", "checkpoint"]
KEYS: dict[Kind, str] = {"artefact": "datadistill", "checkpoint": "datadistill-checkpoint"}
"""The one metadata entry of the safetensors file."""
NAMES: dict[Kind, str] = {"artefact": "an artefact", "checkpoint": "a checkpoint"}
HEADER_LIMIT = 16 * 2**20  # bytes
PICKLE_PROTOCOLS = {bytes([version]) for version in range(2, 8)}


def write_container(
    path: Path,
    tensors: dict[str, Tensor],
    header: dict[str, Any],
    kind: Kind = "artefact",
    *,
    make_folder: bool = True,
) -> None:
    """Writes tensors and a JSON header to one file, atomically."""
    write_atomically(path, encode(tensors, header, kind), make_folder=make_folder)


def encode(tensors: dict[str, Tensor], header: dict[str, Any], kind: Kind) -> bytes:
    """The bytes of a file of tensors and a JSON header."""
    tensors = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    index, data = _split(safetensors.torch.save(tensors), "The content")
    header = {"schema_version": SCHEMA_VERSION, **header}
    header["content_hash"] = _content_hash(header, index, data)
    return safetensors.torch.save(tensors, {KEYS[kind]: _canonical(header)})


def read_container(path: Path, kind: Kind = "artefact") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads and checks a file; returns its tensors and its header."""
    return decode(_read(path), kind, path)


def decode(raw: bytes, kind: Kind, path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Checks the bytes of a file; returns its tensors and its header.

    Args:
        raw: The bytes.
        kind: What they should be.
        path: Where they come from, for errors.
    """
    index, data = _split(raw, path)
    metadata = index.pop("__metadata__", None)
    if not isinstance(metadata, dict) or KEYS[kind] not in metadata:
        keys = metadata if isinstance(metadata, dict) else {}
        found = next((NAMES[k] for k in KEYS if KEYS[k] in keys), "a safetensors file")
        raise ArtefactError(
            f"{path} is {found}, but not {NAMES[kind]} of datadistill.",
            "Give a file that was written by DistilledData.save or datadistill distill.",
        )
    try:
        header = json.loads(metadata[KEYS[kind]])
        version = header["schema_version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _damaged(path, "its header cannot be read") from None
    if is_large(header):
        raise _too_many(path)
    if not isinstance(version, int) or version < 1:
        raise _damaged(path, f"its schema version is {version!r}")
    if version > NEWEST:
        raise ArtefactError(
            f"{path} has schema version {version}; this datadistill reads up to {NEWEST}.",
            "Upgrade datadistill to use it.",
        )
    claimed = header.pop("content_hash", None)
    try:
        tensors = safetensors.torch.load(raw)
        if claimed != _content_hash(header, index, data):
            raise _damaged(path, "its content does not match its hash")
    except (SafetensorError, KeyError, ValueError, TypeError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    # In a fixed order, and copied to where torch lays tensors: on both the last bit of what is
    # computed from them may depend.
    return {name: tensors[name].clone() for name in sorted(tensors)}, header


def _read(path: Path) -> bytes:
    try:
        raw = read_regular(path)
    except FileNotFoundError:
        raise ArtefactError(f"There is no file {path}.", "Check the path.") from None
    except OSError as error:
        raise ArtefactError(
            f"{path} cannot be read: {error.strerror or error}.", "Check the path."
        ) from error
    # Zip files are what torch.save writes; 0x80 and a small number open a bare pickle.
    pickled = raw[:4] == b"PK\x03\x04" or (raw[:1] == b"\x80" and raw[1:2] in PICKLE_PROTOCOLS)
    # Of a few bytes it could be the start of an artefact, but a pickle ends with a full stop.
    if pickled and raw[8:9] != b"{" and (len(raw) >= 10 or raw[-1:] == b"."):
        raise ArtefactError(
            f"{path} is a pickle, which could run any code when read.",
            "datadistill reads safetensors artefacts only; it did not open this file.",
        )
    return raw


def _split(raw: bytes, path: Path | str) -> tuple[dict[str, Any], memoryview]:
    """Splits a safetensors file into its JSON index and its data."""
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 10 or raw[8:9] != b"{" or length > HEADER_LIMIT:
        raise ArtefactError(
            f"{path} is not a safetensors file" + (": it is cut short." if len(raw) < 10 else "."),
            "Give a file that was written by DistilledData.save or datadistill distill.",
        )
    if len(raw) < 8 + length:
        raise _damaged(path, "it is cut short inside its header")
    # Texts may hold such characters too, hence the factor. Millions of values parse for seconds.
    if sum(raw.count(character, 8, 8 + length) for character in (b",", b"[", b"{")) > 4 * VALUES:
        raise _too_many(path)
    try:
        index = json.loads(raw[8 : 8 + length])
        end = max(
            (v["data_offsets"][1] for k, v in index.items() if k != "__metadata__"), default=0
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise _damaged(path, "its header cannot be read") from None
    data = memoryview(raw)[8 + length :]
    if not isinstance(end, int) or len(data) != end:
        raise _damaged(path, f"its header promises {end} bytes of data and it holds {len(data)}")
    return index, data


def _content_hash(header: dict[str, Any], index: dict[str, Any], data: memoryview) -> str:
    """SHA-256 of the header and of every tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(_canonical(header).encode())
    for name in sorted(index):
        entry = index[name]
        begin, end = entry["data_offsets"]
        digest.update(_canonical([name, entry["dtype"], entry["shape"], end - begin]).encode())
        digest.update(data[begin:end])
    return digest.hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _damaged(path: Path | str, how: str) -> ArtefactError:
    return ArtefactError(f"{path} is damaged: {how}.", "Restore it from a copy, or make it again.")


def _too_many(path: Path | str) -> ArtefactError:
    return ArtefactError(
        f"{path} is not valid: its header has more than {VALUES:,} values.", "Make it again."
    )
