import pytest

from datadistill.errors import ConfigError
from datadistill.models import parse_arguments


def test_values_become_what_they_look_like() -> None:
    texts = ["width=64", "slope=-1e-2", "bias=False", "kind=relu", 'label="64"', "path=a=b", "e="]
    assert parse_arguments(texts) == {
        "width": 64,
        "slope": -0.01,
        "bias": False,
        "kind": "relu",
        "label": "64",
        "path": "a=b",
        "e": "",
    }
    assert [type(v) for v in parse_arguments(["a=1", "b=1.0", "c=true"]).values()] == [
        int,
        float,
        bool,
    ]
    assert parse_arguments([]) == {}


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999"])
def test_what_is_no_number_to_compute_with_is_text(text: str) -> None:
    assert parse_arguments([f"name={text}"]) == {"name": text}


@pytest.mark.parametrize("text", ["width", "=64", "two words=1", "1st=2", ""])
def test_what_is_not_a_name_and_a_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="name=value"):
        parse_arguments([text])


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="'width' of the network is given twice"):
        parse_arguments(["width=1", "width=2"])
