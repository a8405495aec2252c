"""The data sets that come with datadistill, one file each.

To add one, add a file here: a loader, and beside it ``DATA_SET = register(DataSet(…))``. No other
file has to change.

The checksums of MNIST, Fashion-MNIST and CIFAR-10 were verified on the real files. The others are
published beside the files and used by common libraries.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
