"""Triggers that stamp a schedule whose row is changed past Django, by plain SQL, and count up its version: it is then
found like any other.

Without them such rows are only found by looking at every row in turn. They are put in place after each ``migrate`` and
taken away before it, since no migration knows of them. Other databases than SQLite and PostgreSQL get none.
"""

from __future__ import annotations

from typing import Any

from django.db import connections, transaction

from jobs.models.schedule import Schedule

TRIGGER = "jobs_schedule_stamp"
UNWATCHED = frozenset(
    {"id", "changed_at", "changed_by", "declared_at", "error", "firings", "last_fired_at", "owner", "version"}
)
"""Columns that say nothing about what a schedule does."""

_SQLITE = """CREATE TRIGGER {trigger} AFTER UPDATE ON {table}
WHEN NEW.changed_at <= OLD.changed_at AND ({differs})
BEGIN
  UPDATE {table} SET version = max(NEW.version, OLD.version + 1), changed_at = max(
    strftime('%Y-%m-%d %H:%M:%f', 'now'), (SELECT max(changed_at) FROM {table})
  ) WHERE id = NEW.id;
END"""

_POSTGRESQL_FUNCTION = """CREATE OR REPLACE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS $stamp$
BEGIN
  NEW.version := greatest(NEW.version, OLD.version + 1);
  NEW.changed_at := greatest(clock_timestamp(), (SELECT max(changed_at) FROM {table}));
  RETURN NEW;
END $stamp$"""
_POSTGRESQL = """CREATE TRIGGER {trigger} BEFORE UPDATE ON {table} FOR EACH ROW
WHEN (NEW.changed_at <= OLD.changed_at AND ({differs})) EXECUTE FUNCTION {trigger}()"""

_DIFFERS = {"sqlite": "IS NOT", "postgresql": "IS DISTINCT FROM"}


def put(using: str) -> bool:
    """Puts the trigger in place, in today's form; False where the database gets none. Raises DatabaseError."""
    connection = connections[using]
    if connection.vendor not in _DIFFERS or not _has_all_columns(connection):
        return False
    table = connection.ops.quote_name(Schedule._meta.db_table)
    operator = _DIFFERS[connection.vendor]
    names = [connection.ops.quote_name(column) for column in watched()]
    differs = " OR ".join(f"NEW.{name} {operator} OLD.{name}" for name in names)
    forms = [_SQLITE] if connection.vendor == "sqlite" else [_POSTGRESQL_FUNCTION, _POSTGRESQL]
    with transaction.atomic(using):
        take_away(using)
        with connection.cursor() as cursor:
            for form in forms:
                cursor.execute(form.format(trigger=TRIGGER, table=table, differs=differs))
    return True


def take_away(using: str) -> None:
    """Removes it, if it is there."""
    connection = connections[using]
    if connection.vendor not in _DIFFERS:
        return
    on_table = "" if connection.vendor == "sqlite" else f" ON {connection.ops.quote_name(Schedule._meta.db_table)}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER IF EXISTS {TRIGGER}{on_table}")


def watched() -> list[str]:
    """Columns whose change is stamped."""
    columns = [str(field.column) for field in Schedule._meta.local_concrete_fields]
    return [column for column in columns if column not in UNWATCHED]


def _has_all_columns(connection: Any) -> bool:
    """Whether the table is what this code expects: not while it is migrated part of the way."""
    table = Schedule._meta.db_table
    with connection.cursor() as cursor:
        if table not in connection.introspection.table_names(cursor):
            return False
        there = {column.name for column in connection.introspection.get_table_description(cursor, table)}
    return there.issuperset({*watched(), "changed_at"})
