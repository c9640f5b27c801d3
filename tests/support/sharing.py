"""How a run is shared out among processes (pytest-xdist): how many there are, and which tests stay together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

FEW = 20
"""Files. So many are done in one process before two have started."""

PIECES = {
    "idle hosts": ("tests/acceptance/test_idle.py",),
    "worker hosts": ("tests/acceptance/", "tests/faults/test_scenarios.py", "tests/faults/test_seeded_processes.py"),
    "browsers": ("tests/browser/",),
}
"""Worker hosts by the handful, and browsers: of each kind there are never two at a time. Only hosts with nothing to do
bear company: for most of a minute their commands are counted, of which a busy machine sends no more. The first that
fits holds."""

LONG = (
    *("tests/commands/", "tests/engine_model/", "tests/faults/", "tests/architecture/test_checks.py", "tests/store/"),
    *("tests/workflows/", "tests/dashboard/test_tampered.py"),
)
"""Those that follow: what is left for the end are files of a few seconds."""


def count_processes(config: pytest.Config) -> int:
    """How many processes the run is worth; 0 = all of it in this one."""
    processors = os.cpu_count() or 1
    if processors == 1 or config.option.capture == "no" or _count_files(config.args) < FEW:
        return 0
    # One of them waits most of the time, for worker hosts. Half of a large machine is for what tests start.
    return 3 if processors < 8 else 4


def _count_files(arguments: list[str]) -> int:
    paths = {Path(argument.partition("::")[0]) for argument in arguments}
    return sum(len(list(path.rglob("test_*.py"))) if path.is_dir() else 1 for path in paths)


class Pieces(LoadScopeScheduling):
    """Hands out whole pieces, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return piece_of(nodeid)


def piece_of(nodeid: str) -> str:
    """The piece of work that a test belongs to: its file, or the group that its file is in."""
    return next((name for name, files in PIECES.items() if nodeid.startswith(files)), nodeid.partition("::")[0])


def beginning_elsewhere(config: pytest.Config, found: list[Any]) -> list[Any]:
    """What is in a folder, so that each process of the run begins at another place: who imports a file of tests first
    rewrites its assertions, which takes as long as all else, and leaves them for the others."""
    of_the_run: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
    start = int(of_the_run["workerid"].removeprefix("gw")) * len(found) // of_the_run["workercount"]
    return found[start:] + found[:start]


def longest_first(items: list[pytest.Item]) -> None:
    """Puts long pieces of work first, so that no process still has one when the others have nothing left. The order is
    the same wherever a process began to collect."""
    order = [*PIECES.values(), LONG]
    items.sort(key=lambda item: ([not item.nodeid.startswith(files) for files in order], item.path))


def encodable(value: Any) -> Any:
    """The same with every text such that it can be encoded: lone surrogates as escapes."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {encodable(key): encodable(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(encodable, value))
    return value
