"""The life of a worker, from the moment that everything is imported."""

import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from ...errors import DataDistillError
from .handover import Handover, Named
from .processes import Processes, by_environment
from .secret import Secret

TakePart = Callable[[Processes, Named], None]
"""What a worker does for process 0, and the Python code that it may import for that."""


def run_worker(take_part: TakePart, line: bytes) -> NoReturn:
    """Runs a process that :mod:`.launch` has started, to its end.

    Args:
        take_part: What it does.
        line: The handover of process 0.
    """
    logging.getLogger("datadistill").setLevel(logging.ERROR)  # process 0 warns for all
    # There is nothing to write or to tidy up: do not keep process 0 waiting.
    os._exit(_exit_code(take_part, Handover.read(line)))


def _exit_code(take_part: TakePart, handover: Handover) -> int:
    try:
        with by_environment(Secret(handover.key)) as team:
            take_part(team, handover.named)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # process 0 was told
        if "--debug" in sys.argv:
            traceback.print_exc()
        return error.exit_code if isinstance(error, DataDistillError) else 1
    return 0
