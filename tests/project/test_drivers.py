"""Benchmarks, fault runs and tests start processes. However their driver dies, none of these is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.hosts import ROOT, is_alive
from tests.support.wait import eventually

STARTS = {
    "benchmarks": """
from benchmarks.hosts import Host
host = Host(os.environ["SCHEDULER_REDIS_URL"], folder)
host.__enter__()
pid = host._process.pid
""",
    "faults": """
from tests.faults.hosts import WorkerHost
pid = WorkerHost("host", [], dict(os.environ), folder / "log").pid
""",
    "acceptance": """
from tests.acceptance.hosts import Host
pid = Host(environment=dict(os.environ), log=folder / "log").pid
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the processes")
@pytest.mark.parametrize("kind", STARTS)
def test_a_driver_that_is_killed_leaves_no_worker_host(
    kind: str, valkey_url: str, namespace: str, tmp_path: Path
) -> None:
    script = f"""
import os, time
from pathlib import Path
folder = Path({str(tmp_path)!r})
{STARTS[kind]}
print(pid, flush=True)
time.sleep(600)
"""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        "SCHEDULER_REDIS_URL": valkey_url,
        "SCHEDULER_NAMESPACE": namespace,
        "SCHEDULER_VAR_DIR": str(tmp_path / "var"),
    }
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        host = int(driver.stdout.readline())
        assert is_alive(host)
        driver.send_signal(signal.SIGKILL)

    eventually(lambda: not is_alive(host))
