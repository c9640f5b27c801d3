"""The ceiling: what is left of a job queue when everything that makes it one is taken away.

Batched enqueue of a body and an index entry, lease of 100 by one script, hand-off to ten threads, acknowledgement of
100 by one script. No tokens, no attempts, no retries, no priorities, no history, no counters, no recovery. Nothing that
keeps its promises can be faster with the same server and the same interpreter, so our figures are printed as parts of
it.

``python -m benchmarks.probe URL`` is the draining process: for each line with a number on stdin it drains that many
jobs and answers with the seconds that it took. ``python -m benchmarks.probe URL start`` is the idle one: what it finds
in ``WAKE`` it takes, asks a script once, hands it to a thread, and says how many nanoseconds after it was sent.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue

import redis

BATCH = 100
SLOTS = 10
BODIES, READY, LEASES = "{probe}:bodies", "{probe}:ready", "{probe}:leases"
WAKE = "{probe}:wake"

LEASE = """
local ids = redis.call('LPOP', KEYS[1], ARGV[1])
if not ids then return {} end
local leases = {}
for i = 1, #ids do
  leases[2 * i - 1] = ARGV[2]
  leases[2 * i] = ids[i]
end
redis.call('ZADD', KEYS[2], unpack(leases))
return {ids, redis.call('HMGET', KEYS[3], unpack(ids))}
"""

ACK = """
redis.call('ZREM', KEYS[1], unpack(ARGV))
return redis.call('HDEL', KEYS[2], unpack(ARGV))
"""


def enqueue_one(client: redis.Redis, number: int, payload: bytes) -> None:
    """One job in one round trip."""
    _enqueue(client, [f"{number:020d}"], [payload])


def enqueue_many(client: redis.Redis, first: int, payloads: Sequence[bytes]) -> None:
    """All of ``payloads`` in batches of 1,000."""
    for start in range(0, len(payloads), 1000):
        batch = payloads[start : start + 1000]
        _enqueue(client, [f"{first + start + offset:020d}" for offset in range(len(batch))], batch)


def _enqueue(client: redis.Redis, ids: list[str], payloads: Sequence[bytes]) -> None:
    with client.pipeline(transaction=False) as pipe:
        pipe.hset(BODIES, mapping=dict(zip(ids, payloads, strict=True)))
        pipe.rpush(READY, *ids)
        pipe.execute()


def drain(client: redis.Redis, count: int) -> float:
    """Runs ``count`` waiting jobs through ten threads; the seconds from the first lease to the last acknowledgement."""
    lease, ack = client.register_script(LEASE), client.register_script(ACK)
    ready: SimpleQueue[tuple[bytes, bytes] | None] = SimpleQueue()
    ended: SimpleQueue[bytes] = SimpleQueue()

    def fetch() -> None:
        left = count
        while left > 0:
            if ready.qsize() > 10 * BATCH:
                time.sleep(0.0005)
                continue
            reply = lease(keys=[READY, LEASES, BODIES], args=[BATCH, int(time.time() * 1000)])
            for job in zip(*reply, strict=True):
                ready.put(job)
                left -= 1
        for _ in range(SLOTS):
            ready.put(None)

    def run() -> None:
        while (job := ready.get()) is not None:
            _handler(job[1])
            ended.put(job[0])

    def flush() -> None:
        left = count
        while left > 0:
            batch = [ended.get() for _ in range(min(BATCH, left))]
            ack(keys=[LEASES, BODIES], args=batch)
            left -= len(batch)

    threads = [threading.Thread(target=target) for target in (fetch, flush, *[run] * SLOTS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began


def start_each(client: redis.Redis) -> None:
    """The least that can lie between an enqueue and a start: a wait with a script behind it, and one hand-off. For
    ever."""
    look = client.script_load("return redis.call('LLEN', KEYS[1])")
    handed: SimpleQueue[int] = SimpleQueue()

    def run() -> None:
        while True:
            sent_ns = handed.get()
            print(time.monotonic_ns() - sent_ns, flush=True)

    threading.Thread(target=run, daemon=True).start()
    while True:
        pipe = client.pipeline(transaction=False)
        pipe.blpop([WAKE], timeout=20)
        pipe.evalsha(look, 1, WAKE)
        popped, _ = pipe.execute()
        if popped:
            handed.put(int(popped[1]))


def _handler(body: bytes) -> None:
    """The job: nothing."""


def main() -> None:
    client = redis.Redis.from_url(sys.argv[1], socket_timeout=60)
    if sys.argv[2:] == ["start"]:
        start_each(client)
    for line in sys.stdin:
        print(drain(client, int(line)), flush=True)


if __name__ == "__main__":
    main()
