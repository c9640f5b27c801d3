"""The WebSocket: who gets in, what is told, and when it ends. Against the whole application, as a server runs it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import OperationalError
from django.test import Client

from dashboard import consumers, feed
from dashboard.actions import ACTIONS
from tests.dashboard.seeding import Shop
from tests.dashboard.sockets import Socket

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(login: Callable[[str], Client]) -> Callable[[str], str]:
    """``session("viewer")``: the session cookie of that person."""
    return lambda role: login(role).cookies["sessionid"].value


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(feed, "GAP_SECONDS", 0.02)


async def refused(socket: Socket) -> bool:
    """True when the handshake was refused and nothing at all was sent."""
    return not await socket.open() and await socket.receive_nothing()


@pytest.mark.parametrize(
    "origin", [None, b"null", b"https://evil.example", b"http://localhost:81", b"https://localhost"]
)
async def test_a_foreign_page_is_refused_before_anything_is_sent(origin: bytes | None, session: Any) -> None:
    cookie = await sync_to_async(session)("viewer")

    assert await refused(Socket(cookie, origin=origin))


@pytest.mark.parametrize("role", ["anonymous", "stranger"])
async def test_who_may_not_see_the_dashboard_is_refused(role: str, session: Any) -> None:
    cookie = None if role == "anonymous" else await sync_to_async(session)(role)

    assert await refused(Socket(cookie))


async def test_a_made_up_session_is_refused() -> None:
    assert await refused(Socket("a" * 32))


async def test_an_unknown_path_is_refused(session: Any) -> None:
    cookie = await sync_to_async(session)("viewer")

    assert await refused(Socket(cookie, path="/ws/other/"))


async def test_a_viewer_is_told_everything_once_and_then_what_changes(session: Any, shop: Shop, fast: None) -> None:
    socket = Socket(await sync_to_async(session)("viewer"))
    assert await socket.open()
    whole = await socket.frame()
    assert whole["type"] == "figures"
    assert whole["figures"]["states.ready"] == "0"

    await sync_to_async(shop.many)(3)
    before, change = whole, await socket.frame()
    while "states.ready" not in change["figures"]:  # the pool itself may have been seen first
        before, change = change, await socket.frame()

    assert (change["type"], change["since"]) == ("changes", before["version"])
    assert change["figures"]["states.ready"] == "3"
    assert "states.dead" not in change["figures"]
    await socket.leave()


async def test_when_nothing_happens_only_a_small_beat_is_sent(
    session: Any, fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "BEAT_SECONDS", 0.2)
    socket = Socket(await sync_to_async(session)("viewer"))
    await socket.open()
    whole = await socket.frame()

    beat = await socket.frame()

    assert (beat["type"], beat["version"]) == ("beat", whole["version"])
    assert len(json.dumps(beat)) < 120
    await socket.leave()


@pytest.mark.parametrize("loss", ["permission", "account", "session", "password"])
async def test_losing_the_right_closes_the_socket(
    loss: str, session: Any, fast: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.1)
    cookie = await sync_to_async(session)("viewer")
    socket = Socket(cookie)
    await socket.open()
    await socket.frame()

    await sync_to_async(take_away)(loss, cookie)

    assert await socket.closed() == consumers.NOT_ALLOWED


def take_away(loss: str, cookie: str) -> None:
    user = User.objects.get(username="viewer")
    if loss == "permission":
        user.user_permissions.clear()
    elif loss == "account":
        User.objects.filter(pk=user.pk).update(is_active=False)
    elif loss == "password":
        user.set_password("another")
        user.save()
    else:
        Session.objects.filter(session_key=cookie).delete()


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """``database(False)``: from now on sessions cannot be read, in whichever thread; ``database(True)``: they can."""
    read, is_there = SessionStore.load, True

    def load(store: SessionStore) -> Any:
        if not is_there:
            raise OperationalError("no such host db.internal")
        return read(store)

    def turn(on: bool) -> None:
        nonlocal is_there
        is_there = on

    monkeypatch.setattr(SessionStore, "load", load)
    return turn


async def test_while_nobody_can_tell_who_reads_a_socket_closes_and_opens_when_that_is_known(
    session: Any, fast: None, database: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "RECHECK_SECONDS", 0.1)
    cookie = await sync_to_async(session)("viewer")
    socket = Socket(cookie)
    await socket.open()
    await socket.frame()

    database(False)

    assert await socket.closed() == consumers.NOT_NOW
    assert await refused(Socket(cookie))
    database(True)
    again = Socket(cookie)
    assert await again.open()
    await again.leave()


def test_the_right_is_asked_for_again_within_30_seconds() -> None:
    assert consumers.RECHECK_SECONDS * 1.2 <= 30


@pytest.mark.parametrize("role", ["viewer", "administrator"])
async def test_what_a_page_sends_means_nothing_and_a_flood_is_cut_off(
    role: str, session: Any, shop: Shop, fast: None
) -> None:
    socket = Socket(await sync_to_async(session)(role))
    await socket.open()
    job_id = await sync_to_async(shop.dead)()
    orders = [json.dumps({"action": action.slug, "type": action.slug, "id": job_id}) for action in ACTIONS]
    for words in ("[" * 1_000, "", "null", b"\xff\x00", *orders, *["x"] * consumers.FRAMES_TAKEN):
        await socket.say(words)

    assert await socket.closed() == consumers.FLOOD
    said_after = [socket.output_queue.get_nowait()["type"] for _ in range(socket.output_queue.qsize())]
    assert "websocket.close" not in said_after, "it is closed once, however much was on its way"
    assert await sync_to_async(shop.state)(job_id) == "dead"


@pytest.mark.parametrize("words", ["[" * 1_000_000, b"\x00" * 1_000_000])
async def test_one_large_frame_is_one_too_many(words: str | bytes, session: Any, fast: None) -> None:
    socket = Socket(await sync_to_async(session)("viewer"))
    await socket.open()

    await socket.say(words)

    assert await socket.closed() == consumers.FLOOD


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Who has how many sockets open, of at most two; without what other tests of this process left open."""
    counted: Counter[int] = Counter()
    monkeypatch.setattr(consumers.DashboardConsumer, "open_sockets", counted)
    monkeypatch.setattr(consumers, "SOCKETS_PER_USER", 2)
    return counted


async def test_one_person_has_a_bounded_number_of_sockets(session: Any, fast: None, places: Counter[int]) -> None:
    cookie = await sync_to_async(session)("viewer")
    first, second, third = Socket(cookie), Socket(cookie), Socket(cookie)
    assert await first.open()
    assert await second.open()

    assert await refused(Socket(cookie))
    await first.leave()

    assert await third.open()
    await second.leave()
    await third.leave()
    assert not places


async def test_a_socket_that_its_server_cancels_gives_its_place_back(
    session: Any, fast: None, places: Counter[int]
) -> None:
    """As a server does that stops and has waited long enough."""
    socket = Socket(await sync_to_async(session)("viewer"))
    await socket.open()
    await socket.frame()
    assert places.total() == 1

    socket.future.cancel()
    await asyncio.wait([socket.future])

    assert not places


async def test_a_socket_whose_reader_leaves_while_it_opens_gives_its_place_back(
    session: Any, fast: None, places: Counter[int]
) -> None:
    async def send(message: Any) -> None:
        raise ConnectionError("the reader has left")

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    cookie = await sync_to_async(session)("viewer")
    with pytest.raises(ConnectionError):
        await consumers.DashboardConsumer.as_asgi()({"cookies": {"sessionid": cookie}}, receive, send)

    assert not places
