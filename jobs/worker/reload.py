"""Restarts the host when source files change, for development. A change that does not import is waited out."""

from __future__ import annotations

import logging
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from django.apps import apps

from jobs.runtime.loop import sleep

log = logging.getLogger("jobs.worker")

POLL_SECONDS = 1.0


class SourceWatch(threading.Thread):
    """Calls ``on_change`` once, when a source file of the project has changed and the project still imports."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        super().__init__(name="reload", daemon=True)
        self._on_change = on_change

    def run(self) -> None:
        roots = source_roots()
        log.info("watching %s", ", ".join(map(str, roots)))
        for changed in _changes(roots):
            log.info("changed: %s", ", ".join(sorted(changed)))
            if _imports():
                self._on_change()
                return


def source_roots() -> list[Path]:
    """The folders of the installed apps that are not installed packages, none inside another."""
    packages = Path(sysconfig.get_path("purelib")).resolve()
    folders = {Path(config.path).resolve() for config in apps.get_app_configs()}
    own = sorted(folder for folder in folders if not folder.is_relative_to(packages))
    return [folder for folder in own if not any(folder != other and folder.is_relative_to(other) for other in own)]


def _changes(roots: list[Path]) -> Iterator[set[str]]:
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        yield from _polled(roots)
    else:
        for batch in watch(*roots, watch_filter=PythonFilter()):
            yield {path for _, path in batch}


def _polled(roots: list[Path]) -> Iterator[set[str]]:
    before = _times(roots)
    while True:
        sleep(POLL_SECONDS)
        after = _times(roots)
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        before = after
        if changed:
            yield changed


def _times(roots: list[Path]) -> dict[str, int]:
    times = {}
    for root in roots:
        for path in root.rglob("*.py"):
            try:
                times[str(path)] = path.stat().st_mtime_ns
            except FileNotFoundError:
                continue
    return times


def _imports() -> bool:
    """Whether a new process could start with the code as it is now; if not, the old code goes on serving."""
    trial = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"], capture_output=True, text=True, check=False
    )
    if trial.returncode:
        log.error("not reloaded, the workers go on with the code they have:\n%s", trial.stderr.strip())
    return trial.returncode == 0
