"""The suite keeps its own promises: it says what it ran against, and in CI nothing is left out quietly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import sharing

ROOT = Path(__file__).parents[2]

SKIPPING = """
import pytest

def test_that_lacks_something():
    pytest.skip("no browser here")

def test_that_lacks_nothing():
    assert True
"""

POSSESSIONS = """
import json
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

@pytest.mark.django_db
def test_that_writes_down_what_its_process_has(valkey_url, worker_id):
    facts = [valkey_url, str(settings.VAR_DIR), str(connection.settings_dict["NAME"])]
    Path(__file__).with_suffix(".json").write_text(json.dumps([worker_id, *facts]))
"""


@pytest.fixture
def run_suite(tmp_path):
    """Runs tests under this suite's own rules, against the server of this run or (None) one of their own."""

    def run(
        program: str, valkey: str | None, *arguments: str, files: tuple[str, ...] = ("probe",), **environment: str
    ) -> subprocess.CompletedProcess[str]:
        for name in files:
            (tmp_path / f"test_{name}.py").write_text(program)
        outside = {name: value for name, value in os.environ.items() if name not in ("CI", "REQUIRE_CONTAINERS")}
        named = {"SCHEDULER_TEST_REDIS_URL": valkey} if valkey else {}
        return subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-c",
                "pyproject.toml",
                "-p",
                "tests.conftest",
                "-p",
                "no:cacheprovider",
                *arguments,
                tmp_path,
            ],
            cwd=ROOT,
            env={**outside, **named, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_on_a_laptop_a_missing_part_is_skipped_and_named(run_suite, valkey_url):
    ended = run_suite(SKIPPING, valkey_url)

    assert ended.returncode == 0
    assert ", named by SCHEDULER_TEST_REDIS_URL; Django " in ended.stdout, "the header says which server ran"
    assert "1 passed, 1 skipped" in ended.stdout
    assert "no browser here" in ended.stdout


def test_in_ci_a_skip_is_a_failure(run_suite, valkey_url):
    ended = run_suite(SKIPPING, valkey_url, CI="true")

    assert ended.returncode == 1
    assert "1 failed, 1 passed" in ended.stdout
    assert "a skip is a failure when CI is set" in ended.stdout
    assert "no browser here" in ended.stdout


def test_required_containers_are_not_replaced_by_anything_else(run_suite):
    ended = run_suite(SKIPPING, None, REQUIRE_CONTAINERS="1", DOCKER_HOST="unix:///nowhere/engine.sock")

    assert ended.returncode != 0
    assert "REQUIRE_CONTAINERS is set, but no container engine answers" in ended.stdout + ended.stderr
    assert "passed" not in ended.stdout


def test_the_processes_of_a_shared_run_have_nothing_in_common(run_suite, tmp_path):
    without_containers = {"DOCKER_HOST": "unix:///nowhere/engine.sock"}  # which take their time to start
    ended = run_suite(POSSESSIONS, None, "-n", "2", "--no-migrations", files=("one", "two"), **without_containers)

    assert ended.returncode == 0, ended.stdout
    assert ", for each of 2 processes; Django " in ended.stdout, "the header says which servers ran"
    one, two = (json.loads((tmp_path / f"test_{name}.json").read_text()) for name in ("one", "two"))
    assert [mine == other for mine, other in zip(one, two, strict=True)] == [False] * 4, (one, two)


@pytest.mark.parametrize(
    ("arguments", "capture", "processors", "expected"),
    [
        (["tests"], "fd", 2, 3),
        (["tests"], "fd", 16, 4),
        (["tests"], "fd", 1, 0),
        (["tests"], "no", 2, 0),
        (["tests/conf", "tests/registry"], "fd", 2, 0),
        (["tests/conftest.py::one", "tests/conftest.py::two"], "fd", 2, 0),
    ],
    ids=["all", "all, large machine", "all, one processor", "all, to be looked at", "few files", "few tests"],
)
def test_a_run_is_shared_out_where_that_is_faster(monkeypatch, arguments, capture, processors, expected):
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    config = SimpleNamespace(args=arguments, option=SimpleNamespace(capture=capture))

    assert sharing.count_processes(config) == expected


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("tests/core/test_retry.py::test_a", "tests/core/test_retry.py::TestB::test_c[x/y]", True),
        ("tests/core/test_retry.py::test_a", "tests/core/test_payload.py::test_a", False),
        ("tests/faults/test_scenarios.py::test_a", "tests/acceptance/test_leases.py::test_a", True),
        ("tests/acceptance/test_idle.py::test_a", "tests/acceptance/test_leases.py::test_a", False),
        ("tests/browser/test_live.py::test_a", "tests/acceptance/test_leases.py::test_a", False),
    ],
    ids=["one file", "two files", "two files with worker hosts", "idle hosts and others", "a browser and worker hosts"],
)
def test_what_stays_together_in_one_process(one, other, together):
    assert (sharing.piece_of(one) == sharing.piece_of(other)) is together


def test_each_process_collects_from_a_place_of_its_own_and_all_hand_out_in_one_order():
    files = [f"tests/{name}.py" for name in ("acceptance/test_idle", "acceptance/test_leases", "core/test_retry")]

    def order_of(process: int) -> tuple[list[str], list[str]]:
        """Of the files as it collects them, and of the tests as it hands them out."""
        config = SimpleNamespace(workerinput={"workerid": f"gw{process}", "workercount": 3})
        collected = sharing.beginning_elsewhere(config, files)
        items = [SimpleNamespace(nodeid=f"{file}::{test}", path=Path(file)) for file in collected for test in "ba"]
        sharing.longest_first(items)
        return collected, [item.nodeid for item in items]

    collected, handed_out = zip(*map(order_of, range(3)), strict=True)

    assert [order[0] for order in collected] == files
    assert list(handed_out) == [[f"{file}::{test}" for file in files for test in "ba"]] * 3


def test_what_a_test_printed_can_travel_whatever_it_was() -> None:
    told = {"sections": [("Captured log", "half a character: \ud800")], "nodeid": "a", "duration": 1.5}

    assert sharing.encodable(told) == {**told, "sections": [("Captured log", "half a character: \\ud800")]}
