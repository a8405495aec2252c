"""The networks that come with datadistill, one file each.

To add one, add a file here: a module made with (channels, size, classes), and ``@register(NAME)``
above it. No other file has to change.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
