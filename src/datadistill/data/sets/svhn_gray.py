"""svhn-gray: grey digits cut from the test photographs of SVHN, in the format of SVHN."""

from pathlib import Path

from ..data_set import DataSet, register
from ..labelled import LabelledData
from ..normalization import Normalization
from ..options import Options
from .svhn import FILES, load_mat_pair


def load_svhn_gray(folder: Path, options: Options) -> tuple[LabelledData, LabelledData]:
    """Reads svhn-gray. It is not SVHN: results on the two cannot be compared."""
    # Mean and standard deviation of its own training images.
    normalization = Normalization((0.4539,) * 3, (0.2147,) * 3)
    return load_mat_pair(folder, options, "svhn-gray", normalization)


DATA_SET = register(
    DataSet(
        name="svhn-gray",
        what="20,853 + 5,169 grey digits cut from SVHN's test photographs; not SVHN",
        input_shape=(3, 32, 32),
        classes=10,
        folder="svhn-gray",
        files=tuple((name,) for name in FILES),
        loader=load_svhn_gray,
        order=70,
    )
)
