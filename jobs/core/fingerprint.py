"""Telling one error from another: the same error of many jobs has one fingerprint, whatever differs from job to job."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

REMEMBERED = 256
"""Messages and tracebacks: jobs that die of one error mostly die of the very same."""


def fingerprint_of(error: Mapping[str, Any] | None) -> str:
    """The fingerprint of an error as jobs have it: type, message, traceback."""
    return fingerprint(*parts_of(error))


def parts_of(error: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """What a fingerprint is made of: the class of an error, its message, and where it came from."""
    found = error or {}
    place = own_frame(str(found.get("traceback") or ""))
    return str(found.get("type") or "unknown"), str(found.get("message") or ""), place


def fingerprint(error_type: str, message: str, place: str) -> str:
    """One word for one error: its class, its message without what differs from job to job, and where it came from."""
    parts = "\n".join((error_type, normalised(message), place))
    return hashlib.blake2b(parts.encode("utf-8", "replace"), digest_size=6).hexdigest()


@lru_cache(REMEMBERED)
def normalised(message: str) -> str:
    """The message with numbers, ids, addresses, quoted text and mail addresses replaced by marks."""
    for pattern, mark in _VARYING:
        message = pattern.sub(mark, message)
    return message


@lru_cache(REMEMBERED)
def own_frame(traceback: str) -> str:
    """``file:function`` of the deepest frame outside installed packages and Python itself, or of the deepest at all.

    No line number: an unrelated edit above must not split the group.
    """
    frames: list[tuple[str, str]] = FRAME.findall(traceback)
    own = [frame for frame in frames if not FOREIGN.search(frame[0])]
    if not frames:
        return ""
    path, function = (own or frames)[-1]
    return f"{'/'.join(path.split('/')[-2:])}:{function}"


FRAME = re.compile(r'^\s*File "([^"]+)", line \d+, in (\S+)', re.MULTILINE)
FOREIGN = re.compile(r"site-packages|dist-packages|/lib/python\d|^<|/jobs/worker/")

# In this order: the more telling first, since what is replaced cannot be matched again.
_VARYING = (
    (re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"), "<mail>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`"), "<text>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"), "<hex>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)
