"""Features of real data: those of the frozen layers, computed once."""

import dataclasses

import torch
from torch import nn

from datadistill.data import IMAGENET, LabelledData, PadCropFlip
from datadistill.data.features import CHUNK, Features
from datadistill.engine.frozen_prefix import FrozenPrefix
from datadistill.progress import Progress

_RANDOM = torch.Generator().manual_seed(0)
PIXELS = torch.randint(0, 256, (CHUNK + 5, 3, 8, 8), dtype=torch.uint8, generator=_RANDOM)
DATA = LabelledData(PIXELS, torch.arange(len(PIXELS)) % 3, IMAGENET)
CPU, FLOAT = torch.device("cpu"), torch.float32


class Counting(nn.Module):
    """Frozen layers that count the images they have seen."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3)
        self.seen = 0

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen += len(images)
        return self.conv(images).relu()


def counting() -> tuple[Counting, FrozenPrefix]:
    module = Counting()
    body = FrozenPrefix(module, DATA.example())
    module.seen = 0
    return module, body


def test_features_are_computed_once_and_only_where_they_are_needed() -> None:
    module, body = counting()
    features = Features(DATA, body, CPU, FLOAT)
    last = torch.tensor([CHUNK + 3, CHUNK])
    found, labels = features.batch(last)
    assert module.seen == 5
    images, expected = DATA.batch(last, CPU, FLOAT)
    torch.testing.assert_close(found, body(images))
    assert torch.equal(labels, expected)
    module.seen = 0
    assert torch.equal(features.batch(last)[0], found)
    assert module.seen == 0
    told: list[Progress] = []
    whole = features.whole(told.append)
    assert module.seen == CHUNK
    assert len(told) == 1
    assert (whole.name, whole.normalization, len(whole)) == (DATA.name, None, len(DATA))
    assert torch.equal(whole.batch(last, CPU, FLOAT)[0], found)


def test_their_bits_do_not_depend_on_what_was_asked_before() -> None:
    _, body = counting()
    first, second = Features(DATA, body, CPU, FLOAT), Features(DATA, body, CPU, FLOAT)
    for index in reversed(range(len(DATA))):
        first.batch(torch.tensor([index]))
    every = torch.arange(len(DATA))
    assert torch.equal(first.batch(every)[0], second.batch(every)[0])


def test_views_and_what_does_not_fit_are_computed_each_time() -> None:
    module, body = counting()
    few = torch.arange(3)
    large = Features(DATA, body, CPU, FLOAT, cache_bytes=10)
    assert not large.fit
    for _ in range(2):
        torch.testing.assert_close(large.batch(few)[0], body(DATA.batch(few, CPU, FLOAT)[0]))
    augmented = dataclasses.replace(DATA, augmentation=PadCropFlip(2))
    features = Features(augmented, body, CPU, FLOAT)
    views = [features.batch(few, torch.Generator().manual_seed(n))[0] for n in (1, 2, 1)]
    assert torch.equal(views[0], views[2])
    assert not torch.equal(views[0], views[1])
    module.seen = 0
    features.batch(few)  # the images as they are
    assert module.seen == CHUNK
