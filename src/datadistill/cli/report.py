"""``datadistill report``: a page about one run, or several side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from ..core.names import DeviceName
from ..errors import ConfigError
from .choices import CodeChoice, ModelChoice, PoolChoice
from .console import Switch, going_on, out

Runs = Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN [RUN ...]")]


@dataclass(frozen=True)
class Report(ModelChoice, PoolChoice, CodeChoice):
    """Write an HTML page about a run: its images, accuracy, cost and use.

    The page is one HTML file that needs no network. Of several runs it shows all side by side.
    Accuracy after every update and the confusion matrix are measured on the run's test data and
    kept in its results.json.

    Examples:
        datadistill report runs/digits-fixed
        datadistill report runs/digits-fixed --watch
        datadistill report runs/digits-fixed --figures figures
        datadistill report runs/one runs/other --output comparison.html
    """

    runs: Runs
    """Run folders, finished or not, or artefacts."""
    output: Path | None = None
    """File to write. By default report.html in the run folder; for several runs in this folder."""
    watch: Switch = False
    """Write the page again every few seconds until the run is finished."""
    figures: Path | None = None
    """Folder for the charts as PNG and SVG files too, for papers."""
    measure: bool = True
    """Measure what was not measured before. Without it, the page shows what the files hold."""
    networks: int | None = None
    """Networks to measure with. By default 1 for fixed, 10 for random initializations."""
    data: str | None = None
    """Data set to measure on. By default the one of the run."""
    data_dir: Path | None = None
    """Data folder, if it has moved."""
    device: DeviceName = "auto"
    """Device to compute on."""

    def run(self) -> None:
        """Writes the page and names it."""
        from ..report import Sources
        from ..report.figures import write_figures
        from ..report.making import page_of, tell, watch, write_page
        from ..runs.seams import import_own

        if not self.runs:
            raise ConfigError("RUN is missing.", "Name a run folder.")
        path = page_of(self.runs, self.output)
        if self.watch:
            if len(self.runs) > 1 or self.figures:
                raise ConfigError(
                    "--watch is for one run and its page.", "Leave out --figures and other runs."
                )
            for only in self.runs:
                watch(only, path, self.say)
        import_own(self)
        sources = Sources(
            test=self.data,
            data_dir=self.data_dir,
            pool=self.pool,
            module=self.own_module(),
            networks=self.networks,
            device=self.device,
        )
        with going_on(), self.bars() as progress:
            chosen = sources if self.measure else None
            stories = [tell(run, chosen, progress) for run in self.runs]
        write_page(path, stories)
        out.print(f"report: {path}", markup=False)
        if self.figures:
            for written in write_figures(stories, self.figures):
                out.print(f"figure: {written}", markup=False)
