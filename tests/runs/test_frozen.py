"""Runs whose network is frozen but for some layers."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import datadistill as dd
from datadistill.baselines import Layout, RandomReal
from datadistill.core.initialization import networks_for
from datadistill.core.update import train
from datadistill.errors import ArtefactError, ConfigError, ModelError
from datadistill.evaluation import HeldOut, train_and_score
from datadistill.evaluation.rate_search import Choice, scheduled
from datadistill.runs.config import RunConfig, config_from
from datadistill.runs.initialization import weights_file
from datadistill.runs.preparation import prepare
from datadistill.runs.recipes import read_recipe, recipe_names
from datadistill.tables import Counts, TableRow, TableSettings, baseline_table
from tests.pools.helpers import DATA, TEST, module
from tests.runs.helpers import contents, stop_after

NETS = ("squeeze", "alex")
QUICK: dict[str, Any] = {"iterations": 6, "batch_size": 16, "epochs": 2, "learning_rate": 0.3}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Weights of a network for other classes."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        other = dd.models.MLP(channels=1, size=8, classes=7, hidden=6)
    save_file(other.state_dict(), tmp_path / "seven.safetensors")
    return tmp_path / "seven.safetensors"


def given(file: Path, **settings: Any) -> dict[str, Any]:
    return {
        "initialization": "fixed-pretrained",
        "weights": file,
        "reset_head": True,
        "trained": ["fc3"],
        **QUICK,
        **settings,
    }


def test_frozen_layers_stay_as_they_were_and_the_others_learn(file: Path, tmp_path: Path) -> None:
    made = dd.distill(DATA, module(), test=TEST, **given(file))
    made.save(tmp_path / "a.safetensors")
    loaded = dd.load(tmp_path / "a.safetensors")
    assert {*loaded.header.architecture.weights} == {"fc3.weight", "fc3.bias"}
    trained, before = loaded.train(), load_file(file)
    for name, parameter in trained.named_parameters():
        learns = name.startswith("fc3")
        assert parameter.requires_grad == learns
        assert bool(parameter.any()) if learns else torch.equal(parameter, before[name])
    assert dd.evaluate(loaded, TEST) == dd.evaluate(made, TEST)
    assert dd.evaluate(loaded, TEST).mean == made.claim.mean if made.claim else False
    assert dd.verify(loaded, TEST).holds


def test_training_is_that_of_plain_torch_with_frozen_parameters(file: Path) -> None:
    made = dd.distill(DATA, module(), dtype="float64", **given(file))
    plain = module().double()
    plain.load_state_dict(
        {n: w for n, w in load_file(file).items() if "fc3" not in n}, strict=False
    )
    for name, parameter in plain.named_parameters():
        parameter.requires_grad_("fc3" in name)
    torch.nn.init.zeros_(plain.fc3.weight)
    torch.nn.init.zeros_(plain.fc3.bias)
    for (rate,) in made.learning_rates.tolist():
        optimizer = torch.optim.SGD([p for p in plain.parameters() if p.requires_grad], rate)
        loss = torch.nn.functional.cross_entropy(plain(made.inputs[0]), made.labels[0])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    trained = made.train().state_dict()
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(trained[name], value, rtol=1e-10, atol=1e-12)


def test_all_layers_by_name_are_the_whole_network(file: Path) -> None:
    every = dd.distill(DATA, module(), **given(file, trained=["fc1", "fc2", "fc3"]))
    assert torch.equal(every.inputs, dd.distill(DATA, module(), **given(file, trained=[])).inputs)


def test_a_run_with_frozen_layers_is_resumed_to_the_same_bytes(file: Path, tmp_path: Path) -> None:
    settings = given(file, test=TEST, checkpoint_every=1)
    dd.distill(DATA, module(), run=tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        dd.distill(DATA, module(), run=tmp_path / "stopped", **settings, **stop_after(3))
    dd.distill(DATA, module(), run=tmp_path / "stopped", **settings)
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


def test_wrong_names_and_contradictions_are_refused(file: Path) -> None:
    with pytest.raises(ModelError, match=r"no layer 'fc4' with weights .* mean 'fc"):
        dd.distill(DATA, module(), **given(file, trained=["fc4"]))
    with pytest.raises(ConfigError, match=r"fc3.weight does not come from seven.safetensors"):
        dd.distill(DATA, module(), **given(file, trained=["fc1"]))
    with pytest.raises(ConfigError, match="trained has no meaning for a random initialization"):
        dd.distill(DATA, module(), initialization="random", trained=["fc3"], **QUICK)
    own = module().requires_grad_(False)
    with pytest.raises(ModelError, match="no trainable weights"):
        dd.distill(DATA, own, **given(file, trained=[]))


def test_an_artefact_without_its_weights_takes_the_same_module_only(
    file: Path, tmp_path: Path
) -> None:
    made = dd.distill(DATA, module(), **given(file))
    made.save(tmp_path / "light.safetensors", carry_limit=0)
    light = dd.load(tmp_path / "light.safetensors")
    mine = module()
    mine.load_state_dict({n: w for n, w in load_file(file).items() if "fc3" not in n}, strict=False)
    with pytest.raises(ArtefactError, match="not those it was distilled for"):
        light.train(mine)  # whose last layer is not reset
    torch.nn.init.zeros_(mine.fc3.weight)
    torch.nn.init.zeros_(mine.fc3.bias)
    same = zip(light.train(mine).parameters(), made.train().parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in same)


def test_what_a_file_lacks_is_drawn_by_the_seed(file: Path) -> None:
    weights = load_file(file)
    save_file({n: w for n, w in weights.items() if "fc1" in n}, file)
    settings = given(file, trained=["fc2", "fc3"], partial=True)
    config = config_from(settings)

    def drawn() -> torch.Tensor:
        made = prepare(config, DATA, module()).distiller
        return made.initialization.sample(made.network, [torch.Generator()])["fc2.weight"]

    assert torch.equal(drawn(), drawn())
    settings["trained"] = ["fc3"]
    with pytest.raises(ConfigError, match=r"fc2.weight does not come from"):
        dd.distill(DATA, module(), **settings)


def test_the_table_of_a_pre_trained_network_has_full_fine_tuning(
    file: Path, tmp_path: Path
) -> None:
    made = dd.distill(DATA, module(), test=TEST, **given(file))
    settings = TableSettings(counts=Counts(sets=2, drawn=3, kept=2, examples=64))
    results = tmp_path / "results.json"
    table = baseline_table(made, DATA, TEST, settings=settings, results=results)
    assert [row.name for row in table.rows] == [
        "distilled",
        "random real",
        "optimised real",
        "average real",
        "full fine-tuning",
    ]
    assert table["distilled"].mean == pytest.approx(dd.evaluate(made, TEST).mean)
    assert table["full fine-tuning"].sets == 3
    assert table["full fine-tuning"].mean > 0.3  # of 4 classes
    assert table["full fine-tuning"].chosen.startswith("Adam, lr 0.00")
    assert baseline_table(made, DATA, TEST, settings=settings, results=results) == table
    assert table["random real"].values[0] == pytest.approx(_by_images(made, table["random real"]))


def _by_images(made: dd.DistilledData, row: TableRow) -> tuple[float, ...]:
    """The figure of the first set of random real images, which pass the whole network."""
    network, (rest, _) = made.network(), DATA.hold_out(0.1, seed=0)
    rate, epochs = re.findall(r"learned|[\d.]+", row.chosen)
    choice = Choice("learned" if rate == "learned" else float(rate), int(epochs))
    steps = scheduled(RandomReal().draw(rest, Layout(classes=4)), choice, made.learning_rates)
    held_out = HeldOut(network, partial(made.initial_weights, network), networks=1)
    return train_and_score(steps, held_out, TEST, made.objective)[0].values


@pytest.mark.parametrize("name", [n for n in recipe_names() if n.split("net")[0] in NETS])
def test_recipes_of_imagenet_networks_are_one_step_of_one_image_per_class(name: str) -> None:
    config = read_recipe(name).config
    assert (config.steps, config.epochs, config.images_per_class) == (1, 3, 1)
    assert (config.initialization, config.reset_head) == ("fixed-pretrained", True)
    if name in ("alexnet-voc2007", "alexnet-cub200"):
        paper = read_recipe(name, "paper").config
        images = {"voc2007": 4_510, "cub200": 5_394}[config.data]
        assert paper.iterations == -(-200 * images // 1024)  # 200 passes
        assert paper.decay_every == -(-30 * images // 1024)
        assert (paper.batch_size, paper.trained, paper.augment) == (1024, (), None)


def test_weights_are_found_in_the_data_folder(file: Path) -> None:
    config = RunConfig(weights=Path(file.name), data_dir=file.parent)
    assert weights_file(config) == file
    missing = RunConfig(weights=Path("other.pth"), data_dir=file.parent)
    assert weights_file(missing) == Path("other.pth")


class LastFirst(nn.Module):
    """Layers in another order than they are used in; the first to be used is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(5, 4)
        self.frozen = nn.Linear(64, 7).requires_grad_(False)
        self.middle = nn.Linear(7, 5)

    def forward(self, images: Tensor) -> Tensor:
        features = self.frozen(images.flatten(1)).tanh()
        return self.last(self.middle(features).tanh())


@pytest.mark.parametrize("scheme", ["xavier-normal", "module"])
def test_the_weights_that_are_distilled_for_are_those_of_the_artefact(scheme: str) -> None:
    config = config_from({"initialization": "fixed", "scheme": scheme, **QUICK})
    made = prepare(config, DATA, LastFirst())
    assert made.split is not None
    state, batch = made.start().distiller, made.batch(0)
    artefact = made.distilled(made.images(state), 0)
    theta0 = artefact.initial_weights(made.network, networks_for(0, "network", range(1)))
    steps = made.distiller.distilled(state)
    engine = made.distiller.engine
    trained = train(made.distiller.rule, engine, theta0, steps)
    expected = engine.outer_losses(trained, *batch)
    torch.testing.assert_close(made.distiller.gradient(state, batch)[0], expected)
