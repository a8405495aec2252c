"""Names as a paper writes them: LeNet on MNIST, not lenet on mnist."""

from ..models import MODELS

DATA_SETS = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "usps": "USPS",
    "svhn": "SVHN",
    "cifar10": "CIFAR-10",
    "adult": "Adult",
    "r8": "R8",
    "spoken-digits": "spoken digits",
}
"""Those whose name is only written otherwise."""


def network_name(name: str) -> str:
    """A network as its class is called; a user's own as it is."""
    return MODELS[name].__name__ if name in MODELS else name


def data_name(name: str) -> str:
    """A data set as its authors write it; others as they are."""
    return DATA_SETS.get(name, name)


def initialization_name(kind: str) -> str:
    """``random pre-trained`` and the like."""
    return kind.replace("-pretrained", " pre-trained")
