"""Few-shot adversarial adaptation: its pairs, its losses, and that it helps."""

import copy
import importlib
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import datadistill as dd
from datadistill import evaluation
from datadistill.baselines import AdversarialSettings, Layout, RandomReal, adapt_few_shot
from datadistill.baselines.adversarial import FewShotAdversarial
from datadistill.baselines.pairs import (
    CONFUSED,
    Kind,
    Members,
    confusion_loss,
    discriminator_loss,
    draw_pairs,
)
from datadistill.core.distilled import Step
from datadistill.core.network import Network, Weights
from datadistill.core.objective import Classification
from datadistill.core.random import stream
from datadistill.data.running_statistics import Statistics
from datadistill.engine.stacked import Stacked

adversarial = importlib.import_module("datadistill.baselines.adversarial")
RANDOM = torch.Generator().manual_seed(0)
SOURCE = dd.LabelledData(
    torch.randn(60, 4, generator=RANDOM, dtype=torch.float64), torch.arange(60) % 3
)
IMAGES = torch.randn(9, 4, generator=RANDOM, dtype=torch.float64)
LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2])


def small(**settings: float) -> FewShotAdversarial:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    settings = {"warm_up": 0, "pairs": 7, **settings}
    return FewShotAdversarial(module, SOURCE, IMAGES, LABELS, AdversarialSettings(**settings))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("kind", Kind)
def test_pairs_are_of_their_kind_and_all_classes_come(kind: Kind) -> None:
    source = Members(torch.tensor([2, 0, 1, 1, 0, 2, 2, 2]), 3)
    target = Members(LABELS, 3)
    first, second = draw_pairs(kind, source, target, 500, stream(0, "pairs"))
    of_second = target if kind in (Kind.SAME_CLASS_ACROSS, Kind.OTHER_CLASS_ACROSS) else source
    one, other = source.labels[first], of_second.labels[second]
    same = kind in (Kind.SAME_CLASS, Kind.SAME_CLASS_ACROSS)
    assert bool((one == other).all()) is same
    assert bool((one != other).all()) is not same
    assert set(first.tolist()) == set(range(8)), "every source example is drawn"
    assert set(second.tolist()) == set(range(len(of_second.labels)))
    assert one.bincount().min() > 120, "whatever the counts, classes come alike"


def log_softmax(logits: Tensor) -> Tensor:
    return logits - logits.exp().sum(1, keepdim=True).log()


def test_the_losses_are_the_papers() -> None:
    judged = {kind: torch.randn(6, 4, generator=RANDOM, dtype=torch.float64) for kind in Kind}
    own = [-log_softmax(judged[kind])[:, int(kind)].mean() for kind in Kind]
    torch.testing.assert_close(discriminator_loss(judged), sum(own, torch.tensor(0.0)) / 4)
    wanted = (
        -log_softmax(judged[Kind.SAME_CLASS_ACROSS])[:, 0].mean()
        - log_softmax(judged[Kind.OTHER_CLASS_ACROSS])[:, 2].mean()
    )
    torch.testing.assert_close(confusion_loss(judged), wanted)


def test_an_update_of_the_network_descends_classification_and_confusion() -> None:
    adaptation = small(confusion=0.7)
    weights = adaptation.weights()
    leaves = [w.clone().requires_grad_() for w in weights.values()]
    random = stream(0, "adversarial pairs", 0)
    members = Members(SOURCE.labels, 3), Members(LABELS, 3)
    logits: list[Tensor] = []
    confusion = torch.zeros((), dtype=torch.float64)
    labels: list[list[Tensor]] = [[], []]
    outputs: list[list[Tensor]] = [[], []]
    assert isinstance(SOURCE.inputs, Tensor)
    for kind, wanted in CONFUSED.items():
        first, second = draw_pairs(kind, *members, 7, random)
        features: list[Tensor] = []
        for domain, x, y in (
            (0, SOURCE.inputs[first], SOURCE.labels[first]),
            (1, IMAGES[second], LABELS[second]),
        ):
            z = torch.tanh(x @ leaves[0].T + leaves[1])
            features.append(z)
            outputs[domain].append(log_softmax(z @ leaves[2].T + leaves[3]))
            labels[domain].append(y)
        logits.append(adaptation.judge(torch.cat(features, 1)))
        confusion = confusion - log_softmax(logits[-1])[:, int(wanted)].mean()
    loss = 0.7 * confusion
    for of_domain, y in zip(outputs, labels, strict=True):
        loss = loss - torch.cat(of_domain)[torch.arange(14), torch.cat(y)].mean()
    expected = torch.autograd.grad(loss, leaves)
    adaptation.teach_network()
    plain = torch.optim.Adam(leaves, lr=adaptation.settings.lr)
    for w, g in zip(leaves, expected, strict=True):
        w.grad = g
    plain.step()
    for (name, w), wanted in zip(adaptation.weights().items(), leaves, strict=True):
        torch.testing.assert_close(w, wanted)
        assert not torch.equal(w, weights[name])


def test_known_layers_are_computed_faster_to_the_same_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = dd.LabelledData(
        torch.randn(40, 1, 28, 28, generator=RANDOM, dtype=torch.float64), torch.arange(40) % 10
    )
    images, labels = data.inputs[:20], data.labels[:20]
    assert isinstance(images, Tensor)
    torch.manual_seed(0)
    lenet = dd.models.LeNet().double()

    class RecordingGradients(FewShotAdversarial):
        def network_gradient(self, weights: Weights, step: Step) -> Weights:
            self.found = super().network_gradient(weights, step)
            return self.found

    def gradients() -> list[Tensor]:
        module = copy.deepcopy(lenet)
        few = RecordingGradients(module, data, images, labels, AdversarialSettings(warm_up=0))
        few.teach_network()
        return list(few.found.values())

    calls: list[torch.Size] = []
    compute = Stacked.__call__

    def counted(self: Stacked, weights: Weights, inputs: Tensor) -> Tensor:
        calls.append(inputs.shape)
        return compute(self, weights, inputs)

    def unknown(_: Network) -> None:
        return None

    monkeypatch.setattr(Stacked, "__call__", counted)
    fast = gradients()
    assert calls[-1] == (4 * 32, 1, 28, 28), "the images of two kinds of 32 pairs"
    monkeypatch.setattr(adversarial, "stacked", unknown)
    plain = gradients()
    assert len(fast) == len(plain) == 10
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3), nn.ReLU()),
        nn.Sequential(nn.Linear(4, 5), nn.Softplus(), nn.Linear(5, 3)),
        nn.Linear(4, 3),
    ],
)
def test_any_network_has_features_and_logits(module: nn.Module) -> None:
    module = module.double()
    layers = list(module) if isinstance(module, nn.Sequential) else [nn.Identity(), module]
    last = max(i for i, layer in enumerate(layers) if isinstance(layer, nn.Linear))
    few = FewShotAdversarial(module, SOURCE, IMAGES, LABELS, AdversarialSettings(warm_up=1))
    features, logits = few.encode(few.weights(), IMAGES)
    torch.testing.assert_close(features, nn.Sequential(*layers[:last])(IMAGES))
    torch.testing.assert_close(logits, module(IMAGES))


def test_each_side_learns_alone_and_the_discriminator_is_confused() -> None:
    adaptation = small(lr=0.01, confusion=20.0, discriminator_lr=0.01)

    def judged() -> dict[Kind, Tensor]:
        members = Members(SOURCE.labels, 3), Members(LABELS, 3)
        found: dict[Kind, Tensor] = {}
        with torch.no_grad():
            for kind in Kind:
                first, second = draw_pairs(kind, *members, 200, stream(1, "other pairs"))
                x, _ = SOURCE.batch(first, torch.device("cpu"), torch.float64)
                pool = IMAGES if kind.across else SOURCE.inputs
                assert isinstance(pool, Tensor)
                theta = adaptation.weights()
                pair = [adaptation.encode(theta, one)[0] for one in (x, pool[second])]
                found[kind] = adaptation.judge(torch.cat(pair, 1))
        return found

    before, weights = discriminator_loss(judged()), adaptation.weights()
    for _ in range(100):
        adaptation.teach_discriminator()
    assert discriminator_loss(judged()) < before
    assert all(torch.equal(w, weights[n]) for n, w in adaptation.weights().items())
    features = torch.randn(5, 10, generator=RANDOM, dtype=torch.float64)
    confused, opinion = confusion_loss(judged()), adaptation.judge(features)
    for _ in range(30):
        adaptation.teach_network()
    assert confusion_loss(judged()) < confused
    assert torch.equal(adaptation.judge(features), opinion)


def test_it_is_reproducible_and_touches_no_global_random_state() -> None:
    def once() -> list[dict[str, Tensor]]:
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
        state = torch.get_rng_state()
        found = adapt_few_shot(module, SOURCE, IMAGES, LABELS, after=(2, 5), seed=3)
        assert torch.equal(torch.get_rng_state(), state)
        return found

    first, second = once(), once()
    assert len(first) == 2
    assert not torch.equal(first[0]["0.weight"], first[1]["0.weight"])
    for one, other in zip(first, second, strict=True):
        assert all(torch.equal(w, other[n]) for n, w in one.items())


def test_the_module_stays_as_it_is_and_frozen_or_tied_weights_are_adapted() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    module[0].weight = module[3].weight  # also that of the last layer, by the name of the first
    before = {name: p.detach().clone() for name, p in module.named_parameters()}

    def adapted() -> Weights:
        return adapt_few_shot(module, SOURCE, IMAGES, LABELS, after=(3,))[0]

    found = adapted()
    assert all(torch.equal(p, before[name]) for name, p in module.named_parameters())
    assert list(found) == list(before)
    assert not any(torch.equal(w, before[name]) for name, w in found.items())
    module.requires_grad_(False)
    assert all(torch.equal(w, found[name]) for name, w in adapted().items())


def test_100_real_images_of_usps_adapt_a_network_trained_on_digits(data_dir: Path) -> None:
    if dd.data.DATA_SETS["usps"].missing(data_dir):
        pytest.skip("needs the real USPS")
    source, _ = dd.data.load("digits")
    target, held_out = dd.data.load("usps", data_dir)[0].hold_out(0.1, seed=0)
    network, objective = Network(dd.models.MLP(hidden=32), source.example()), Classification()
    theta0 = dd.RandomInit().sample(network, [stream(0, "network")])
    theta0 = evaluation.train_on_all(network, theta0, source, objective, evaluation.FullTraining(5))
    trained = {name: w[0] for name, w in theta0.items()}
    few = RandomReal().draw(target, Layout(classes=10, steps=10))
    (adapted,) = adapt_few_shot(
        network.module(trained),
        source,
        few.inputs.flatten(0, 1),
        few.labels.flatten(),
        AdversarialSettings(lr=1e-3),
        after=(100,),
    )
    stacked = network.stack([trained, adapted])
    both = evaluation.test_networks(network, stacked, held_out, objective, Statistics()).values
    assert both[1] > both[0] + 0.1
