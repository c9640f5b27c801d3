"""One shared feed per web process: while sockets are open it reads the whole a few times a second and hands every
socket the figures that changed, at most four times a second.

The cost is one small read per tick whatever the backlog and however many sockets; each change is encoded once. What
cannot be shared is handing a frame to each socket, so many sockets are told less often. Nothing is queued: a slow
socket is given the newest when it is ready for it, so memory stays flat in any storm.
"""

from __future__ import annotations

import asyncio
import json
import logging
import weakref
from collections.abc import AsyncGenerator, Callable

from dashboard import reads
from dashboard.figures import figures, version
from dashboard.overall import Overall
from jobs.core.job import iso

log = logging.getLogger(__name__)

POLL_SECONDS = 0.4
GAP_SECONDS = 0.25
"""Least time between two frames to one socket."""

FRAMES_PER_SECOND = 250
"""To all sockets together. A frame costs about 0.2 ms of a processor, most of it packing, which servers do for each
socket by itself: so 200 open pages cost a twentieth of a processor, and are told of a change within 0.8 s."""

BEAT_SECONDS = 5.0
"""A frame at least this often, so that a page can tell quiet from dead."""


class Feed:
    """Frames for the sockets of one event loop."""

    def __init__(self, read: Callable[[], Overall] = reads.overall) -> None:
        self._read = read
        self._readers = 0
        self._poller: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._figures: dict[str, str] = {}
        self._version = ""
        self._previous = ""
        self._common: dict[str, str] = {}
        self._whole = ""
        self._whole_at: str | None = None  # the moment that it tells; None: it is yet to be written
        self._delta = ""
        self._at = ""

    async def frames(self) -> AsyncGenerator[str, None]:
        """The whole first, then what changes, until the reader stops. Each frame is a JSON object."""
        self._readers += 1
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        known = ""
        try:
            while True:
                changed = await self._wait_for_other_than(known)
                if not changed:
                    yield json.dumps({"type": "beat", "version": known, "at": self._at})
                    continue
                frame = self._delta if known and known == self._previous else self._whole_now()
                known = self._version
                yield frame
                await asyncio.sleep(GAP_SECONDS)
        finally:
            self._readers -= 1
            if self._readers == 0 and self._poller is not None:
                self._poller.cancel()
                self._poller = None
                self._version = self._previous = ""

    async def _wait_for_other_than(self, known: str) -> bool:
        """True when there is another version than the known one, False when it was quiet for a beat."""
        async with self._changed:
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    await self._changed.wait_for(lambda: self._version not in ("", known))
            except TimeoutError:
                return False
        return True

    async def _poll(self) -> None:
        while True:
            try:
                overall = await asyncio.to_thread(self._read)
                await self._take(overall)
            except asyncio.CancelledError:
                raise
            except Exception:  # the feed outlives whatever a read may raise; pages fall back to their last figures
                log.exception("dashboard.feed_failed")
            await asyncio.sleep(max(POLL_SECONDS, self._readers / FRAMES_PER_SECOND))

    async def _take(self, overall: Overall) -> None:
        self._at = iso(overall.now) or ""
        fresh = figures(overall)
        if fresh == self._figures and self._version:
            return
        delta = {key: text for key, text in fresh.items() if self._figures.get(key) != text}
        gone = [key for key in self._figures if key not in fresh]
        common = {"version": version(fresh), "trouble": overall.trouble}
        async with self._changed:
            self._delta = json.dumps(
                {"type": "changes", "since": self._version, **common, "at": self._at, "figures": delta, "gone": gone}
            )
            self._figures, self._previous, self._version = fresh, self._version, common["version"]
            self._common, self._whole_at = common, None
            self._changed.notify_all()

    def _whole_now(self) -> str:
        """All figures, as of the newest reading: whoever comes while nothing changes is told the present moment."""
        if self._whole_at != self._at:
            facts = {"type": "figures", **self._common, "at": self._at, "figures": self._figures}
            self._whole, self._whole_at = json.dumps(facts), self._at
        return self._whole


_feeds: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Feed] = weakref.WeakKeyDictionary()


def feed() -> Feed:
    """The feed of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _feeds:
        _feeds[loop] = Feed()
    return _feeds[loop]
