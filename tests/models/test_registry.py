"""Networks are made by name, or from where a user's own class is."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from datadistill.errors import ConfigError, ModelError
from datadistill.models import MLP, AlexNet, LeNet, find, find_for

DATA = {"channels": 1, "size": 28, "classes": 10}

SOURCE = """
from torch import nn
from layers_beside import make_layer

class Net(nn.Module):
    def __init__(self, width: int = 4, activation: str = "relu", *, bias: bool = True):
        super().__init__()
        self.made_with = (width, activation, bias)
        self.fc = make_layer(width)

    class Inner(nn.Linear):
        def __init__(self):
            super().__init__(2, 2)

class Demanding(nn.Module):
    def __init__(self, width, depth, classes=10):
        super().__init__()

class Broken(nn.Module):
    def __init__(self):
        raise RuntimeError("no luck")

class Greedy(nn.Module):
    def __init__(self, **anything):
        super().__init__()
        self.made_with = anything

def make(width):
    return Net(width)

def nothing():
    return None

network = Net()
VERSION = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a user, with a file of networks and one that it imports; and clean again."""
    modules, path = set(sys.modules), list(sys.path)
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "my_nets.py").write_text(SOURCE)
    (tmp_path / "nets" / "layers_beside.py").write_text(
        "from torch import nn\ndef make_layer(width):\n    return nn.Linear(4, width)\n"
    )
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def refusal(reference: str, **own: int | float | bool | str) -> str:
    with pytest.raises(ModelError) as caught:
        find(reference, DATA, own)
    assert caught.value.remedy
    return str(caught.value)


def test_a_built_in_network_gets_the_arguments_of_the_data() -> None:
    module = find("lenet", DATA)
    assert isinstance(module, LeNet)
    assert module.arguments == DATA
    assert find("lenet", {}).arguments == LeNet().arguments


def test_the_users_arguments_add_to_those_of_the_data_and_go_before_them() -> None:
    module = find("mlp", DATA, {"hidden": 7, "classes": 3})
    assert isinstance(module, MLP)
    assert module.arguments == {**DATA, "hidden": 7, "classes": 3}
    assert isinstance(find("alexnet", {**DATA, "size": 64}, {"width": 2}), AlexNet)


def test_arguments_may_follow_the_name_in_brackets(folder: Path) -> None:
    module = find_for("mlp(hidden=7)", (1, 28, 28), 3)
    assert isinstance(module, MLP)
    assert module.arguments == {**DATA, "classes": 3, "hidden": 7}
    both = find_for("mlp( hidden = 7, )", (1, 28, 28), 3, ["classes=4"])
    assert isinstance(both, MLP)
    assert (both.arguments["hidden"], both.arguments["classes"]) == (7, 4)
    (folder / "nets").rename("nets (2)")
    own = find("nets (2)/my_nets.py:Net(width=5, activation='gelu', bias=False)", DATA)
    assert own.made_with == (5, "gelu", False)
    assert find("nets (2)/my_nets.py:Net", DATA).made_with == (4, "relu", True)
    with pytest.raises(ConfigError, match="'hidden' of the network is given twice"):
        find_for("mlp(hidden=7)", (1, 28, 28), 3, ["hidden=8"])
    with pytest.raises(ConfigError, match="cannot be read"):
        find_for("mlp(hidden=a+b)", (1, 28, 28), 3)


@pytest.mark.parametrize(
    "place",
    ["nets/my_nets.py", "./nets/my_nets.py", "../{folder}/nets/my_nets.py", "{whole}/my_nets.py"],
)
def test_a_class_in_a_file_is_made_with_the_users_arguments_alone(folder: Path, place: str) -> None:
    place = place.format(folder=folder.name, whole=folder / "nets")
    module = find(f"{place}:Net", DATA, {"width": 5, "bias": False})
    assert module.made_with == (5, "relu", False)
    assert find(f"{place}:Net", DATA).made_with == (4, "relu", True)


def test_a_class_in_a_module_beside_the_user_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "nets")
    assert find("my_nets:Net", DATA, {"activation": "gelu"}).made_with == (4, "gelu", True)


def test_functions_nested_classes_and_any_keywords_work(folder: Path) -> None:
    assert find("nets/my_nets.py:make", DATA, {"width": 6}).made_with == (6, "relu", True)
    assert isinstance(find("nets/my_nets.py:Net.Inner", DATA), nn.Linear)
    assert find("nets/my_nets.py:Greedy", DATA, {"a": 1.5}).made_with == {"a": 1.5}
    assert isinstance(find("torch.nn:Flatten", DATA, {"start_dim": 2}), nn.Flatten)


def test_a_file_never_takes_the_place_of_another_module(folder: Path) -> None:
    import random

    (folder / "random.py").write_text(SOURCE.replace("layers_beside", "nets.layers_beside"))
    (folder / "wave.py").write_text("from torch import nn\nclass Net(nn.Flatten): pass\n")
    assert type(find("random.py:Net", DATA)).__module__ == "random_"
    assert sys.modules["random"] is random
    assert type(find("wave.py:Net", DATA)).__module__ == "wave_"


def test_a_file_that_was_changed_is_read_again(folder: Path) -> None:
    path = folder / "changing.py"
    for width in (2, 33):
        path.write_text(f"from torch import nn\ndef net():\n    return nn.Linear({width}, 1)\n")
        module = find("changing.py:net", DATA)
        assert module(torch.ones(1, width)).shape == (1, 1)


def test_an_unknown_network_is_answered_with_the_nearest() -> None:
    assert "Did you mean 'alexnet'?" in refusal("alexnett")
    assert "alexcifarnet, alexnet, convnet3" in refusal("resnet-152")
    assert "path/to/file.py:Class" in refusal("nets/my_nets.py")


def test_unknown_arguments_are_answered_with_the_nearest(folder: Path) -> None:
    message = refusal("alexcifarnet", widht=3)
    assert "'alexcifarnet' takes no argument 'widht'. Did you mean 'width'?" in message
    message = refusal("nets/my_nets.py:Net", wide=3)
    assert "nets/my_nets.py:Net takes no argument 'wide'. Did you mean 'width'?" in message
    assert "It takes width, activation, bias." in message


@pytest.mark.parametrize("value", [0, -3, 2.5, True, "64"])
def test_arguments_of_built_in_networks_are_counts(value: int | float | bool | str) -> None:
    message = refusal("mlp", hidden=value)
    assert f"'hidden' of the network 'mlp' is {value!r}" in message


def test_a_size_that_a_network_does_not_take_is_refused() -> None:
    assert "LeNet takes images of 28 or 32 px, not 8" in refusal("lenet", size=8)
    assert "multiple of 4, not 6" in refusal("squeezenet", size=32, width=6)


def test_arguments_that_a_class_needs_are_named(folder: Path) -> None:
    message = refusal("nets/my_nets.py:Demanding", depth=2)
    assert "cannot be made without 'width'" in message
    assert "name=value" in message
    assert "without 'width', 'depth'" in refusal("nets/my_nets.py:Demanding")


def test_an_unknown_class_is_answered_with_the_nearest(folder: Path) -> None:
    message = refusal("nets/my_nets.py:Nett")
    assert "nets/my_nets.py has no 'Nett'. Did you mean 'Net'?" in message
    assert "It has Net, Demanding, Broken, Greedy." in message
    assert "has no 'Net.Outer'" in refusal("nets/my_nets.py:Net.Outer")
    assert "has no 'VERSION.x'" in refusal("nets/my_nets.py:VERSION.x")


def test_places_that_are_not_there_are_named(folder: Path) -> None:
    message = refusal("nets/other.py:Net")
    assert "There is no file nets/other.py" in message
    assert str(folder) in message
    assert "There is no file nets.py" in refusal("nets.py:Net")
    assert "There is no Python module 'nowhere'" in refusal("nowhere.deep:Net")
    assert "There is no Python module 'nets.deep'" in refusal("nets.deep:Net")
    assert "does not name a network" in refusal(":Net")
    assert "does not name a network" in refusal("nets/my_nets.py:")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("1 / 0", "ZeroDivisionError"),
        ("def (", "SyntaxError"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_a_file_or_module_that_cannot_be_imported_says_why(
    folder: Path, source: str, reason: str
) -> None:
    (folder / "faulty.py").write_text(source)
    for reference in ("faulty.py:Net", "faulty:Net"):
        message = refusal(reference)
        assert f"cannot be imported: {reason}" in message
        assert "faulty" not in sys.modules


def test_what_gives_no_network_is_refused(folder: Path) -> None:
    assert "RuntimeError: no luck" in refusal("nets/my_nets.py:Broken")
    assert "gives a NoneType" in refusal("nets/my_nets.py:nothing")
    assert "is an object of the type Net" in refusal("nets/my_nets.py:network")
    assert "is an object of the type int" in refusal("nets/my_nets.py:VERSION")
    assert "gives a OrderedDict" in refusal("collections:OrderedDict")
