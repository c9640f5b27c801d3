"""Sending: real requests over real sockets, to receivers that behave and to some that do not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from samples import webhooks
from samples.webhooks import DeliveryFailed, DeliveryImpossible
from tests.support.wait import soon


class Stranger(BaseHTTPRequestHandler):
    """Answers as its server's ``answer`` does, and keeps what it was sent."""

    answer: ClassVar[Callable[[Stranger], None]]
    seen: ClassVar[list[tuple[dict[str, str], bytes]]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((dict(self.headers), body))
        type(self).answer(self)

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def listen() -> Iterator[Callable[[Callable[[Stranger], None]], str]]:
    """``listen(answer)`` starts a server and answers its URL; its handler class is ``listen.stranger``."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Callable[[Stranger], None]) -> str:
        stranger = type("Answering", (Stranger,), {"answer": answer, "seen": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), stranger)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        start.stranger = stranger  # type: ignore[attr-defined]
        return f"http://127.0.0.1:{server.server_port}/hook?a=1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def post(url: str, body: bytes = b"{}") -> webhooks.Answer:
    return webhooks.post(url, body, event="order.paid", delivery="job-1")


def test_a_request_proves_who_sent_it(listen: Callable[..., str]) -> None:
    body = webhooks.encode("order.paid", {"order": 7, "note": "ü"})

    answer = post(listen(lambda stranger: stranger.say(200, b"thanks")), body)

    assert answer == webhooks.Answer(status=200, body="thanks")
    ((headers, received),) = listen.stranger.seen  # type: ignore[attr-defined]
    assert received == body
    assert headers["Webhook-Event"] == "order.paid"
    assert webhooks.verify(
        received, delivery="job-1", signature=headers["Webhook-Signature"], key=webhooks.secret(), now=time.time()
    )


def test_every_attempt_has_a_nonce_of_its_own(listen: Callable[..., str]) -> None:
    url = listen(lambda stranger: stranger.say(200))

    post(url)
    post(url)

    first, second = (headers["Webhook-Signature"] for headers, _ in listen.stranger.seen)  # type: ignore[attr-defined]
    assert first != second


@pytest.mark.parametrize(
    ("status", "accepted", "final"),
    [
        (200, True, False),
        (204, True, False),
        (302, False, True),
        (400, False, True),
        (410, False, True),
        (408, False, False),
        (429, False, False),
        (500, False, False),
        (503, False, False),
    ],
)
def test_an_answer_says_whether_to_try_again(
    listen: Callable[..., str], status: int, accepted: bool, final: bool
) -> None:
    answer = post(listen(lambda stranger: stranger.say(status)))

    assert (answer.accepted, answer.is_final) == (accepted, final)


def test_a_redirect_is_not_followed(listen: Callable[..., str]) -> None:
    elsewhere = listen(lambda stranger: stranger.say(200))
    strangers = listen.stranger  # type: ignore[attr-defined]

    answer = post(listen(lambda stranger: stranger.say(307, Location=elsewhere)))

    assert answer.status == 307
    assert strangers.seen == []


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)])
def test_a_busy_receiver_may_say_when_to_come_back(
    listen: Callable[..., str], header: str, seconds: float | None
) -> None:
    answer = post(listen(lambda stranger: stranger.say(503, Retry_After=header)))

    assert answer.retry_after == seconds


def test_an_endless_answer_is_cut(listen: Callable[..., str]) -> None:
    def talk(stranger: Stranger) -> None:
        stranger.send_response(200)
        stranger.end_headers()
        try:
            while True:
                stranger.wfile.write(b"x" * 65_536)
        except OSError:
            stranger.close_connection = True

    answer = post(listen(talk))

    assert len(answer.body) == webhooks.LARGEST_ANSWER


def test_a_dripping_answer_is_given_up_in_time(listen: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_SECONDS", 0.3)
    over = threading.Event()

    def drip(stranger: Stranger) -> None:
        stranger.send_response(200)
        stranger.end_headers()
        while not over.wait(0.05):
            stranger.wfile.write(b"x")
            stranger.wfile.flush()

    url = listen(drip)
    started = time.monotonic()
    with pytest.raises(DeliveryFailed, match=r"did not answer within 0\.3 s"):
        post(url)
    over.set()

    assert time.monotonic() - started < soon(1)


def test_a_silent_receiver_is_given_up_in_time(listen: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT_SECONDS", 0.2)
    over = threading.Event()

    with pytest.raises(DeliveryFailed, match="did not answer"):
        post(listen(lambda stranger: over.wait(5) and None))
    over.set()


def test_a_closed_port_can_be_tried_again_later() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    with pytest.raises(DeliveryFailed, match="could not be reached"):
        post(f"http://127.0.0.1:{port}/")


def test_nonsense_instead_of_http_can_be_tried_again_later(listen: Callable[..., str]) -> None:
    with pytest.raises(DeliveryFailed, match="could not be reached"):
        post(listen(lambda stranger: stranger.wfile.write(b"220 mail.example.com ESMTP\r\n") and None))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "http://user:password@example.com/",
        "http://example.com:port/",
        "http://example.com/a b",
        "http://example.com/\r\nX-Evil: 1",
        "http://[::1/",
        f"http://{'a' * 70}.example/",
    ],
)
def test_an_impossible_address_is_final(url: str) -> None:
    with pytest.raises(DeliveryImpossible):
        post(url)


def test_a_body_beyond_what_receivers_take_is_final() -> None:
    with pytest.raises(DeliveryImpossible, match="at most 65,536"):
        webhooks.encode("order.paid", {"note": "x" * 65_536})


def test_the_secret_can_be_set(settings: object) -> None:
    derived = webhooks.secret()

    settings.SAMPLES_WEBHOOK_SECRET = "shared"  # type: ignore[attr-defined]

    assert len(derived) == 32
    assert webhooks.secret() == b"shared"
