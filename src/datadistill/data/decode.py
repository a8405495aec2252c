"""Decoding one image file: the part that also runs in worker processes.

A worker runs this very file as a script, so that it starts in a sixth of a second, without
torch and without running the user's own script again. Hence it imports nothing of ours.
"""

import contextlib
import json
import math
import os
import signal
import struct
import sys
import warnings
from typing import BinaryIO, NamedTuple

import numpy as np
from PIL import Image, ImageOps

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "PPM", "TIFF", "WEBP")
PIXELS_ALLOWED = 50_000_000
TRIES = 10
DRAWS = 2 * TRIES + 3
ENTRY_BYTES = 512  # what Python itself needs for one entry of the cache, roughly
REPLY = struct.Struct("<?I")  # is it pixels (or a message), and how many bytes


class ImageError(Exception):
    """An image cannot be used: what is wrong with it, and what to do about it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what, self.remedy = what, remedy


class Job(NamedTuple):
    """One image to decode.

    Attributes:
        path: The file.
        size: Height and width of the result.
        channels: 1 for grey, 3 for colour.
        margin: By how much the shorter side exceeds ``size`` before the centre is cut out;
            None to stretch the whole image to a square.
        region: The only part of the image to look at: left, top, right, bottom.
        draws: Uniform random numbers for a random crop; None for the plain view.
    """

    path: str
    size: int
    channels: int
    margin: float | None = None
    region: tuple[float, float, float, float] | None = None
    draws: tuple[float, ...] | None = None


class Decoder:
    """Decodes images and keeps what it decoded, up to a number of bytes.

    What is in the cache stays: on data larger than the cache, read over and over, throwing out
    the oldest would leave no hit at all.
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
    """Reads an image as grey (``L``) or colour (``RGB``), upright as its EXIF says.

    Palettes, CMYK and YCbCr become what they show. Transparent images are laid on white. Of 16
    bits the upper 8 are kept. Of an animation the first frame is taken. An image of more than
    50 million pixels is refused before it is decoded.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters here is raised
            with Image.open(path, formats=FORMATS) as image:
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
            f"is no image that can be read: {error or type(error).__name__}",
            "Replace or remove this file; it is damaged, or in a format other than "
            f"{', '.join(FORMATS)}.",
        ) from error


def _check_size(image: Image.Image) -> None:
    if image.width * image.height > PIXELS_ALLOWED:
        raise _too_large(f"{image.width}×{image.height} pixels")


def _too_large(size: str) -> ImageError:
    return ImageError(
        f"says that it has {size}; at most {PIXELS_ALLOWED // 10**6} megapixels are decoded",
        "Make the image smaller, or remove it.",
    )


def _turn_upright(image: Image.Image) -> None:
    # Damaged EXIF is common in sound photographs; it then says nothing about orientation.
    with contextlib.suppress(Exception):
        ImageOps.exif_transpose(image, in_place=True)


def _to_mode(image: Image.Image, mode: str) -> Image.Image:
    if image.mode == "F":
        raise ImageError(
            "holds floating-point pixels, whose range is not known",
            "Convert it to 8 or 16 bits, or give the data as an .npz file.",
        )
    if image.mode.startswith("I"):  # 16 bits of grey; Pillow's own conversion would clip them
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 0xFFFF:
            raise ImageError("holds pixels of more than 16 bits", "Convert it to 8 or 16 bits.")
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
            f"has no pixels inside the object's box {job.region}: it is "
            f"{image.width}×{image.height}",
            "Repair the annotation, or remove the object.",
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
    """Draws a random part of an image: 8 to 100 % of its area, ratio of sides 3:4 to 4:3.

    As is usual: the first of ten tries that fits, else the largest central part with sides in
    range. ``draws`` are uniform numbers: area and ratio of each try, then the place.
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
    # One step from box to square: a strip of a pixel's width is never blown up as a whole.
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
    """Runs a worker: requests come by standard input, replies go to standard output."""
    # Ctrl-C is the parent's to handle; when the parent ends, so does the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write among them
    try:
        serve(sys.stdin.buffer, replies, Decoder(int(sys.argv[1])))
    except BrokenPipeError:
        os._exit(0)  # the parent is gone, and so is whoever would read of it


if __name__ == "__main__":
    main()
