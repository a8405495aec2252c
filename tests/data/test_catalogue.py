"""The data sets by name, and what is said when they are not there."""

from pathlib import Path

import pytest

from datadistill.data import DATA_SETS, Affine, catalogue, load
from datadistill.errors import ConfigError, DataError

from . import makers

MAKERS = {
    "mnist": makers.make_mnist,
    "fashion-mnist": makers.make_mnist,
    "usps": makers.make_usps,
    "usps-mixed": makers.make_usps,
    "svhn": makers.make_svhn,
    "svhn-gray": makers.make_svhn,
    "cifar10": makers.make_cifar10,
    "voc2007": makers.make_voc2007,
    "voc2007-objects": makers.make_voc2007,
    "cub200": makers.make_cub200,
    "caltech20": makers.make_image_folder,
    "adult": makers.make_adult,
    "r8": makers.make_r8,
    "spoken-digits": makers.make_spoken_digits,
}
NO_IMAGES = ("adult", "r8")
NO_VIEWS = (*NO_IMAGES, "spoken-digits")
OF_THEIR_OWN_CLASSES = ("cub200", "caltech20")


def test_every_data_set_is_tried_here() -> None:
    assert {*MAKERS, "digits"} == set(DATA_SETS)
    assert [record.name for record in catalogue()] == list(DATA_SETS)


@pytest.mark.parametrize("name", MAKERS)
def test_each_loads_as_the_catalogue_says(name: str, tmp_path: Path) -> None:
    record = DATA_SETS[name]
    MAKERS[name](record.where(tmp_path))
    assert record.missing(tmp_path) == []
    splits = load(name, tmp_path, workers=0)
    for data, split in zip(splits, ("train", "test"), strict=True):
        assert data.name == name
        assert data.split == split
        # Adult's one-hot columns are as many as there are names in the file.
        assert name == "adult" or tuple(data.input_shape) == record.input_shape
        assert data.class_names is not None
        assert name in OF_THEIR_OWN_CLASSES or data.classes == record.classes
        assert data.example().shape == (2, *data.input_shape)
        assert (data.normalization is None) == (name in NO_IMAGES)
        if data.normalization:
            assert len(data.normalization.mean) == record.input_shape[0]


@pytest.mark.parametrize("name", MAKERS)
def test_augmentation_is_the_paper_s_unless_asked_for(name: str, tmp_path: Path) -> None:
    MAKERS[name](DATA_SETS[name].where(tmp_path))
    train, test = load(name, tmp_path, workers=0)
    kind = {"cifar10": "PadCropFlip(padding=4)"} | dict.fromkeys(
        ("voc2007", "voc2007-objects", "cub200", "caltech20"), "ResizedCropFlip()"
    )
    assert repr(train.augmentation) == kind.get(name, "None")
    assert test.augmentation is None
    assert load(name, tmp_path, augment=False)[0].augmentation is None
    if name in NO_VIEWS:
        with pytest.raises(ConfigError, match=f"no augmentation for {name}"):
            load(name, tmp_path, augment=True)
        return
    train, test = load(name, tmp_path, augment=True, workers=0)
    assert repr(train.augmentation) == kind.get(name, repr(Affine()))
    assert test.augmentation is None


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_missing_is_named_with_its_place(name: str, tmp_path: Path) -> None:
    record = DATA_SETS[name]
    missing = record.missing(tmp_path)
    assert len(missing) == len(record.files)
    with pytest.raises(DataError) as caught:
        load(name, tmp_path)
    assert str(tmp_path / record.folder) in caught.value.what
    assert all(path.name in caught.value.what for path in missing)
    assert "DATADISTILL_DATA" in caught.value.remedy
    assert ("datadistill data fetch" in caught.value.remedy) == bool(record.downloads)


def test_a_single_missing_file_is_named(tmp_path: Path) -> None:
    makers.make_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    names = [path.name for path in DATA_SETS["mnist"].missing(tmp_path)]
    assert names == ["t10k-labels-idx1-ubyte.gz"]


def test_digits_need_no_files(tmp_path: Path) -> None:
    assert DATA_SETS["digits"].missing(tmp_path / "nowhere") == []


def test_stand_ins_are_not_canonical() -> None:
    assert not DATA_SETS["svhn-gray"].canonical
    assert not DATA_SETS["caltech20"].canonical
    assert DATA_SETS["mnist"].canonical


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("mnits", "Did you mean 'mnist'"),
        ("no/such/folder", "no file or folder no/such/folder"),
        ("none.npz", "no file or folder none.npz"),
    ],
)
def test_an_unknown_name_is_refused_with_the_choices(name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what) as caught:
        load(name, tmp_path)
    assert "cifar10" in caught.value.remedy


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("1,2\n")
    with pytest.raises(DataError, match=r"not an \.npz or \.csv file"):
        load(tmp_path / "table.txt")
