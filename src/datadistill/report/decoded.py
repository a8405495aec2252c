"""Distilled data that are not images, written as text."""

from pathlib import Path

import torch

from ..artefact import DistilledData
from ..data.decoding import Decoder
from ..errors import printable
from ..files import write_atomically

MOST = 400  # rows that are written


def write_decoded(distilled: DistilledData, decoder: Decoder, path: Path) -> None:
    """Writes a Markdown table: every distilled input decoded, with its step and label."""
    rows = [
        [str(step + 1), _label(distilled, step, number)]
        for step in range(distilled.inputs.shape[0])
        for number in range(distilled.inputs.shape[1])
    ][:MOST]
    decoded = decoder.rows(distilled.inputs.flatten(0, 1)[: len(rows)])
    table = [["step", "label", *decoder.columns]]
    table += [[*head, *own] for head, own in zip(rows, decoded, strict=True)]
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in table]
    lines.insert(1, "|" + " --- |" * len(table[0]))
    left_out = len(distilled) - len(rows)
    if left_out:
        lines += ["", f"{left_out:,} more are not shown."]
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
