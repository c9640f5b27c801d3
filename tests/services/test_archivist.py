from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.utils import timezone

from jobs.models import AuditEntry
from jobs.services import archivist
from jobs.services.archivist import Archivist

pytestmark = pytest.mark.django_db


def entry(days_ago: float) -> AuditEntry:
    at = timezone.now() - timedelta(days=days_ago)
    return AuditEntry.objects.create(at=at, who="ana", source="command", action="pool.pause")


def test_entries_go_when_their_time_is_over_and_no_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archivist, "BATCH", 2)
    for days in (29, 31, 32, 33, 400):
        entry(days)

    assert Archivist(30).tick() == {"forgotten": 4}
    assert Archivist(30).tick() == {"forgotten": 0}
    assert AuditEntry.objects.count() == 1


def test_with_no_limit_they_are_kept_for_ever() -> None:
    entry(40_000)

    assert Archivist(0).tick() == {"forgotten": 0}


def test_a_database_that_is_away_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object, **__: object) -> int:
        raise DatabaseError("away")

    monkeypatch.setattr(type(AuditEntry.objects.all()), "forget", away)

    assert Archivist(30).tick() == {"forgotten": 0}
    assert "away" in caplog.text
