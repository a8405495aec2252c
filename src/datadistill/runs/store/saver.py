"""When checkpoints are written: by count and by time, and never before the log."""

import math
import time

from ..config import RunConfig
from .checkpoint import Checkpoint, write_checkpoint
from .folder import RunFolder
from .metrics import MetricsLog
from .state import RunState


class Saver:
    """Writes the checkpoints of a run.

    Args:
        folder: The run folder.
        config: How often.
        fingerprint: The data and the network of the run.
        log: The log of the run.
        outer_step: The outer step of the newest checkpoint.
    """

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        fingerprint: dict[str, str],
        log: MetricsLog,
        outer_step: int,
    ) -> None:
        self._folder, self._fingerprint, self._log = folder, fingerprint, log
        self._every = config.checkpoint_every or math.inf
        self._seconds = 60 * config.checkpoint_minutes
        self._last, self._at = outer_step, time.monotonic()

    def due(self, outer_step: int) -> bool:
        """Whether it is time for the next checkpoint."""
        waited = time.monotonic() - self._at
        return outer_step - self._last >= self._every or waited >= self._seconds

    def save(self, state: RunState, config: RunConfig) -> None:
        """Writes a checkpoint."""
        self._log.sync()  # a checkpoint never knows of more outer steps than the log
        checkpoint = Checkpoint(state, config, self._fingerprint, self._log.check)
        write_checkpoint(self._folder.checkpoints, checkpoint)
        self._last, self._at = state.outer_step, time.monotonic()
