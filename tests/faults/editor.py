"""``python -m tests.faults.editor FILE``: edits one schedule after the other, five a second, until it is killed.

Each in another way: a save, a bulk update, plain SQL. None moves the rhythm, so that what must fire is known. One line
in FILE for each edit.
"""

from __future__ import annotations

import itertools
import os
import sys
import time

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
django.setup()

from django.db import DatabaseError, connection  # noqa: E402 – needs Django

from jobs.models import Schedule  # noqa: E402

PAUSE_SECONDS = 0.2


def main(file: str) -> None:
    names = list(Schedule.objects.values_list("name", flat=True))
    began = time.monotonic()
    with open(file, "a", buffering=1) as written:
        for number in itertools.count():
            time.sleep(max(0.0, began + number * PAUSE_SECONDS - time.monotonic()))
            try:
                edit(names[number % len(names)], number)
            except DatabaseError as error:
                written.write(f"# {error}\n")  # busy for too long: the next edit comes soon
            else:
                written.write(f"{number}\n")


def edit(name: str, number: int) -> None:
    match number % 3:
        case 0:
            row = Schedule.objects.get(name=name)
            row.payload = {"number": number}
            row.save()
        case 1:
            Schedule.objects.filter(name=name).update(priority=number % 100)
        case _:
            with connection.cursor() as cursor:
                cursor.execute("UPDATE jobs_schedule SET max_retries = %s WHERE name = %s", [number % 10, name])


if __name__ == "__main__":
    main(sys.argv[1])
