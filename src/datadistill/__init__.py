"""datadistill: learn a few synthetic images that train a network like the whole data set.

Example::

    import datadistill as dd

    train, test = dd.data.load("digits")
    distilled = dd.distill(train, dd.models.LeNet(), initialization=dd.FixedInit(seed=1))
    distilled.save("digits.safetensors")
    network = dd.load("digits.safetensors").train()  # a plain nn.Module, trained
    print(dd.evaluate("digits.safetensors", test))
"""

from . import data, models
from .artefact import Claim, DistilledData, load
from .core.adjoint import BackGradient, StoredGraph, Truncated
from .core.initialization import FixedInit, RandomInit
from .core.objective import Classification, OwnObjective, Poisoning, Regression
from .core.settings import DistillerConfig
from .data import LabelledData
from .errors import DataDistillError
from .evaluation import (
    Evaluation,
    OrdinaryTraining,
    evaluate,
    evaluate_ordinary,
    learning_curve,
    verify,
)
from .pools import Pool, PoolInit
from .progress import Progress
from .runs import RunConfig, distill, pretrain, resume
from .version import __version__

__all__ = [
    "BackGradient",
    "Claim",
    "Classification",
    "DataDistillError",
    "DistilledData",
    "DistillerConfig",
    "Evaluation",
    "FixedInit",
    "LabelledData",
    "OrdinaryTraining",
    "OwnObjective",
    "Poisoning",
    "Pool",
    "PoolInit",
    "Progress",
    "RandomInit",
    "Regression",
    "RunConfig",
    "StoredGraph",
    "Truncated",
    "__version__",
    "data",
    "distill",
    "evaluate",
    "evaluate_ordinary",
    "learning_curve",
    "load",
    "models",
    "pretrain",
    "resume",
    "verify",
]
