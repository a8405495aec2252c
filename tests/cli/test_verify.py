"""``datadistill verify`` as a user types it."""

import json
from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.cli.main import main


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dd.DistilledData:
    """Distilled data for a fixed network, with what they reach on test data as their claim."""
    monkeypatch.chdir(tmp_path)
    train, test = dd.data.load("digits")
    made = dd.distill(train, dd.models.Linear(), initialization=dd.FixedInit(), iterations=5)
    return made.with_claim(dd.evaluate(made, test).claim())


def with_mean(made: dd.DistilledData, mean: float) -> dd.DistilledData:
    assert made.claim is not None
    return made.with_claim(made.claim.model_copy(update={"mean": mean}))


def test_an_artefact_that_reaches_its_claim_is_confirmed(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    made.save("a.safetensors")
    assert main(["verify", "a.safetensors"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"claimed: {made.claim}"
    assert lines[1] == f"found:   {made.claim}"
    assert lines[2] == "The claim holds within 0.83 points (rounding: 3 test examples)."


def test_threads_can_be_repeated(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    made.save("a.safetensors")
    before = torch.get_num_threads()
    try:
        assert main(["verify", "a.safetensors"]) == 0
        assert f"For a bit-identical result, use --threads {before}.\n" in capsys.readouterr().err
        assert main(["verify", "a.safetensors", "--threads", "2"]) == 0
        assert torch.get_num_threads() == 2
        assert "bit-identical" not in capsys.readouterr().err
    finally:
        torch.set_num_threads(before)
    assert main(["verify", "a.safetensors", "--threads", "0"]) == 2
    assert "Set threads to at least 1." in capsys.readouterr().err


def test_an_artefact_that_falls_short_exits_with_1(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("run").mkdir()
    with_mean(made, 0.99).save("run/distilled.safetensors")
    assert main(["verify", "run"]) == 1
    captured = capsys.readouterr()
    assert "The claim does not hold within 0.83 points (rounding" in captured.out
    assert (
        "Measuring again: 1 network(s), 3 update(s) each, tested on 360 examples." in captured.err
    )
    assert "run does not reach what it claims." in captured.err
    assert main(["verify", "run", "--json"]) == 1
    figures = json.loads(capsys.readouterr().out)
    assert figures["holds"] is False
    assert figures["confidence"] == 0.99
    assert figures["std_holds"] is True
    assert figures["claim"]["mean"] == 0.99
    assert made.claim is not None
    assert figures["found"]["values"] == [made.claim.mean]


def test_validation_data_are_held_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    train, _ = dd.data.load("digits")
    made = dd.distill(train, dd.models.Linear(), iterations=2, seed=3, validation=0.2)
    made.save("b.safetensors")
    assert main(["verify", "b.safetensors"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].removeprefix("claimed: ") == lines[1].removeprefix("found:   ")
    assert "on digits validation" in lines[0]


def test_an_artefact_without_a_claim_is_bad_input(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    train, _ = dd.data.load("digits")
    dd.distill(train, dd.models.Linear(), iterations=1, validation=0).save("c.safetensors")
    assert main(["verify", "c.safetensors"]) == 2
    assert "claims no figure" in capsys.readouterr().err


def test_data_that_are_not_there_are_bad_input(
    made: dd.DistilledData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made.claim is not None
    claim = made.claim.model_copy(update={"data": "mnist"})
    made.with_claim(claim).save("d.safetensors")
    assert main(["verify", "d.safetensors", "--data-dir", str(tmp_path / "none")]) == 2
    assert "mnist" in capsys.readouterr().err
    assert main(["verify", "d.safetensors", "--data", "digits"]) == 0


def test_a_deviation_that_one_network_cannot_have_is_refused(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mean .999, std .5 and one network held within 100 points."""
    assert made.claim is not None
    claim = made.claim.model_copy(update={"mean": 0.999, "std": 0.5})
    made.with_claim(claim).save("e.safetensors")
    assert main(["verify", "e.safetensors"]) == 2
    assert "standard deviation is 0.5" in capsys.readouterr().err


def test_a_claim_over_absurdly_many_networks_is_bad_input(
    made: dd.DistilledData, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made.claim is not None
    made.with_claim(made.claim.model_copy(update={"networks": 10**9})).save("f.safetensors")
    assert main(["verify", "f.safetensors"]) == 2
    assert "takes 1,000,000,000 network(s)" in capsys.readouterr().err
