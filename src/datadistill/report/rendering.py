"""The page of one run or several: one HTML file that needs nothing else."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..core.names import PRETRAINED_NAMES
from ..core.values import short
from ..errors import printable
from ..hints import command
from ..runs.config import RunConfig
from ..version import __version__
from . import sentences, telling
from .grid import Frames, Grid, frames_of, grid_of, strip
from .names import data_name
from .sentences import percent
from .story import Story
from .svg import svg
from .usage import again, code_names, commands

FOLDER = Path(__file__).parent / "page"
IMAGES, FRAMES = 5 * 2**20, 3 * 2**20
"""Bytes of pixels that the images and the slider of a page may take, by all its runs together."""
LETTERS = 300
"""Of a value that a file gives, at most."""


@dataclass(frozen=True)
class Section:
    """One run on the page: what the template shows."""

    story: Story
    grid: Grid | None
    frames: Frames | None
    moments: list[str]

    @classmethod
    def of(cls, story: Story, runs: int) -> "Section":
        """Draws what a run has to show.

        Args:
            story: The run.
            runs: How many runs share the page.
        """
        distilled = story.distilled
        labels = distilled.labels if distilled else None
        frames = frames_of(story.snapshots, labels, FRAMES // runs)
        return cls(
            story,
            grid_of(distilled, IMAGES // runs) if distilled else None,
            frames,
            _moments(story, frames.outer_steps) if frames else [],
        )


def render(stories: Sequence[Story], *, live: bool = False) -> str:
    """The text of the page.

    Args:
        stories: The runs.
        live: Whether the page is written again and again, and so loads itself again.
    """
    script = _read("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    several = len(stories) > 1
    return (
        _environment()
        .get_template("report.html")
        .render(
            **_helpers(),
            title=" · ".join(story.name for story in stories),
            sections=[Section.of(story, len(stories)) for story in stories],
            compared=_compared(stories) if several else None,
            style=Markup(_read("style.css")),
            script=Markup(script),
            digest=digest,
            live=live,
            version=__version__,
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _helpers() -> dict[str, Any]:
    """The functions that the template calls."""
    return {
        "svg": svg,
        "charts_of": telling.charts_of,
        "matrix_before": partial(telling.matrix, before=True),
        "headline": sentences.headline,
        "what": sentences.what,
        "counted": sentences.counted,
        "percent": percent,
        "data_name": data_name,
        "big_figure": sentences.big_figure,
        "beside": sentences.beside,
        "cost": sentences.cost,
        "attack_rows": attack_rows,
        "adaptation": adaptation,
        "code_names": code_names,
        "commands": commands,
        "command": command,
        "again": again,
        "settings": settings,
        "strip": strip,
        "short": short,
    }


def _shown(value: Any) -> Any:
    """Control characters and those that turn the direction of text never reach the page."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return printable(value)
    return value


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _moments(story: Story, outer_steps: Sequence[int]) -> list[str]:
    """What the slider says of each of its pictures."""
    rows = {row.outer_step: row for row in story.rows}
    planned = story.config.iterations if story.config else 0
    measured = {row.outer_step: row.held_out for row in story.rows if row.held_out}
    texts: list[str] = []
    for step in outer_steps:
        parts = [f"outer step {step:,} of {planned:,}"]
        if step in rows and rows[step].loss is not None:
            parts.append(f"loss {rows[step].loss:.3g}")
        earlier = [at for at in measured if at <= step]
        if earlier and (score := measured[max(earlier)]):
            share = score.metric.startswith("accuracy")
            value = f"{100 * score.mean:.1f} %" if share else f"{score.mean:.3g}"
            parts.append(f"held-out {score.metric} {value}")
        texts.append(" · ".join(parts))
    return texts


def attack_rows(story: Story) -> list[tuple[str, str, str]]:
    """What poisoning does: each figure before and after."""
    distilled, attack = story.distilled, story.attack
    if attack is not None:
        pairs = [
            (attack.after.success.name or "turned", attack.before.success, attack.after.success),
            ("accuracy on modified labels", attack.before.modified, attack.after.modified),
            ("accuracy on other classes", attack.before.others, attack.after.others),
        ]
        return [(name, percent(b.mean, b.std), percent(a.mean, a.std)) for name, b, a in pairs]
    measured = story.measured
    if distilled is None or measured is None or not measured.after:
        return []
    objective: Any = distilled.objective
    k, t = objective.attacked, objective.target
    names = sentences.class_names(distilled, len(measured.after))

    def shares(counts: list[list[int]]) -> tuple[float, float]:
        turned = counts[k][t] / max(sum(counts[k]), 1)
        others = [c for c in range(len(counts)) if c != k]
        right = sum(counts[c][c] for c in others)
        return turned, right / max(sum(sum(counts[c]) for c in others), 1)

    before, after = shares(measured.before), shares(measured.after)
    titles = (f"{names[k]} called {names[t]}", "accuracy on other classes")
    return [
        (title, percent(b, None), percent(a, None))
        for title, b, a in zip(titles, before, after, strict=True)
    ]


def adaptation(story: Story) -> dict[str, str] | None:
    """What a pre-trained network reaches before and after it is adapted; None for others."""
    distilled, measured = story.distilled, story.measured
    if distilled is None or distilled.header.initialization.kind not in PRETRAINED_NAMES:
        return None
    if distilled.objective.attacks:
        return None
    record = distilled.header.initialization
    found = {
        "source": f"the pool {record.pool.name}" if record.pool else (record.source or "a file"),
        "target": data_name(distilled.header.data),
    }
    if measured:
        first, last = measured.curve[0], measured.curve[-1]
        several = measured.networks > 1
        found["before"] = percent(first.mean, first.std if several else None)
        found["after"] = percent(last.mean, last.std if several else None)
    return found


def settings(story: Story) -> list[tuple[str, str, bool]]:
    """Every setting, its value, and whether it is another than the default."""
    if story.config is None:
        found: dict[str, Any] = story.distilled.header.configuration if story.distilled else {}
        return [(name, _cut(str(value)), False) for name, value in found.items()]
    default = RunConfig().mapping()
    return [
        (name, _cut(str(value)), value != default.get(name))
        for name, value in story.config.mapping().items()
        if value is not None
    ]


def _compared(stories: Sequence[Story]) -> dict[str, Any]:
    """Runs beside each other: facts, settings that differ, and charts of all."""
    mappings = [{n: v for n, v, _ in settings(story)} for story in stories]
    names = list(dict.fromkeys(name for mapping in mappings for name in mapping))
    differing = [
        (name, [mapping.get(name, "–") for mapping in mappings])
        for name in names
        if len({mapping.get(name, "–") for mapping in mappings}) > 1
    ]
    facts = [dict(sentences.cost(story)) for story in stories]
    shared = [name for name in facts[0] if name != "computed by"]
    return {
        "facts": [(name, [fact.get(name, "–") for fact in facts]) for name in shared],
        "settings": differing,
        "charts": telling.compared(stories),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
