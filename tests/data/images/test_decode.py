"""Decoding of single images: kinds, views, limits."""

import struct
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from datadistill.data.images.decode import DRAWS, Decoder, ImageError, Job, random_box, read_image

from ..makers import make_image, pixels

GREY = np.arange(256, dtype=np.uint8).reshape(16, 16)


def saved(image: Image.Image, path: Path, **settings: Any) -> str:
    image.save(path, **settings)
    return str(path)


def plain(path: str | Path, size: int, channels: int = 3, margin: float | None = 1.0) -> np.ndarray:
    return Decoder(0)(Job(str(path), size, channels, margin))


class TestKindsOfImages:
    def test_grey_images_have_three_equal_channels_or_one(self, tmp_path: Path) -> None:
        path = saved(Image.fromarray(GREY), tmp_path / "grey.png")
        np.testing.assert_array_equal(plain(path, 16), np.stack([GREY] * 3))
        np.testing.assert_array_equal(plain(path, 16, channels=1), GREY[None])

    def test_colour_turns_grey_by_its_luma(self, tmp_path: Path) -> None:
        path = saved(Image.new("RGB", (4, 4), (200, 100, 50)), tmp_path / "colour.png")
        assert (plain(path, 4, channels=1) == round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)).all()

    def test_palettes_show_their_colours(self, tmp_path: Path) -> None:
        image = Image.new("P", (4, 4), 1)
        image.putpalette([0, 0, 0, 10, 20, 30])
        view = plain(saved(image, tmp_path / "palette.png"), 4)
        assert view[:, 0, 0].tolist() == [10, 20, 30]

    @pytest.mark.parametrize("mode", ["RGBA", "LA"])
    def test_transparent_images_are_laid_on_white(self, mode: str, tmp_path: Path) -> None:
        alpha = Image.fromarray(np.array([[0, 255], [0, 255]], np.uint8))
        image = Image.new(mode, (2, 2), 0)
        image.putalpha(alpha)
        view = plain(saved(image, tmp_path / "alpha.png"), 2)
        assert view[0].tolist() == [[255, 0], [255, 0]]

    def test_a_transparent_colour_of_a_palette_is_white(self, tmp_path: Path) -> None:
        image = Image.new("P", (2, 2), 1)
        image.putpalette([0, 0, 0, 10, 20, 30])
        view = plain(saved(image, tmp_path / "palette.png", transparency=1), 2)
        assert (view == 255).all()

    def test_cmyk_becomes_the_colours_it_prints(self, tmp_path: Path) -> None:
        image = Image.new("CMYK", (8, 8), (0, 255, 255, 0))  # red
        view = plain(saved(image, tmp_path / "cmyk.jpg", quality=100), 8)
        assert view[:, 4, 4] == pytest.approx([255, 0, 0], abs=4)

    @pytest.mark.parametrize("suffix", ["png", "tif"])
    def test_of_sixteen_bits_the_upper_eight_are_kept(self, suffix: str, tmp_path: Path) -> None:
        values = GREY.astype(np.uint16) * 256 + 77
        path = saved(Image.fromarray(values), tmp_path / f"deep.{suffix}")
        np.testing.assert_array_equal(plain(path, 16, channels=1), GREY[None])

    def test_one_bit_is_black_and_white(self, tmp_path: Path) -> None:
        path = saved(Image.fromarray(GREY > 127), tmp_path / "bits.png")
        np.testing.assert_array_equal(plain(path, 16, channels=1)[0], (GREY > 127) * np.uint8(255))

    def test_floats_are_refused(self, tmp_path: Path) -> None:
        path = saved(Image.new("F", (4, 4)), tmp_path / "float.tif")
        with pytest.raises(ImageError, match="floating-point"):
            read_image(path, 3)

    def test_photographs_are_turned_upright(self, tmp_path: Path) -> None:
        image = Image.fromarray(pixels(6, 8, 3))
        exif = Image.Exif()
        exif[0x0112] = 3  # upside down
        path = saved(image, tmp_path / "turned.png", exif=exif)
        np.testing.assert_array_equal(
            np.asarray(read_image(path, 3)), np.asarray(image)[::-1, ::-1]
        )

    def test_of_an_animation_the_first_frame_is_taken(self, tmp_path: Path) -> None:
        frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
        frames[0].save(tmp_path / "two.gif", save_all=True, append_images=frames[1:])
        assert plain(tmp_path / "two.gif", 4)[:, 0, 0].tolist() == [255, 0, 0]


class TestHostileImages:
    @pytest.mark.parametrize("side", [10_000, 60_000])
    def test_a_bomb_is_refused_by_its_header(self, side: int, tmp_path: Path) -> None:
        def chunk(kind: bytes, content: bytes) -> bytes:
            checksum = zlib.crc32(kind + content)
            return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

        header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        path = tmp_path / "bomb.png"
        path.write_bytes(
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(bytes(10**6)))
            + chunk(b"IEND", b"")
        )
        begin = time.perf_counter()
        with pytest.raises(ImageError, match="megapixels"):
            read_image(str(path), 3)
        assert time.perf_counter() - begin < 1

    def test_a_truncated_jpeg_is_refused(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "cut.jpg", (100, 100))
        path.write_bytes(path.read_bytes()[:-500])
        with pytest.raises(ImageError, match="truncated") as caught:
            read_image(str(path), 3)
        assert "Replace or remove" in caught.value.remedy

    @pytest.mark.parametrize("content", [b"", b"GIF89a", b"%PDF-1.4 not an image", bytes(1000)])
    def test_what_is_no_image_is_refused(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "not.png").write_bytes(content)
        with pytest.raises(ImageError, match="cannot be read as an image"):
            read_image(str(tmp_path / "not.png"), 3)

    def test_formats_that_run_programs_are_not_even_tried(self, tmp_path: Path) -> None:
        path = tmp_path / "page.png"
        path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n")
        with pytest.raises(ImageError):
            read_image(str(path), 3)

    @pytest.mark.parametrize("size", [(1, 30_000), (30_000, 1), (1, 1)])
    @pytest.mark.parametrize("margin", [1.0, 256 / 224, None])
    def test_thin_images_need_no_more_memory_than_others(
        self, size: tuple[int, int], margin: float | None, tmp_path: Path
    ) -> None:
        path = make_image(tmp_path / "thin.png", size)
        assert plain(path, 224, margin=margin).shape == (3, 224, 224)
        draws = tuple(np.random.default_rng(0).uniform(size=DRAWS).tolist())
        assert Decoder(0)(Job(str(path), 224, 3, margin, None, draws)).shape == (3, 224, 224)

    def test_a_box_outside_the_image_is_refused(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "small.png", (40, 30))
        with pytest.raises(ImageError, match="no pixels inside"):
            Decoder(0)(Job(str(path), 8, 3, None, (50, 5, 60, 10)))


class TestViews:
    def test_an_image_of_the_right_size_is_left_as_it_is(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "same.png", (24, 24), seed=3)
        np.testing.assert_array_equal(plain(path, 24), pixels(24, 24, 3, seed=3).transpose(2, 0, 1))

    def test_the_plain_view_is_the_centre(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "wide.png", (40, 24))
        expected = pixels(24, 40, 3)[:, 8:32].transpose(2, 0, 1)
        np.testing.assert_array_equal(plain(path, 24), expected)

    def test_the_margin_is_cut_off(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "wide.png", (40, 32))
        expected = pixels(32, 40, 3)[4:28, 8:32].transpose(2, 0, 1)
        np.testing.assert_array_equal(plain(path, 24, margin=32 / 24), expected)

    def test_without_a_margin_the_whole_image_is_stretched(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "wide.png", (40, 24))
        with Image.open(path) as image:
            expected = np.asarray(image.resize((20, 20), Image.Resampling.BICUBIC))
        view = plain(path, 20, margin=None)
        np.testing.assert_array_equal(view, expected.transpose(2, 0, 1))

    def test_a_region_is_all_that_is_looked_at(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "scene.png", (40, 30))
        view = Decoder(0)(Job(str(path), 10, 3, None, (5, 7, 15, 17)))
        np.testing.assert_array_equal(view, pixels(30, 40, 3)[7:17, 5:15].transpose(2, 0, 1))

    def test_half_of_the_random_views_are_mirrored(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "scene.png")
        crop = (0.3,) * (DRAWS - 1)
        kept, mirrored = (
            Decoder(0)(Job(str(path), 12, 3, 1.0, None, (*crop, flip))) for flip in (0.9, 0.1)
        )
        np.testing.assert_array_equal(kept, mirrored[:, :, ::-1])


@given(
    st.integers(1, 3000),
    st.integers(1, 3000),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=DRAWS - 1, max_size=DRAWS - 1),
)
def test_random_boxes_lie_inside_and_keep_their_proportions(
    width: int, height: int, draws: list[float]
) -> None:
    left, top, right, bottom = random_box(width, height, draws)
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    w, h = right - left, bottom - top
    if min(w, h) > 50:  # rounding to whole pixels distorts small ones
        assert 0.73 < w / h < 1.37
        fallback = max(width, height) / min(width, height) > 4 / 3
        assert w * h >= 0.078 * width * height or fallback


class TestCache:
    def test_what_fits_is_kept(self, tmp_path: Path) -> None:
        path = make_image(tmp_path / "kept.png")
        decoder, job = Decoder(10**6), Job(str(path), 12, 3)
        crop = job._replace(draws=(0.5,) * DRAWS)
        first = decoder(job), decoder(crop)
        path.unlink()
        np.testing.assert_array_equal(decoder(job), first[0])
        np.testing.assert_array_equal(decoder(crop), first[1])

    @pytest.mark.parametrize("draws", [None, (0.5,) * DRAWS])
    def test_no_more_is_kept_than_allowed(
        self, draws: tuple[float, ...] | None, tmp_path: Path
    ) -> None:
        jobs = [
            Job(str(make_image(tmp_path / f"{i}.png", (20, 20))), 20, 3, 1.0, None, draws)
            for i in range(10)
        ]
        decoder = Decoder(5 * (20 * 20 * 3 + 1000))
        for job in jobs * 2:
            decoder(job)
        for path in tmp_path.iterdir():
            path.unlink()
        kept = 0
        for job in jobs:
            try:
                decoder(job)
                kept += 1
            except ImageError:
                pass
        assert 3 <= kept <= 6
