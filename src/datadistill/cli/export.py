"""``datadistill export``: distilled data for other software."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from .choices import DataChoice, ModelChoice, PoolChoice
from .console import Switch, out

if TYPE_CHECKING:
    from ..artefact import DistilledData
    from ..data import LabelledData


@dataclass(frozen=True)
class Export(DataChoice, ModelChoice, PoolChoice):
    """Write distilled data for other software, or a stand-alone train.py.

    script is a train.py of plain PyTorch that needs torch and safetensors only, and reaches the
    accuracy of the artefact. png are pictures to look at. folder is an image folder. npz holds
    NumPy arrays. dd-ranking is images.pt, labels.pt and lr.pt. hugging-face is a Parquet file with
    a card.

    Examples:
        datadistill export runs/digits-fixed --test
        datadistill export runs/digits-fixed --format png --output pictures
    """

    artefact: tyro.conf.Positional[Path]
    """An artefact, a run folder, or a name from datadistill artefacts."""
    format: Literal["script", "png", "folder", "npz", "dd-ranking", "hugging-face"] = "script"
    """What to write."""
    output: Path | None = None
    """A new folder for the files. By default ARTEFACT-FORMAT, next to the artefact."""
    test: Switch = False
    """Write the real test data too, so that train.py measures its accuracy."""
    data: str | None = None
    """Data set of the test data. By default the one that was distilled."""

    def run(self) -> None:
        """Writes the files, and tells what is to know of them."""
        from ..artefact import load
        from ..artefact.published import beside
        from ..exchange import export
        from .artefacts import artefact_at, as_run_says

        artefact = artefact_at(self.artefact)
        folder = self.output or beside(artefact, f"{artefact.stem}-{self.format}")
        distilled = load(artefact)
        told = as_run_says(self, distilled)
        if self.format == "script":
            distilled = told.with_pool(distilled)
        notes = export(
            distilled,
            folder,
            self.format,
            test=told._test_data(distilled) if self.test or self.data else None,
            model=self.model,
            model_args=self.model_args,
        )
        out.print(f"written: {folder}", markup=False)
        for note in notes:
            self.say(note)

    def _test_data(self, distilled: DistilledData) -> LabelledData:
        """The part of the real data that the artefact's figure was measured on."""
        from ..evaluation import claimed_split
        from .artefacts import data_name

        name = data_name(self.data, self.artefact, distilled, distilled.header.data)
        train, test = self.load_for(distilled, name)
        return claimed_split(distilled, train, test) if distilled.claim else test
