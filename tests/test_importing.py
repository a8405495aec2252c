"""What counts as a reference to Python code."""

from pathlib import Path

import pytest

from datadistill.importing import absolute_reference, is_reference


@pytest.mark.parametrize(
    "text", ["file.py:NAME", "path/to/file.py:Class", "package.module:name", "a:b.c", "/x y.py:N"]
)
def test_a_place_and_a_name_are_a_reference(text: str) -> None:
    assert is_reference(text)


@pytest.mark.parametrize(
    "text", ["mnist", "file.py", ":NAME", "file.py:", r"C:\photos", "C:/photos", "a b:c", "x.npz"]
)
def test_names_and_paths_are_none(text: str) -> None:
    assert not is_reference(text)


def test_a_reference_to_a_file_can_be_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute_reference("mine.py:NAME") == f"{tmp_path / 'mine.py'}:NAME"
    assert absolute_reference("package.module:NAME") == "package.module:NAME"
    assert absolute_reference("mnist") == "mnist"
