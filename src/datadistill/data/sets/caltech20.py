"""caltech20: 50 training and 25 test images for each of 20 classes of Caltech-101."""

from pathlib import Path

from ..data_set import DataSet, register
from ..images.image_files import USUAL_MARGIN
from ..images.image_folder import load_split_folders
from ..labelled import LabelledData
from ..options import Options


def load_caltech20(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads ``train/<class>/…`` and ``test/<class>/…``.

    It replaces PASCAL-VOC 2007 where that is not available, and is augmented in the same way.
    Results on the two cannot be compared.
    """
    return load_split_folders(folder, options, "caltech20", augment=True, margin=USUAL_MARGIN)


DATA_SET = register(
    DataSet(
        name="caltech20",
        what="1,000 + 500 photographs of 20 classes of Caltech-101; stands in for VOC 2007",
        input_shape=(3, 224, 224),
        classes=20,
        folder="caltech20",
        files=(("train",), ("test",)),
        loader=load_caltech20,
        order=120,
    )
)
