from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.hosts import ROOT, Host, Journal, Manage, StartHost

HANDLERS = "tests.acceptance.handlers"


@pytest.fixture(scope="session")
def migrated_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("database") / "db.sqlite3"
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": f"sqlite:///{path}",
            "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        },
        check=True,
    )
    return path


@pytest.fixture
def database_url(migrated_database: Path, tmp_path: Path) -> str:
    """A migrated database of this test's own: the rows of a pool would reach the hosts of other tests."""
    return f"sqlite:///{shutil.copy(migrated_database, tmp_path / 'hosts.sqlite3')}"


@pytest.fixture
def server_url(valkey_url: str) -> str:
    """The server that hosts of this test use; overridden where the test hurts it."""
    return valkey_url


@pytest.fixture
def environment(server_url: str, namespace: str, database_url: str, tmp_path: Path) -> dict[str, str]:
    """What ``manage.py`` must find around it to belong to this test."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        "SCHEDULER_REDIS_URL": server_url,
        "SCHEDULER_NAMESPACE": namespace,
        "SCHEDULER_APPS": HANDLERS,
        "SCHEDULER_VAR_DIR": str(tmp_path / "var"),
        "DATABASE_URL": database_url,
    }


@pytest.fixture
def start_host(environment: dict[str, str], tmp_path: Path) -> Iterator[StartHost]:
    """``start_host("--burst", …, NAME="value")``: arguments of ``runworkers`` and additions to its environment;
    ``reads_output`` as in ``Host``."""
    hosts: list[Host] = []

    def start(*arguments: str, reads_output: bool = True, **additions: str) -> Host:
        log = tmp_path / f"host-{len(hosts)}.log"
        hosts.append(Host(*arguments, environment={**environment, **additions}, log=log, reads_output=reads_output))
        return hosts[-1]

    yield start
    for host in hosts:
        host.end()
        print(f"--- {host.arguments}\n{host.log}")  # shown when the test fails


@pytest.fixture
def manage(environment: dict[str, str]) -> Manage:
    """``manage("pools", "list")``: another command, run to its end; what it prints."""

    def run(*arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    return run


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")
