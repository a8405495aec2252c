"""Peak memory of one outer step: back-gradient beside the stored graph.

Run it with ``python benchmarks/memory.py``. Each figure comes from a process of its own, whose
high-water mark of resident memory is read before and after one outer step. LeNet, 10 steps,
minibatch 1024.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence

import torch
from torch import nn

from datadistill.core.adjoint import Adjoint, BackGradient, StoredGraph
from datadistill.core.distiller import Distiller, DistillerConfig
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.models import MLP, LeNet

ADJOINTS: dict[str, Adjoint] = {
    "back-gradient": BackGradient(),
    "back-gradient in 10 segments": BackGradient(10),
    "stored-graph": StoredGraph(),
}
MODULES: dict[str, Callable[[], nn.Module]] = {"lenet": LeNet, "mlp": lambda: MLP(hidden=512)}
STEPS = 10
ONE = ("ADJOINT", "UPDATES", "NETWORKS", "MODULE", "BATCH_SIZE")


def bytes_of_one_step(
    adjoint: str, updates: int, networks: int, module: str = "lenet", batch_size: int = 1024
) -> int:
    """Growth of this process's peak memory in one outer step. Call it once in a process."""
    torch.set_num_threads(1)
    images, labels = torch.randn(batch_size, 1, 28, 28), torch.arange(batch_size) % 10
    config = DistillerConfig(steps=STEPS, epochs=updates // STEPS, networks=networks)
    distiller = Distiller(
        Network(MODULES[module](), images),
        RandomInit(),
        Classification(),
        config,
        ADJOINTS[adjoint],
    )
    state = distiller.init(images.shape[1:], labels)
    before = _peak()
    distiller.step(state, (images, labels))
    return _peak() - before


def growth(
    adjoint: str, updates: int, networks: int, module: str = "lenet", batch_size: int = 1024
) -> int:
    """The same in a process of its own."""
    one = [adjoint, str(updates), str(networks), module, str(batch_size)]
    done = subprocess.run(
        [sys.executable, __file__, "--one", *one], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def kept_weights(updates: int, networks: int, module: str = "lenet") -> int:
    """Bytes of θ₀ … θ_{T−1} of J networks."""
    return 4 * updates * networks * sum(p.numel() for p in MODULES[module]().parameters())


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=5, metavar=ONE)
    parser.add_argument("--networks", type=int, default=4)
    options = parser.parse_args(arguments)
    if options.one:
        adjoint, updates, networks, module, batch_size = options.one
        found = bytes_of_one_step(adjoint, int(updates), int(networks), module, int(batch_size))
        print(json.dumps(found))
        return
    print(f"LeNet, J = {options.networks}: peak memory of one outer step above start-up, MB")
    print(f"{'adjoint':<15}{'T = 30':>9}{'T = 300':>9}{'growth':>9}{'growth / kept weights':>24}")
    kept = kept_weights(300, options.networks) - kept_weights(30, options.networks)
    for adjoint in ADJOINTS:
        few, many = (growth(adjoint, updates, options.networks) for updates in (30, 300))
        figures = f"{few / 1e6:>9.0f}{many / 1e6:>9.0f}{(many - few) / 1e6:>9.0f}"
        print(f"{adjoint:<15}{figures}{(many - few) / kept:>24.2f}")


if __name__ == "__main__":
    main()
