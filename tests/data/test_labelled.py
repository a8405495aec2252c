"""LabelledData: the same promises for images in memory and in files."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from datadistill.core.random import stream
from datadistill.data import (
    ImageFiles,
    LabelledData,
    Normalization,
    PadCropFlip,
    ResizedCropFlip,
    catalogue,
)
from datadistill.data.images.decoding_pool import DecodingPool
from datadistill.errors import DataError

from .makers import make_image

CPU = torch.device("cpu")
LABELS = torch.arange(20) % 4


@pytest.fixture
def files(tmp_path: Path) -> ImageFiles:
    paths = [str(make_image(tmp_path / f"{i}.png", (24, 20), seed=i)) for i in range(20)]
    return ImageFiles(tuple(paths), 16, 3, DecodingPool(workers=0))


@pytest.fixture(params=["memory", "files"])
def data(request: pytest.FixtureRequest, files: ImageFiles) -> LabelledData:
    in_memory = request.param == "memory"
    return LabelledData(
        files[:] if in_memory else files,
        LABELS,
        Normalization((0.4, 0.5, 0.6), (0.2, 0.25, 0.3)),
        class_names=("a", "b", "c", "d"),
        name="made up",
        augmentation=PadCropFlip() if in_memory else ResizedCropFlip(),
        present=torch.eye(4, dtype=torch.bool)[LABELS],
    )


def test_batches_are_normalised_pixels(data: LabelledData, files: ImageFiles) -> None:
    indices = torch.tensor([3, 0, 19, 3])
    inputs, labels = data.batch(indices, CPU, torch.float64)
    pixels = files[indices].double() / 255
    mean, std = torch.tensor([0.4, 0.5, 0.6]).double(), torch.tensor([0.2, 0.25, 0.3]).double()
    expected = (pixels - mean[:, None, None]) / std[:, None, None]
    torch.testing.assert_close(inputs, expected, rtol=1e-6, atol=1e-6)
    assert labels.tolist() == [3, 0, 3, 3]


def test_slices_and_indices_agree(data: LabelledData) -> None:
    by_slice = data.batch(slice(15, 30), CPU, torch.float32)
    by_index = data.batch(torch.arange(15, 20), CPU, torch.float32)
    torch.testing.assert_close(by_slice, by_index, rtol=0, atol=0)
    torch.testing.assert_close(data.example(), data.batch(slice(2), CPU, torch.float32)[0])
    backwards = data.batch(torch.tensor([-1]), CPU, torch.float32)[0]
    torch.testing.assert_close(backwards, by_slice[0][-1:])


def test_shapes_are_known_without_reading(data: LabelledData) -> None:
    assert len(data) == 20
    assert data.input_shape == (3, 16, 16)
    assert data.classes == 4


def test_parts_keep_inputs_labels_and_all_classes_together(data: LabelledData) -> None:
    indices = torch.tensor([7, 2, 2])
    part = data.part(indices, "some")
    torch.testing.assert_close(
        part.batch(slice(3), CPU, torch.float32), data.batch(indices, CPU, torch.float32)
    )
    assert part.present is not None
    assert part.present.int().argmax(1).tolist() == part.labels.tolist()
    assert (part.split, part.name, part.augmentation) == ("some", data.name, data.augmentation)


def test_holding_out_divides_every_class(data: LabelledData) -> None:
    kept, held_out = data.hold_out(0.2, seed=1)
    assert held_out.labels.bincount().tolist() == [1] * 4
    assert kept.labels.bincount().tolist() == [4] * 4
    both = torch.cat([part.batch(slice(20), CPU, torch.float32)[0] for part in (kept, held_out)])
    everything = data.batch(slice(20), CPU, torch.float32)[0]
    assert sorted(map(float, both.sum((1, 2, 3)))) == pytest.approx(
        sorted(map(float, everything.sum((1, 2, 3))))
    )


def test_a_sample_is_decided_by_its_purpose(data: LabelledData) -> None:
    def drawn(examples: int, purpose: str) -> list[int]:
        numbered = replace(data, labels=torch.arange(len(data)), class_names=None)
        return numbered.sample(examples, purpose).labels.tolist()

    assert drawn(5, "one") == drawn(5, "one") != drawn(5, "two")
    assert drawn(3, "one") == drawn(5, "one")[:3]
    assert sorted(drawn(10**6, "one")) == [*range(len(data))]


def test_only_a_generator_augments(data: LabelledData) -> None:
    plain, again = (data.batch(torch.arange(20), CPU, torch.float32)[0] for _ in range(2))
    views = data.batch(torch.arange(20), CPU, torch.float32, stream(0, "views"))[0]
    torch.testing.assert_close(plain, again, rtol=0, atol=0)
    assert views.shape == plain.shape
    assert not torch.equal(views, plain)


def test_the_generator_alone_decides_the_views(data: LabelledData) -> None:
    before = torch.get_rng_state()
    views = [
        data.batch(slice(20), CPU, torch.float32, stream(0, "views", step))[0] for step in (1, 1, 2)
    ]
    assert torch.equal(views[0], views[1])
    assert not torch.equal(views[0], views[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_views_keep_the_order_of_the_examples(data: LabelledData) -> None:
    views, labels = data.batch(torch.tensor([5, 5, 6]), CPU, torch.float32, stream(0, "views"))
    assert labels.tolist() == [1, 1, 2]
    assert not torch.equal(views[0], views[1])


def test_a_random_resized_crop_needs_files(files: ImageFiles) -> None:
    data = LabelledData(files[:], LABELS, augmentation=ResizedCropFlip())
    with pytest.raises(DataError, match="image files"):
        data.batch(slice(2), CPU, torch.float32, stream(0, "views"))


@pytest.mark.parametrize(
    ("inputs", "labels", "what"),
    [
        (torch.zeros(0, 3), torch.zeros(0), "is empty"),
        (torch.zeros(3), torch.zeros(3), "shape"),
        (torch.zeros(3, 2), torch.zeros(2), "3 inputs but 2 labels"),
        (torch.tensor([[1.0], [torch.nan]]), torch.zeros(2), "first in example 1"),
        (torch.zeros(2, 3, dtype=torch.int32), torch.zeros(2), "torch.int32"),
        (torch.zeros(2, 3).numpy(), torch.zeros(2), "types ndarray and Tensor"),
        (torch.zeros(2, 3), [0, 1], "types Tensor and list"),
    ],
)
def test_unfit_data_are_refused(inputs: Any, labels: Any, what: str) -> None:
    with pytest.raises(DataError, match=what):
        LabelledData(inputs, labels)


@pytest.mark.parametrize("shape", [(2, 3, 4, 4), (2, 5)])
def test_a_normalization_for_other_channels_is_refused(shape: tuple[int, ...]) -> None:
    norm = Normalization((0.1, 0.2), (1.0, 1.0))
    with pytest.raises(DataError, match=r"a normalization for 2 channel\(s\)"):
        LabelledData(torch.zeros(shape), torch.arange(2), norm)


@pytest.mark.parametrize("label", [-1, 4])
def test_labels_without_a_name_are_refused(label: int) -> None:
    with pytest.raises(DataError, match="4 class names"):
        LabelledData(torch.zeros(2, 3), torch.tensor([0, label]), class_names=tuple("abcd"))


def test_files_stand_where_a_tensor_could(files: ImageFiles) -> None:
    everything = files[:]
    assert files.shape == everything.shape
    assert files.dtype == everything.dtype
    assert files.ndim == everything.ndim
    mask = torch.arange(20) > 16
    grid = torch.tensor([[1, 2], [3, 4]])
    for indices in (5, -1, slice(2, 5), torch.tensor([4, 1]), mask, grid):
        assert torch.equal(files[indices], everything[indices])


def test_normalization_follows_the_channels() -> None:
    grey, colour = Normalization((0.1,), (0.3,)), Normalization((0.2, 0.4, 0.6), (0.1, 0.1, 0.1))
    assert grey.with_channels(3) == Normalization((0.1,) * 3, (0.3,) * 3)
    assert grey.with_channels(1) == grey
    assert colour.with_channels(1) == Normalization((0.363,), (0.1,))
    images = torch.rand(2, 3, 4, 4)
    torch.testing.assert_close(colour.undo(colour.apply(images)), images)


def test_pools_are_shared_by_all_parts(files: ImageFiles) -> None:
    data = LabelledData(files, LABELS)
    parts = [part.inputs for part in (*data.hold_out(0.5, 0), data.part(torch.arange(3), "x"))]
    pools = [part.pool for part in parts if isinstance(part, ImageFiles)]
    assert len(pools) == 3
    assert all(a is b for a, b in itertools.pairwise([files.pool, *pools]))


def test_it_is_a_torch_data_set(data: LabelledData) -> None:
    inputs, labels = data.tensors()
    assert torch.equal(inputs, data.batch(slice(None), CPU, torch.float32)[0])
    assert len([*data]) == len(data) == 20
    assert torch.equal(torch.stack([image for image, _ in data]), inputs)
    assert torch.equal(data[-1][0], inputs[19])
    assert torch.equal(data[torch.tensor(3)][0], inputs[3])
    loaded = [*DataLoader(data, batch_size=8)]
    assert torch.equal(torch.cat([batch for batch, _ in loaded]), inputs)
    assert torch.equal(torch.cat([batch for _, batch in loaded]), labels)
    for index in (20, -21):
        with pytest.raises(IndexError, match="not one of 20 examples"):
            data[index]


def test_equality_is_of_all_attributes(data: LabelledData) -> None:
    same = data.part(torch.arange(20), data.split)
    assert data == same
    assert hash(data) == hash(same)
    assert len({data, same}) == 1
    for other in (
        replace(data, name="other"),
        replace(data, labels=data.labels.flip(0)),
        replace(data, present=None),
        replace(data, normalization=None),
        data.part(torch.arange(19), data.split),
        3,
    ):
        assert data != other


def test_reprs_are_one_line(data: LabelledData, files: ImageFiles) -> None:
    shown = "<LabelledData: 20 examples of made up (train), 3×16×16 uint8, 4 classes, mean 0.4/0.5"
    assert repr(data).startswith(shown)
    many = replace(files, paths=files.paths * 1000)
    for one in (data, many, files.pool, LabelledData(many, LABELS.repeat(1000)), *catalogue()):
        assert "\n" not in repr(one)
        assert len(repr(one)) < 250


def test_token_ids_stay_integers() -> None:
    ids = torch.arange(6).reshape(2, 3)
    batch, _ = LabelledData(ids, torch.arange(2)).batch(slice(None), CPU, torch.float64)
    assert batch.dtype == torch.int64
    assert torch.equal(batch, ids)


def test_targets_are_counted_per_example() -> None:
    assert LabelledData(torch.rand(4, 3), torch.rand(4)).classes == 1
    assert LabelledData(torch.rand(4, 3), torch.rand(4, 2)).classes == 2
