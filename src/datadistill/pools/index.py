"""The index of a pool: what its networks are, and in which file each is."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..errors import PoolError
from ..files import write_atomically
from ..hints import command
from ..models.description import Architecture
from ..reading import read_regular

SCHEMA_VERSION = 1
SIZE_LIMIT = 2**28  # bytes
Part = Literal["train", "held-out"]
PARTS: tuple[Part, ...] = get_args(Part)

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DataRecord(_Record):
    """The real data that networks were trained on."""

    name: str
    input_shape: list[Count]
    mean: list[float] | None
    std: list[float] | None
    examples: Count
    """Of the training split, with those held out to measure accuracy on."""
    hash: Hash


class Origin(_Record):
    """All that determines the networks of a pool, but for their numbers."""

    architecture: Architecture
    constants: Hash
    """Of frozen parameters and buffers, which all networks share."""
    data: DataRecord
    configuration: dict[str, Any]

    @property
    def identity(self) -> str:
        """One hash of all of it; with part and number, it names a network."""
        return hashlib.sha256(canonical(self.model_dump()).encode()).hexdigest()

    def differences(self, other: "Origin") -> list[str]:
        """What differs in another origin, each as ``name: this → other``."""
        mine, theirs = self._flat(), other._flat()
        names = [*mine, *(name for name in theirs if name not in mine)]
        return [
            f"{name}: {mine.get(name)} → {theirs.get(name)}"
            for name in names
            if mine.get(name) != theirs.get(name)
        ]

    def _flat(self) -> dict[str, Any]:
        data = self.data.model_dump()
        return {
            **self.configuration,
            "network": str(self.architecture),
            "weights": canonical(self.architecture.weights),
            "constants": self.constants,
            **{f"data {name}" if name != "name" else "data": v for name, v in data.items()},
        }


class Contents(_Record):
    """What a file of networks says about itself."""

    identity: Hash
    part: Part
    first: Annotated[int, Field(ge=0)]
    """The number of its first network; the others follow."""
    hashes: Annotated[list[Hash], Field(min_length=1)]
    """Of every network's weights."""
    validation: list[Share] | None
    """Accuracy of each on training data that were held out."""
    test: list[Share] | None
    """Accuracy of each on the test data; it chooses nothing."""

    @model_validator(mode="after")
    def _has_an_accuracy_for_each(self) -> "Contents":
        for accuracies in (self.validation, self.test):
            if accuracies is not None and len(accuracies) != len(self.hashes):
                raise ValueError("every network has one accuracy")
        return self

    @property
    def numbers(self) -> range:
        """The numbers of its networks."""
        return range(self.first, self.first + len(self.hashes))

    @property
    def file_name(self) -> str:
        """What the file is called."""
        return f"{self.part}-{self.numbers[0]:05d}-{self.numbers[-1]:05d}.safetensors"


class Chunk(Contents):
    """A file of networks as the index knows it."""

    bytes: Count
    sha256: Hash


class Index(_Record):
    """All files of a pool."""

    schema_version: int = SCHEMA_VERSION
    origin: Origin
    versions: dict[str, str]
    chunks: list[Chunk] = []

    def chunks_of(self, part: Part) -> list[Chunk]:
        """The files of a part, by the numbers of their networks."""
        return sorted((c for c in self.chunks if c.part == part), key=lambda chunk: chunk.first)

    def numbers(self, part: Part) -> set[int]:
        """The numbers of the networks that there are."""
        return {number for chunk in self.chunks_of(part) for number in chunk.numbers}

    def trouble(self) -> str | None:
        """What is wrong with files that are complete but do not belong together."""
        identity = self.origin.identity
        seen: dict[str, Chunk] = {}
        for part in PARTS:
            end = 0
            for chunk in self.chunks_of(part):
                if chunk.identity != identity:
                    return f"{chunk.file_name} belongs to another pool"
                if chunk.first < end:
                    return f"{chunk.file_name} holds networks that another file holds too"
                end = chunk.numbers.stop
                for one in chunk.hashes:
                    other = seen.setdefault(one, chunk)
                    if other.part != part:
                        return f"{chunk.file_name} shares a network with {other.file_name}"
        return None


def path_of(folder: Path) -> Path:
    """Where the index of a pool is."""
    return folder / "index.json"


def read_index(folder: Path) -> Index:
    """Reads and checks the index of a pool."""
    path = path_of(folder)
    try:
        content = json.loads(read_regular(path, SIZE_LIMIT))
    except FileNotFoundError:
        raise PoolError(
            f"There is no pool in {folder}: it holds no {path.name}.",
            f"Make one: {command('pretrain', 'DATA', '--pool', folder)}",
        ) from None
    except OSError as error:
        raise PoolError(f"{path} cannot be read: {error.strerror or error}.", "Check it.") from None
    except (ValueError, RecursionError):
        raise _damaged(path, "it is not JSON") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise PoolError(
            f"{path} has schema version {version}; this datadistill reads up to {SCHEMA_VERSION}.",
            "Upgrade datadistill to use it.",
        )
    try:
        index = Index.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        raise _damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if trouble := index.trouble():
        raise PoolError(f"The pool {folder} is not valid: {trouble}.", "Remove that file.")
    return index


def write_index(folder: Path, index: Index) -> None:
    """Writes the index atomically."""
    content = json.dumps(index.model_dump(mode="json"), indent=1) + "\n"
    write_atomically(path_of(folder), content.encode(), make_folder=False)


def canonical(value: Any) -> str:
    """JSON in one way only, to be hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _damaged(path: Path, how: str) -> PoolError:
    return PoolError(f"{path} is damaged: {how}.", "Restore it from a copy, or make it again.")
