"""Anybody's own data, from Python."""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import datadistill as dd
from datadistill.data import LabelledData, Normalization, as_data
from datadistill.data.labels import as_classes, from_zero, in_order_of
from datadistill.errors import DataDistillError, DataError, DataWarning, ModelError

from .makers import pixels

QUICK: dict[str, Any] = {
    "initialization": "fixed",
    "iterations": 1,
    "batch_size": 8,
    "validation": 0.0,
}
LABELS = np.arange(12) % 3
COLUMNS = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)


def test_pairs_of_tensors_and_arrays_will_do() -> None:
    inputs, labels = np.ones((4, 2), np.float32), [0, 1, 0, 1]
    for pair in ((inputs, labels), [torch.tensor(inputs), torch.tensor(labels)]):
        data = as_data(pair, split="mine")
        assert (len(data), data.classes, data.split) == (4, 2, "mine")


def test_any_torch_dataset_will_do() -> None:
    class Stream(IterableDataset[tuple[torch.Tensor, int]]):
        def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
            return iter([(torch.zeros(3), 0), (torch.ones(3), 1)])

    table = TensorDataset(torch.zeros(2, 3), torch.tensor([0, 1]))
    for source in (Stream(), table):
        data = as_data(source)
        assert data.input_shape == (3,)
        assert data.labels.tolist() == [0, 1]


def test_a_list_of_pairs_is_a_data_set() -> None:
    images = pixels(6, 8, 8)
    pairs = [
        (Image.fromarray(one), int(label)) for one, label in zip(images, LABELS[:6], strict=True)
    ]
    found, wanted = as_data(pairs), as_data((images, LABELS[:6]))
    assert torch.equal(found.inputs[:], wanted.inputs[:])
    assert torch.equal(found.labels, wanted.labels)


@pytest.mark.parametrize("label", ["text", 1, 0.5])
def test_a_table_without_rows_is_empty(label: object) -> None:
    none = np.array([label])[:0]
    for table in ({"a": COLUMNS[:0, 0], "b": COLUMNS[:0, 1], "label": none}, (COLUMNS[:0], none)):
        with pytest.raises(DataError, match=r"is empty\.\nProvide at least one example"):
            as_data(table)


def test_labelled_data_are_left_alone() -> None:
    data = LabelledData(torch.zeros(2, 3), torch.tensor([0, 1]))
    assert as_data(data) is data


class TestPixels:
    @pytest.mark.parametrize(
        ("shape", "wanted"),
        [
            ((12, 8, 8), (1, 8, 8)),
            ((12, 1, 8, 8), (1, 8, 8)),
            ((12, 8, 8, 1), (1, 8, 8)),
            ((12, 8, 8, 3), (3, 8, 8)),
            ((12, 3, 8, 9), (3, 8, 9)),
        ],
    )
    def test_bytes_are_images_normalised_by_their_own_statistics(
        self, shape: tuple[int, ...], wanted: tuple[int, ...]
    ) -> None:
        data = as_data((pixels(*shape), LABELS))
        assert data.input_shape == wanted
        images, _ = data.tensors(torch.float64)
        assert images.mean((0, 2, 3)).abs().max() < 1e-3
        assert (images.std((0, 2, 3)) - 1).abs().max() < 1e-2

    def test_pictures_are_as_a_folder_has_them(self) -> None:
        grey = [Image.fromarray(pixels(8, 8, seed=n)) for n in range(3)]
        data = as_data((grey, [0, 1, 2]))
        assert torch.equal(torch.as_tensor(data.inputs[1]), torch.tensor(pixels(1, 8, 8, seed=1)))
        colour = as_data(([*grey, Image.new("RGBA", (8, 8))], [0, 1, 2, 0]))
        assert colour.input_shape == (3, 8, 8)
        assert int(colour.inputs[3].min()) == 255, "what is transparent is white"

    def test_test_data_can_have_the_statistics_of_training_data(self) -> None:
        norm = Normalization((0.2,), (0.3,))
        assert as_data((pixels(12, 8, 8), LABELS), "test", normalization=norm).normalization == norm

    def test_floats_are_taken_as_they_are(self) -> None:
        images = torch.rand(12, 1, 4, 4)
        assert torch.equal(as_data((images, LABELS)).tensors()[0], images)
        assert torch.equal(as_data((COLUMNS, LABELS)).tensors()[0], torch.tensor(COLUMNS))

    def test_floats_up_to_255_are_warned_of(self) -> None:
        with pytest.warns(DataWarning, match="look like pixels from 0 to 255"):
            as_data((pixels(12, 1, 8, 8).astype(np.float32), LABELS))

    def test_unscaled_columns_are_warned_of(self) -> None:
        with pytest.warns(DataWarning, match="standard deviations from 0"):
            as_data((COLUMNS * np.array([1, 1, 1, 1, 1000]), LABELS))


class TestLabels:
    @pytest.mark.parametrize(
        "labels",
        [
            LABELS.tolist(),
            LABELS.astype(np.uint8),
            LABELS[:, None],
            torch.tensor(LABELS).int(),
            np.eye(3, dtype=int)[LABELS],
            np.eye(3, dtype=bool)[LABELS],
            range(3),
        ],
    )
    def test_integers_and_one_hot_integers_are_classes(self, labels: Any) -> None:
        data = as_data((COLUMNS[: len(labels)], labels))
        assert data.labels.tolist() == LABELS[: len(labels)].tolist()
        assert data.class_names is None

    @pytest.mark.parametrize("kind", [None, "U", "O", "S"])
    def test_strings_are_names_in_alphabetical_order(self, kind: str | None) -> None:
        names = ["dog", "cat", "eel"] * 4
        data = as_data((COLUMNS, np.array(names, kind) if kind else names))
        assert data.class_names == ("cat", "dog", "eel")
        assert data.labels.tolist() == [1, 0, 2] * 4

    def test_floats_are_targets_unless_the_objective_has_classes(self) -> None:
        hot = as_data((COLUMNS, np.eye(3)[LABELS]))
        assert hot.labels.shape == (12, 3)
        assert as_classes(hot).labels.tolist() == LABELS.tolist()
        whole = as_data((COLUMNS, LABELS.astype(float)))
        assert as_classes(whole).labels.tolist() == LABELS.tolist()
        for labels in (np.full((12, 3), 1 / 3), LABELS + 0.5):
            soft = as_data((COLUMNS, labels))
            assert as_classes(soft) is soft
        regression = dd.distill(hot, "linear", objective=dd.Regression(), **QUICK)
        assert regression.labels.shape[-1] == 3
        assert dd.distill(hot, "linear", **QUICK).labels.tolist() == [[0, 1, 2]]
        assert dd.distill(whole, "linear", **QUICK).labels.tolist() == [[0, 1, 2]]

    def test_labels_from_one_are_names_of_classes(self) -> None:
        distilled = dd.distill((COLUMNS, LABELS + 1), "linear", **QUICK)
        assert distilled.class_names == ["1", "2", "3"]
        few = dd.evaluate(distilled, (COLUMNS[1:3], LABELS[1:3] + 1))
        zero = in_order_of(["1", "2", "3"], as_data((COLUMNS[1:3], LABELS[1:3] + 1)))
        assert zero.labels.tolist() == [1, 2]
        assert few.values == dd.evaluate(distilled, zero).values
        with pytest.raises(DataError, match="the class '0'"):
            dd.evaluate(distilled, (COLUMNS, LABELS))
        gap = as_data((COLUMNS, LABELS * 2 + 1))
        assert from_zero(gap) is gap

    @pytest.mark.parametrize("labels", [np.zeros(12, int), ["cat"] * 12])
    def test_a_single_class_is_refused(self, labels: Any) -> None:
        with pytest.raises(DataError, match="have the label") as refused:
            dd.distill((COLUMNS, labels), "linear", **QUICK)
        assert "at least two classes" in refused.value.remedy


@pytest.fixture
def distilled() -> dd.DistilledData:
    names = np.array(["cat", "dog", "eel"])[LABELS]
    return dd.distill((pixels(12, 8, 8) // 4, names), "linear", **QUICK)


class TestOneMeaning:
    """An artefact's own statistics and classes hold for all real data."""

    def test_pixels_are_normalised_by_the_artefact(self, distilled: dd.DistilledData) -> None:
        images = pixels(30, 8, 8, seed=1)
        norm, labels = distilled.normalization, np.arange(30) % 3
        assert norm is not None
        wanted = dd.LabelledData(torch.tensor(images)[:, None], torch.tensor(labels), norm)
        losses = dd.evaluate(distilled, wanted).losses
        other = replace(wanted, normalization=Normalization((0.5,), (0.5,)))
        data_set = TensorDataset(torch.tensor(images), torch.tensor(labels))
        for form in ((images, labels), data_set, other, replace(wanted, normalization=None)):
            assert dd.evaluate(distilled, form).losses == losses
        floats = wanted.tensors()
        assert dd.evaluate(distilled, floats).losses == pytest.approx(losses)

    def test_classes_in_another_order_are_put_in_order(self, distilled: dd.DistilledData) -> None:
        images, names = pixels(12, 8, 8, seed=1), ("eel", "cat", "dog")
        labels = torch.tensor([1, 2, 0] * 4)
        here = dd.LabelledData(
            torch.tensor(images)[:, None],
            labels,
            class_names=names,
            present=torch.eye(3, dtype=torch.bool)[labels],
        )
        ordered = in_order_of(distilled.class_names, here)
        assert ordered.labels.tolist() == LABELS.tolist()
        assert ordered.present is not None
        assert ordered.present.int().argmax(1).tolist() == LABELS.tolist()
        found, wanted = (dd.evaluate(distilled, data) for data in (here, (images, LABELS)))
        assert (found.losses, found.by_class) == (wanted.losses, wanted.by_class)
        assert dd.evaluate(distilled, (images[1:2], ["dog"])).examples == 1

    def test_other_classes_are_refused(self, distilled: dd.DistilledData) -> None:
        with pytest.raises(DataError, match="'fox', which is not one of cat, dog, eel"):
            dd.evaluate(distilled, (pixels(2, 8, 8), ["cat", "fox"]))

    def test_pixels_for_an_artefact_of_floats_are_warned_of(self) -> None:
        distilled = dd.distill((torch.rand(12, 1, 8, 8), LABELS), "linear", **QUICK)
        with pytest.warns(DataWarning, match="used unchanged; the pixels"):
            dd.evaluate(distilled, (pixels(12, 8, 8), LABELS))


SEEN: set[Any] = set()
"""The types of inputs that modules were called with."""


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(50, 4), nn.Linear(4, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(ids).mean(1))


class EmbeddedOrFloats(Embedded):
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        SEEN.add(ids.dtype)
        if ids.is_floating_point():
            return self.head(ids[..., None].expand(-1, -1, 4).mean(1))
        return self.head(self.embedding(ids).mean(1))


class TestTokenIds:
    ids = np.random.default_rng(0).integers(0, 50, (12, 7))

    def test_integers_reach_the_module_as_integers(self) -> None:
        distilled = dd.distill((self.ids, LABELS), EmbeddedOrFloats(), **QUICK)
        SEEN.clear()
        dd.evaluate(distilled, (self.ids, LABELS))
        assert torch.int64 in SEEN
        SEEN.clear()
        dd.distill((self.ids, LABELS), EmbeddedOrFloats(), engine="plain", **QUICK)
        assert {torch.int64, torch.float32} == SEEN

    def test_what_cannot_be_learned_is_refused(self) -> None:
        with pytest.raises(ModelError, match="Token ids have no gradient") as refused:
            dd.distill((self.ids, LABELS), Embedded(), **QUICK)
        assert "embedding(ids)" in refused.value.remedy
        with pytest.raises(ModelError, match="takes only floats") as refused:
            dd.distill((self.ids, LABELS), "linear", **QUICK)
        assert "float32" in refused.value.remedy


class Rows(Dataset[Any]):
    """A torch data set of whatever its function gives."""

    def __init__(self, row: Callable[[int], Any]) -> None:
        self.row = row

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return self.row(index)


def hugging_face(**columns: Any) -> SimpleNamespace:
    """What ``datasets.Dataset`` looks like from outside."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    label = SimpleNamespace(names=["cat", "dog", "eel"])

    class Found(SimpleNamespace):
        def __iter__(self) -> Iterator[dict[str, Any]]:
            return iter(rows)

    features = {name: label if name == "animal" else SimpleNamespace() for name in columns}
    return Found(features=features, column_names=[*columns])


class TestColumns:
    def test_a_mapping_has_inputs_and_labels(self) -> None:
        data = as_data({"image": pixels(12, 8, 8), "label": LABELS})
        assert data == as_data((pixels(12, 8, 8), LABELS))

    def test_columns_of_numbers_are_inputs_side_by_side(self) -> None:
        table = {f"x{n}": COLUMNS[:, n] for n in range(5)} | {"Target": LABELS}
        data = as_data(table)
        assert data.labels.tolist() == LABELS.tolist()
        assert torch.equal(data.tensors()[0], torch.tensor(COLUMNS))

    def test_rows_of_a_torch_data_set_may_be_mappings(self) -> None:
        data = as_data(Rows(lambda n: {"img": pixels(8, 8, seed=n), "label": n}))
        assert data.input_shape == (1, 8, 8)

    def test_a_class_label_names_the_classes(self) -> None:
        data = as_data(hugging_face(pixels=[*pixels(12, 8, 8)], animal=LABELS.tolist()))
        assert data.class_names == ("cat", "dog", "eel")
        assert data.input_shape == (1, 8, 8)
        assert data.normalization is not None

    def test_pandas_tables_will_do(self) -> None:
        pandas = pytest.importorskip("pandas", reason="pip install pandas")
        table = pandas.DataFrame(COLUMNS, columns=[*"abcde"])
        names = pandas.Series(["cat", "dog", "eel"] * 4, name="label")
        pair = as_data((table, names))
        whole = as_data(table.assign(label=names))
        assert torch.equal(pair.tensors()[0], torch.tensor(COLUMNS))
        assert torch.equal(whole.tensors()[0], pair.tensors()[0])
        assert whole.class_names == pair.class_names == ("cat", "dog", "eel")
        assert as_data((table, names.astype("category"))).labels.tolist() == pair.labels.tolist()
        with pytest.raises(DataError, match="column 'f' that is not numeric"):
            as_data((table.assign(f="x"), names))
        with pytest.raises(DataError, match=r"column 'f' .* does not hold numbers"):
            as_data(table.assign(f="x", label=names))
        with pytest.raises(DataError, match="no columns for labels among a, b"):
            as_data(table)

    def test_real_hugging_face_data_sets_will_do(self) -> None:
        pytest.importorskip("datasets", reason="pip install datasets")
        datasets: Any = importlib.import_module("datasets")
        pictures = [Image.fromarray(image) for image in pixels(12, 8, 8)]
        named = datasets.ClassLabel(names=["cat", "dog", "eel"])
        features = datasets.Features({"image": datasets.Image(), "animal": named})
        content = {"image": pictures, "animal": LABELS.tolist()}
        data_set = datasets.Dataset.from_dict(content, features=features)
        data = as_data(data_set)
        names = [("cat", "dog", "eel")[label] for label in LABELS]
        assert data == as_data((pixels(12, 8, 8), names))
        assert as_data(data_set.to_iterable_dataset()) == data
        features["image"] = datasets.Array2D((8, 8), "uint8")
        content["image"] = [*pixels(12, 8, 8)]
        assert as_data(datasets.Dataset.from_dict(content, features=features)) == data
        with pytest.raises(DataError, match="several splits: train") as refused:
            as_data(datasets.DatasetDict({"train": data_set}))
        assert "data['train']" in refused.value.remedy
        table = {f"x{n}": COLUMNS[:, n].tolist() for n in range(5)} | {"label": LABELS.tolist()}
        assert as_data(datasets.Dataset.from_dict(table)).input_shape == (5,)
        texts = datasets.Dataset.from_dict({"text": ["a"] * 3, "label": [0, 1, 2]})
        with pytest.raises(DataError, match="not numbers"):
            as_data(texts)


def _raises(_index: int) -> Any:
    raise KeyError("missing")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (Rows(lambda n: (torch.zeros(n + 1), 0)), "different shapes"),
        (Rows(lambda n: torch.zeros(3)), "not a pair"),
        (Rows(lambda n: (torch.zeros(3), None)), "without a label"),
        (Rows(lambda n: {"x": 1} if n else {"y": 1}), "different columns"),
        (Rows(_raises), "Item 0 of the data set cannot be read: KeyError"),
        (TensorDataset(torch.zeros(0, 3), torch.zeros(0)), "is empty"),
        (DataLoader(TensorDataset(torch.zeros(2, 3))), "DataLoader is not a data set"),
        ("a string", "str is not a data set"),
        (None, "NoneType is not a data set"),
        (COLUMNS, "ndarray is not a data set"),
        ((COLUMNS, LABELS, LABELS), "tuple of 3 items"),
        ((COLUMNS, None), "None for labels"),
        ((None, LABELS), "None for inputs"),
        ((3, 4), "a single value for labels"),
        ((COLUMNS, LABELS[:3]), "12 inputs but 3 labels"),
        ((LABELS, LABELS), "inputs of shape"),
        (([[1, 2], [3]], [0, 1]), "not an array"),
        ((COLUMNS[:2], [[1, 2], [3]]), "not an array"),
        ((["a text", "another"], [0, 1]), "not numbers, e.g. 'a text'"),
        ((COLUMNS * 1j, LABELS), "complex"),
        ((pixels(12, 8, 8).astype(int), LABELS), r"type torch\.int64"),
        ((pixels(12, 8, 8, 4), LABELS), "RGBA"),
        ((scipy.sparse.csr_matrix(COLUMNS), LABELS), "sparse"),
        ((COLUMNS, np.ones((12, 2), int)), "not one-hot"),
        ((COLUMNS, [object()] * 12), "labels of type object"),
        ((COLUMNS, np.full(12, 2**63, np.uint64)), "the number 9223372036854775808"),
        (([torch.zeros(2), torch.zeros(2, dtype=torch.uint8)], [0, 1]), "different types"),
        ({"label": LABELS}, "no column but 'label'"),
        ({"a": COLUMNS, "b": LABELS}, "no columns for labels"),
        ({"a": LABELS, "b": ["x"] * 12, "y": LABELS}, "'b' .* does not hold numbers"),
        ({"train": (COLUMNS, LABELS)}, "several splits"),
    ],
)
def test_other_things_are_refused(source: object, what: str) -> None:
    with pytest.raises(DataError, match=what) as refused:
        as_data(source)
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (dd.models.LeNet, "is the class LeNet, not an object"),
        (None, "NoneType"),
        ("lennet", "'lenet'"),
    ],
)
def test_what_is_no_network_is_refused(module: Any, what: str) -> None:
    with pytest.raises(ModelError, match=what):
        dd.distill((pixels(12, 28, 28), LABELS), module, **QUICK)


def test_settings_of_named_data_are_refused_for_others() -> None:
    with pytest.raises(DataDistillError, match="size is only for data that are named"):
        dd.distill((pixels(12, 28, 28), LABELS), "linear", size=8, **QUICK)


def test_running_statistics_are_of_pixels_as_the_artefact_has_them() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 3))
    distilled = dd.distill((pixels(12, 8, 8) // 4, LABELS), module, **QUICK)
    images, norm = pixels(30, 8, 8, seed=1), distilled.normalization
    real = as_data((images, np.arange(30) % 3), normalization=norm)
    for form in ((images, np.arange(30) % 3), replace(real, normalization=None)):
        found, wanted = (
            distilled.train(module, statistics=data).state_dict()["1.running_mean"]
            for data in (form, real)
        )
        assert torch.equal(found, wanted)
        again = dd.evaluate(distilled, real, module=module, statistics=form)
        assert again.losses == dd.evaluate(distilled, real, module=module, statistics=real).losses


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        (None, {}, "NoneType is not a name or path"),
        (["digits"], {}, "list is not a name or path"),
        ("photos/", {}, "no file or folder"),
        ("digits", {"size": "28"}, "size is '28'"),
        ("digits", {"normalization": "x"}, "normalization is 'x'"),
    ],
)
def test_mistakes_in_loading_are_told(name: Any, options: dict[str, Any], what: str) -> None:
    with pytest.raises(DataDistillError, match=what):
        dd.data.load(name, **options)


@pytest.mark.parametrize(
    ("test", "what"),
    [
        ((pixels(12, 9, 9), ["a", "b", "c"] * 4), r"shape \(1, 9, 9\)"),
        ((pixels(12, 8, 8), ["a", "b", "d"] * 4), "the class 'd'"),
        ((pixels(12, 8, 8), np.arange(12)), "labels from 0 to 11"),
    ],
)
def test_test_data_that_do_not_fit_are_refused_before_the_run(test: Any, what: str) -> None:
    def never(_progress: dd.Progress) -> None:
        raise AssertionError("an outer step was made")

    train = (pixels(12, 8, 8), ["a", "b", "c"] * 4)
    with pytest.raises(DataError, match=what):
        dd.distill(train, "linear", test=test, progress=never, **QUICK)
