"""``manage.py dev`` as a new user meets it: a page, a login, finished jobs, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from jobs.management.commands import dev
from jobs.management.development import free_port as first_free_port
from tests.support.valkey import free_port
from tests.support.wait import eventually

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


class Development(subprocess.Popen[str]):
    """A running ``manage.py dev`` with a var dir of its own."""

    def __init__(self, var_dir: Path, *arguments: str, **environment: str) -> None:
        self.var_dir = var_dir
        self.log = var_dir.with_suffix(".log")
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("SCHEDULER_", "DJANGO_"))}
        with self.log.open("w") as log:
            super().__init__(
                [sys.executable, "manage.py", "dev", *arguments],
                cwd=ROOT,
                env={**outside, "SCHEDULER_VAR_DIR": str(var_dir), "PYTHONUNBUFFERED": "1", **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    def ready(self) -> str:
        """Waits for the banner and answers the address in it."""

        def banner() -> re.Match[str] | None:
            assert self.poll() is None, self.output
            return re.search(r"Dashboard +(http://\S+)/dashboard/", self.output)

        return eventually(banner, within=60)[1]

    def family(self) -> dict[int, str]:
        """Everything that runs over this var dir: process id → command line. Found by the environment it inherited."""
        mark = f"SCHEDULER_VAR_DIR={self.var_dir}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
        return found

    def try_next(self) -> list[list[str]]:
        """The commands that the banner names, in words."""
        lines = re.findall(r"manage\.py (\w.*)", self.output.partition("Try next")[2].partition("Ctrl-C")[0])
        assert len(lines) > 2
        return [shlex.split(line) for line in lines]

    def manage(self, *arguments: str) -> str:
        return self.run(*arguments).stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**os.environ, "SCHEDULER_VAR_DIR": str(self.var_dir)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which somebody has an account."""
    var_dir = tmp_path_factory.mktemp("people")
    outside = {**os.environ, "SCHEDULER_VAR_DIR": str(var_dir), "DJANGO_SUPERUSER_PASSWORD": "a-real-one"}
    for command in (
        ["migrate", "--verbosity", "0", "--skip-checks"],
        ["createsuperuser", "--noinput", "--username", "ada", "--email", "ada@example.com", "--skip-checks"],
    ):
        subprocess.run([sys.executable, "manage.py", *command], cwd=ROOT, env=outside, check=True, capture_output=True)
    return var_dir / "db.sqlite3"


@pytest.fixture
def start_dev(tmp_path: Path) -> Iterator[Callable[..., Development]]:
    started: list[Development] = []

    def start(*arguments: str, database: Path | None = None, **environment: str) -> Development:
        var_dir = tmp_path / f"var{len(started)}"
        if database is not None:
            var_dir.mkdir()
            shutil.copy(database, var_dir)
        started.append(Development(var_dir, *arguments, **environment))
        return started[-1]

    yield start
    for development in started:
        development.kill()
        development.wait()
        for pid in development.family():
            with suppress(ProcessLookupError):  # on its way out by itself
                os.kill(pid, signal.SIGKILL)


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def test_it_shows_finished_jobs_lets_a_worker_go_and_leaves_nothing_behind_after_ctrl_c(start_dev):
    port = free_port()
    development = start_dev("--port", str(port))

    assert development.ready() == f"http://127.0.0.1:{port}"
    assert "admin / admin" in development.output
    eventually(lambda: '"succeeded"' in development.manage("jobs", "list", "--state", "succeeded", "--json"))
    for words in development.try_next():
        assert development.run(*words).returncode == 0, words

    workers = json.loads(development.manage("workers", "list", "--json"))["items"]
    development.manage("workers", "drain", workers[0]["id"])
    eventually(lambda: "worker has ended, as it was told to" in development.output)
    assert "<form" in page(f"http://127.0.0.1:{port}/accounts/login/")

    development.send_signal(signal.SIGINT)

    assert development.wait(30) == 0
    assert development.family() == {}
    assert "Everything has stopped." in development.output
    assert "Traceback" not in development.output


def test_where_people_have_accounts_none_is_made_and_killing_it_leaves_nothing_behind(start_dev, people):
    development = start_dev("--port", str(free_port()), database=people)
    development.ready()
    assert "your own account" in development.output
    assert "admin / admin" not in development.output
    assert len(development.family()) > 4

    development.kill()
    development.wait()

    assert eventually(lambda: not development.family())


def test_the_death_of_one_part_is_said_and_ends_the_others(start_dev, people):
    development = start_dev("--port", str(free_port()), "--no-samples", database=people)
    development.ready()
    web = next(pid for pid, command in development.family().items() if "uvicorn" in command)

    os.kill(web, signal.SIGKILL)

    assert development.wait(30) == 1
    assert "web was killed by SIGKILL" in development.output or "web killed by SIGKILL" in development.output
    assert eventually(lambda: not development.family())


def test_a_port_in_use_is_refused_by_name(start_dev):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = start_dev("--port", str(port))

        assert refused.wait(30) == 1
        assert f"Port {port} is in use" in refused.output


def test_without_a_port_a_free_one_is_found():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert first_free_port(port) not in (None, port)


def test_it_refuses_to_run_in_production(start_dev):
    refused = start_dev(DJANGO_DEBUG="0", DJANGO_SECRET_KEY="x" * 50, DJANGO_ALLOWED_HOSTS="localhost")

    assert refused.wait(30) == 4
    assert "development only" in refused.output


def test_the_pages_are_told_where_the_project_has_put_them(settings) -> None:
    assert [line.split() for line in dev.pages("http://h").splitlines()] == [
        ["Dashboard", "http://h/dashboard/"],
        ["Admin", "http://h/admin/"],
    ]
    settings.ROOT_URLCONF = "tests.dashboard.mounted"
    assert dev.pages("http://h").split() == ["Dashboard", "http://h/ops/dashboard/"]


@pytest.mark.parametrize("port", ["0", "65536", "99999999", "-1", "http"])
def test_a_port_that_is_none_is_a_usage_error(port: str) -> None:
    with pytest.raises(CommandError, match="is not a port: write a number from 1 to 65535"):
        call_command("dev", f"--port={port}")
