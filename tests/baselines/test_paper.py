import pytest

from datadistill.baselines.paper import FIGURES, PaperSetting, paper_figures

MNIST = PaperSetting("mnist", "lenet", 100, "random")


def test_the_figures_of_mnist_are_those_of_table_1() -> None:
    figures = paper_figures(MNIST, (1, 28, 28), 10_000)
    assert {name: str(figure) for name, figure in figures.items()} == {
        "distilled": "79.5 ± 8.1",
        "random real": "68.6 ± 9.8",
        "optimised real": "73.0 ± 7.6",
        "k-means": "76.4 ± 9.5",
        "average real": "77.1 ± 2.7",
        "K-NN random real": "71.5 ± 2.1",
        "K-NN k-means": "92.2 ± 0.1",
    }


@pytest.mark.parametrize(
    ("setting", "shape", "examples"),
    [
        (MNIST._replace(data="fashion-mnist"), (1, 28, 28), 10_000),
        (MNIST._replace(data="svhn-gray"), (3, 32, 32), 5169),
        (MNIST._replace(network="mlp"), (1, 28, 28), 10_000),
        (MNIST._replace(images=50), (1, 28, 28), 10_000),
        (MNIST, (3, 28, 28), 10_000),
        (MNIST, (1, 32, 32), 10_000),
        (MNIST, (1, 28, 28), 9_999),
    ],
)
def test_other_data_networks_and_numbers_of_images_are_not_compared_with_the_paper(
    setting: PaperSetting, shape: tuple[int, ...], examples: int
) -> None:
    assert paper_figures(setting, shape, examples) == {}


def test_a_fixed_network_is_not_compared_with_baselines_on_random_networks() -> None:
    for setting, figures in FIGURES.items():
        if setting.initialization == "fixed":
            assert not {"random real", "optimised real", "k-means", "average real"} & {*figures}


def test_the_figures_of_adaptation_are_those_of_table_2() -> None:
    adaptation = PaperSetting("usps", "lenet", 100, "random-pretrained", "mnist")
    mixed = adaptation._replace(data="usps-mixed")
    figures = paper_figures(adaptation, (1, 28, 28), 2007)
    assert figures == paper_figures(mixed, (1, 28, 28), 1860)
    assert {name: str(figure) for name, figure in figures.items()} == {
        "distilled": "95.4 ± 1.8",
        "random real": "94.9 ± 0.8",
        "optimised real": "95.2 ± 0.7",
        "k-means": "92.2 ± 1.6",
        "average real": "93.9 ± 0.8",
        "few-shot adversarial": "96.7 ± 0.5",
        "no adaptation": "90.4 ± 3.0",
        "full target": "97.3 ± 0.3",
    }
    one = paper_figures(adaptation._replace(initialization="fixed-pretrained"), (1, 28, 28), 2007)
    assert {name: str(figure) for name, figure in one.items()} == {"distilled": "97.9"}
    for source in ("svhn-gray", None):
        other = PaperSetting("mnist", "lenet", 100, "random-pretrained", source)
        assert paper_figures(other, (1, 28, 28), 10_000) == {}
