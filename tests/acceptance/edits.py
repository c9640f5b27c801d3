"""Changes schedules in every way there is, in a process of its own: ``python -m tests.acceptance.edits SECONDS``.

Each gets an interval of so many seconds: the schedule "admin" in the admin, "sql" by plain SQL, and so on. Prints, as
JSON, when each change was committed, in Unix seconds.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from collections.abc import Callable


def by_admin(name: str, seconds: float) -> None:
    from django.contrib.auth.models import User
    from django.forms import model_to_dict
    from django.test import Client
    from django.urls import reverse

    from jobs.models import Schedule

    row = Schedule.objects.get(name=name)
    client = Client(HTTP_HOST="localhost")
    client.force_login(User.objects.create_superuser("editor"))
    shown = {field: "" if value is None else value for field, value in model_to_dict(row).items()}
    form = shown | {"payload": json.dumps(row.payload), "interval_seconds": seconds}
    answer = client.post(reverse("admin:jobs_schedule_change", args=[row.pk]), form)
    assert answer.status_code == 302, answer.context["errors"]


def by_api(name: str, seconds: float) -> None:
    from jobs import schedules

    schedules.update(name, interval_seconds=seconds)


def by_bulk_update(name: str, seconds: float) -> None:
    from jobs.models import Schedule

    Schedule.objects.filter(name=name).update(interval_seconds=seconds)


def by_fixture(name: str, seconds: float) -> None:
    from django.core import serializers
    from django.core.management import call_command

    from jobs.models import Schedule

    [item] = json.loads(serializers.serialize("json", Schedule.objects.filter(name=name)))
    item["fields"]["interval_seconds"] = seconds
    with TemporaryDirectory() as folder:
        file = Path(folder) / "schedule.json"
        file.write_text(json.dumps([item]))
        call_command("loaddata", file, verbosity=0)


def by_sql(name: str, seconds: float) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_schedule SET interval_seconds = %s WHERE name = %s", [seconds, name])


def by_code(name: str, seconds: float) -> None:
    """A host with other code starts beside those that run."""
    from jobs import Interval, job
    from jobs.registry import registry
    from jobs.services.declarations import declare

    with registry.restored():
        job(name, schedule=Interval(seconds))(lambda: None)
        declare()


EDITS: dict[str, Callable[[str, float], None]] = {
    "admin": by_admin,
    "api": by_api,
    "bulk": by_bulk_update,
    "fixture": by_fixture,
    "sql": by_sql,
    "code": by_code,
}


def main() -> None:
    seconds = float(sys.argv[1])
    at = {}
    for name, edit in EDITS.items():
        edit(name, seconds)
        at[name] = time.time()
    print(json.dumps(at))


if __name__ == "__main__":
    django.setup()
    main()
