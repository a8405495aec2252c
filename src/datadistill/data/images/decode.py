"""Decoding one image file: the part that also runs in worker processes.

A worker runs this file as a script. So it starts in a sixth of a second, without torch and without
running the user's script again. For this reason it imports nothing else of this package.
"""

import contextlib
import json
import math
import os
import signal
import stat
import struct
import sys
import warnings
from typing import BinaryIO, NamedTuple

import numpy as np
from PIL import Image, ImageOps

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
PIXELS_ALLOWED = 50_000_000
BYTES_ALLOWED = 2**30  # of a file; 50 million pixels of 16 bits in colour have 0.3 of it
TRIES = 10
DRAWS = 2 * TRIES + 3
ENTRY_BYTES = 512  # overhead of one cache entry, roughly
REPLY = struct.Struct("<?I")  # whether it is pixels or a message, and how many bytes


class ImageError(Exception):
    """An image cannot be used: what is wrong, and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what, self.remedy = what, remedy


class Job(NamedTuple):
    """One image to decode.

    Attributes:
        path: The file.
        size: Height and width of the result.
        channels: 1 for grey, 3 for colour.
        margin: The shorter side is resized to ``margin × size`` before the centre is cropped;
            None to stretch the whole image to a square.
        region: The part of the image to use: left, top, right, bottom.
        draws: Uniform random numbers for a random crop; None for no augmentation.
    """

    path: str
    size: int
    channels: int
    margin: float | None = None
    region: tuple[float, float, float, float] | None = None
    draws: tuple[float, ...] | None = None


class Decoder:
    """Decodes images and caches them, up to a number of bytes.

    Nothing is evicted: data larger than the cache are read in a cycle, where evicting the oldest
    entry would never give a hit.
    """

    def __init__(self, cache_bytes: int) -> None:
        self._room = cache_bytes
        self._views: dict[Job, np.ndarray] = {}
        self._sources: dict[tuple[str, int], Image.Image] = {}

    def __call__(self, job: Job) -> np.ndarray:
        """Returns bytes (channels, size, size)."""
        if job.draws is not None:
            return _random_view(_region(self._source(job), job), job, job.draws)
        view = self._views.get(job)
        if view is None:
            view = _plain_view(_region(read_image(job.path, job.channels), job), job)
            if self._fits(view.nbytes):
                self._views[job] = view
        return view

    def _source(self, job: Job) -> Image.Image:
        key = job.path, job.channels
        source = self._sources.get(key)
        if source is None:
            source = read_image(*key)
            # Pillow spends four bytes on a pixel in colour.
            if self._fits(source.width * source.height * (1 if job.channels == 1 else 4)):
                self._sources[key] = source
        return source

    def _fits(self, size: int) -> bool:
        fits = size + ENTRY_BYTES <= self._room
        self._room -= (size + ENTRY_BYTES) * fits
        return fits


def read_image(path: str, channels: int) -> Image.Image:
    """Reads an image as grey (``L``) or colour (``RGB``), rotated as its EXIF data say.

    Palettes, CMYK and YCbCr are converted. Transparent images get a white background. The upper 8
    of 16 bits are kept. Animations give their first frame. Images of more than 50 million pixels
    are refused before decoding.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters is raised
            with _opened(path) as file, Image.open(file, formats=FORMATS) as image:
                _check_size(image)
                image.load()
                _turn_upright(image)
                return _to_mode(image, "L" if channels == 1 else "RGB")
    except ImageError:
        raise
    except Image.DecompressionBombError:
        raise _too_large("hundreds of megapixels") from None
    except Exception as error:  # a damaged file can raise nearly anything
        raise ImageError(
            f"cannot be read as an image: {error or type(error).__name__}",
            "Replace or remove this file. It is damaged, or its format is not one of "
            f"{', '.join(FORMATS)}.",
        ) from error


def _opened(path: str) -> BinaryIO:
    """Opens a regular file; a FIFO could block, and a device never end."""
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - Path has no opener
    found = os.fstat(file.fileno())
    if stat.S_ISREG(found.st_mode) and found.st_size <= BYTES_ALLOWED:
        return file
    file.close()
    raise ImageError(
        "is not a regular file of at most 1 GiB", "Replace or remove this file of the data set."
    )


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def as_pixels(image: Image.Image, channels: int) -> np.ndarray:
    """Returns the bytes (channels, height, width) of an open image, as :func:`read_image` does."""
    pixels = np.array(_to_mode(image, "L" if channels == 1 else "RGB"))
    return pixels[None] if channels == 1 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _check_size(image: Image.Image) -> None:
    if image.width * image.height > PIXELS_ALLOWED:
        raise _too_large(f"{image.width}×{image.height} pixels")


def _too_large(size: str) -> ImageError:
    return ImageError(
        f"has {size}; the limit is {PIXELS_ALLOWED // 10**6} megapixels",
        "Resize the image, or remove it.",
    )


def _turn_upright(image: Image.Image) -> None:
    # Damaged EXIF data are common in valid photographs; the orientation is then unknown.
    with contextlib.suppress(Exception):
        ImageOps.exif_transpose(image, in_place=True)


def _to_mode(image: Image.Image, mode: str) -> Image.Image:
    if image.mode == "F":
        raise ImageError(
            "has floating-point pixels of unknown range",
            "Convert it to 8 or 16 bits, or provide the data as an .npz file.",
        )
    if image.mode.startswith("I"):  # 16 bits of grey; Pillow's own conversion would clip them
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 0xFFFF:
            raise ImageError("has pixels of more than 16 bits", "Convert it to 8 or 16 bits.")
        image = Image.fromarray((values >> 8).astype(np.uint8))
    elif image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    elif image.mode in ("LAB", "HSV", "CMYK", "YCbCr"):
        image = image.convert("RGB")
    return image if image.mode == mode else image.convert(mode)


def _region(image: Image.Image, job: Job) -> Image.Image:
    if job.region is None:
        return image
    left, top, right, bottom = job.region
    box = max(left, 0), max(top, 0), min(right, image.width), min(bottom, image.height)
    left, top, right, bottom = map(round, box)
    if right <= left or bottom <= top:
        raise ImageError(
            f"has no pixels inside the bounding box {job.region}: its size is "
            f"{image.width}×{image.height}",
            "Correct the annotation, or remove the object.",
        )
    return image.crop((left, top, right, bottom))


def _plain_view(image: Image.Image, job: Job) -> np.ndarray:
    width, height = image.size
    if job.margin is None:
        return _view(image, job, (0, 0, width, height))
    side = min(width, height) / job.margin
    left, top = (width - side) / 2, (height - side) / 2
    return _view(image, job, (left, top, left + side, top + side))


def _random_view(image: Image.Image, job: Job, draws: tuple[float, ...]) -> np.ndarray:
    *crop, flip = draws
    view = _view(image, job, random_box(image.width, image.height, crop))
    return view[:, :, ::-1] if flip < 0.5 else view


def random_box(width: int, height: int, draws: list[float]) -> tuple[float, float, float, float]:
    """Draws a random crop of an image: 8 to 100 % of its area, aspect ratio 3:4 to 4:3.

    The first of ten attempts that fits, else the largest central crop with a valid aspect ratio.
    ``draws`` are uniform numbers: area and aspect ratio of each attempt, then the position.
    """
    across, down = draws[2 * TRIES :]
    for area, ratio in zip(draws[: 2 * TRIES : 2], draws[1 : 2 * TRIES : 2], strict=True):
        pixels = width * height * (0.08 + 0.92 * area)
        aspect = math.exp((2 * ratio - 1) * math.log(4 / 3))
        w, h = round(math.sqrt(pixels * aspect)), round(math.sqrt(pixels / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(across * (width - w + 1)), int(down * (height - h + 1))
            return left, top, left + w, top + h
    w, h = min(width, height * 4 / 3), min(height, width * 4 / 3)
    left, top = (width - w) / 2, (height - h) / 2
    return left, top, left + w, top + h


def _view(image: Image.Image, job: Job, box: tuple[float, float, float, float]) -> np.ndarray:
    # From box to square in one step: an image one pixel wide is never enlarged as a whole.
    square = image.resize((job.size, job.size), Image.Resampling.BICUBIC, box=box)
    pixels = np.asarray(square).reshape(job.size, job.size, job.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def serve(requests: BinaryIO, replies: BinaryIO, decoder: Decoder) -> None:
    """Answers each line, a JSON list of jobs, with one reply per job, until the input ends."""
    for line in requests:
        for path, size, channels, margin, region, draws in json.loads(line):
            job = Job(path, size, channels, margin, region and (*region,), draws and (*draws,))
            try:
                fine, content = True, decoder(job).tobytes()
            except ImageError as error:
                fine, content = False, json.dumps([error.what, error.remedy]).encode()
            replies.write(REPLY.pack(fine, len(content)))
            replies.write(content)
        replies.flush()


def main() -> None:
    """Runs a worker: reads requests from standard input and writes replies to standard output."""
    # The parent handles signals that are sent to all; when the parent ends, so does the input.
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write there
    try:
        serve(sys.stdin.buffer, replies, Decoder(int(sys.argv[1])))
    except BrokenPipeError:
        os._exit(0)  # the parent has ended: nobody would read a message


if __name__ == "__main__":
    main()
