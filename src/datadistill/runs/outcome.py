"""What a run ends in: its distilled data, tested once, in their files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..artefact import DistilledData, load
from ..core.values import one_line
from ..data import LabelledData
from ..errors import RunError
from ..evaluation import evaluate
from ..models.description import weights_hash
from ..progress import ProgressCallback
from .distillation import Distillation
from .store.folder import RunFolder
from .store.results import check_artefact, file_hash
from .store.state import RunState


@dataclass(frozen=True)
class Outcome:
    """The distilled data of a run.

    Attributes:
        last: Those after the last outer step.
        best: The best on held-out training data, if there are such data.
        kept: Those of them that the run keeps, tested.
    """

    last: DistilledData
    best: DistilledData | None
    kept: DistilledData

    __repr__ = one_line

    @classmethod
    def of(
        cls,
        distillation: Distillation,
        state: RunState,
        test: LabelledData | None,
        progress: ProgressCallback,
    ) -> "Outcome":
        """Keeps the best or the last, as the configuration says, and tests them once."""
        state = distillation.closed(state)
        kept = with_test_claim(distillation, distillation.kept(state), test, progress)
        return cls(distillation.last(state), distillation.best(state), kept)

    def __str__(self) -> str:
        """What the last and the best reach on held-out data, and which of them is kept."""
        if self.best is None:
            return "There are no held-out data: kept the last distilled data."
        last, best = (_step(distilled) for distilled in (self.last, self.best))
        if last == best:
            return f"The last distilled data are the best on held-out data: {self.best.claim}."
        return (
            f"Last (outer step {last:,}): {self.last.claim or 'not finite'}\n"
            f"Best (outer step {best:,}): {self.best.claim}\n"
            f"Kept the {'best' if _step(self.kept) == best else 'last'}."
        )

    def write(self, folder: RunFolder, state: RunState, keep: str) -> None:
        """Writes the artefacts, then the results."""
        files = {folder.last: self.last, folder.best: self.best, folder.distilled: self.kept}
        for path, distilled in files.items():
            if distilled is not None:
                distilled.save(path)
        folder.write_results(
            {
                "outer_steps": state.outer_step,
                "rejected": state.distiller.rejected,
                "keep": keep,
                "state": _identity(state),
                **{path.stem: _summary(path, distilled) for path, distilled in files.items()},
            }
        )


def with_test_claim(
    distillation: Distillation,
    distilled: DistilledData,
    test: LabelledData | None,
    progress: ProgressCallback,
) -> DistilledData:
    """The distilled data with their result on the test data as their claim, if there are any."""
    if test is None:
        return distilled
    result = evaluate(
        distilled,
        test,
        networks=distillation.config.test_networks,
        device=str(distillation.distiller.network.device),
        team=distillation.team,
        progress=progress,
    )
    return distilled.with_claim(result.claim())


def is_finished(folder: RunFolder, state: RunState, iterations: int) -> bool:
    """Whether the results of a run's last outer step are written.

    Raises:
        RunError: The results are those of another run.
    """
    written = folder.read_results().get("run")
    if not isinstance(written, dict) or state.outer_step < iterations:
        return False
    if written.get("outer_steps") != state.outer_step:
        return False
    if written.get("state", _identity(state)) != _identity(state):  # earlier versions wrote none
        raise RunError(
            f"{folder.results} holds the results of another run.",
            "Put back the run's own, or remove it: it is then written again.",
        )
    return True


def load_finished(folder: RunFolder, distillation: Distillation) -> DistilledData:
    """The distilled data of a finished run, with its network and its pool.

    Raises:
        RunError: The artefact is that of another run.
        DataDistillError: The file is damaged or missing.
    """
    distilled = load(folder.distilled)
    check_artefact(folder.distilled, folder.results)
    pool = getattr(distillation.distiller.initialization, "pool", None)
    return replace(distilled, module=distillation.module, pool=pool)


def _step(distilled: DistilledData) -> int:
    return distilled.header.configuration["outer_step"]


def _identity(state: RunState) -> str:
    """A hash of what was learned, which no other run has."""
    return weights_hash(state.distiller.parameters)


def _summary(path: Path, distilled: DistilledData | None) -> dict[str, Any] | None:
    if distilled is None:
        return None
    claim = distilled.claim
    return {
        "outer_step": _step(distilled),
        "claim": claim and claim.model_dump(),
        "sha256": file_hash(path),
    }
