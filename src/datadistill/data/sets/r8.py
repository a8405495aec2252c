"""R8: 5,485 and 2,189 news of Reuters-21578 in 8 classes, as sequences of GloVe vectors."""

import re
from pathlib import Path

import torch
from torch import Tensor

from ..data_set import DataSet, register
from ..decoding import Decoder, word_decoder
from ..folder import find_file
from ..formats.unpack import damaged, read_text
from ..images.conversion import apply_options
from ..labelled import LabelledData
from ..options import Options

CLASSES = ("acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade")
FILES = {"train": "train.tab", "test": "test.tab"}
HEADER = 3  # lines: names, types and roles of the columns
VECTORS = ("../glove/glove.6B.50d.r8.txt.gz", "../glove/glove.6B.50d.txt")
DIMENSIONS = 50
WORDS = 30
"""Words of a text that are used: the first ones that have a vector."""
MOST_BYTES = 16 * 2**20
MOST_TEXTS = 20_000
MOST_VECTOR_BYTES = 192 * 2**20
MOST_VECTORS = 100_000

LINES = re.compile(r"[^\n]+")

Texts = list[list[str]]


def load_r8(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads the texts, and the GloVe vectors of their words from the folder ``glove`` beside them.

    A text becomes (1, 30, 50): the vectors of its first 30 words that have one, then zeros.
    """
    splits = {split: _read(find_file(folder, name)) for split, name in FILES.items()}
    wanted = {word for texts, _ in splits.values() for text in texts for word in text}
    words, vectors = _read_vectors(find_file(folder, *VECTORS), wanted)
    numbers = {word: number for number, word in enumerate(words)}
    train, test = (
        LabelledData(_encode(texts, numbers, vectors), labels, None, CLASSES, "r8", split)
        for split, (texts, labels) in splits.items()
    )
    return apply_options(train, test, options)


def read_decoder(folder: Path) -> Decoder:
    """How sequences are written: as their nearest words among those of the training texts."""
    texts, _ = _read(find_file(folder, FILES["train"]))
    vectors = _read_vectors(find_file(folder, *VECTORS), {word for text in texts for word in text})
    return word_decoder(*vectors)


def _read(path: Path) -> tuple[Texts, Tensor]:
    """The words of every text, and the labels."""
    texts, labels = Texts(), list[int]()
    for line in filter(None, read_text(path, MOST_BYTES).split("\n")[HEADER:]):
        label, tab, text = line.partition("\t")
        if not tab or label not in CLASSES:
            raise damaged(path, f"has a line that does not begin with a class: {line[:30]!r}")
        texts.append(text.split())
        labels.append(CLASSES.index(label))
        if len(texts) > MOST_TEXTS:
            raise damaged(path, f"has more than {MOST_TEXTS:,} texts")
    if not texts:
        raise damaged(path, "has no texts")
    return texts, torch.tensor(labels)


def _read_vectors(path: Path, wanted: set[str]) -> tuple[list[str], Tensor]:
    """The wanted words that have a vector, and these vectors."""
    words, vectors = list[str](), list[list[float]]()
    wanted = set(wanted)
    for line in LINES.finditer(read_text(path, MOST_VECTOR_BYTES)):
        word, _, numbers = line[0].partition(" ")
        if word not in wanted:
            continue
        wanted.remove(word)
        try:
            vector = [float(number) for number in numbers.split()]
        except ValueError:
            raise damaged(path, f"has something else than numbers behind {word[:30]!r}") from None
        if len(vector) != DIMENSIONS:
            raise damaged(path, f"has {len(vector)} numbers behind {word[:30]!r}, not {DIMENSIONS}")
        words.append(word)
        vectors.append(vector)
        if len(words) > MOST_VECTORS:
            raise damaged(path, f"has vectors of more than {MOST_VECTORS:,} words")
    table = torch.tensor(vectors, dtype=torch.float32).reshape(-1, DIMENSIONS)
    if not len(table) or not torch.isfinite(table).all():
        raise damaged(path, "has no vectors of these words, or such that are not finite")
    return words, table


def _encode(texts: Texts, numbers: dict[str, int], vectors: Tensor) -> Tensor:
    """The vectors of the first words of every text, (texts, 1, words, dimensions)."""
    rows = torch.cat([vectors, torch.zeros(1, DIMENSIONS)])  # the last row is for no word
    none = len(vectors)
    chosen: list[list[int]] = []
    for text in texts:
        known = [numbers[word] for word in text if word in numbers][:WORDS]
        chosen.append(known + [none] * (WORDS - len(known)))
    return rows[torch.tensor(chosen)][:, None]


DATA_SET = register(
    DataSet(
        name="r8",
        what="Reuters-21578 R8: 5,485 + 2,189 news in 8 classes, as GloVe vectors",
        input_shape=(1, WORDS, DIMENSIONS),
        classes=8,
        folder="r8",
        files=(*((name,) for name in FILES.values()), VECTORS),
        origin="the R8 split of Reuters-21578, and GloVe's 6B vectors in glove/",
        canonical=True,
        loader=load_r8,
        decoder=read_decoder,
        order=120,
    )
)
