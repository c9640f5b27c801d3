"""Commands as processes: what a shell script sees when the world is not well."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from jobs import api
from tests.commands.conftest import ROOT, Result, run_process
from tests.support.wait import eventually


class Ended(NamedTuple):
    """A command with its end. ``starting``: how long a command that waits for nothing took at the same time."""

    result: Result
    seconds: float
    starting: float


NO_STORE = {
    "closed list": ("jobs", "list"),
    "closed enqueue": ("enqueue", "crm.push", "--allow-unknown"),
    "closed traceback": ("jobs", "list", "--traceback"),
    "closed doctor": ("doctor", "--json"),
    "hung show": ("jobs", "show", "x", "y", "z", "--json"),
    "hung enqueue": ("enqueue", "x", "--allow-unknown", "--json"),
    "hung doctor": ("doctor", "--json"),
}
"""Against a port where nothing listens, and against one where connections are accepted and nothing is ever answered."""


@pytest.fixture(scope="module")
def without_store(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """How these commands end: all at once, since they spend their time waiting."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "SCHEDULER_VAR_DIR": str(tmp_path_factory.mktemp("var")),
    }
    without_database = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}
    with socket.socket() as closed, socket.create_server(("127.0.0.1", 0), backlog=64) as hung:
        closed.bind(("127.0.0.1", 0))
        urls = {
            "closed": f"redis://:s3cret@127.0.0.1:{closed.getsockname()[1]}/0",
            "hung": f"redis://127.0.0.1:{hung.getsockname()[1]}/0",
        }

        def run(name: str, *command: str) -> tuple[Result, float]:
            more = without_database if name == "closed doctor" else {}
            began = time.monotonic()
            result = run_process(environment, *command, SCHEDULER_REDIS_URL=urls[name.split()[0]], **more)
            return result, time.monotonic() - began

        with ThreadPoolExecutor(1 + len(NO_STORE)) as threads:
            ends = {name: threads.submit(run, name, *command) for name, command in NO_STORE.items()}
            starting = threads.submit(run, "closed", "jobs", "lst").result()[1]
        return {name: Ended(*end.result(), starting) for name, end in ends.items()}


def test_a_command_is_a_process_with_data_on_standard_output_only(manage):
    result = manage("enqueue", "crm.push", "--allow-unknown", "--json")

    assert (result.code, result.err) == (0, "")
    assert api.get_job(result.json["id"]).type == "crm.push"


def test_a_wrong_command_line_exits_2(manage):
    result = manage("jobs", "lst")

    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err


@pytest.mark.parametrize("name", NO_STORE)
def test_whatever_the_store_does_a_command_ends_within_15_seconds(without_store, name):
    ended = without_store[name]

    assert ended.seconds < 15 + ended.starting


@pytest.mark.parametrize("name", ["closed list", "closed enqueue"])
def test_a_closed_port_exits_5_with_one_paragraph_and_no_password(without_store, name):
    result = without_store[name].result

    assert (result.code, result.out) == (5, "")
    assert "SCHEDULER_REDIS_URL" in result.err.splitlines()[-1]
    assert "s3cret" not in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("name", ["hung show", "hung enqueue"])
def test_a_hung_server_exits_5(without_store, name):
    result = without_store[name].result

    assert result.code == 5
    assert result.error["code"] in {"store_unavailable", "outcome_unknown", "nothing_done"}


def test_a_traceback_comes_only_when_asked_for(without_store):
    result = without_store["closed traceback"].result

    assert result.code == 5
    assert "Traceback" in result.err


def test_a_reader_that_has_seen_enough_is_no_failure(environment):
    for _ in range(30):
        api.enqueue_many("commands.greet", [{"name": "x" * 1000}] * 10)
    writer = subprocess.Popen(
        [sys.executable, "manage.py", "jobs", "list", "--limit", "300", "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None

    writer.stdout.read(10)
    writer.stdout.close()

    assert (writer.wait(30), writer.stderr.read()) == (0, b"")
    writer.stderr.close()


def test_ctrl_c_while_waiting_exits_130(environment):
    id = api.enqueue("commands.greet", {}).id
    waiting = subprocess.Popen(
        [sys.executable, "manage.py", "jobs", "wait", id],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert waiting.stderr is not None
    assert waiting.stderr.readline().startswith(f"wait for {id}: ".encode())

    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)

    assert (waiting.returncode, out, err) == (
        130,
        b"",
        f"Error: Interrupted: job {id} goes on. Wait again with 'manage.py jobs wait {id}'.\n".encode(),
    )


def test_on_a_terminal_there_is_a_table_with_colours(environment):
    api.enqueue("commands.greet", {})

    assert "\x1b[" in on_a_terminal(environment | {"TERM": "xterm"}, "jobs", "list")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_on_a_terminal_without_colour_there_is_none(environment, name, value):
    id = api.enqueue("commands.greet", {}).id

    shown = on_a_terminal(environment | {"TERM": "xterm", name: value}, "jobs", "list")

    assert "\x1b" not in shown
    assert id in shown


def on_a_terminal(environment, *argv):
    """What the command writes to a terminal of 120 columns."""
    environment = {name: value for name, value in environment.items() if name != "FORCE_COLOR"} | {"COLUMNS": "120"}
    master, slave = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "manage.py", *argv], cwd=ROOT, env=environment, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    shown = b""
    try:
        while chunk := os.read(master, 65_536):
            shown += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(master)
    assert command.wait(30) == 0
    return shown.decode()


def test_doctor_finds_a_system_that_is_well(manage, make_valkey):
    assert manage("migrate", "--verbosity", "0").code == 0
    server = make_valkey()

    result = manage("doctor", "--json", SCHEDULER_REDIS_URL=server.url)

    found = {check["check"]: check["status"] for check in result.json["checks"]}
    assert (result.code, result.json["ok"]) == (0, True)
    assert found.pop("channel layer") in {"ok", "skipped"}
    assert found == {
        "settings": "ok",
        "store": "ok",
        "server version": "ok",
        "persistence": "ok",
        "memory": "ok",
        "clock": "ok",
        "workers": "warning",
        "database": "ok",
        "time zone": "ok",
        "schedules": "ok",
    }


def test_doctor_works_when_all_is_down(without_store):
    result = without_store["closed doctor"].result

    found = {check["check"]: check for check in result.json["checks"]}
    assert (result.code, result.json["ok"]) == (1, False)
    assert found["store"]["setting"] == "SCHEDULER_REDIS_URL"
    assert found["database"]["setting"] == "DATABASE_URL"
    assert found["channel layer"]["status"] in {"failed", "skipped"}
    assert found["persistence"]["status"] == "skipped"
    assert found["time zone"]["status"] == "ok"


def test_doctor_ends_when_the_store_hangs(without_store):
    result = without_store["hung doctor"].result

    found = {check["check"]: check["status"] for check in result.json["checks"]}
    assert (result.code, found["store"]) == (1, "failed")


def test_waiting_sees_the_end_of_a_job(environment, succeed):
    id = api.enqueue("commands.greet", {}).id
    waiting = subprocess.Popen(
        [sys.executable, "manage.py", "jobs", "wait", id, "--json"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    eventually(lambda: waiting.poll() is None)

    succeed(id, "Hello")
    out, _ = waiting.communicate(timeout=60)

    assert waiting.returncode == 0
    assert json.loads(out)["result"] == "Hello"
