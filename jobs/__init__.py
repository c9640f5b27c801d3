"""Mainspring, a distributed job scheduler for Django.

    from jobs import job

    @job("email.send", pool="critical")
    def send_email(to: str, subject: str) -> None: ...

    send_email.enqueue(to="a@example.com", subject="hi")

Importing this package costs nothing and works before Django is set up: each name is fetched from ``jobs.api`` when it
is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from jobs.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # Private names are asked for by import machinery and tools: they must not load the library.
    if not name.startswith("_"):
        # Not "from jobs import api": that would ask this very function for "api".
        api = import_module("jobs.api")
        if name == "api":
            return api
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'jobs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("jobs.api").__all__})
