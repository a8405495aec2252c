"""Downloading data sets."""

from .fetching import Fetched, fetch

__all__ = ["Fetched", "fetch"]
