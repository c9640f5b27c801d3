"""The shared feed: one reader of the store for all sockets, the newest for each, nothing while nobody looks."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard import feed as feed_module
from dashboard.feed import Feed
from dashboard.overall import Overall
from jobs.core.job import iso
from tests.support.wait import eventually

AT = datetime(2026, 1, 1, tzinfo=UTC)


class Store:
    """Readings as fast as they are asked for, each different when ``storm`` is on."""

    def __init__(self) -> None:
        self.reads = 0
        self.ready = 0
        self.storm = False
        self.at = AT

    def __call__(self) -> Overall:
        self.reads += 1
        self.ready += self.storm
        return Overall(states={"ready": self.ready}, at=self.at)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(feed_module, "GAP_SECONDS", 0.05)


async def take(feed: Feed, number: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async with aclosing(feed.frames()) as frames:
        async for frame in frames:
            found.append(json.loads(frame))
            if len(found) == number:
                return found
    return found


async def test_all_readers_share_one_poller_that_ends_with_the_last() -> None:
    store = Store()
    feed = Feed(store)
    await asyncio.gather(*(take(feed, 1) for _ in range(50)))
    reads = store.reads

    await asyncio.sleep(0.05)

    assert store.reads <= reads + 1
    assert reads < 50


async def test_who_comes_while_nothing_changes_is_told_the_present_moment() -> None:
    store = Store()
    feed = Feed(store)
    async with aclosing(feed.frames()) as first, asyncio.timeout(30):
        await anext(first)
        store.at += timedelta(minutes=1)
        reads = store.reads
        await asyncio.to_thread(eventually, lambda: store.reads >= reads + 3)

        [frame] = await take(feed, 1)

    assert (frame["type"], frame["at"]) == ("figures", iso(store.at))


async def test_in_a_storm_a_reader_gets_a_few_frames_a_second_and_always_the_newest() -> None:
    store = Store()
    store.storm = True
    feed = Feed(store)

    loop = asyncio.get_running_loop()
    started = loop.time()
    frames = await take(feed, 5)

    assert loop.time() - started >= 4 * 0.05
    assert store.ready > 5  # more readings than frames
    counts = [int(frame["figures"]["states.ready"].replace(",", "")) for frame in frames]
    assert counts == sorted(counts)
    assert {frame["type"] for frame in frames[1:]} <= {"figures", "changes"}


async def test_a_change_names_the_version_that_it_builds_on() -> None:
    store = Store()
    feed = Feed(store)
    async with aclosing(feed.frames()) as frames:
        first = json.loads(await anext(frames))
        store.ready = 7
        second = json.loads(await anext(frames))

    assert second["type"] == "changes"
    assert second["since"] == first["version"] != second["version"]
    assert second["figures"]["states.ready"] == "7"
    assert second["gone"] == []


async def test_it_lives_on_when_a_reading_fails(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    failures = iter([RuntimeError("broken")])

    def read() -> Overall:
        for failure in failures:
            raise failure
        return store()

    frames = await take(Feed(read), 1)

    assert frames[0]["figures"]["states.ready"] == "0"
    assert "dashboard.feed_failed" in caplog.text


async def test_the_more_readers_the_rarer_a_frame_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "GAP_SECONDS", 0.0)
    monkeypatch.setattr(feed_module, "FRAMES_PER_SECOND", 100)
    store = Store()
    store.storm = True
    feed = Feed(store)
    loop = asyncio.get_running_loop()
    started = loop.time()

    await asyncio.gather(*(take(feed, 3) for _ in range(10)))

    assert loop.time() - started >= 2 * 10 / 100  # a tenth of a second between frames, for ten of them


async def test_a_storm_leaves_nothing_behind_however_long_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "GAP_SECONDS", 0.02)
    store = Store()
    store.storm = True
    feed = Feed(store)
    async with aclosing(feed.frames()) as quick, aclosing(feed.frames()) as slow:
        await anext(slow)  # and then never again: its reader does not keep up

        async def held(frames: int) -> int:
            for _ in range(frames):
                await anext(quick)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            before, reads = await held(5), store.reads
            after = await held(50)
        finally:
            tracemalloc.stop()

    assert store.reads >= reads + 50
    assert after - before < 50_000
