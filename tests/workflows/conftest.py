"""What the tests of runs share."""

from __future__ import annotations

import pytest

from jobs.engine import Engine
from tests.support.runs import Runs


@pytest.fixture
def runs(engine: Engine) -> Runs:
    """Runs under a clock that the test moves."""
    return Runs(engine)
