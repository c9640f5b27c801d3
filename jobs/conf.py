"""The library's settings: Django's ``SCHEDULER`` dict, checked and frozen. Nothing else reads that dict."""

from __future__ import annotations

import difflib
import os
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

SECRET_KEYS = (
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "card_number",
    "cvv",
    "cvc",
    "ssn",
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a project can decide. The field ``lease_seconds`` is the key ``LEASE_SECONDS``, and so on."""

    redis_url: str = "embedded:"
    """Server of the engine, in any of the forms of the environment's `SCHEDULER_REDIS_URL`."""
    var_dir: Path = Path("var")
    """Where the embedded server keeps its data; relative to the folder in which a process begins."""
    namespace: str = "mainspring"
    """Prefix of every key and channel."""
    lease_seconds: float = 10.0
    """How long a worker holds a job without renewing. It renews at a third of it, and each second at the latest."""
    hard_timeout_grace: float = 5.0
    """Seconds between the exception that tells a handler to stop and the end of its process, if it goes on."""
    cancel_grace: float = 2.0
    """Seconds that a sync handler has to see that it was cancelled, before an exception is raised in its thread."""
    grace_seconds: float = 25.0
    """How long a stopping worker lets running jobs finish."""
    slots: int = 10
    """Slots per worker process and pool, where the pool does not say otherwise."""
    pools: dict[str, int] = field(default_factory=dict)
    """Slots per worker process of the pools named here."""
    payload_limit: int = 262_144
    """Bytes of one encoded payload."""
    result_limit: int = 262_144
    """Bytes of one encoded result; what is longer is cut and says so."""
    error_limit: int = 16_384
    """Bytes of one stored traceback; what is longer is cut and says so."""
    attempts_kept: int = 25
    """Attempts that one job remembers: the newest ones."""
    retention_seconds: float = 7 * 86_400.0
    """How long succeeded, cancelled and skipped jobs are kept."""
    firings_kept: int = 100
    """Firings that the history of one schedule remembers: the newest ones."""
    firings_seconds: float = 30 * 86_400.0
    """How long they are remembered at most."""
    audit_days: float = 730.0
    """How long entries of the audit log are kept. 0: for ever."""
    run_records_seconds: float = 90 * 86_400.0
    """How long the database remembers runs of workflows that have ended."""
    middleware: list[str] = field(default_factory=list)
    """Dotted paths of what wraps each attempt, outermost first."""
    enqueue_middleware: list[str] = field(default_factory=list)
    """Dotted paths of what wraps each enqueue, outermost first."""
    on_dead: str = ""
    """Dotted path of what is called in a worker host with each job that has died, at least once. Empty: nothing."""
    on_long_queue: str = ""
    """Dotted path of what is called in a worker host with a pool whose predicted wait is too long. Empty: nothing."""
    long_queue_seconds: float = 60.0
    """The predicted wait from which a pool's queue counts as too long."""
    log_lines: int = 1_000
    """Lines of `ctx.log` kept of one attempt: the newest ones. 0 keeps none."""
    log_bytes: int = 131_072
    """Bytes of `ctx.log` kept of one attempt."""
    version: str = ""
    """What workers tell as their version: the release or commit of your code. Empty: the version of Mainspring."""
    trace_url: str = ""
    """Address of a trace in your tracing system, `https://traces.example.com/trace/{trace_id}`: the page of a job that
    belongs to one links to it. Empty: no link."""
    metrics_token: str = ""
    """What a scraper of `/metrics` sends as its bearer token. Empty: only people who may see the dashboard get it."""
    api_requests_per_minute: int = 12_000
    """Requests of one user that the HTTP API takes in a minute; more are answered with 429. Counted in Django's cache:
    where each web process has a cache of its own, each counts for itself. 0: any number."""
    api_failed_tokens_per_minute: int = 300
    """Invalid tokens of one address (of IPv6: one /64) that the HTTP API answers with 401 in a minute; more with
    429. Valid ones are served whatever else comes from there. Counted as above. 0: any number."""
    redact_keys: list[str] = field(default_factory=lambda: list(SECRET_KEYS))
    """Words of keys whose values people are not shown, in payloads, results, logs and errors: `api_key` is found in
    `apiKey` and `X-Api-Key`. They take the place of the default; `[*SECRET_KEYS, "iban"]` of `jobs.conf` adds to it."""
    workflow_nodes: int = 10_000
    """Nodes of one workflow."""
    autodiscover: list[str] = field(default_factory=lambda: ["jobs", "tasks"])
    """Modules of each installed app that are imported at start because they register job types."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with the ``SCHEDULER`` dict: what, and what to write instead."""

    key: str
    message: str
    fix: str


def problems(raw: object) -> list[Problem]:
    """All that is wrong with a ``SCHEDULER`` dict; an empty list when it can be used."""
    if not isinstance(raw, Mapping):
        return [
            Problem("SCHEDULER", f"SCHEDULER must be a dict, not {_shown(raw)}.", 'Write SCHEDULER = {"REDIS_URL": …}.')
        ]
    found = []
    for key, value in raw.items():
        if key not in KEYS:
            found.append(_unknown(key))
        elif not _fits(value, HINTS[KEYS[key]]):
            expected = EXPECTED.get(KEYS[key]) or _words(HINTS[KEYS[key]])
            found.append(
                Problem(
                    key, f"SCHEDULER[{key!r}] must be {expected}, not {_shown(value)}.", f"Default: {DEFAULTS[key]!r}."
                )
            )
        elif misfit := _out_of_range(key, value):
            found.append(Problem(key, misfit, f"Default: {DEFAULTS[key]!r}."))
        elif key == "TRACE_URL" and value and not TRACE_URL.fullmatch(value):
            found.append(
                Problem(
                    key,
                    f"SCHEDULER['TRACE_URL'] must be an http(s) address with {{trace_id}} in it, not {_shown(value)}.",
                    'Write "https://traces.example.com/trace/{trace_id}", or leave it out.',
                )
            )
    return found


@cache
def get_settings() -> Settings:
    """The settings in force. Raises ``ImproperlyConfigured`` naming every problem."""
    raw = getattr(django_settings, "SCHEDULER", {})
    if found := problems(raw):
        raise ImproperlyConfigured("\n".join(f"{problem.message} {problem.fix}" for problem in found))
    values = {KEYS[key]: value for key, value in raw.items()}
    # Where the process begins, whatever folder a handler goes to later: another one would have a server of its own.
    values["var_dir"] = Path(values.get("var_dir", Settings.var_dir)).absolute()
    return Settings(**values)


def _reset(*, setting: str, **_: object) -> None:
    if setting == "SCHEDULER":
        get_settings.cache_clear()


setting_changed.connect(_reset, dispatch_uid="jobs.conf")

KEYS = {setting.name.upper(): setting.name for setting in fields(Settings)}
DEFAULTS = {key: getattr(Settings(), name) for key, name in KEYS.items()}
HINTS = typing.get_type_hints(Settings)
EXPECTED = {"var_dir": "a path", "pools": "a dict of pool names and whole numbers"}
TRACE_URL = re.compile(r"https?://[^\s{}]+(\{trace_id\}[^\s{}]*)+")
DAY = 86_400.0
MEGABYTE = 1_048_576
RANGES: dict[str, tuple[float, float]] = {
    "lease_seconds": (0.1, DAY),  # renewal every 33 ms: less would be lost to scheduling noise
    "hard_timeout_grace": (0, DAY),
    "cancel_grace": (0, DAY),
    "grace_seconds": (0, DAY),
    "slots": (1, 1_000),
    "pools": (0, 1_000),  # of each; 0: no worker runs jobs of this pool
    "payload_limit": (2, 64 * MEGABYTE),  # 2: an empty object. A batch must stay far below the 512 MB of one request
    "result_limit": (64, 64 * MEGABYTE),  # 64: room for the notice that a result was cut
    "error_limit": (64, MEGABYTE),
    "attempts_kept": (1, 250),  # their number is stored in one byte
    "retention_seconds": (0, 3_650 * DAY),
    "firings_kept": (1, 10_000),
    "firings_seconds": (60, 3_650 * DAY),
    "audit_days": (0, 36_500),
    "run_records_seconds": (60, 3_650 * DAY),
    "long_queue_seconds": (0, DAY),
    "workflow_nodes": (1, 1_000_000),
    "api_requests_per_minute": (0, 10_000_000),
    "api_failed_tokens_per_minute": (0, 10_000_000),
    "log_lines": (0, 100_000),
    "log_bytes": (1_024, 16 * MEGABYTE),
}


def _unknown(key: object) -> Problem:
    near = difflib.get_close_matches(str(key).upper(), KEYS, n=1, cutoff=0.5)
    fix = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(sorted(KEYS))}."
    return Problem(str(key), f"SCHEDULER has no key {key!r}.", fix)


def _out_of_range(key: str, value: Any) -> str | None:
    """What is wrong with a value of the right type. (NaN is in no range, since it compares as false with both ends.)"""
    if KEYS[key] not in RANGES:
        return None
    low, high = RANGES[KEYS[key]]
    given = value.items() if isinstance(value, Mapping) else [(None, value)]
    for name, number in given:
        if not low <= number <= high:
            where = f"SCHEDULER[{key!r}]" + (f"[{name!r}]" if name is not None else "")
            return f"{where} must be from {low:,g} to {high:,g}, not {number}."
    return None


def _fits(value: object, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is dict:
        return isinstance(value, Mapping) and all(
            _fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items()
        )
    if origin is list:
        return isinstance(value, (list, tuple)) and all(_fits(item, arguments[0]) for item in value)
    if origin is types.UnionType:
        return any(_fits(value, argument) for argument in arguments)
    if hint is Path:
        return isinstance(value, (str, os.PathLike))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _words(hint: Any) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", list: "a list of texts"}
    return names[typing.get_origin(hint) or hint]


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 80 else text[:77] + '…'}"
