"""A server on loopback, for every test that fetches."""

from collections.abc import Generator

import pytest

from .test_server import Site, running_site


@pytest.fixture
def site() -> Generator[Site]:
    with running_site() as site:
        yield site
