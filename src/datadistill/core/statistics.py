"""Running statistics: what batch normalisation uses in place of the batch's, once it is trained.

While networks are trained and distilled for, their layers normalise by the statistics of the batch,
and the running ones are taken away. A trained network gets new ones: the mean of those of some
batches, as ``torch.optim.swa_utils.update_bn`` has it, and scores alike at any batch size.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase  # pyright: ignore[reportPrivateUsage]

MEAN, VARIANCE, COUNT = "running_mean", "running_var", "num_batches_tracked"


class RunningStatistics:
    """The layers of a module that normalise by running statistics outside of training.

    Args:
        module: A copy of a user's module, from whose layers the running statistics are taken away.

    Attributes:
        layers: The layers that had some, by name.
    """

    def __init__(self, module: nn.Module) -> None:
        norms = [(n, m) for n, m in module.named_modules() if isinstance(m, _NormBase)]
        self.layers = {n: layer for n, layer in norms if layer.running_mean is not None}
        for _, layer in norms:
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = layer.num_batches_tracked = None

    def use(self, given: Mapping[str, Tensor]) -> None:
        """Lets the layers normalise by the statistics among the given tensors, or by the batch's.

        Args:
            given: The tensors of one network, by name.
        """
        for name, layer in self.layers.items():
            layer.track_running_stats = f"{name}.{MEAN}" in given

    def empty(self, like: Tensor) -> dict[str, Tensor]:
        """The statistics of no batch."""
        start = {MEAN: like.new_zeros, VARIANCE: like.new_ones}
        found = {
            f"{name}.{kind}": new(layer.num_features)
            for name, layer in self.layers.items()
            for kind, new in start.items()
        }
        count = torch.zeros((), dtype=torch.long, device=like.device)
        return found | {f"{name}.{COUNT}": count.clone() for name in self.layers}

    def measuring(self, batches: Iterable[Tensor]) -> Iterable[Tensor]:
        """The batches one after the other; what the layers see of each is added to their mean."""
        momenta = [layer.momentum for layer in self.layers.values()]
        try:
            for number, batch in enumerate(batches, 1):
                for layer in self.layers.values():
                    layer.train()
                    layer.momentum = 1 / number
                yield batch
        finally:
            for layer, momentum in zip(self.layers.values(), momenta, strict=True):
                layer.eval()
                layer.momentum = momentum

    def put_into(self, module: nn.Module, given: Mapping[str, Tensor]) -> None:
        """Gives a copy of the module the statistics among the given tensors, if there are some."""
        for name in self.layers:
            layer = module.get_submodule(name)
            if f"{name}.{MEAN}" in given:
                measured = {k: given[f"{name}.{k}"].clone() for k in (MEAN, VARIANCE, COUNT)}
                for kind, value in {"track_running_stats": True, **measured}.items():
                    setattr(layer, kind, value)
