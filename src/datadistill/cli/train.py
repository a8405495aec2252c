"""``datadistill train``: train a network on distilled data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from ..core.names import DeviceName
from ..errors import FileError
from ..files import check_writable, write_atomically
from .choices import CodeChoice, DataChoice, ModelChoice, PoolChoice
from .console import Switch, out

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Train(DataChoice, ModelChoice, PoolChoice, CodeChoice):
    """Train a network on distilled data and save its weights."""

    artefact: tyro.conf.Positional[Path]
    """An artefact, a run folder, or a name from datadistill artefacts."""
    seed: int = 0
    """Seed of the network, for random initializations."""
    statistics: str | None = None
    """Data set whose training split gives the running statistics of batch normalisation. By default
    they are those of the distilled images."""
    device: DeviceName = "auto"
    """Device to compute on."""
    output: Path | None = None
    """File for the weights. By default ARTEFACT-trained.safetensors, next to the artefact."""
    overwrite: Switch = False
    """Replace the file if it exists."""

    def run(self) -> None:
        """Trains, and writes the weights as safetensors under the module's own names."""
        import safetensors.torch

        from ..artefact.published import beside
        from ..core.statistics import MEAN
        from ..data.running_statistics import DISTILLED
        from .artefacts import artefact_at, as_run_says

        artefact = artefact_at(self.artefact)
        output = self.output or beside(artefact, f"{artefact.stem}-trained.safetensors")
        if output.exists() and not self.overwrite:
            raise FileError(f"{output} exists.", "Choose another --output, or pass --overwrite.")
        distilled = self.load_artefact(artefact)
        told = as_run_says(self, distilled)
        distilled = told.with_pool(distilled)
        check_writable(output)
        module = self.own_module()
        statistics = told.statistics_for(distilled, self.statistics)
        with self.bars() as progress:
            network = distilled.train(
                module,
                seed=self.seed,
                statistics=statistics,
                device=self.device,
                progress=progress,
            )
        # Shared weights are one tensor under two names, which safetensors cannot store.
        weights = {n: w.detach().cpu().clone() for n, w in network.state_dict().items()}
        write_atomically(output, safetensors.torch.save(weights))
        out.print(f"trained weights: {output}")
        kind, norm = type(network).__name__, distilled.normalization
        self.say(
            f"Load them into a {kind}: "
            f"module.load_state_dict(safetensors.torch.load_file({str(output)!r}))"
        )
        if any(name.endswith(MEAN) for name in weights):
            self.say(f"Its running statistics are those of {self.statistics or DISTILLED}.")
        if norm:
            then = ", then whitened: dd.load(…).normalization.apply(pixels)"
            self.say(
                f"Its inputs are pixels in [0, 1], normalised with mean {norm.mean} "
                f"and std {norm.std}{then if norm.whitening else ''}."
            )
