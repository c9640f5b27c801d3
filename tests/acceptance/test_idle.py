"""What worker hosts cost while there is nothing to do. Commands and wake-ups are counted: a slow machine has no more of
them."""

from __future__ import annotations

import re
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jobs import enqueue
from tests.acceptance.hosts import Host, Journal, StartHost
from tests.support.valkey import ValkeyServer
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance

SECONDS = 20.0
"""What comes every 20 seconds, comes once in it."""

SETTLED_SECONDS = 12.0
"""A host that opens no connection for as long has started: all its services have looked around once."""

COUNTS = 3
"""What comes once a minute may all come at the same time, which is no rate: then it is counted again."""

PER_SECOND = 1.3
"""Commands that an idle host may send, whatever it serves."""

PER_POOL = 0.12
"""A call stands at the server for each pool, and is carried out when its wait is over."""

WAKES_PER_SECOND = 13.0
"""How often threads of an idle host may begin to run: each time costs as much as all that most of them then do."""

WAKES_PER_POOL = 0.75
"""By the call that stands for it, and what follows on its answer."""


@pytest.fixture
def server_url(private_valkey: ValkeyServer, settings: Any) -> str:
    """Nobody else talks to it."""
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    return private_valkey.url


def commands(server: ValkeyServer, seconds: float) -> Counter[str]:
    """What clients send meanwhile, as MONITOR shows it: without what scripts do and how they got there, which each does
    once in the life of a server."""
    seen, deadline = b"", time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as monitor:
        monitor.connect(server.socket)
        monitor.sendall(b"MONITOR\r\n")
        while (left := deadline - time.monotonic()) > 0:
            monitor.settimeout(left)
            with suppress(TimeoutError):
                seen += monitor.recv(65536)
    lines = [
        line for line in seen.decode(errors="replace").splitlines()[1:] if " lua]" not in line and '"EVAL" ' not in line
    ]
    return Counter(" ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', line)[:2]) for line in lines)


def has_settled(sent: Counter[str]) -> bool:
    """The host is there, and no more of it comes."""
    return bool(sent) and "CLIENT SETINFO" not in sent


def test_idle_hosts_with_every_service_send_few_commands(
    make_valkey: Callable[..., ValkeyServer], start_host: StartHost
) -> None:
    """Each host has a server to itself, and all of them are counted at the same time."""
    pools = {1: "a", 3: "abc", 8: "abcdefgh"}
    servers = {number: make_valkey() for number in pools}
    hosts = {}
    for number, server in servers.items():
        options = (part for pool in pools[number] for part in ("--pool", pool))
        hosts[number] = start_host(*options, SCHEDULER_REDIS_URL=server.url)

    def count(number: int) -> tuple[Counter[str], float]:
        eventually(lambda: has_settled(commands(servers[number], SETTLED_SECONDS)), within=120)
        counted = []
        for _ in range(COUNTS):
            before = wakes(hosts[number])
            counted.append((commands(servers[number], SECONDS), wakes(hosts[number]) - before))
            sent, woken = min((sent for sent, _ in counted), key=Counter.total), min(woken for _, woken in counted)
            if sent.total() <= allowed(number) and woken <= allowed_wakes(number):
                break
        return sent, woken

    with ThreadPoolExecutor() as threads:
        for number, (sent, woken) in zip(pools, threads.map(count, pools), strict=True):
            assert sent, "it does look now and then"
            assert sent.total() <= allowed(number), (number, sent)
            assert woken <= allowed_wakes(number), number


def wakes(host: Host) -> int:
    """How often its threads have waited for something, and gone on; 0 where the system does not say."""
    states = [file.read_text() for pid in host.tree for file in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(
        int(number) for state in states for number in re.findall(r"^voluntary_ctxt_switches:\t(\d+)", state, re.M)
    )


def allowed(number: int) -> float:
    """Commands that a host with so many pools may send while it is counted."""
    return (PER_SECOND + PER_POOL * number) * SECONDS


def allowed_wakes(number: int) -> float:
    """How often threads of such a host may begin to run meanwhile."""
    return (WAKES_PER_SECOND + WAKES_PER_POOL * number) * SECONDS


def test_the_first_job_of_a_new_pool_is_heard_of_at_once(
    private_valkey: ValkeyServer, start_host: StartHost, journal: Journal
) -> None:
    start_host("--concurrency", "1").consuming()
    time.sleep(1.5)  # longer than what a host knows of pools is good for where nobody tells it

    made = enqueue("test.note", {"path": journal.path}, pool="brand_new", allow_unknown=True)

    eventually(lambda: journal.count("ran", made.id))
