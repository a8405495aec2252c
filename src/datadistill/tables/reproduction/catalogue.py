"""The paper's tables and figures: which distillations they are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from .part import Part, PoolOf
from .scale import Scale

BASELINES = ("random real", "optimised real", "k-means", "average real")

LENET: dict[str, Any] = {"iterations": 6, "batch_size": 128, "networks": 2, "keep": "last"}
FIXED: dict[str, Any] = {"iterations": 10, "batch_size": 128, "keep": "last"}
CIFAR: dict[str, Any] = {
    "iterations": 4,
    "batch_size": 128,
    "networks": 2,
    "start": "k-means",
    "model_args": ("width=8",),
    "learning_rate": 0.02,
    "augment": False,
}
CIFAR_FIXED = {name: value for name, value in CIFAR.items() if name != "networks"}
"""Quick settings."""


@dataclass(frozen=True)
class Result:
    """A table or figure of the paper.

    Attributes:
        title: What it shows.
        columns: The columns of the table, in the paper's order; of a figure, what is on its axis.
        parts: Its distillations, at a scale.
        kind: Whether it is a table or a figure.
        said: What the paper says of a figure whose values it does not print.
        pictures: Whether the paper shows the images themselves.
    """

    title: str
    columns: tuple[str, ...]
    parts: Callable[[Scale], list[Part]]
    kind: Literal["table", "figure"] = "table"
    said: str = ""
    pictures: bool = False


def _mnist_cifar(_: Scale) -> list[Part]:
    def pair(data: str, row: str, fixed: dict[str, Any], random: dict[str, Any]) -> list[Part]:
        names = f"{data}-fixed-100", f"{data}-random-100"
        return [
            Part(names[0], row, "fixed", names[0], quick=fixed),
            Part(names[1], row, "random", names[1], quick=random, measured="baselines"),
        ]

    return [
        *pair("mnist", "MNIST", FIXED, LENET),
        *pair("cifar10", "CIFAR-10", CIFAR_FIXED, CIFAR),
    ]


def _adaptation(_: Scale) -> list[Part]:
    mnist, usps = PoolOf("mnist"), PoolOf("usps")
    svhn, grey = PoolOf("svhn", size=28), PoolOf("svhn-gray", size=28, channels=1)
    found: list[Part] = []
    for row, name, pool, quick in (
        ("M → U", "mnist-to-usps", mnist, None),
        ("U → M", "usps-to-mnist", usps, None),
        ("S → M", "svhn-to-mnist", svhn, grey),
    ):
        for kind, settings in (("fixed", FIXED), ("random", LENET)):
            few = {**settings, "iterations": 6, "pool_networks": None, "pool_noise": 0.0}
            if kind == "fixed":
                few.pop("pool_networks")
            stand_in = f"svhn-gray-to-mnist-{kind}" if quick else f"{name}-{kind}"
            few["recipe"] = stand_in
            found.append(
                Part(
                    stand_in,
                    row,
                    kind,
                    f"{name}-{kind}",
                    quick=few,
                    pool=pool,
                    quick_pool=quick,
                    measured="baselines" if kind == "random" else "figure",
                    stand_in="svhn-gray → M" if quick else "",
                )
            )
    return found


def _imagenet(_: Scale) -> list[Part]:
    few: dict[str, Any] = {"iterations": 4, "size": 64, "normalization": "imagenet"}
    return [
        Part(
            "imagenet-to-voc2007",
            "PASCAL-VOC 2007",
            "ours",
            "alexnet-voc2007",
            quick={**few, "recipe": "squeezenet-caltech20"},
            measured="baselines",
            stand_in="caltech20",
        ),
        Part(
            "imagenet-to-cub200",
            "CUB-200",
            "ours",
            "alexnet-cub200",
            quick={**few, "recipe": "squeezenet-cub200", "iterations": 2},
            measured="baselines",
        ),
    ]


def _poisoning(_: Scale) -> list[Part]:
    few: dict[str, Any] = {
        **{"iterations": 12, "networks": 4, "learning_rate": 0.05},
        **{"pool_noise": 0.0, "rates_factor": 1.0, "averaging": 0.0},
    }
    lenet = {"recipe": "cifar10-lenet-poisoning", "augment": False}
    return [
        Part(
            "mnist-poisoning",
            "MNIST",
            "ours",
            "mnist-poisoning",
            quick=few,
            pool=PoolOf("mnist"),
            measured="attack",
        ),
        Part(
            "cifar10-poisoning",
            "CIFAR-10",
            "ours",
            "cifar10-poisoning",
            quick={**few, **lenet},
            pool=PoolOf("cifar10", "alexcifarnet"),
            quick_pool=PoolOf("cifar10"),
            measured="attack",
        ),
    ]


def _curve(
    data: str, title: str, quick: dict[str, Any], points: dict[str, dict[str, Any]], row: str = ""
) -> list[Part]:
    """Random initializations of a data set with other steps, epochs or images."""
    recipe, base = f"{data}-random-100", {"steps": 10, "epochs": 3, "images_per_class": 1}
    found: list[Part] = []
    for column, changed in points.items():
        settings = {**base, **changed}
        name = "-".join(f"{key[0]}{settings[key]}" for key in base)
        found.append(
            Part(
                f"{data}-random-{name}",
                f"{title}{row}",
                column,
                recipe,
                settings=settings,
                quick=quick,
            )
        )
    return found


def _both(points: dict[str, dict[str, Any]], row: str = "") -> list[Part]:
    return [
        *_curve("mnist", "MNIST", LENET, points, row),
        *_curve("cifar10", "CIFAR-10", CIFAR, points, row),
    ]


def _steps(scale: Scale) -> list[Part]:
    return _both({str(n): {"steps": n} for n in scale.steps})


def _epochs(scale: Scale) -> list[Part]:
    return _both({str(n): {"epochs": n} for n in scale.epochs})


def _one_or_many(scale: Scale) -> list[Part]:
    one = {str(n): {"steps": 1, "images_per_class": n} for n in scale.images}
    many = {str(n): {"steps": n} for n in scale.images}
    return [*_both(one, ", one step"), *_both(many, ", many steps")]


def _learning_rate(_: Scale) -> list[Part]:
    rates = {"learned": {}, "fixed 0.01": {"learn_rates": False, "learning_rate": 0.01}}
    narrow = {**CIFAR, "model_args": ("width=8",), "iterations": 3}
    rows = (
        ("mnist", "MNIST, LeNet", {}, LENET),
        ("cifar10", "CIFAR-10, VGG-11", {"model": "vgg11"}, narrow),
    )
    return [
        Part(
            f"{data}-rates-{column.partition(' ')[0]}",
            row,
            column,
            f"{data}-random-100",
            settings={**model, **changed, "epochs": 1},
            quick={name: value for name, value in quick.items() if name not in changed},
        )
        for data, row, model, quick in rows
        for column, changed in rates.items()
    ]


RESULTS: dict[str, Result] = {
    "mnist-cifar": Result(
        "Table 1: 100 images in ten steps, three epochs, and baselines",
        ("fixed", "random", *BASELINES, "K-NN random real", "K-NN k-means"),
        _mnist_cifar,
    ),
    "adaptation": Result(
        "Table 2: adapting networks from one set of digits to another",
        (
            *("fixed", "random", *BASELINES),
            *("few-shot adversarial", "no adaptation", "full target"),
        ),
        _adaptation,
    ),
    "imagenet": Result(
        "Table 3: adapting a network that was trained on ImageNet",
        ("ours", "random real", "optimised real", "average real", "full fine-tuning"),
        _imagenet,
    ),
    "poisoning": Result(
        "Figure: one step of poisoning: share of the attacked class that is called the target",
        ("ours", "modified labels", "other classes", *BASELINES),
        _poisoning,
    ),
    "steps": Result(
        "Figure: accuracy by the number of steps",
        ("number of steps",),
        _steps,
        "figure",
        "More steps improve the results significantly.",
    ),
    "epochs": Result(
        "Figure: accuracy by the number of epochs",
        ("number of epochs",),
        _epochs,
        "figure",
        "A similar but slower trend than with steps.",
    ),
    "one-vs-many": Result(
        "Figure: one step with all images against many steps, by images per class",
        ("images per class",),
        _one_or_many,
        "figure",
        "Many steps drastically outperform a single step with as many images.",
    ),
    "learning-rate": Result(
        "Supplement: learned learning rates against a fixed rate of 0.01",
        ("learned", "fixed 0.01"),
        _learning_rate,
        said="It shows pictures of the images, and no accuracies.",
        pictures=True,
    ),
}
"""All that is made of distillations; the linear bound is computed otherwise."""
