"""Tables, texts and sounds: what is read of them, and what is refused."""

from pathlib import Path

import pytest
import torch

import datadistill as dd
from datadistill.data import decoder_of, load
from datadistill.errors import DataError, ModelError
from tests.data import makers


def row(**changed: str) -> str:
    """A row of Adult."""
    usual = {"age": "1", "education": "11th", "gain": "1", "label": ">50K"}
    return makers.ADULT_ROW.format(**usual | changed)


def test_a_table_is_scaled_and_one_hot_by_its_training_rows(tmp_path: Path) -> None:
    makers.make_adult(tmp_path / "adult")
    train, test = load("adult", tmp_path)
    inputs = train.tensors(torch.float64)[0]
    age = inputs[:, 0]
    assert age.mean().item() == pytest.approx(0, abs=1e-6)
    assert age.std(correction=0).item() == pytest.approx(1, abs=1e-6)
    education = inputs[:, 3:6]  # after age, workclass and fnlwgt: 11th, ?, Bachelors
    assert (education.sum(1) == 1).all()
    assert train.class_names == ("<=50K", ">50K")
    assert (test.labels == torch.arange(10) % 2).all()


def test_rows_are_decoded_to_what_the_file_has(tmp_path: Path) -> None:
    makers.make_adult(tmp_path / "adult")
    train, _ = load("adult", tmp_path)
    decoder = decoder_of("adult", tmp_path)
    assert decoder
    assert isinstance(train.inputs, torch.Tensor)
    lines = (tmp_path / "adult" / "adult.data").read_text().splitlines()
    for row, line in zip(decoder.rows(train.inputs), lines, strict=True):
        assert [*row] == line.split(", ")[:-1]
    # Distilled numbers may be anything.
    assert decoder.rows(torch.full_like(train.inputs[:1], 1e30))


def test_a_text_is_the_vectors_of_its_known_words(tmp_path: Path) -> None:
    makers.make_r8(tmp_path / "r8")
    train, _ = load("r8", tmp_path)
    decoder = decoder_of("r8", tmp_path)
    assert decoder
    assert isinstance(train.inputs, torch.Tensor)
    assert (train.inputs[:, :, 2:] == 0).all()  # "unknown" has no vector
    (text,) = decoder.rows(train.inputs[3:4])[0]
    assert text.split()[:2] == ["word3", "word3"]


def test_a_high_tone_is_above_a_low_one(tmp_path: Path) -> None:
    makers.make_spoken_digits(tmp_path / "fsdd")
    train, test = load("spoken-digits", tmp_path)
    assert isinstance(train.inputs, torch.Tensor)
    loudest = train.inputs[:, 0].float().mean(2).argmax(1)  # rows; the first is the highest
    assert (loudest.diff() < 0).all()
    assert (test.labels == torch.arange(10)).all()  # the other speaker


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("adult", "adult/adult.data", "1, 2\n", "does not have 15 columns"),
        ("adult", "adult/adult.data", row(label="x"), "for a label"),
        ("adult", "adult/adult.data", row(age="nan"), "column age"),
        ("adult", "adult/adult.data", f"{row()}\n" * 100_001, "100,001 rows, more than"),
        ("r8", "r8/train.tab", "a\nb\nc\n", "has no texts"),
        ("r8", "r8/train.tab", "a\nb\nc\n" + "acq\t\n" * 20_001, "more than 20,000 texts"),
        ("r8", "r8/train.tab", "a\nb\nc\nnews without a class\n", "does not begin with a class"),
        ("r8", "glove/glove.6B.50d.r8.txt.gz", "word1 1 2 x\n", "something else than numbers"),
        ("r8", "glove/glove.6B.50d.r8.txt.gz", "word1 1 2\n", "2 numbers behind"),
        ("r8", "glove/glove.6B.50d.r8.txt.gz", "word1 " + "inf " * 50, "not finite"),
        ("spoken-digits", "fsdd/recordings/0_george_0.wav", "no sound", "cannot be read"),
        ("spoken-digits", "fsdd/recordings/0_george_0.wav", makers.wav(0.0), "no samples"),
        ("spoken-digits", "fsdd/recordings/0_george_0.wav", makers.wav(rate=16000), "8000 Hz"),
    ],
)  # fmt: skip
def test_files_that_are_something_else_are_refused(
    name: str, file: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    makers.make_adult(tmp_path / "adult")
    makers.make_r8(tmp_path / "r8")
    makers.make_spoken_digits(tmp_path / "fsdd")
    (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DataError, match=message):
        load(name, tmp_path)


def test_one_speaker_alone_is_refused(tmp_path: Path) -> None:
    makers.make_spoken_digits(tmp_path / "fsdd")
    for path in (tmp_path / "fsdd" / "recordings").glob("*_george_*"):
        path.unlink()
    with pytest.raises(DataError, match="and of other speakers"):
        load("spoken-digits", tmp_path)


def test_texts_are_for_networks_of_texts(tmp_path: Path) -> None:
    makers.make_r8(tmp_path / "r8")
    train, test = load("r8", tmp_path)
    made = dd.distill(train, "textcnn", iterations=2, batch_size=8, networks=2, validation=0.0)
    assert len(dd.evaluate(made, test, networks=2).values) == 2
    with pytest.raises(ModelError, match=r"'textcnn' does not take inputs of shape \(64,\)"):
        dd.distill((torch.randn(9, 64), torch.arange(9) % 3), "textcnn", iterations=1)


def test_too_many_names_and_too_many_vectors_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers.make_adult(tmp_path / "adult")
    makers.make_r8(tmp_path / "r8")
    monkeypatch.setattr("datadistill.data.sets.adult.MOST_NUMBERS", 10)
    with pytest.raises(DataError, match="too many names in all"):
        load("adult", tmp_path)
    monkeypatch.setattr("datadistill.data.sets.r8.MOST_VECTORS", 10)
    with pytest.raises(DataError, match="vectors of more than 10 words"):
        load("r8", tmp_path)
    vectors = tmp_path / "glove" / "glove.6B.50d.r8.txt.gz"
    vectors.write_bytes(10_000 * (b"word1" + b" 1" * 50 + b"\n"))  # the first one counts
    train, _ = load("r8", tmp_path)
    assert train.tensors()[0].max() == 1
