"""datadistill: learn a few synthetic images that train a network like the whole data set.

Example::

    import datadistill as dd

    train, test = dd.data.load("digits")
    distilled = dd.distill(train, dd.models.LeNet(), initialization=dd.FixedInit(seed=1))
    distilled.save("digits.safetensors")
    network = dd.load("digits.safetensors").train()  # a plain nn.Module, trained
    print(dd.evaluate("digits.safetensors", test))
"""

from typing import TYPE_CHECKING

from .exports import on_first_use
from .version import __version__

if TYPE_CHECKING:
    from . import baselines, data, models
    from .artefact import Claim, DistilledData, load
    from .baselines import Baseline
    from .core import view as views
    from .core.adjoint import Adjoint, BackGradient, RidgeHead, StoredGraph, Truncated
    from .core.distilled import Step, Steps
    from .core.initialization import FixedInit, Initialization, RandomInit
    from .core.learner import Learner
    from .core.objective import Classification, Objective, OwnObjective, Poisoning, Regression
    from .core.parametrisation import (
        Bases,
        LowResolution,
        Parameters,
        Parametrisation,
        Plain,
        SoftLabels,
    )
    from .core.settings import DistillerConfig
    from .core.update import Adam, GradientDescent, Momentum, Nesterov, UpdateRule, WeightDecay
    from .core.view import View
    from .data import LabelledData
    from .errors import DataDistillError
    from .evaluation import (
        PROTOCOLS,
        Evaluation,
        OrdinaryTraining,
        evaluate,
        evaluate_ordinary,
        learning_curve,
        verify,
    )
    from .exchange import export, import_images
    from .pools import Pool, PoolInit
    from .progress import Progress
    from .report import Report, report
    from .runs import RunConfig, Tuned, distill, pretrain, resume, tune
    from .tables import (
        Robustness,
        TableSettings,
        baseline_table,
        linear_bound,
        measure_robustness,
        poisoning_table,
    )
    from .tables.reproduction import reproduce
else:
    __getattr__, __dir__ = on_first_use(__name__)

__all__ = [
    "PROTOCOLS",
    "Adam",
    "Adjoint",
    "BackGradient",
    "Baseline",
    "Bases",
    "Claim",
    "Classification",
    "DataDistillError",
    "DistilledData",
    "DistillerConfig",
    "Evaluation",
    "FixedInit",
    "GradientDescent",
    "Initialization",
    "LabelledData",
    "Learner",
    "LowResolution",
    "Momentum",
    "Nesterov",
    "Objective",
    "OrdinaryTraining",
    "OwnObjective",
    "Parameters",
    "Parametrisation",
    "Plain",
    "Poisoning",
    "Pool",
    "PoolInit",
    "Progress",
    "RandomInit",
    "Regression",
    "Report",
    "RidgeHead",
    "Robustness",
    "RunConfig",
    "SoftLabels",
    "Step",
    "Steps",
    "StoredGraph",
    "TableSettings",
    "Truncated",
    "Tuned",
    "UpdateRule",
    "View",
    "WeightDecay",
    "__version__",
    "baseline_table",
    "baselines",
    "data",
    "distill",
    "evaluate",
    "evaluate_ordinary",
    "export",
    "import_images",
    "learning_curve",
    "linear_bound",
    "load",
    "measure_robustness",
    "models",
    "poisoning_table",
    "pretrain",
    "report",
    "reproduce",
    "resume",
    "tune",
    "verify",
    "views",
]
