"""The settings in force, as people may see them."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from jobs.api.redaction import shown_text
from jobs.conf import DEFAULTS, KEYS, get_settings
from jobs.core.redaction import Redaction

TRACEPARENT = re.compile("[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
"""The header of W3C Trace Context, section 3.2.2; its first group is the id of the trace."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One key of ``SCHEDULER``. ``is_default``: the project does not say otherwise."""

    key: str
    value: Any
    is_default: bool


def settings() -> list[Setting]:
    """All of them, by key. Passwords and tokens are masked."""
    found = get_settings()
    values = {key: getattr(found, name) for key, name in KEYS.items()}
    shown = Redaction(found.redact_keys).value({key: _plain(value) for key, value in values.items()})
    return [
        Setting(
            key=key,
            value=_without_passwords(shown[key]) if values[key] else _plain(values[key]),  # what is empty hides nothing
            is_default=values[key] == DEFAULTS[key],
        )
        for key in sorted(values)
    ]


def trace_url(traceparent: object) -> str:
    """Where the project's tracing system shows the trace of this ``traceparent``; empty where it has none, or the text
    belongs to no trace."""
    found = TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return get_settings().trace_url.replace("{trace_id}", found[1]) if found else ""


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str, list, dict)) else str(value)


def _without_passwords(value: Any) -> Any:
    return shown_text(value) if isinstance(value, str) else value
