"""Web processes as they run in life: ``uvicorn`` in a process of its own, which can be killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from django.db import connection

from jobs.runtime.process import tied

ROOT = Path(__file__).parents[2]


class WebProcess:
    """A real ``uvicorn``. ``start`` after ``end`` keeps its address."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._environment, self._log = environment, log
        self.start()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        arguments = ["--port", str(self.port), "--ws", "websockets-sansio", "--lifespan", "off"]
        command = [sys.executable, "-m", "uvicorn", "scheduler_project.asgi:application", *arguments]
        with self._log.open("a") as output:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=output, stderr=subprocess.STDOUT, preexec_fn=tied()
            )

    def answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait(10)


def environment_of(valkey_url: str, namespace: str, var_dir: Path) -> dict[str, str]:
    """What another process must find around it to share the store and the database of this test."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",  # for its passwords
        "SCHEDULER_REDIS_URL": valkey_url,
        "SCHEDULER_NAMESPACE": namespace,
        "SCHEDULER_VAR_DIR": str(var_dir),
        "DATABASE_URL": _database_url(),
    }


def _database_url() -> str:
    facts = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{facts['NAME']}"
    return f"postgres://{facts['USER']}:{facts['PASSWORD']}@{facts['HOST']}:{facts['PORT']}/{facts['NAME']}"
