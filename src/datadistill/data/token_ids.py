"""Token ids: integer inputs, which real data can have and distilled data cannot."""

import copy
import warnings

import torch
from torch import nn

from ..errors import ModelError
from .labelled import LabelledData


def check_learnable(module: nn.Module, data: LabelledData) -> None:
    """Refuses a network for integer inputs that takes nothing else: ids have no gradient.

    A module that takes integers of real data and floats of the same shape will do.
    """
    if data.inputs.dtype != torch.int64:
        return
    ids = data.inputs[:2]
    if _takes(module, ids.float()):
        if _takes(module, ids):
            return
        raise ModelError(
            f"The inputs are integers, but {type(module).__name__} takes only floats.",
            "If they are numbers and not token ids, pass them as floats: inputs.astype('float32').",
        )
    raise ModelError(
        f"{type(module).__name__} takes only integer inputs. Token ids have no gradient, so they "
        "cannot be learned.",
        "Pass embedded inputs, (embedding(ids).detach(), labels), and the network without its "
        "embedding layer.",
    )


def _takes(module: nn.Module, inputs: torch.Tensor) -> bool:
    """Whether a copy of a module takes such inputs."""
    try:
        tried = copy.deepcopy(module).eval()
        first = next(tried.parameters(), inputs)
        with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = not inputs.is_floating_point()
            tried(inputs.to(first.device) if whole else inputs.to(first))
    except Exception:
        return False
    return True
