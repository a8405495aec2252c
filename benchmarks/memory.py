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
from collections.abc import Sequence

import torch

from datadistill.core.adjoint import Adjoint, BackGradient, StoredGraph
from datadistill.core.distiller import Distiller, DistillerConfig
from datadistill.core.initialization import RandomInit
from datadistill.core.network import Network
from datadistill.core.objective import Classification
from datadistill.models import LeNet

ADJOINTS: dict[str, Adjoint] = {"back-gradient": BackGradient(), "stored-graph": StoredGraph()}
STEPS = 10
PARAMETERS = sum(p.numel() for p in LeNet().parameters())


def bytes_of_one_step(adjoint: str, updates: int, networks: int) -> int:
    """Growth of this process's peak memory in one outer step. Call it once in a process."""
    torch.set_num_threads(1)
    images, labels = torch.randn(1024, 1, 28, 28), torch.arange(1024) % 10
    config = DistillerConfig(steps=STEPS, epochs=updates // STEPS, networks=networks)
    distiller = Distiller(
        Network(LeNet(), images), RandomInit(), Classification(), config, ADJOINTS[adjoint]
    )
    state = distiller.init(images.shape[1:], labels)
    before = _peak()
    distiller.step(state, (images, labels))
    return _peak() - before


def measure(adjoint: str, updates: int, networks: int) -> int:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", adjoint, str(updates), str(networks)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def kept_weights(updates: int, networks: int) -> int:
    """Bytes of θ₀ … θ_{T−1} of J networks."""
    return 4 * updates * networks * PARAMETERS


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("ADJOINT", "UPDATES", "NETWORKS"))
    parser.add_argument("--networks", type=int, default=4)
    options = parser.parse_args(arguments)
    if options.one:
        adjoint, updates, networks = options.one
        print(json.dumps(bytes_of_one_step(adjoint, int(updates), int(networks))))
        return
    print(f"LeNet, J = {options.networks}: peak memory of one outer step above start-up, MB")
    print(f"{'adjoint':<15}{'T = 30':>9}{'T = 300':>9}{'growth':>9}{'growth / kept weights':>24}")
    kept = kept_weights(300, options.networks) - kept_weights(30, options.networks)
    for adjoint in ADJOINTS:
        few, many = (measure(adjoint, updates, options.networks) for updates in (30, 300))
        figures = f"{few / 1e6:>9.0f}{many / 1e6:>9.0f}{(many - few) / 1e6:>9.0f}"
        print(f"{adjoint:<15}{figures}{(many - few) / kept:>24.2f}")


if __name__ == "__main__":
    main()
