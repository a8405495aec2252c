"""Exchange with other software: distilled data in other formats, and those of other methods."""

from .exporting import FORMATS, export
from .importing import import_images

__all__ = ["FORMATS", "export", "import_images"]
