"""Dramatiq's side: its no-op actor, and a sender. Runs in the peers' own environment only."""

from __future__ import annotations

import os
import sys

import dramatiq  # type: ignore[import-not-found]
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

dramatiq.set_broker(RedisBroker(url=os.environ["PEER_URL"]))


@dramatiq.actor  # type: ignore[untyped-decorator]
def nothing() -> None:
    """The no-op."""


if __name__ == "__main__":
    for _ in range(int(sys.argv[1])):
        nothing.send()
