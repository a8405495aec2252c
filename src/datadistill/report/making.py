"""dd.report: writes the page of one run or several."""

import html
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from ..artefact.real_data import real_data
from ..core.values import one_line
from ..data import decoder_of
from ..errors import ConfigError, DataDistillError, FileError
from ..files import check_writable, write_atomically
from ..given import typed
from ..hints import command
from ..progress import ProgressCallback, silent
from ..reading import open_regular
from ..runs.experiment import names_code
from ..runs.store.folder import RunFolder
from ..runs.store.state import RunState
from ..showing import Tell, no_message, shown
from .decoded import decode
from .measuring import measure, real_test, reason, with_pool
from .rendering import render
from .story import Story, results_at

MARK = b'content="datadistill'
HEAD = 2**10  # bytes of a page in which the mark stands
NAME = "report.html"
SECONDS = 5.0
"""Between two pages of a run at work."""

Runs = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class Sources:
    """What a report needs to measure, where the run's files do not say it.

    Attributes:
        test: Real test data; by default those that the run's configuration names.
        data_dir: Where data by name are, if they have moved.
        pool: The pool, if it has moved.
        module: The network, where it is not built in.
        networks: How many networks are trained; 1 for a fixed initialization, 10 for others.
        device: Where to compute.
    """

    test: Any = None
    data_dir: Path | None = None
    pool: Path | None = None
    module: nn.Module | None = None
    networks: int | None = None
    device: str = "auto"


DEFAULT = Sources()


@dataclass(frozen=True)
class Report:
    """A page that was written.

    Attributes:
        path: The HTML file.
    """

    path: Path

    __repr__ = one_line

    def _repr_html_(self) -> str:
        """The page itself, in a frame: what a notebook shows."""
        page = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" title="The page about the run" '
            'style="width:100%;height:640px;border:1px solid #ccc"></iframe>'
        )


@typed
def report(
    runs: Runs,
    *,
    output: str | Path | None = None,
    measured: bool = True,
    sources: Sources = DEFAULT,
    progress: bool | ProgressCallback = False,
    **given: Any,
) -> Report:
    """Writes a page about one run, or several side by side: one HTML file that needs nothing else.

    Args:
        runs: A run folder, finished or not, or an artefact; or several.
        output: The file to write; ``report.html`` in the run folder by default, and in the current
            folder for several runs.
        measured: Whether to measure what was not measured before: accuracy after every update, and
            the confusion matrix. The figures are kept in ``results.json``.
        sources: Data, pool and network to measure with, where the run's files do not name them.
        progress: True for a bar, or a callback.
        given: Fields of ``sources``, one by one: ``test=``, ``module=``, ``networks=`` …
    """
    if given:
        sources = _sources(given)
    places = [Path(runs)] if isinstance(runs, str | Path) else [Path(run) for run in runs]
    if not places:
        raise ConfigError("No run is given.", "Name a run folder, or an artefact.")
    path = page_of(places, Path(output) if output else None)
    with shown(progress) as show:
        stories = [tell(place, sources if measured else None, show) for place in places]
    write_page(path, stories)
    return Report(path)


def tell(
    run: Path,
    sources: Sources | None,
    progress: ProgressCallback = silent,
    state: RunState | None = None,
) -> Story:
    """All that is known of a run; what is not yet measured is, or a note says why not.

    Args:
        run: A run folder, or an artefact.
        sources: What to measure with; None measures nothing.
        progress: Called along the way.
        state: The state of a run that has just ended, which is not read from its checkpoint again.
    """
    told = _told(run, sources, progress, state)
    return _with_text(told, sources and sources.data_dir)


def _told(
    run: Path, sources: Sources | None, progress: ProgressCallback, state: RunState | None
) -> Story:
    story = Story.of(run, state)
    if story.distilled is None or story.measured is not None:
        return story
    missing = "Accuracy after every update and the confusion matrix are not measured"
    if sources is None:
        return story.noting(f"{missing} yet: {command('report', run)}")
    try:
        return _measured(story, sources, progress)
    except DataDistillError as error:
        return story.noting(f"{missing}: {reason(error)}")


def _with_text(story: Story, data_dir: Path | None) -> Story:
    """The story with its distilled data as text, where its data set can write them so."""
    distilled, config = story.distilled, story.config
    if distilled is None or config is None or names_code("data", config.data):
        return story
    try:
        decoder = decoder_of(config.data, data_dir or config.data_dir)
    except DataDistillError:  # the data are not at hand
        return story
    return replace(story, text=decode(distilled, decoder)) if decoder else story


def watch(run: Path, path: Path, say: Tell = no_message, seconds: float = SECONDS) -> None:
    """Writes the page of a run again and again, until the run is finished.

    Args:
        run: The run folder.
        path: The page.
        say: Receives messages.
        seconds: Between two pages.
    """
    say(f"Writing {path} every {seconds:g} s while the run goes. Press Ctrl-C to end.")
    while True:
        story = Story.of(run)
        going = not story.finished
        write_page(path, [story], live=going)
        if not going:
            return
        time.sleep(seconds)


def write_page(path: Path, stories: Sequence[Story], *, live: bool = False) -> None:
    """Writes the page, whole or not at all."""
    write_atomically(path, render(stories, live=live).encode())


def page_of(runs: Sequence[Path], output: Path | None) -> Path:
    """Where the page goes; a file there that is none of ours is not replaced."""
    if output is None:
        only = runs[0] if len(runs) == 1 else None
        inside = RunFolder(only).report if only and only.is_dir() else None
        output = inside or (only.with_suffix(".html") if only else Path(NAME))
    if output.is_dir():
        output = output / NAME
    if output.exists():
        with open_regular(output) as file:
            if MARK not in file.read(HEAD):
                raise FileError(
                    f"{output} is there, and is not a report.", "Choose another --output."
                )
    check_writable(output)
    return output


def _measured(story: Story, sources: Sources, progress: ProgressCallback) -> Story:
    """The story with what is measured now."""
    distilled, config = story.distilled, story.config
    assert distilled is not None
    artefact, results = results_at(story.path)
    if sources.test is not None:
        test = real_data(
            distilled,
            sources.test,
            input_shape=distilled.inputs.shape[2:],
            has_classes=distilled.objective.has_classes,
        )
    elif config is None:
        raise ConfigError("An artefact alone names no data.", "Name its run folder.")
    else:
        test = real_test(RunFolder(story.path), config, distilled, sources.data_dir)
    if distilled.header.initialization.pool is not None:
        distilled = with_pool(distilled, config and config.pool, sources.pool)
    measure(
        artefact,
        results,
        distilled,
        test,
        networks=sources.networks,
        module=sources.module,
        device=sources.device,
        progress=progress,
    )
    return Story.of(story.path)


def _sources(given: dict[str, Any]) -> Sources:
    try:
        return Sources(**given)
    except TypeError as error:
        raise ConfigError(f"Invalid argument: {error}.", "See help(dd.report).") from None
