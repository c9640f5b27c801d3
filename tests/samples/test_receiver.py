"""The receiver: takes what is genuine and recent, once, and fails in the ways that its path names."""

from __future__ import annotations

from typing import Any

import pytest

from samples import webhooks
from samples.receiver import Behaviour, Receiver, Reply

NOW = 1_800_000_000
BODY = b'{"event":"order.paid"}'


def signed(body: bytes = BODY, *, delivery: str = "job-1", at: int = NOW, nonce: str = "n1", key: bytes = b"") -> str:
    return webhooks.sign(body, delivery=delivery, key=key or webhooks.secret(), at=at, nonce=nonce)


def receive(receiver: Receiver, **changes: Any) -> Reply:
    request: dict[str, Any] = {"body": BODY, "delivery": "job-1", "behaviour": Behaviour.ACCEPT, "now": NOW}
    request |= changes
    return receiver.receive(request.pop("body"), **({"signature": signed()} | request))


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def test_a_genuine_delivery_is_accepted(receiver: Receiver) -> None:
    assert receive(receiver) == Reply(200, {"accepted": "job-1", "duplicate": False, "tries": 1})


def test_the_same_request_again_is_a_replay(receiver: Receiver) -> None:
    receive(receiver)

    assert receive(receiver).status == 409


def test_the_same_delivery_in_a_new_request_is_a_duplicate_that_does_no_harm(receiver: Receiver) -> None:
    receive(receiver)

    reply = receive(receiver, signature=signed(nonce="n2"))

    assert (reply.status, reply.content["duplicate"]) == (200, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"signature": ""},
        {"signature": "t=1"},
        {"signature": "t=x,n=1,v1=2"},
        {"signature": signed(key=b"somebody else's")},
        {"signature": signed().replace("n=n1", "n=n2")},
        {"signature": signed().replace(f"t={NOW}", f"t={NOW + 1}")},
        {"signature": signed(at=NOW).replace("v1=", "v1=é")},
        {"body": BODY + b" "},
        {"delivery": "job-2"},
    ],
)
def test_what_was_not_signed_like_this_is_refused(receiver: Receiver, changes: dict[str, Any]) -> None:
    assert receive(receiver, **changes).status == 401


@pytest.mark.parametrize(("seconds", "status"), [(-301, 401), (-300, 200), (300, 200), (301, 401)])
def test_a_request_must_be_recent(receiver: Receiver, seconds: int, status: int) -> None:
    assert receive(receiver, signature=signed(at=NOW + seconds)).status == status


def test_a_refused_request_leaves_no_trace(receiver: Receiver) -> None:
    receive(receiver, signature=signed(key=b"wrong"))

    assert receive(receiver).status == 200


def test_a_flaky_receiver_takes_the_third_try(receiver: Receiver) -> None:
    replies = [
        receive(receiver, behaviour=Behaviour.FLAKY, signature=signed(nonce=nonce)) for nonce in ("n1", "n2", "n3")
    ]

    assert [reply.status for reply in replies] == [503, 503, 200]
    assert [reply.retry_after for reply in replies] == [1, 1, None]


@pytest.mark.parametrize(("behaviour", "status"), [(Behaviour.DOWN, 500), (Behaviour.GONE, 410)])
def test_some_receivers_never_take_anything(receiver: Receiver, behaviour: Behaviour, status: int) -> None:
    for nonce in ("n1", "n2", "n3", "n4"):
        assert receive(receiver, behaviour=behaviour, signature=signed(nonce=nonce)).status == status


def test_an_outage_ends_as_it_began(receiver: Receiver) -> None:
    receiver.outage = True
    during = receive(receiver)
    receiver.outage = False
    after = receive(receiver, signature=signed(nonce="n2"))

    assert during.status == 503
    assert after == Reply(200, {"accepted": "job-1", "duplicate": False, "tries": 2})


def test_its_memory_is_bounded(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("samples.receiver.REMEMBERED", 10)

    for number in range(25):
        name = f"job-{number}"
        receive(receiver, delivery=name, signature=signed(delivery=name, nonce=name))

    assert len(receiver._nonces) == len(receiver._tries) == len(receiver._accepted) == 10
    assert receive(receiver, delivery="job-24", signature=signed(delivery="job-24", nonce="job-24")).status == 409
