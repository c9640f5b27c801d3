"""What the tests of single scripts share."""

from __future__ import annotations

import pytest

from jobs.store.connection import Store
from tests.support.partition import Partition


@pytest.fixture
def partition(store: Store) -> Partition:
    """An empty partition."""
    return Partition(store)
