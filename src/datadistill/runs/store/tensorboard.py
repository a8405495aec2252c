"""The figures of a run for TensorBoard: an optional extra."""

import contextlib
import importlib.util
from collections.abc import Callable, Generator
from pathlib import Path

from ...errors import ConfigError
from .metrics import MetricsRow


def check_installed(wanted: bool) -> None:
    """Refuses a run that wants TensorBoard where it is not installed."""
    if wanted and importlib.util.find_spec("tensorboard") is None:
        raise ConfigError("TensorBoard is not installed.", "pip install 'datadistill[tensorboard]'")


@contextlib.contextmanager
def board(folder: Path, after: int, wanted: bool) -> Generator[Callable[[MetricsRow], None]]:
    """Lends a function that shows rows; later figures than ``after`` are taken back."""
    if not wanted:
        yield lambda _row: None
        return
    check_installed(wanted)
    from torch.utils.tensorboard.writer import SummaryWriter

    writer = SummaryWriter(str(folder), purge_step=after + 1)

    def show(row: MetricsRow) -> None:
        figures = {
            "loss": row.loss,
            "gradient norm": row.gradient_norm,
            "outer learning rate": row.outer_lr,
            "learning rates/min": row.learning_rates.min,
            "learning rates/mean": row.learning_rates.mean,
            "learning rates/max": row.learning_rates.max,
            "rejected": row.rejected,
            "seconds": row.seconds,
        }
        if row.held_out:
            figures[f"held-out {row.held_out.metric}"] = row.held_out.mean
        for name, value in figures.items():
            if value is not None:
                writer.add_scalar(name, value, row.outer_step)

    try:
        yield show
    finally:
        writer.close()
