"""Downloads of data sets, checked and resumed."""

from .fetching import Fetched, fetch

__all__ = ["Fetched", "fetch"]
