"""The files that sample jobs make: written whole or not at all, listed newest first, and bounded in number."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from django.conf import settings

KINDS = ("mail", "invoices", "reports", "thumbnails")
"""One folder each. ``mail`` is filled by Django's file-based mail backend, the others by ``write``."""

KEPT = 200
"""Files kept of each kind; a day of the sample stream makes some twenty thousand."""

_ABANDONED_SECONDS = 3600.0
_UNFINISHED = ".unfinished-"


def folder(kind: str) -> Path:
    """The folder of one kind, made if need be."""
    if kind not in KINDS:
        raise ValueError(f"There is no kind of output called {kind!r}")
    path = Path(settings.SAMPLES_DIR) / kind
    path.mkdir(parents=True, exist_ok=True)
    return path


def write(kind: str, name: str, content: bytes) -> Path:
    """Puts a file in its place in one step, so that a job killed half-way, or run twice, never leaves half a file."""
    target = folder(kind) / name
    descriptor, unfinished = tempfile.mkstemp(prefix=_UNFINISHED, dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(unfinished, target)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return target


def latest(kind: str, limit: int | None = None) -> list[Path]:
    """Finished files, newest first."""
    dated: list[tuple[float, Path]] = []
    for path in folder(kind).iterdir():
        try:
            if not path.name.startswith("."):
                dated.append((path.stat().st_mtime, path))
        except FileNotFoundError:  # removed by another process meanwhile
            continue
    return [path for _, path in sorted(dated, reverse=True)][:limit]


def tidy(keep: int = KEPT) -> int:
    """Removes all but the newest ``keep`` files of each kind, and what killed jobs left. Answers how many went."""
    removed = 0
    for kind in KINDS:
        abandoned = [path for path in folder(kind).glob(f"{_UNFINISHED}*") if _age_seconds(path) > _ABANDONED_SECONDS]
        for path in [*latest(kind)[keep:], *abandoned]:
            path.unlink(missing_ok=True)
            removed += 1
    return removed


def _age_seconds(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
