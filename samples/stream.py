"""A gentle, endless stream of sample jobs: about one a second, most of them fine, some delayed, a few bound to fail.

It is a guest in somebody's development server: it waits when nobody works its jobs off, waits when the store is away,
removes its old outputs and dead letters, and ends at once when asked to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from random import Random
from threading import Event
from urllib.parse import urljoin

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from jobs import JobFilter, JobHandle, budget, discard_matching, scheduler, workflows
from jobs.core.states import JobState
from jobs.exceptions import OutcomeUnknown, PoolFull, StoreUnavailable
from samples import images, invoices, outputs
from samples.digest import weather_digest
from samples.jobs import build_report, dispatch_webhook, generate_invoice, process_image, send_email
from samples.receiver import Behaviour

log = logging.getLogger(__name__)

MOST_WAITING = 200
"""Ready jobs beyond which the stream holds its breath: nobody seems to work, or others need the workers."""

LOOK_AFTER_SECONDS = 15.0
"""Between two looks at the backlog and two rounds of tidying."""

DIGEST_EVERY_SECONDS = 60.0
"""Between two runs of the sample workflow."""

LONGEST_PAUSE_SECONDS = 15.0

PATIENCE_SECONDS = 3.0
"""How long one call may try to reach the store; a request to stop waits that long at most."""

DEAD_LETTERS_KEPT = timedelta(days=1)

TAG = "sample"
"""Carried by all jobs of the stream, and the mark of what it may tidy away."""

FIRST_NAMES = ("Ada", "Björn", "Chloé", "Dmitri", "Eun-ji", "Farah", "Grace", "Hiro", "Ines", "Jorge")
DOMAINS = ("example.com", "example.org", "example.net")
GOODS = ("Mainspring, 0.12 mm", "Balance wheel", "Escapement", "Jewel bearing", "Crown, steel", "Hour hand, blued")
EVENTS = ("order.paid", "order.shipped", "customer.created", "stock.low")


@dataclass(frozen=True)
class Recipe:
    """One kind of job that the stream makes. ``weight``: how often, relative to the others."""

    weight: int
    story: str
    enqueue: Callable[[Random], JobHandle]


class Stream:
    """Enqueues ``rate`` jobs a second on average until ``stop`` is set. ``count`` ends it earlier."""

    def __init__(
        self, *, rate: float = 1.0, count: int | None = None, seed: int | None = None, stop: Event | None = None
    ) -> None:
        self.stop = stop or Event()
        self.enqueued = 0
        self._rate = rate
        self._count = count
        self._random = Random(seed)
        self._troubles = 0
        self._look_at = 0.0
        self._digest_at = 0.0

    def run(self) -> int:
        """Answers how many jobs were enqueued."""
        while not self.stop.is_set() and (self._count is None or self.enqueued < self._count):
            try:
                with budget(PATIENCE_SECONDS):
                    if self._is_welcome():
                        self._enqueue_one()
                        self._start_digest()
                        self._recovered()
                # Exponential gaps, as of customers who know nothing of each other; capped, so that something happens.
                pause = min(self._random.expovariate(self._rate), 5 / self._rate)
            except (StoreUnavailable, OutcomeUnknown, PoolFull) as error:
                pause = self._troubled(error)
            self.stop.wait(pause)
        return self.enqueued

    def _enqueue_one(self) -> None:
        recipe = self._random.choices(MIX, [recipe.weight for recipe in MIX])[0]
        handle = recipe.enqueue(self._random)
        self.enqueued += 1
        log.debug("%s: %s", handle.id, recipe.story)

    def _start_digest(self) -> None:
        if self._count is None and time.monotonic() >= self._digest_at:
            self._digest_at = time.monotonic() + DIGEST_EVERY_SECONDS
            run = workflows.start(weather_digest(self._random), started_by="the sample stream")
            log.debug("%s: a digest of the weather, as a workflow", run.id)

    def _is_welcome(self) -> bool:
        if time.monotonic() >= self._look_at:
            waiting = scheduler.status()["states"].get("ready", 0)
            if waiting > MOST_WAITING:
                log.info("%d jobs are ready and waiting; the sample stream waits until there are fewer", waiting)
                self.stop.wait(LOOK_AFTER_SECONDS)
                return False
            self._tidy()
            self._look_at = time.monotonic() + LOOK_AFTER_SECONDS
        return True

    def _tidy(self) -> None:
        outputs.tidy()
        old = JobFilter(states=(JobState.DEAD,), tag=TAG, until=timezone.now() - DEAD_LETTERS_KEPT)
        for _ in discard_matching(old):
            if self.stop.is_set():
                break

    def _troubled(self, error: Exception) -> float:
        if not self._troubles:
            log.warning("The sample stream waits: %s", error)
        self._troubles += 1
        return float(min(2 ** min(self._troubles, 10) * self._random.uniform(0.2, 0.5), LONGEST_PAUSE_SECONDS))

    def _recovered(self) -> None:
        if self._troubles:
            log.warning("The sample stream goes on")
            self._troubles = 0


def receiver_url(behaviour: Behaviour = Behaviour.ACCEPT) -> str:
    """The development server's own webhook receiver."""
    return urljoin(settings.SAMPLES_BASE_URL, reverse("samples:webhook-behaviour", args=[behaviour]))


def _welcome(random: Random) -> JobHandle:
    name = random.choice(FIRST_NAMES)
    return send_email.using(tags=[TAG]).enqueue(to=_address(name, random), subject=f"Welcome, {name}")


def _reminder(random: Random) -> JobHandle:
    name = random.choice(FIRST_NAMES)
    return send_email.using(tags=[TAG], delay=random.randint(5, 60), priority=0).enqueue(
        to=_address(name, random), subject="Your watch is due for a service"
    )


def _mistyped(random: Random) -> JobHandle:
    return send_email.using(tags=[TAG]).enqueue(
        to=f"{random.choice(FIRST_NAMES)} at example.com", subject="This address was mistyped"
    )


def _event(behaviour: Behaviour) -> Callable[[Random], JobHandle]:
    def enqueue(random: Random) -> JobHandle:
        return dispatch_webhook.using(tags=[TAG]).enqueue(
            url=receiver_url(behaviour), event=random.choice(EVENTS), data={"order": random.randint(1000, 9999)}
        )

    return enqueue


def _invoice(random: Random) -> JobHandle:
    return _bill(
        random,
        [
            invoices.Line(
                description=description,
                quantity=random.randint(1, 12),
                unit_price=Decimal(random.randint(150, 24_900)) / 100,
            )
            for description in random.sample(GOODS, random.randint(1, len(GOODS)))
        ],
    )


def _empty_invoice(random: Random) -> JobHandle:
    return _bill(random, [])


def _bill(random: Random, lines: Sequence[invoices.Line]) -> JobHandle:
    today = timezone.localdate()
    number = f"{today.year}-{random.randrange(10**6):06}"
    issued = today - timedelta(days=random.randint(0, 5))
    return generate_invoice.using(tags=[TAG], meta={"invoice": number}).enqueue(
        number=number, customer=f"{random.choice(FIRST_NAMES)} & Co.", lines=list(lines), issued=issued
    )


def _report(random: Random) -> JobHandle:
    year = random.randint(2012, 2015)
    # Two people who ask for one report at a time get one report.
    return build_report.using(tags=[TAG], unique_key=str(year)).enqueue(year=year)


def _report_of_nothing(random: Random) -> JobHandle:
    return build_report.using(tags=[TAG]).enqueue(year=random.choice((2011, 2016)))


def _thumbnails(random: Random) -> JobHandle:
    whole = [name for name in images.sources() if not name.startswith("interrupted")]
    return process_image.using(tags=[TAG]).enqueue(source=random.choice(whole), sizes=[64, 128, 256])


def _damaged_image(random: Random) -> JobHandle:
    return process_image.using(tags=[TAG]).enqueue(source="interrupted-upload.jpg", sizes=[64, 128])


def _address(name: str, random: Random) -> str:
    ascii_name = name.encode("ascii", "ignore").decode().lower()
    return f"{ascii_name}.{random.randint(1, 999)}@{random.choice(DOMAINS)}"


MIX = (
    Recipe(28, "a welcome mail", _welcome),
    Recipe(10, "a reminder for later", _reminder),
    Recipe(20, "an event for a receiver that works", _event(Behaviour.ACCEPT)),
    Recipe(6, "an event for a receiver that is busy at first", _event(Behaviour.FLAKY)),
    Recipe(14, "an invoice", _invoice),
    Recipe(8, "a report", _report),
    Recipe(10, "thumbnails", _thumbnails),
    Recipe(1, "a mail to a mistyped address: dead at once", _mistyped),
    Recipe(1, "an event for a receiver that is down: dead after its retries", _event(Behaviour.DOWN)),
    Recipe(1, "an event for a receiver that was closed: dead at once", _event(Behaviour.GONE)),
    Recipe(1, "an invoice without lines: dead at once", _empty_invoice),
    Recipe(1, "a report of a year without data: dead at once", _report_of_nothing),
    Recipe(1, "thumbnails of an upload that was cut short: dead at once", _damaged_image),
)
"""What the stream is made of. About one job in seventeen ends in the dead-letter list."""
