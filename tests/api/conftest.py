"""The engine of this process, on the shared server, with a few job types registered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.engine import Engine, get_engine
from jobs.registry import registry
from tests.api import types


@pytest.fixture(autouse=True)
def _job_types() -> Iterator[None]:
    with registry.restored():
        types.register()
        yield


@pytest.fixture
def engine() -> Engine:
    """The one that the API itself uses: what a test sets up here, the API sees."""
    return get_engine()
