"""Measuring: held-out networks trained on distilled or real data, tested on real data."""

from typing import TYPE_CHECKING

from ..exports import on_first_use

if TYPE_CHECKING:
    from ..engine.side_by_side import DEFAULT_BYTES
    from .defence import Defence, Defended, defend, standard_defences
    from .evaluating import evaluate, learning_curve
    from .held_out import HeldOut
    from .ordinary import OrdinaryTraining, evaluate_ordinary
    from .poisoning import Attack, Attacked, Victims, attack, victims_of
    from .protocol import PROTOCOLS, Protocol
    from .rate_search import LEARNING_RATES, search, with_rate
    from .reference import FullTraining, train_on_all
    from .result import ClassScore, Evaluation
    from .scoring import train_and_score
    from .testing import test_networks
    from .verification import ClaimError, Verification, claim_of, claimed_split, verify
else:
    __getattr__, __dir__ = on_first_use(__name__)

__all__ = [
    "DEFAULT_BYTES",
    "LEARNING_RATES",
    "PROTOCOLS",
    "Attack",
    "Attacked",
    "ClaimError",
    "ClassScore",
    "Defence",
    "Defended",
    "Evaluation",
    "FullTraining",
    "HeldOut",
    "OrdinaryTraining",
    "Protocol",
    "Verification",
    "Victims",
    "attack",
    "claim_of",
    "claimed_split",
    "defend",
    "evaluate",
    "evaluate_ordinary",
    "learning_curve",
    "search",
    "standard_defences",
    "test_networks",
    "train_and_score",
    "train_on_all",
    "verify",
    "victims_of",
    "with_rate",
]
