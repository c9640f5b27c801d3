"""The checks that need no running product are part of the suite, so that green means all of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)  # types take minutes on a busy machine
@pytest.mark.parametrize("check", ["format", "lint", "types", "layers", "migrations", "lua"])
def test_the_project_passes(check):
    if check == "lua" and shutil.which("luacheck") is None:
        pytest.skip("luacheck is not installed (Debian: apt-get install lua-check)")

    done = subprocess.run(
        [ROOT / "bin" / "check", check],
        env={**os.environ, "VENV": sys.prefix},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, f"bin/check {check} says:\n{done.stdout}{done.stderr}"
