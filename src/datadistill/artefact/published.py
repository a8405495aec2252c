"""Artefacts that come with the package: distilled data of the main experiments, by name."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "artefacts"


def published_names() -> list[str]:
    """The names of the artefacts of this package."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def published(name: str | Path) -> Path | None:
    """The artefact of this package that a name means; a file or folder of that name goes first."""
    known = str(name) in published_names() and not Path(name).exists()
    return FOLDER / f"{name}.safetensors" if known else None


def beside(artefact: Path, name: str) -> Path:
    """Where a command writes by default: next to an artefact, or here if it is the package's."""
    return Path(name) if artefact.parent == FOLDER else artefact.with_name(name)
