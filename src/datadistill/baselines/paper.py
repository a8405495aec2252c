"""The paper's figures for 100 images and fewer, to compare ours with."""

from typing import NamedTuple


class Figure(NamedTuple):
    """A percentage, with its standard deviation if the paper gives one."""

    mean: float
    std: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:.1f}" + ("" if self.std is None else f" ± {self.std:.1f}")


class PaperSetting(NamedTuple):
    """What a figure was measured on.

    Attributes:
        data: The data set.
        network: The network.
        images: Distilled images in all steps.
        initialization: ``random`` or ``fixed``, by Xavier's scheme; or pre-trained.
        source: The other data set that the networks were pre-trained on, if they were; ImageNet
            is not named.
    """

    data: str
    network: str
    images: int
    initialization: str
    source: str | None = None


SHAPES = {
    "mnist": (1, 28, 28),
    "cifar10": (3, 32, 32),
    "usps": (1, 28, 28),
    "voc2007": (3, 224, 224),
    "cub200": (3, 224, 224),
}
TEST_EXAMPLES = {
    "mnist": (10_000,),
    "cifar10": (10_000,),
    "usps": (2007, 1860),
    "voc2007": (4_952,),
    "cub200": (5_794,),
}

# The baselines of Table 1 were measured on networks with random initializations; K-NN
# classification uses no network at all.
FIGURES: dict[PaperSetting, dict[str, Figure]] = {
    PaperSetting("mnist", "lenet", 10, "fixed"): {
        "untrained": Figure(12.9),
        "distilled": Figure(93.76),
    },
    PaperSetting("mnist", "lenet", 100, "fixed"): {
        "distilled": Figure(96.6),
        "K-NN random real": Figure(71.5, 2.1),
        "K-NN k-means": Figure(92.2, 0.1),
    },
    PaperSetting("mnist", "lenet", 100, "random"): {
        "distilled": Figure(79.5, 8.1),
        "random real": Figure(68.6, 9.8),
        "optimised real": Figure(73.0, 7.6),
        "k-means": Figure(76.4, 9.5),
        "average real": Figure(77.1, 2.7),
        "K-NN random real": Figure(71.5, 2.1),
        "K-NN k-means": Figure(92.2, 0.1),
    },
    PaperSetting("cifar10", "alexcifarnet", 100, "fixed"): {
        "untrained": Figure(8.82),
        "distilled": Figure(54.03),
        "K-NN random real": Figure(18.8, 1.3),
        "K-NN k-means": Figure(29.4, 0.3),
    },
    PaperSetting("cifar10", "alexcifarnet", 100, "random"): {
        "distilled": Figure(36.8, 1.2),
        "random real": Figure(21.3, 1.5),
        "optimised real": Figure(23.4, 1.3),
        "k-means": Figure(22.5, 3.1),
        "average real": Figure(22.3, 0.7),
        "K-NN random real": Figure(18.8, 1.3),
        "K-NN k-means": Figure(29.4, 0.3),
    },
    # Table 2. The authors' USPS was of 7,438 and 1,860 images, as usps-mixed is.
    PaperSetting("usps", "lenet", 100, "fixed-pretrained", "mnist"): {"distilled": Figure(97.9)},
    PaperSetting("usps", "lenet", 100, "random-pretrained", "mnist"): {
        "distilled": Figure(95.4, 1.8),
        "random real": Figure(94.9, 0.8),
        "optimised real": Figure(95.2, 0.7),
        "k-means": Figure(92.2, 1.6),
        "average real": Figure(93.9, 0.8),
        "few-shot adversarial": Figure(96.7, 0.5),
        "no adaptation": Figure(90.4, 3.0),
        "full target": Figure(97.3, 0.3),
    },
    PaperSetting("mnist", "lenet", 100, "fixed-pretrained", "usps"): {"distilled": Figure(93.2)},
    PaperSetting("mnist", "lenet", 100, "random-pretrained", "usps"): {
        "distilled": Figure(92.7, 1.4),
        "random real": Figure(87.1, 2.9),
        "optimised real": Figure(87.6, 2.1),
        "k-means": Figure(85.6, 3.1),
        "average real": Figure(78.4, 5.0),
        "few-shot adversarial": Figure(89.2, 2.4),
        "no adaptation": Figure(67.5, 3.9),
        "full target": Figure(98.6, 0.5),
    },
    PaperSetting("mnist", "lenet", 100, "fixed-pretrained", "svhn"): {"distilled": Figure(96.2)},
    PaperSetting("mnist", "lenet", 100, "random-pretrained", "svhn"): {
        "distilled": Figure(85.2, 4.7),
        "random real": Figure(84.6, 2.1),
        "optimised real": Figure(85.2, 1.2),
        "k-means": Figure(85.8, 1.2),
        "average real": Figure(74.9, 2.6),
        "few-shot adversarial": Figure(74.0, 1.5),
        "no adaptation": Figure(51.6, 2.8),
        "full target": Figure(98.6, 0.5),
    },
    PaperSetting("voc2007", "alexnet", 20, "fixed-pretrained"): {
        "distilled": Figure(70.75),
        "random real": Figure(19.4, 3.7),
        "optimised real": Figure(23.8, 3.7),
        "average real": Figure(9.9),
        "full fine-tuning": Figure(75.57, 0.18),
    },
    PaperSetting("cub200", "alexnet", 200, "fixed-pretrained"): {
        "distilled": Figure(38.76),
        "random real": Figure(7.1, 0.7),
        "optimised real": Figure(7.2, 0.8),
        "average real": Figure(2.9),
        "full fine-tuning": Figure(41.21, 0.51),
    },
}
"""Percent of the test set, by setting and by the name of a row of the table."""


def paper_figures(
    setting: PaperSetting, shape: tuple[int, ...], test_examples: int
) -> dict[str, Figure]:
    """The paper's figures by the name of a row; empty if it has no such experiment.

    Data of another shape or size are other data, whatever they are called.
    """
    setting = setting._replace(data=setting.data.removesuffix("-mixed"))
    wanted = (3, 28, 28) if setting.source == "svhn" else SHAPES.get(setting.data)
    if shape != wanted or test_examples not in TEST_EXAMPLES.get(setting.data, ()):
        return {}
    return FIGURES.get(setting, {})
