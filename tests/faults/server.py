"""The server under fault: what the slow log says of it, and whether it is the one that it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redis

from jobs.store.scripts import LUA_DIR, read_script
from tests.support.valkey import ValkeyServer


def fault_server(folder: Path) -> ValkeyServer:
    """A server of one's own whose acknowledged writes survive SIGKILL, and which notes every call above 10 ms."""
    folder.mkdir(parents=True, exist_ok=True)
    return ValkeyServer(folder, slowlog_log_slower_than="10000", slowlog_max_len="2000").start()


def slow_scripts(client: redis.Redis, longer_than_ms: float = 50) -> list[tuple[str, float]]:
    """Script calls in the slow log above the bound: the script's name, and its milliseconds."""
    names = {(one := read_script(LUA_DIR, file.stem)).sha: one.name for file in LUA_DIR.glob("*.lua")}
    entries: Any = client.slowlog_get(2000)
    return [
        (names.get(entry["command"].split(b" ")[1].decode(errors="replace"), "a script"), entry["duration"] / 1000)
        for entry in entries
        if entry["duration"] / 1000 > longer_than_ms and entry["command"][:4].upper() == b"EVAL"
    ]
