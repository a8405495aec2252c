"""Several processes that make one run: who they are, what they add up and vote on.

``torchrun`` starts them, on one machine or many, or :mod:`.launch` on this one. Process 0 leads:
it alone writes and prints. The others are workers (:mod:`.worker`).
"""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ...engine.team import Team
from ...errors import ConfigError
from .environment import number, world_size
from .handover import Named
from .launch import Worker, launched
from .link import Link
from .secret import Secret


class Votes(NamedTuple):
    """What a process asks for after this outer step; one vote is enough.

    Attributes:
        stop: Save, and end the program.
        end: Treat the run as finished: its time is up.
    """

    stop: bool = False
    end: bool = False


NO_VOTES = Votes()


@dataclass(eq=False)
class Processes(Team):
    """The processes of a run; by default this one alone.

    Attributes:
        local_rank: The number of this process on its machine.
        local_size: How many of the processes are on this machine.
        link: How they talk; None where there is one process alone.
        vote: Called in every sum, which carries the votes of all processes.
    """

    local_rank: int = 0
    local_size: int = 1
    link: Link | None = None
    vote: Callable[[], Votes] = Votes
    _agreed: Votes = NO_VOTES

    def __post_init__(self) -> None:
        if self.link is not None:
            self.link.stop_requested = lambda: self.vote().stop

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes and prints."""
        return self.rank == 0

    @property
    def agreed(self) -> Votes:
        """What any process voted for at the last sum: the same for all of them."""
        return self._agreed if self.link else self.vote()

    def sum(self, tensor: Tensor) -> Tensor:
        """Adds up the tensors of all processes, and their votes; all get the same bits."""
        if self.link is None:
            return tensor
        votes = tensor.new_tensor(self.vote())
        total = self.link.sum(torch.cat([tensor.flatten(), votes]))
        self._agreed = Votes(*(total[tensor.numel() :] > 0).tolist())
        return total[: tensor.numel()].view_as(tensor)

    def agree(self, number: int) -> int:
        """The number that process 0 gives, in all processes."""
        own = torch.tensor(number if self.leads else 0, dtype=torch.float64)
        return int(self.sum(own))

    def sync(self) -> None:
        """Counts the votes now, without waiting for the next sum."""
        self.sum(torch.zeros(0))

    def assemble(self) -> None:
        """Waits until all have started, which would disturb a measurement of time."""
        if self.link is not None:
            self.link.wait_until_all_are_here()

    def begin(self, content: Callable[[], bytes]) -> None:
        """Sends what the others need to begin, and waits until they are ready."""
        if self.link is not None:
            self.link.send(content())

    def ready(self) -> None:
        """Tells process 0 that this one is ready to begin."""
        if self.link is not None:
            self.link.ready()

    def finish(self) -> None:
        """Tells process 0 that this one's work is finished, and stays until all is over."""
        if self.link is not None:
            self.link.finish()

    def wait_until_finished(self) -> None:
        """Waits for the work of the others, however long it takes."""
        if self.link is not None:
            self.link.wait_until_finished()

    def device(self, kind: torch.device) -> torch.device:
        """Where this process computes: of several GPUs, one for each process of a machine."""
        if self.link is None or kind.type != "cuda":
            return kind
        own = torch.device("cuda", self.local_rank % torch.cuda.device_count())
        torch.cuda.set_device(own)
        # Two processes on one GPU is more than NCCL can do.
        self.link.through(own if self.local_size <= torch.cuda.device_count() else None)
        return own

    def threads(self) -> int:
        """Processor threads for this process: its part of those that torch would take."""
        return max(1, torch.get_num_threads() // self.local_size)


@contextlib.contextmanager
def together(
    processes: int = 1,
    worker: Worker | None = None,
    *,
    named: Named | None = None,
    debug: bool = False,
) -> Generator[Processes]:
    """The processes of a run: those that torchrun has started, or as many as are asked for.

    Args:
        processes: How many to start on this machine, where torchrun has not.
        worker: What processes that are started run; needed if there are several.
        named: The Python code that the user has named, by setting; they import no other.
        debug: Whether the messages of processes that are started are shown.
    """
    if world_size() > 1:
        with by_environment(Secret.by_environment()) as team:
            yield team
    elif processes > 1:
        assert worker is not None
        _check_available()
        with launched(processes, worker, named or {}, debug=debug) as link:
            yield Processes(0, processes, 0, processes, link)
    else:
        yield Processes()


def _check_available() -> None:
    """Refuses a torch that was built without what processes talk through."""
    if not torch.distributed.is_available():
        raise ConfigError(
            "This build of torch does not support several processes.",
            "Install one with torch.distributed, or use one process.",
        )


@contextlib.contextmanager
def by_environment(secret: Secret) -> Generator[Processes]:
    """The processes that torchrun's environment variables tell of, and this one's place.

    Args:
        secret: What they prove to each other.
    """
    _check_available()
    rank, size = number("RANK"), world_size()
    if rank >= size:
        raise ConfigError(f"RANK is {rank}, but WORLD_SIZE is {size}.", "Ranks count from 0.")
    local = (number("LOCAL_RANK", or_else=0), number("LOCAL_WORLD_SIZE", or_else=1))
    with Link.by_environment(rank, size, secret).joined() as link:
        yield Processes(rank, size, *local, link)
