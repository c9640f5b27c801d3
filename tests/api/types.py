"""Job types that the tests of the API enqueue. Registered by the fixture in ``conftest``, forgotten after each test."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jobs import Context, Dead, Fixed, JobType, Snooze, job
from jobs.registry import registry

seen: list[dict[str, Any]] = []
"""What handlers were given, in order."""


@dataclass
class Address:
    street: str


def register() -> None:
    """Puts them into the registry."""
    seen.clear()

    @job("mail.send", pool="critical", priority=5, backoff=Fixed(0.01))
    def send(to: str, subject: str = "hi", address: Address | None = None, when: datetime | None = None) -> str:
        seen.append({"to": to, "subject": subject, "address": address, "when": when})
        return to

    @job("mail.asend")
    async def asend(to: str) -> str:
        seen.append({"to": to})
        return to

    @job("math.divide", max_retries=2, backoff=Fixed(3600), dead_on=(TypeError,))
    def divide(a: int, b: int) -> float:
        seen.append({"a": a, "b": b})
        return a / b

    @job("mail.welcome", unique="account")
    def welcome(account: int, text: str = "") -> None:
        seen.append({"account": account})

    @job("math.count")
    def count(up_to: int, *, ctx: Context) -> dict[str, Any]:
        ctx.progress(up_to / 2, up_to, "half")
        return {"id": ctx.id, "attempt": ctx.attempt}

    @job("math.odd")
    def odd(what: str) -> Any:
        if what == "snooze":
            raise Snooze(3600)
        if what == "dead":
            raise Dead("no use")
        return object()


def job_type(name: str = "mail.send") -> JobType[..., Any]:
    """One of them, as it is registered."""
    found = registry.get(name)
    assert isinstance(found, JobType)
    return found
