"""``datadistill verify``: does an artefact still reach what it claims?"""

import json
from dataclasses import dataclass
from pathlib import Path

import tyro

from ..core.names import DeviceName
from ..evaluation.limits import CONFIDENCE, MOST_NETWORKS
from .choices import MEGABYTE, CodeChoice, DataChoice, ModelChoice, PoolChoice, ThreadsChoice
from .console import Switch, out


@dataclass(frozen=True)
class Verify(DataChoice, ModelChoice, PoolChoice, ThreadsChoice, CodeChoice):
    """Check the accuracy that an artefact claims; exit code 1 if it is not reached."""

    artefact: tyro.conf.Positional[Path]
    """An artefact, a run folder, or a name from datadistill artefacts."""
    data: str | None = None
    """Data set of the claim. By default that of the run, or a built-in one that is named in the
    artefact."""
    memory: int = 1024
    """Memory in megabytes for the networks that are trained side by side."""
    most_networks: int = MOST_NETWORKS
    """Refuse a claim over more networks, which the artefact names."""
    device: DeviceName = "auto"
    """Device to compute on."""
    json: Switch = False
    """Print the claim and the result as JSON."""

    def run(self) -> None:
        """Measures the claim again."""
        from ..evaluation import ClaimError, claim_of, claimed_split, verify
        from ..evaluation.verification import check_measurable, work_of
        from .artefacts import artefact_at, as_run_says, data_name
        from .figures import as_json

        distilled = self.load_artefact(artefact_at(self.artefact))
        told = as_run_says(self, distilled)
        distilled = told.with_pool(distilled)
        claim = claim_of(distilled)
        check_measurable(distilled, self.most_networks)
        self.set_threads()
        self.say(f"Measuring again: {work_of(distilled)}.")
        name = data_name(self.data, self.artefact, distilled, claim.data)
        train, test = told.load_for(distilled, name)
        data = claimed_split(distilled, train, test)
        with self.bars() as progress:
            result = verify(
                distilled,
                data,
                module=self.own_module(),
                statistics=train,  # where the claim has them of real data
                device=self.device,
                memory=self.memory * MEGABYTE,
                most_networks=self.most_networks,
                progress=progress,
            )
        if self.json:
            figures = {
                "artefact": str(self.artefact),
                "claim": claim.model_dump(),
                "found": as_json(result.found),
                "tolerance": result.tolerance,
                "confidence": CONFIDENCE,
                "std_holds": result.std_holds,
                "holds": result.holds,
            }
            out.print_json(json.dumps(figures))
        else:
            out.print(str(result), markup=False)
        if not result.holds:
            raise ClaimError(
                f"{self.artefact} does not reach what it claims.",
                "If its data and network are those of the claim, do not trust the figure.",
            )
