"""The project of this repository on a server and a database of the benchmark's own, with people to look at it."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from benchmarks.server import BenchmarkServer

PAYLOAD = b'{"to": "a@example.com", "subject": "hi", "body": "twenty words or so"}'
ERROR = json.dumps({"type": "Declined", "message": "insufficient funds", "traceback": "File x, line 1"}).encode()
BATCH = 1_000


def environment(server: BenchmarkServer) -> dict[str, str]:
    """What a process of the project needs to run beside the benchmark."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "scheduler_project.settings",
        "SCHEDULER_REDIS_URL": server.url,
        "SCHEDULER_VAR_DIR": str(server.folder),
    }


def set_up(server: BenchmarkServer) -> None:
    """Django in this process, its tables made."""
    os.environ.update(environment(server))
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


def session_of(name: str) -> str:
    """A session cookie of a new superuser."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.create_superuser(name))
    return str(client.cookies["sessionid"].value)


class Seeder:
    """Makes jobs in mixed states by the verbs that make them in life, a thousand at a time."""

    MIX = ("ready", "ready", "scheduled", "dead", "succeeded")

    def __init__(self) -> None:
        from jobs.engine import get_engine

        self.engine: Any = get_engine()
        self._turn = 0

    def make(self, number: int, *, batch: int = BATCH) -> None:
        """So many jobs, in batches that take turns through the mix."""
        for start in range(0, number, batch):
            self.make_of(self.MIX[self._turn % len(self.MIX)], min(batch, number - start))
            self._turn += 1

    def make_of(self, state: str, number: int) -> None:
        """So many jobs in one state, a thousand at most."""
        from jobs.core.job import JobSpec

        # What is to end has a pool of its own, so that a lease takes just that.
        pool = {"dead": "billing", "succeeded": "mail"}.get(state, "default")
        spec = JobSpec(type=f"{pool}.work", pool=pool, delay_ms=86_400_000 if state == "scheduled" else 0)
        self.engine.jobs.enqueue(spec, [PAYLOAD] * number)
        if state in ("dead", "succeeded"):
            self.end(pool, number, state)

    def end(self, pool: str, number: int, state: str) -> int:
        """Leases and ends as many; answers how many there were."""
        from jobs.core.job import Route
        from jobs.engine import Completion, Failure, new_token

        route, token = Route(pool, 1, 0), new_token()
        leased = self.engine.leases.lease(route, worker="bench/1", token=token, limit=number, lease_ms=600_000).jobs
        now = int(time.time() * 1000)
        if state == "succeeded":
            done = [Completion(job.id, token, job.type, now, b"null", None) for job in leased]
            self.engine.leases.complete(route, done)
        else:
            failed = [Failure(job.id, token, job.type, now, "dead", 0, 0, ERROR) for job in leased]
            self.engine.leases.fail(route, failed)
        return len(leased)
