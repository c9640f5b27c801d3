"""What the project around the engine has set: settings, time zone, database."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator

from django.conf import settings as django_settings
from django.core import checks as system_checks
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from jobs.checks import TAG
from jobs.conf import get_settings
from jobs.management.diagnosis.finding import Finding, first_line, of_message


def check_settings() -> Iterator[Finding]:
    """What Django's system checks say of our settings: unknown keys, wrong types, a cache in the engine's database."""
    found = [message for message in system_checks.run_checks(tags=[TAG]) if not message.is_silenced()]
    yield from (of_message(message, "settings", "SCHEDULER") for message in found)
    if not found:
        yield Finding("settings", "ok", f"namespace {get_settings().namespace}")


def check_time_zone() -> Iterator[Finding]:
    if not django_settings.USE_TZ:
        yield Finding(
            "time zone",
            "failed",
            "Times are stored without a zone: a schedule runs an hour off after each change of clocks.",
            "USE_TZ",
            "Set USE_TZ = True.",
        )
        return
    try:
        zoneinfo.ZoneInfo(django_settings.TIME_ZONE)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        yield Finding(
            "time zone",
            "failed",
            f"The zone {django_settings.TIME_ZONE!r} is not known on this machine.",
            "TIME_ZONE",
            "Correct the name, or install the zones: pip install tzdata.",
        )
        return
    yield Finding("time zone", "ok", django_settings.TIME_ZONE)


def check_migrations() -> Iterator[Finding]:
    for alias in connections:
        connection = connections[alias]
        try:
            executor = MigrationExecutor(connection)
            plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except Exception as error:  # drivers raise what they like; all of it means: not usable
            yield Finding(
                "database",
                "failed",
                f"The database {alias!r} cannot be used: {first_line(error)}",
                "DATABASE_URL",
                "Start it or correct the address.",
            )
            continue
        finally:
            connection.close()
        if plan:
            names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in plan[:3])
            more = f" and {len(plan) - 3} more" if len(plan) > 3 else ""
            yield Finding(
                "database",
                "failed",
                f"The database {alias!r} lacks {len(plan)} migrations: {names}{more}.",
                "DATABASE_URL",
                "Run: manage.py migrate",
            )
        else:
            yield Finding("database", "ok", f"{connection.vendor} {alias!r}, all migrations applied")
