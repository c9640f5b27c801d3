"""``--reload``: the host follows the source while somebody works on it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from jobs.api import enqueue, get_job
from jobs.core.states import JobState
from tests.acceptance.hosts import Host, StartHost
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance

SOURCE = """
import time

from jobs import job

@job("reload.answer")
def answer() -> str:
    return {answer!r}

@job("reload.sleep")
def sleep(seconds: float) -> None:
    time.sleep(seconds)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    app = tmp_path / "apps" / "reloadable"
    app.mkdir(parents=True)
    (app / "__init__.py").touch()
    (app / "jobs.py").write_text(SOURCE.format(answer="old"))
    return app / "jobs.py"


@pytest.fixture
def host(start_host: StartHost, source: Path) -> Host:
    python_path = str(source.parent.parent)
    return start_host("--reload", SCHEDULER_APPS="reloadable", PYTHONPATH=python_path).consuming()


def answer() -> Any:
    job = enqueue("reload.answer", {}, allow_unknown=True)
    return eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found).result


def test_a_change_restarts_the_host_in_place_and_a_broken_one_is_waited_out(host: Host, source: Path) -> None:
    assert answer() == "old"

    source.write_text("this is not Python")
    eventually(lambda: "not reloaded" in host.log)
    assert answer() == "old"

    source.write_text(SOURCE.format(answer="new"))
    eventually(lambda: answer() == "new")
    assert host.process.poll() is None


def test_a_host_that_is_ending_does_not_begin_again_for_a_change(host: Host, source: Path) -> None:
    job = enqueue("reload.sleep", {"seconds": 4.0}, allow_unknown=True)
    eventually(lambda: get_job(job.id).is_running)  # one that has not begun is handed back

    host.signal(signal.SIGTERM)
    eventually(lambda: "stopping" in host.log)
    source.write_text(SOURCE.format(answer="new"))
    eventually(lambda: "changed: " in host.log)

    assert host.wait() == 0
    assert get_job(job.id).state == JobState.SUCCEEDED
