from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

import datadistill as dd
from datadistill.errors import ConfigError, DataError, ModelError, NonFiniteError

IMAGES = torch.randn(40, 1, 28, 28, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(40) % 10
TINY: dict[str, Any] = {"iterations": 2, "batch_size": 16, "networks": 1, "validation": 0.0}


def tiny(train: Any = (IMAGES, LABELS), module: nn.Module | None = None, **settings: Any) -> Any:
    return dd.distill(train, module or dd.models.Linear(), **TINY | settings)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in [("a", 1), ("b", 1), ("c", 2)]:
        torch.manual_seed(ord(name))  # global state must not matter
        module = dd.models.LeNet()
        tiny(module=module, seed=seed, steps=2, networks=2).save(tmp_path / name)
    a, b, c = ((tmp_path / name).read_bytes() for name in "abc")
    assert a == b
    assert a != c


@pytest.mark.parametrize("form", ["pair", "arrays", "bytes", "TensorDataset", "Dataset"])
def test_data_come_in_any_form(form: str) -> None:
    class Own(Dataset[tuple[Tensor, int]]):
        def __len__(self) -> int:
            return len(IMAGES)

        def __getitem__(self, index: int) -> tuple[Tensor, int]:
            return IMAGES[index], int(LABELS[index])

    forms: dict[str, Any] = {
        "pair": (IMAGES, LABELS),
        "arrays": (IMAGES.numpy(), LABELS.numpy()),
        "bytes": (IMAGES, LABELS.to(torch.uint8)),
        "TensorDataset": TensorDataset(IMAGES, LABELS),
        "Dataset": Own(),
    }
    found = tiny(forms[form])
    assert torch.equal(found.inputs, tiny((IMAGES, LABELS)).inputs)


def test_progress_tells_loss_held_out_accuracy_and_how_far_it_is() -> None:
    seen: list[dd.Progress] = []
    tiny(progress=seen.append, iterations=40, validation=0.5, learning_rate=0.3)
    assert [p.done for p in seen] == list(range(1, 41))
    assert {(p.stage, p.total) for p in seen} == {("distilling", 40)}
    assert set(seen[-1].values) == {"loss", "held-out accuracy"}


def test_validation_data_are_held_out_of_training_and_make_the_claim() -> None:
    made = tiny(validation=0.25)
    assert made.header.configuration["training_examples"] == 30
    assert made.claim.split == "validation"
    assert made.claim.examples == 10
    assert tiny().claim is None


def test_the_best_on_held_out_data_can_be_kept_instead_of_the_last() -> None:
    seen: list[float] = []
    # A rate so high that the figures swing from one outer step to the next.
    swinging: dict[str, Any] = {
        "iterations": 20,
        "validation": 0.5,
        "outer_lr": 3.0,
        "outer_schedule": "periods",
        "learning_rate": 0.5,
    }

    def watch(progress: dd.Progress) -> None:
        seen.append(progress.values["held-out accuracy"])

    best = tiny(keep="best", progress=watch, **swinging)
    last = tiny(keep="last", **swinging)
    assert max(seen) > seen[-1]
    assert best.claim.mean == max(seen)
    assert best.header.configuration["outer_step"] == 1 + seen.index(max(seen))
    assert last.claim.mean == seen[-1]
    assert last.header.configuration["outer_step"] == 20
    swinging["iterations"] = 1 + seen.index(max(seen))
    stopped = tiny(**swinging)
    assert torch.equal(best.inputs, stopped.inputs)


def test_training_images_are_augmented_by_a_numbered_stream_and_validation_images_are_not() -> None:
    drawn: list[float] = []

    def darken(inputs: Any, indices: Tensor, generator: torch.Generator) -> Tensor:
        drawn.append(float(torch.rand((), generator=generator)))
        return inputs[indices] * drawn[-1]

    data = dd.LabelledData(IMAGES, LABELS, augmentation=darken)
    first = tiny(data, iterations=3, validation=0.5)
    assert len(drawn) == 3  # once an outer step, and never to validate
    assert len(set(drawn)) == 3
    again = tiny(data, iterations=3, validation=0.5)
    assert drawn[3:] == drawn[:3]
    assert torch.equal(first.inputs, again.inputs)
    plain = tiny((IMAGES, LABELS), iterations=3, validation=0.5)
    assert not torch.equal(first.inputs, plain.inputs)


def test_every_long_call_can_be_stopped_through_its_callback() -> None:
    def stop(progress: dd.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny(progress=stop)


def test_regression_is_distilled_and_evaluated() -> None:
    random = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 5, generator=random)
    targets = inputs @ torch.randn(5, 1, generator=random) + 1
    made = dd.distill(
        (inputs[:150], targets[:150]),
        nn.Linear(5, 1),
        objective=dd.Regression(),
        steps=2,
        epochs=2,
        images_per_class=6,
        iterations=300,
        learning_rate=0.1,
        outer_lr=0.05,
        networks=2,
    )
    result = dd.evaluate(made, (inputs[150:], targets[150:]), networks=10)
    assert result.metric == "mean squared error"
    assert result.mean < 0.1 * float(targets[150:].var())


def test_a_network_with_one_output_distils_two_classes() -> None:
    inputs = torch.randn(200, 4, generator=torch.Generator().manual_seed(0))
    labels = (inputs.sum(1) > 0).long()
    made = dd.distill(
        (inputs, labels), nn.Linear(4, 1), iterations=50, learning_rate=0.5, outer_lr=0.1
    )
    assert made.labels.tolist() == [[0, 1]]
    assert dd.evaluate(made, (inputs, labels), networks=10).mean > 0.9


def test_repeated_non_finite_steps_stop_the_run_with_the_remedy() -> None:
    with pytest.raises(NonFiniteError, match=r"5 outer steps in a row.*\n.*[Ll]ower learning_rate"):
        tiny(module=dd.models.LeNet(), learning_rate=1e20, iterations=20)


class Explodes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        raise RuntimeError("boom")


def with_nan() -> Tensor:
    images = IMAGES.clone()
    images[7, 0, 3, 3] = torch.nan
    return images


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"train": (IMAGES[:0], LABELS[:0])}, DataError, "is empty"),
        ({"train": TensorDataset(IMAGES[:0], LABELS[:0])}, DataError, "is empty"),
        ({"train": (IMAGES, LABELS.clamp_max(8))}, DataError, "no example of class 9"),
        ({"train": (IMAGES, LABELS + 2)}, DataError, "labels run from 2 to 11"),
        ({"train": (IMAGES, LABELS - 1)}, DataError, "labels run from -1 to 8"),
        ({"train": (IMAGES, LABELS[:5])}, DataError, "40 inputs but 5 labels"),
        ({"train": (IMAGES, LABELS + 0.5)}, DataError, "needs one integer label per example"),
        ({"train": (with_nan(), LABELS)}, DataError, "NaN or infinite, first in example 7"),
        ({"train": (IMAGES[:, :, :8, :8], LABELS)}, ModelError, r"\(2, 1, 8, 8\)"),
        ({"train": IMAGES}, DataError, "not a data set"),
        ({"train": "mnits"}, DataError, "no data set called 'mnits'"),
        ({"module": Explodes()}, ModelError, "boom"),
        ({"steps": 0}, ConfigError, "steps is 0"),
        ({"epochs": 0}, ConfigError, "epochs is 0"),
        ({"iterations": 0}, ConfigError, "iterations is 0"),
        ({"iteration": 5}, ConfigError, "Did you mean 'iterations'"),
        ({"keep": "best"}, ConfigError, "keep=best needs validation data"),
        ({"validation": 1.0}, ConfigError, "validation is 1.0"),
        ({"validation": 0.01}, DataError, "leaves none for validation"),
        ({"device": "gpu"}, ConfigError, "no device called 'gpu'"),
        ({"dtype": "int8"}, ConfigError, "not a floating-point type"),
    ],
)
def test_bad_input_is_an_error_of_two_lines_with_the_remedy(
    change: dict[str, Any], kind: type[dd.DataDistillError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        tiny(**change)
    assert len(str(caught.value).splitlines()) == 2
