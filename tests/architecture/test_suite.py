"""The suite keeps its own promises: it says what it ran against, and in CI nothing is left out quietly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SKIPPING = """
import pytest

def test_that_lacks_something():
    pytest.skip("no browser here")

def test_that_lacks_nothing():
    assert True
"""


@pytest.fixture
def run_suite(tmp_path):
    """Runs a file of tests under this suite's own rules, against the server of this run."""

    def run(program: str, valkey: str | None, **environment: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_probe.py").write_text(program)
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
