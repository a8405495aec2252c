"""Distilled data that are not images, written as text."""

from dataclasses import dataclass
from pathlib import Path

import torch

from ..artefact import DistilledData
from ..data.decoding import Decoder
from ..errors import printable
from ..files import write_atomically

MOST = 400  # rows that are written


@dataclass(frozen=True)
class Decoded:
    """A table of distilled inputs: each with its step and label.

    Attributes:
        columns: The titles.
        rows: Those of the first steps.
        left_out: How many more there are.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


def decode(distilled: DistilledData, decoder: Decoder) -> Decoded:
    """Every distilled input as text."""
    heads = [
        (str(step + 1), _label(distilled, step, number))
        for step in range(distilled.inputs.shape[0])
        for number in range(distilled.inputs.shape[1])
    ][:MOST]
    decoded = decoder.rows(distilled.inputs.flatten(0, 1)[: len(heads)])
    rows = tuple((*head, *own) for head, own in zip(heads, decoded, strict=True))
    return Decoded(("step", "label", *decoder.columns), rows, len(distilled) - len(rows))


def write_decoded(distilled: DistilledData, decoder: Decoder, path: Path) -> None:
    """Writes a Markdown table: every distilled input decoded, with its step and label."""
    found = decode(distilled, decoder)
    table = (found.columns, *found.rows)
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in table]
    lines.insert(1, "|" + " --- |" * len(found.columns))
    if found.left_out:
        lines += ["", f"{found.left_out:,} more are not shown."]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _label(distilled: DistilledData, step: int, number: int) -> str:
    """The class, with its probability where labels are learned."""
    label, names = distilled.labels[step, number], distilled.class_names or []
    if label.is_floating_point() and not label.ndim:
        return f"{float(label):.3g}"
    if not label.is_floating_point():
        return _name(names, int(label))
    most = torch.argsort(-label)[:2].tolist()
    return ", ".join(f"{_name(names, c)} {float(label[c]):.2f}" for c in most)


def _name(names: list[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|")
