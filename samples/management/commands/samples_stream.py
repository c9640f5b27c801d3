"""``manage.py samples_stream``: keeps sample jobs coming until it is stopped."""

from __future__ import annotations

import signal
from argparse import ArgumentParser, ArgumentTypeError
from threading import Event
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand

from samples.stream import Stream


class Command(BaseCommand):
    help = "Enqueues a gentle stream of sample jobs until it is stopped (Ctrl-C or SIGTERM)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--rate", type=_rate, default=1.0, help="jobs a second on average (default: 1)")
        parser.add_argument("--count", type=int, help="stop after so many jobs (default: go on)")
        parser.add_argument("--seed", type=int, help="make the same jobs in the same order again")

    def handle(self, *, rate: float, count: int | None, seed: int | None, **_: Any) -> None:
        stop = Event()

        def finish(number: int, frame: FrameType | None) -> None:
            stop.set()

        signal.signal(signal.SIGTERM, finish)
        signal.signal(signal.SIGINT, finish)
        enqueued = Stream(rate=rate, count=count, seed=seed, stop=stop).run()
        self.stderr.write(f"{enqueued} sample jobs enqueued")


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 1000:
        raise ArgumentTypeError(f"{text!r} is not a number of jobs a second, more than 0 and at most 1,000")
    return rate
