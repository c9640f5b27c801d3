"""What the tests of the engine share."""

from __future__ import annotations

import pytest

from jobs.engine import Engine
from tests.support.steps import Steps


@pytest.fixture
def steps(engine: Engine) -> Steps:
    """A producer and a worker of the pool ``default``."""
    return Steps(engine)
