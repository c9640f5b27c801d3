"""What a supervisor knows of a child that cannot speak."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.wait import eventually
from tests.worker.handles import child_handle


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_frozen_worker_is_told_as_one_that_takes_nothing() -> None:
    with child_handle() as (child, _), subprocess.Popen(["sleep", "60"]) as sleeper:
        child.pid = sleeper.pid
        assert child.trouble is None
        sleeper.send_signal(signal.SIGSTOP)
        eventually(lambda: child.trouble == f"its process is frozen; kill -CONT {sleeper.pid} wakes it")
        sleeper.kill()
