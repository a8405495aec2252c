"""Worker processes that decode images, started when first needed."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO
from zlib import crc32

import numpy as np

from ...errors import DataError
from . import decode
from .decode import Decoder, ImageError, Job

CHUNK = 32  # jobs per request; more gains nothing
MOST_WORKERS = 8
CACHE_BYTES = 2**30


class DecodingPool:
    """Decodes images in worker processes, or in this one.

    Each image always goes to the same worker, so that its cache has it. The pixels do not depend on
    the number of workers. Workers end with this object, with the program, on Ctrl-C, and when
    the program is killed.

    Args:
        workers: Number of processes; 0 decodes in this one, None starts one per core.
        cache_bytes: How many bytes of decoded images to keep, in all workers together.
    """

    def __init__(self, workers: int | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        self.workers = _default_workers() if workers is None else workers
        self.cache_bytes = cache_bytes
        self._decoder = Decoder(cache_bytes) if self.workers == 0 else None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        weakref.finalize(self, _end, self._processes, self._owner)

    def __repr__(self) -> str:
        return f"<DecodingPool: {self.workers} workers, cache of {self.cache_bytes:,} bytes>"

    def decode(self, jobs: Sequence[Job], pixels: np.ndarray) -> None:
        """Decodes ``jobs[i]`` into ``pixels[i]``; the first that fails raises a DataError."""
        if not jobs:
            return
        with self._lock:
            if self._owner != os.getpid():  # forked: the workers belong to the parent
                self._decoder = self._decoder or Decoder(self.cache_bytes)
            if self._decoder is not None:
                failures = [_decode_here(self._decoder, jobs, pixels)]
            else:
                failures = self._decode_in_workers(jobs, pixels)
        for number, error in sorted(filter(None, failures), key=lambda failure: failure[0]):
            raise DataError(f"{jobs[number].path} {error.what}.", error.remedy) from error

    def close(self) -> None:
        """Ends the workers; the next call of :meth:`decode` starts new ones."""
        _end(self._processes, self._owner)

    def __reduce__(self) -> tuple[type["DecodingPool"], tuple[int, int]]:
        return type(self), (self.workers, self.cache_bytes)  # a copy starts its own workers

    def _decode_in_workers(
        self, jobs: Sequence[Job], pixels: np.ndarray
    ) -> "list[tuple[int, ImageError] | None]":
        self._start()
        shares: list[list[int]] = [[] for _ in self._processes]
        for number, job in enumerate(jobs):
            shares[crc32(os.fsencode(job.path)) % len(shares)].append(number)
        with ThreadPoolExecutor(len(shares)) as threads:
            try:
                tasks = [
                    threads.submit(_converse, process, share, jobs, pixels)
                    for process, share in zip(self._processes, shares, strict=True)
                ]
                return [task.result() for task in tasks]
            except BaseException:  # Ctrl-C, or a worker ended: replies are left unread
                self.close()
                raise

    def _start(self) -> None:
        if not self._processes:
            share = self.cache_bytes // self.workers
            self._processes += [_start_worker(share) for _ in range(self.workers)]


def _default_workers() -> int:
    if not sys.executable:  # embedded Python: no interpreter to start
        return 0
    linux = sys.platform == "linux"
    cores = len(os.sched_getaffinity(0)) if linux else os.cpu_count() or 1
    sharing = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # started by torchrun
    return max(1, min(cores // sharing, MOST_WORKERS))


def _start_worker(cache_bytes: int) -> subprocess.Popen[bytes]:
    # -P: do not import from the folder of decode.py.
    command = [sys.executable, "-P", decode.__file__, str(cache_bytes)]
    path = os.pathsep.join(filter(None, sys.path))
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **one_thread, "PYTHONPATH": path},
    )


def _end(processes: list[subprocess.Popen[bytes]], owner: int) -> None:
    if owner != os.getpid():
        return
    for process in processes:
        process.kill()  # they have nothing to lose
    for process in processes:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                _close(pipe)
    processes.clear()


def _close(pipe: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # a request that nobody reads any more
        pipe.close()


def _decode_here(
    decoder: Decoder, jobs: Sequence[Job], pixels: np.ndarray
) -> tuple[int, ImageError] | None:
    for number, job in enumerate(jobs):
        try:
            pixels[number] = decoder(job)
        except ImageError as error:
            return number, error
    return None


def _converse(
    process: subprocess.Popen[bytes], share: list[int], jobs: Sequence[Job], pixels: np.ndarray
) -> tuple[int, ImageError] | None:
    """Lets one worker decode its share of the jobs; returns the first failure."""
    failure: tuple[int, ImageError] | None = None
    for begin in range(0, len(share), CHUNK):
        numbers = share[begin : begin + CHUNK]
        try:
            _send(process, [jobs[number] for number in numbers])
            for number in numbers:
                error = _receive(process, pixels[number])
                failure = failure or (error and (number, error))
        except (OSError, EOFError) as error:
            raise DataError(
                f"The worker that decodes {jobs[numbers[0]].path} and the next images ended "
                f"unexpectedly (exit code {process.poll()}).",
                "Check for a damaged image or low memory; workers=0 decodes in this process.",
            ) from error
        if failure:
            return failure
    return None


def _send(process: subprocess.Popen[bytes], jobs: list[Job]) -> None:
    assert process.stdin
    process.stdin.write(json.dumps(jobs).encode() + b"\n")
    process.stdin.flush()


def _receive(process: subprocess.Popen[bytes], pixels: np.ndarray) -> ImageError | None:
    fine, size = decode.REPLY.unpack(_read(process, decode.REPLY.size))
    content = _read(process, size)
    if not fine:
        return ImageError(*json.loads(content))
    pixels[...] = np.frombuffer(content, np.uint8).reshape(pixels.shape)
    return None


def _read(process: subprocess.Popen[bytes], size: int) -> bytes:
    assert process.stdout
    content = process.stdout.read(size)
    if len(content) < size:
        raise EOFError
    return content
