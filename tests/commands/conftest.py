"""Commands as scripts and people call them: in this process where that is enough, as real processes where it is not."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from django.core.management import load_command_class

from jobs import api, job
from jobs.core.job import LeasedJob, Route
from jobs.engine import Completion, Failure, get_engine, new_token

ROOT = Path(__file__).parents[2]


@job("commands.greet", max_retries=1)
def greet(name: str = "Ana", *, times: int = 1) -> str:
    """A type with a signature, for payloads that fit and payloads that do not."""
    return f"Hello {name}! " * times


@job("commands.login", redact=("password",))
def login(user: str, password: str) -> None:
    """A type with an argument that nobody should see."""


class Result(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error document of ``--json``."""
        return json.loads(self.err)["error"]


Cli = Callable[..., Result]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command in this process: ``cli("jobs", "show", id)``. Nobody sits at a terminal."""

    def run(*argv: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin), isatty=lambda: False))
        capsys.readouterr()
        code = 0
        try:
            load_command_class("jobs", argv[0]).run_from_argv(["manage.py", *argv])
        except SystemExit as end:
            code = int(end.code or 0)
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def environment(valkey_url: str, namespace: str, var_dir: Path) -> dict[str, str]:
    """The environment of a process that shares this test's jobs."""
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "SCHEDULER_REDIS_URL": valkey_url,
        "SCHEDULER_NAMESPACE": namespace,
        "SCHEDULER_VAR_DIR": str(var_dir),
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def manage(environment: dict[str, str]) -> Cli:
    """Runs ``manage.py`` as a process of its own, with pipes for streams."""
    return partial(run_process, environment)


def run_process(environment: dict[str, str], *argv: str, stdin: bytes = b"", within: float = 90, **more: str) -> Result:
    """``more``: into its environment."""
    ended = subprocess.run(
        [sys.executable, "manage.py", *argv],
        cwd=ROOT,
        env=environment | more,
        input=stdin,
        capture_output=True,
        timeout=within,
        check=False,
    )
    return Result(ended.returncode, ended.stdout.decode(), ended.stderr.decode())


@pytest.fixture
def lease() -> Callable[[str], LeasedJob]:
    """Plays the worker: takes the job of this id, which must be the next in its line, and starts it."""

    def take(id: str) -> LeasedJob:
        engine = get_engine()
        job = api.get_job(id)
        route = Route(job.pool, job.queue_version, job.partition)
        [leased] = engine.leases.lease(route, worker="w1", token=new_token(), limit=1, lease_ms=60_000).jobs
        assert leased.id == id
        engine.leases.start(route, [(id, leased.token, leased.leased_at)])
        return leased

    return take


@pytest.fixture
def succeed(lease: Callable[[str], LeasedJob]) -> Callable[..., None]:
    """Ends a ready job well."""

    def end(id: str, result: object = None) -> None:
        held = lease(id)
        completion = Completion(id, held.token, held.type, held.leased_at, json.dumps(result).encode(), None)
        assert get_engine().leases.complete(held.route, [completion]) == ["ok"]

    return end


@pytest.fixture
def bury(lease: Callable[[str], LeasedJob]) -> Callable[..., str]:
    """Lets a ready job die of an error; answers its id."""

    def end(id: str, message: str = "no route to host", type: str = "OSError") -> str:
        held = lease(id)
        error = {"type": type, "message": message, "traceback": f"Traceback:\n  in greet\n{type}: {message}"}
        failure = Failure(
            id, held.token, held.type, held.leased_at, "dead", 0, held.priority, json.dumps(error).encode()
        )
        assert get_engine().leases.fail(held.route, [failure]) == ["dead"]
        return id

    return end


@pytest.fixture
def dead(bury: Callable[..., str]) -> Callable[..., str]:
    """A new job, dead of the error given; answers its id."""

    def make(message: str = "no route to host", *, type: str = "OSError", **options: Any) -> str:
        return bury(api.enqueue("commands.greet", {}, **options).id, message, type)

    return make
