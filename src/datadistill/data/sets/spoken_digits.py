"""Spoken digits: 3,000 recordings of six speakers (FSDD), as log-mel pictures."""

import functools
import io
import re
import wave
from pathlib import Path

import numpy as np
import torch

from ...errors import DataError
from ...reading import read_regular
from ..data_set import DataSet, register
from ..formats.unpack import damaged
from ..images.conversion import apply_options
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options

RATE = 8000
WINDOW, HOP = 256, 64  # 32 and 8 milliseconds
SIZE = 32  # mel bands, and columns in time
LOWEST = 60.0  # hertz
RANGE = 80.0  # decibels below the loudest
HELD_OUT = "yweweler"
"""The speaker of the test split: nobody in the training split has this voice."""
NORMALIZATION = Normalization((0.5754,), (0.1980,))
"""Of its own training pictures."""
NAME = re.compile(r"([0-9])_([a-z]{1,30})_([0-9]{1,4})\.wav")
MOST_FILES = 20_000
MOST_BYTES = 2**20


def load_spoken_digits(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``recordings/DIGIT_SPEAKER_NUMBER.wav``: 8 kHz, mono, 16 bits.

    A recording becomes a picture of bytes, 1×32×32: 32 mel bands, low ones at the bottom, by 32
    moments from its beginning to its end, in decibels below its loudest point. One speaker is the
    test split, so that it measures how well networks understand a voice they have not heard.
    """
    found = sorted(path for path in (folder / "recordings").iterdir() if NAME.fullmatch(path.name))
    if not 2 <= len(found) <= MOST_FILES:
        raise DataError(
            f"{folder / 'recordings'} has {len(found):,} recordings.",
            "Put the files of the Free Spoken Digit Dataset there, named DIGIT_SPEAKER_NUMBER.wav.",
        )
    parts = [NAME.fullmatch(path.name) for path in found]
    held_out = torch.tensor([bool(part and part[2] == HELD_OUT) for part in parts])
    if held_out.all() or not held_out.any():
        raise DataError(
            f"{folder / 'recordings'} must have recordings of {HELD_OUT} and of other speakers.",
            "Put all files of the Free Spoken Digit Dataset there.",
        )
    pictures = torch.from_numpy(np.stack([_picture(_samples(path)) for path in found]))
    labels = torch.tensor([int(part[1]) for part in parts if part])
    everything = LabelledData(pictures, labels, NORMALIZATION, tuple("0123456789"), "spoken-digits")
    train = everything.part((~held_out).nonzero()[:, 0], "train")
    return apply_options(train, everything.part(held_out.nonzero()[:, 0], "test"), options)


def _samples(path: Path) -> np.ndarray:
    """The samples of a recording, in [−1, 1]."""
    try:
        with wave.open(io.BytesIO(read_regular(path, MOST_BYTES))) as file:
            kind = file.getframerate(), file.getnchannels(), file.getsampwidth()
            content = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error, ValueError, RuntimeError) as error:
        raise damaged(path, f"cannot be read: {error}") from error
    if kind != (RATE, 1, 2):
        raise damaged(path, f"is not {RATE} Hz, mono, 16 bits")
    samples = np.frombuffer(content[: len(content) // 2 * 2], "<i2") / 2**15
    if not samples.size:
        raise damaged(path, "has no samples")
    return samples


def _picture(samples: np.ndarray) -> np.ndarray:
    """The log-mel picture of a recording, (1, bands, moments) of bytes."""
    samples = np.pad(samples, (0, max(0, WINDOW - len(samples))))
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP] * np.hanning(WINDOW)
    power = np.abs(np.fft.rfft(frames)) ** 2 @ _filters().T
    level = 10 * np.log10(power.clip(1e-10) / power.max().clip(1e-10))
    share = (1 + level / RANGE).clip(0, 1)
    moments = np.linspace(0, len(share) - 1, SIZE)  # recordings differ in length
    before, part = np.divmod(moments, 1)
    after = np.ceil(moments).astype(int)
    between = (1 - part)[:, None] * share[before.astype(int)] + part[:, None] * share[after]
    return np.round(255 * between.T[None, ::-1]).astype(np.uint8)


@functools.cache
def _filters() -> np.ndarray:
    """Triangles, evenly spaced in mel: (bands, frequencies)."""

    def mel(hertz: float) -> float:
        return 2595 * np.log10(1 + hertz / 700)

    edges = 700 * (10 ** (np.linspace(mel(LOWEST), mel(RATE / 2), SIZE + 2) / 2595) - 1)
    frequencies = np.linspace(0, RATE / 2, WINDOW // 2 + 1)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    up, down = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    return np.minimum(up, down).clip(min=0)


DATA_SET = register(
    DataSet(
        name="spoken-digits",
        what="Free Spoken Digit Dataset: 2,500 + 500 recordings, a held-out speaker, log-mel",
        input_shape=(1, SIZE, SIZE),
        classes=10,
        folder="fsdd",
        files=(("recordings",),),
        origin="https://github.com/Jakobovski/free-spoken-digit-dataset",
        licence="CC BY-SA 4.0",
        loader=load_spoken_digits,
        order=130,
    )
)
