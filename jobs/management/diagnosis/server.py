"""The server: whether it answers, how old it is, what it keeps, and how its clock goes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils import timezone

from jobs import api
from jobs.checks import server_problems
from jobs.core.wording import length
from jobs.management.diagnosis.finding import Finding, of_message

STORE_SECONDS = 4.0
"""How long the store may take, so that there is time left for what is asked after it."""

SKEW_WARNING = timedelta(seconds=2)
SKEW_FAILURE = timedelta(seconds=30)
MEMORY_WARNING = 0.85


class Flaw(NamedTuple):
    """A hole in the server's Lua engine, and the first release of each line that closes it."""

    names: str
    fixed_in: dict[str, dict[tuple[int, int], int]]  # product → release line → patch number


FLAWS = (
    Flaw(
        "CVE-2025-49844, CVE-2025-46817, CVE-2025-46818 and CVE-2025-46819",
        {
            "Redis": {(6, 2): 20, (7, 2): 11, (7, 4): 6, (8, 0): 4, (8, 2): 2},
            "Valkey": {(7, 2): 11, (8, 0): 6, (8, 1): 4},
        },
    ),
    Flaw("CVE-2026-23631", {"Valkey": {(8, 0): 8, (8, 1): 7, (9, 0): 4}}),
)
"""Anybody who may run scripts could run code of their own on the server. Lines older than these got no fix; newer ones
were released with it."""


class Server(NamedTuple):
    """What the store says of itself. ``asked_at`` is this machine's clock when the server said ``time``."""

    url: str
    info: dict[str, Any]
    saves: bool  # snapshots are configured
    time: datetime
    asked_at: datetime

    @property
    def product(self) -> str:
        return "Valkey" if self.info.get("valkey_version") else "Redis"

    @property
    def version(self) -> tuple[int, ...]:
        text = str(self.info.get("valkey_version") or self.info.get("redis_version") or "")
        return tuple(int(part) for part in text.split(".") if part.isdigit())

    @property
    def shown_version(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.version))}"

    def number(self, name: str) -> int:
        return int(self.info.get(name) or 0)


def judge_server(server: Server) -> Iterator[Finding]:
    """What the system checks say of the server's answer, and what only a look at the moment shows."""
    found = [
        of_message(message, *PLACES.get(message.id or "", PLACES["jobs.E025"]))
        for message in server_problems(server.info)
    ]
    found += [*_judge_flaws(server), *judge_memory(server)]
    if server.url.startswith("memory:"):
        found = [finding for finding in found if finding.check != "persistence"]
        kept = "nothing, as memory: says: its jobs end with the process that started it"
    else:
        found += _judge_snapshots(server)
        kept = "append-only file"
    limit = server.number("maxmemory")
    well = {
        "store": f"{server.product} at {server.url} answers",
        "server version": server.shown_version,
        "persistence": kept,
        "memory": f"{_megabytes(server.number('used_memory'))} used, limit {_megabytes(limit) if limit else 'none'}",
    }
    for check, detail in well.items():
        yield from [finding for finding in found if finding.check == check] or [Finding(check, "ok", detail)]


PLACES = {
    "jobs.E022": ("server version", "SCHEDULER_REDIS_URL"),
    "jobs.E023": ("memory", "maxmemory-policy"),
    "jobs.W023": ("memory", "maxmemory-policy"),
    "jobs.W024": ("persistence", "appendonly"),
    "jobs.E024": ("persistence", "appendonly"),
    "jobs.E025": ("store", "SCHEDULER_REDIS_URL"),
}
"""System check → where doctor shows it, and the setting that mends it."""


def _judge_flaws(server: Server) -> Iterator[Finding]:
    if names := [flaw.names for flaw in FLAWS if _is_open(flaw, server)]:
        # A warning only: distributions mend old versions without changing the number that the server tells.
        yield Finding(
            "server version",
            "warning",
            f"{server.shown_version} has known flaws in its script engine, unless its distribution has mended them: "
            f"{'; '.join(names)}.",
            "the server's package",
            "Update the server, and let only trusted programs reach it.",
        )


def _is_open(flaw: Flaw, server: Server) -> bool:
    lines = flaw.fixed_in.get(server.product)
    if not lines:
        return False
    line = server.version[:2]
    if line in lines:
        return server.version < (*line, lines[line])
    return line < max(lines)


def _judge_snapshots(server: Server) -> Iterator[Finding]:
    if server.number("aof_enabled"):
        return
    if not server.saves:
        yield Finding(
            "persistence",
            "failed",
            "The server saves no snapshots either: a restart loses all jobs.",
            "appendonly",
            "Set appendonly yes.",
        )
    elif server.info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding(
            "persistence", "failed", "The last snapshot failed.", "save", "Look for a full disk on the server."
        )


def judge_memory(server: Server) -> Iterator[Finding]:
    limit, used = server.number("maxmemory"), server.number("used_memory")
    if limit and used > MEMORY_WARNING * limit:
        yield Finding(
            "memory",
            "warning",
            f"{used / limit:.0%} of {_megabytes(limit)} is used; when it is full every enqueue is refused.",
            "maxmemory",
            "Raise maxmemory, or keep ended jobs for a shorter time (RETENTION_SECONDS).",
        )


def judge_clock(server: Server) -> Iterator[Finding]:
    skew = server.time - server.asked_at
    if abs(skew) <= SKEW_WARNING:
        yield Finding("clock", "ok", f"{length(abs(skew).total_seconds())} apart from the server")
        return
    side = "ahead of" if skew > timedelta() else "behind"
    yield Finding(
        "clock",
        "failed" if abs(skew) > SKEW_FAILURE else "warning",
        f"The server's clock is {length(abs(skew).total_seconds())} {side} this machine's: jobs start by the server's.",
        "system clock",
        "Let both keep time with NTP (chrony or systemd-timesyncd).",
    )


def _megabytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MB"


def ask_server() -> Server:
    with api.budget(STORE_SECONDS):
        api.server()  # may have to start the embedded server first: that time is no difference of clocks
        before = timezone.now()
        answer = api.server()
        after = timezone.now()
    return Server(
        url=answer["url"],
        info=answer["info"],
        saves=bool(answer["save"]),
        time=datetime.fromtimestamp(answer["time_ms"] / 1000, before.tzinfo),
        asked_at=before + (after - before) / 2,
    )
