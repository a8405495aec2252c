"""The life of a worker: it takes part, and ends with process 0 whatever happens."""

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

from ...errors import DataDistillError
from .handover import Handover, Named
from .processes import Processes, by_environment
from .secret import Secret

TakePart = Callable[[Processes, Named], None]
"""What a worker does for process 0, and the Python code that it may import for that."""

PIPE = 0  # from process 0


def run_worker(take_part: TakePart) -> NoReturn:
    """Runs a process that :mod:`.launch` has started, from its beginning to its end."""
    try:
        handover = Handover.read(PIPE)
    except EOFError:
        os._exit(1)
    threading.Thread(target=_end_with_process_0, daemon=True).start()
    logging.getLogger("datadistill").setLevel(logging.ERROR)  # process 0 warns for all
    # There is nothing to write or to tidy up: do not keep process 0 waiting.
    os._exit(_exit_code(take_part, handover))


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


def _end_with_process_0() -> None:
    """Waits for the end of the pipe that process 0 holds."""
    os.read(PIPE, 1)
    os._exit(1)
