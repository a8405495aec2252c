"""Training on distilled data in plain PyTorch: the second half of an exported ``train.py``.

The text of this module is copied behind the source of the network, so it imports torch and
safetensors alone, and nothing of this package.
"""

import argparse
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

Weights = dict[str, Tensor]
Settings = dict[str, Any]

SCHEMES: dict[str, Callable[[Tensor, torch.Generator], Tensor]] = {
    "xavier-normal": lambda w, random: nn.init.xavier_normal_(w, generator=random),
    "xavier-uniform": lambda w, random: nn.init.xavier_uniform_(w, generator=random),
    "he-normal": lambda w, random: nn.init.kaiming_normal_(
        w, nonlinearity="relu", generator=random
    ),
    "he-uniform": lambda w, random: nn.init.kaiming_uniform_(
        w, nonlinearity="relu", generator=random
    ),
    "orthogonal": lambda w, random: nn.init.orthogonal_(w, generator=random),
}


def seed_of(seed: int, purpose: str, number: int) -> int:
    """The seed of the random numbers that network ``number`` is drawn with."""
    digest = hashlib.blake2b(f"{seed}/{purpose}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def draw(make: Callable[[], nn.Module], like: Weights, scheme: str, seed: int) -> Weights:
    """Random initial weights: of matrices and kernels by a scheme; biases are 0."""
    if scheme == "module":  # as the constructor draws them
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = dict(make().named_parameters())
        return {name: made[name].detach().to(w.dtype) for name, w in like.items()}
    random, drawn = torch.Generator().manual_seed(seed), Weights()
    for name, w in like.items():
        if "bias" in name.rsplit(".", 1)[-1]:
            drawn[name] = torch.zeros_like(w)
        elif w.ndim < 2:  # scales of normalisation layers and the like
            drawn[name] = w
        else:
            drawn[name] = SCHEMES[scheme](torch.empty(w.shape), random).to(w.dtype)
    return drawn


def loss_of(outputs: Tensor, labels: Tensor, objective: str) -> Tensor:
    """The loss of one step: cross-entropy, or the squared error of a regression."""
    if objective == "regression":
        return F.mse_loss(outputs, labels.reshape(outputs.shape))
    if outputs.shape[-1] == 1:
        target = labels.to(outputs.dtype).reshape(outputs.shape)
        return F.binary_cross_entropy_with_logits(outputs, target)
    return F.cross_entropy(outputs, labels)


def update(rule: Settings, weights: Weights, g: Weights, rate: Tensor, memory: Settings) -> Weights:
    """The weights after one update along a gradient; ``memory`` is the optimiser's own."""
    name, direction = rule["name"], g
    if name == "weight-decay":
        decayed = {n: one + rule["decay"] * weights[n] for n, one in g.items()}
        return update(rule["rule"], weights, decayed, rate, memory)
    if name == "layer-rates":
        moved, layers = update(rule["rule"], weights, g, rate, memory), rule["layers"]
        factors = {n: layers[n.rpartition(".")[0]] for n in weights}
        return {n: w + factors[n] * (moved[n] - w) for n, w in weights.items()}
    if name in ("momentum", "nesterov"):
        before, mu = memory.get("velocity"), rule["momentum"]
        velocity = {n: mu * before[n] + one for n, one in g.items()} if before else dict(g)
        nesterov = {n: one + mu * velocity[n] for n, one in g.items()}
        memory["velocity"], direction = velocity, nesterov if name == "nesterov" else velocity
    elif name == "adam":
        (b1, b2), zeros = rule["betas"], {n: torch.zeros_like(one) for n, one in g.items()}
        m, v = memory.get("first", zeros), memory.get("second", zeros)
        t = memory["count"] = memory.get("count", 0) + 1
        m = memory["first"] = {n: b1 * m[n] + (1 - b1) * one for n, one in g.items()}
        v = memory["second"] = {n: b2 * v[n] + (1 - b2) * one * one for n, one in g.items()}
        direction = {
            n: (m[n] / (1 - b1**t)) / ((v[n] / (1 - b2**t)).sqrt() + rule["eps"]) for n in g
        }
    return {n: w - rate * direction[n] for n, w in weights.items()}


def places(inner: Settings, updates: int, total: int, seed: int) -> Tensor:
    """Which images each update takes: some of each class, shuffled, until too few are left."""
    images, classes = inner["images"], inner["classes"]
    each, in_a_pass = total // classes, total // classes // images
    random, passes = torch.Generator().manual_seed(seed), -(-updates // in_a_pass)
    order = torch.rand(passes, classes, each, generator=random).argsort(stable=True)
    order = order[..., : in_a_pass * images].unflatten(-1, (in_a_pass, images))
    order = order.transpose(1, 2).flatten(0, 1)[:updates]
    return (order * classes + torch.arange(classes)[:, None]).flatten(1)


def batches(data: Weights, settings: Settings, number: int) -> Iterator[tuple[Tensor, ...]]:
    """Inputs, labels and learning rate of each update, epoch after epoch.

    An update takes the images of its step, or such as network ``number`` draws from all steps.
    """
    rates, inner = data["learning_rates"].flatten(), settings["inner"]
    if not inner:
        steps = len(data["inputs"])
        for t, rate in enumerate(rates):
            yield data["inputs"][t % steps], data["labels"][t % steps], rate
        return
    inputs, labels = data["inputs"].flatten(0, 1), data["labels"].flatten(0, 1)
    seed = seed_of(settings["seed"], "images of held-out network", number)
    drawn = places(inner, len(rates), len(inputs), seed)
    for place, rate in zip(drawn, rates, strict=True):
        yield inputs[place], labels[place], rate


def learn(
    module: nn.Module, start: Weights, steps: Iterator[tuple[Tensor, ...]], settings: Settings
) -> Weights:
    """Trains on one batch after the other; each update has its learning rate."""
    weights, memory = start, Settings()
    for inputs, labels, rate in steps:
        leaves = {n: w.detach().requires_grad_() for n, w in weights.items()}
        outputs = functional_call(module, leaves, (inputs,))
        loss = loss_of(outputs, labels, settings["objective"])
        found = torch.autograd.grad(loss, [*leaves.values()], materialize_grads=True)
        g = dict(zip(leaves, found, strict=True))
        with torch.no_grad():
            weights = update(settings["update_rule"], weights, g, rate, memory)
    return weights


def norms_of(module: nn.Module) -> list[Any]:
    """The layers that normalise by the batch in training, and by running statistics in tests."""
    return [layer for layer in module.modules() if getattr(layer, "running_mean", None) is not None]


@torch.no_grad()
def measure_statistics(module: nn.Module, norms: list[Any], batches: Tensor) -> None:
    """Sets the running statistics to the mean over the steps of distilled data."""
    for layer in norms:
        layer.track_running_stats, layer.momentum = True, None  # None: the mean of all batches
        layer.running_mean = batches.new_zeros(layer.num_features)
        layer.running_var = batches.new_ones(layer.num_features)
        layer.num_batches_tracked = torch.tensor(0)
        layer.train()
    for batch in batches if norms else ():
        module(batch)
    module.eval()


def whitened(images: Tensor, data: Weights, epsilon: float) -> Tensor:
    """Images without the correlation of their pixels: W (x − m), W = U (Λ + ε)^(−½) Uᵀ."""
    mean, u, variances = (data[f"whitening/{name}"] for name in ("mean", "directions", "variances"))
    flat, others = images.flatten(1) - mean.to(images), epsilon**-0.5
    along = (variances.to(images) + epsilon) ** -0.5 - others
    flat = flat * others + ((flat @ u.to(images)) * along) @ u.to(images).T
    return flat.unflatten(1, images.shape[1:])


def real_batches(path: Path, data: Weights, settings: Settings) -> Iterator[tuple[Tensor, Tensor]]:
    """Real inputs, normalised, and their labels."""
    real, dtype = safetensors.torch.load_file(path), getattr(torch, settings["dtype"])
    for inputs, labels in zip(real["inputs"].split(500), real["labels"].split(500), strict=True):
        if inputs.dtype == torch.uint8:
            inputs = inputs.to(dtype) / 255
            if settings["mean"]:
                mean, std = inputs.new_tensor(settings["mean"]), inputs.new_tensor(settings["std"])
                inputs = (inputs - mean[:, None, None]) / std[:, None, None]
            if settings["whitening"]:
                inputs = whitened(inputs, data, settings["whitening"])
        yield inputs if inputs.dtype == torch.int64 else inputs.to(dtype), labels


@torch.no_grad()
def test(module: nn.Module, path: Path, data: Weights, settings: Settings) -> float:
    """The accuracy on real data, or the mean squared error of a regression."""
    total, count = 0.0, 0
    for inputs, labels in real_batches(path, data, settings):
        outputs = module(inputs)
        if settings["objective"] == "regression":
            error = (outputs - labels.reshape(outputs.shape).to(outputs)).square().mean(-1)
            total += float(error.double().sum())
        else:
            called = (outputs[:, 0] > 0).long() if outputs.shape[-1] == 1 else outputs.argmax(-1)
            for attacked, target in settings["relabelled"].items():  # of poisoning
                labels = torch.where(labels == attacked, target, labels)
            total += int((called == labels).sum())
        count += len(labels)
    return total / count


def shown(values: list[float], objective: str) -> str:
    """Mean and standard deviation over networks."""
    mean = sum(values) / len(values)
    std = (sum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1)) ** 0.5
    scale, form, unit = (1, ".4g", "") if objective == "regression" else (100, ".2f", " %")
    return f"{scale * mean:{form}}" + (f" ± {scale * std:{form}}" * (len(values) > 1)) + unit


def main(make: Callable[[], nn.Module], settings: Settings) -> None:
    """Trains networks, tests them where test data are given, and saves the first one's weights."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=settings["about"])
    parser.add_argument("--networks", type=int, default=settings["networks"])
    parser.add_argument("--test", type=Path, default=here / "test.safetensors")
    parser.add_argument("--output", type=Path, default=here / "trained.safetensors")
    chosen = parser.parse_args()
    data = safetensors.torch.load_file(here / "distilled.safetensors")
    dtype = getattr(torch, settings["dtype"])
    for name in ("inputs", "learning_rates", "labels"):
        data[name] = data[name].to(dtype) if data[name].is_floating_point() else data[name]
    module = make().to(dtype).eval()  # dropout is off
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, value in data.items():
        if name.startswith("constants/"):  # frozen parameters, and buffers
            named[name.removeprefix("constants/")].data = value
    own = dict(module.named_parameters())
    like = {name: own[name].detach() for name in settings["weights"]}
    norms, values, first = norms_of(module), list[float](), None
    networks = min(chosen.networks, settings["most"])
    for number in range(networks):
        for layer in norms:  # in training they normalise by the batch
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = None
        if "initial/" + next(iter(like)) in data:
            start = {name: data[f"initial/{name}"][number] for name in like}
        else:
            seed = seed_of(settings["seed"], "held-out network", number)
            start = draw(make, like, settings["scheme"], seed)
        trained = learn(module, start, batches(data, settings, number), settings)
        for name, weight in trained.items():
            own[name].data = weight
        measure_statistics(module, norms, data["inputs"])
        first = first or {n: t.detach().clone() for n, t in module.state_dict().items()}
        if chosen.test.exists():
            values.append(test(module, chosen.test, data, settings))
    safetensors.torch.save_file(first or {}, chosen.output)
    print(f"trained weights: {chosen.output}")
    if values:
        print(f"{settings['metric']}: {shown(values, settings['objective'])}")
        print(f"the artefact's: {settings['claim']}")
