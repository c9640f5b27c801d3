from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from jobs.runtime import process
from tests.support.wait import eventually


def test_two_host_ids_of_one_process_differ() -> None:
    first, second = process.new_host_id(), process.new_host_id()

    assert first != second
    assert f"-{os.getpid()}-" in first


def test_a_host_id_holds_no_strange_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Jürgens Mac {1}")
    assert process.new_host_id().startswith("J-rgens-Mac--1--")


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (0, "exited with code 0"),
        (3, "exited with code 3"),
        (-9, "killed by SIGKILL (9)"),
        (-11, "killed by SIGSEGV (11)"),
        (-250, "killed by signal (250)"),
    ],
)
def test_exits_in_words(exit_code: int, words: str) -> None:
    assert process.describe_exit(exit_code) == words


def test_resident_memory_is_that_of_the_process_and_0_when_it_is_gone() -> None:
    assert process.resident_bytes(os.getpid()) > 10 << 20
    assert process.resident_bytes(2**22 + 1) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_stopped_process_is_told_from_a_running_one() -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        assert not process.is_stopped(sleeper.pid)
        sleeper.send_signal(signal.SIGSTOP)
        eventually(lambda: process.is_stopped(sleeper.pid))
        sleeper.send_signal(signal.SIGCONT)
        eventually(lambda: not process.is_stopped(sleeper.pid))
        sleeper.kill()
    assert not process.is_stopped(sleeper.pid)


ORPHAN = """
import os, sys, time
from jobs.runtime.process import die_with_parent
parent = os.getpid()
pid = os.fork()
if pid == 0:
    die_with_parent(parent)
    time.sleep(60)
print(pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_a_child_dies_with_its_parent_however_that_dies() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        eventually(lambda: not os.path.exists(f"/proc/{child}/cwd") or _is_zombie(child))


def _is_zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"


def test_processor_time_grows_with_work_and_is_nothing_of_who_is_gone() -> None:
    before = process.cpu_seconds(os.getpid())
    while process.cpu_seconds(os.getpid()) == before:
        sum(range(10_000))

    assert process.cpu_seconds(os.getpid()) > before > 0
    assert process.cpu_seconds(2**30) == 0.0
