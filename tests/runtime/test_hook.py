"""Functions of the project that are called for what happens."""

from __future__ import annotations

import asyncio
import logging

import pytest

from jobs.runtime.hook import Hook

pytestmark = pytest.mark.django_db  # a hook may use the database, and what is left of its connections is closed

called: list[object] = []


def blocking(subject: object) -> None:
    called.append(subject)


async def awaiting(subject: object) -> None:
    await asyncio.sleep(0)
    called.append(subject)


def failing(subject: object) -> None:
    raise ConnectionError("pager is down")


@pytest.mark.parametrize("name", ["blocking", "awaiting"])
def test_it_is_called_with_what_it_is_about(name: str) -> None:
    called.clear()
    Hook(f"{__name__}.{name}")("a job")

    assert called == ["a job"]


def leaving(subject: object) -> None:
    raise SystemExit(3)


async def giving_up(subject: object) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("name", ["failing", "leaving", "giving_up", "nowhere"])
def test_what_it_raises_is_logged_and_ends_there(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "jobs.runtime"):
        Hook(f"{__name__}.{name}")("a job")

    assert f"{__name__}.{name} failed" in caplog.text
