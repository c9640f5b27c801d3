"""Sending a webhook so that its receiver can trust it: signed, dated, bounded in time and size.

The signature covers the time, a nonce, the delivery and the body. Every *attempt* has a new nonce, so a copied request
is refused as a replay; every attempt of one *job* has the same delivery id, so a receiver that has it can say so.
"""

from __future__ import annotations

import hmac
import json
import secrets
import ssl
import time
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.crypto import salted_hmac

SIGNATURE_HEADER = "Webhook-Signature"
DELIVERY_HEADER = "Webhook-Delivery"
EVENT_HEADER = "Webhook-Event"

TOLERANCE_SECONDS = 300
"""How far the sender's clock may be from the receiver's; older requests are refused unread."""

TIMEOUT_SECONDS = 5.0
"""From the first packet to the last byte of the answer."""

LARGEST_BODY = 64 * 1024
LARGEST_ANSWER = 64 * 1024

TRY_LATER = frozenset({408, 425, 429})
"""Answers below 500 that do not mean "never"."""


class DeliveryFailed(Exception):
    """The receiver did not take the delivery this time; a later attempt may succeed."""


class DeliveryImpossible(Exception):
    """No later attempt can succeed: the address or the message is wrong."""


class SignatureInvalid(Exception):
    """The request does not prove that it comes from a sender who knows the secret, and is recent."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the receiver said. ``body`` is cut at LARGEST_ANSWER; ``retry_after`` is in seconds."""

    status: int
    body: str
    retry_after: float | None = None

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """Refused for good. A redirect is final too: it could lead a signed message to a stranger."""
        return 300 <= self.status < 500 and self.status not in TRY_LATER


def secret() -> bytes:
    """The key shared with the receiver: a setting, or one derived from the project's own secret key."""
    configured = getattr(settings, "SAMPLES_WEBHOOK_SECRET", "")
    return configured.encode() if configured else salted_hmac("samples.webhooks", "secret", algorithm="sha256").digest()


def encode(event: str, data: dict[str, Any]) -> bytes:
    """The body. Raises DeliveryImpossible when it is too large."""
    body = json.dumps({"event": event, "data": data}, separators=(",", ":"), sort_keys=True).encode()
    if len(body) > LARGEST_BODY:
        raise DeliveryImpossible(f"The body has {len(body):,} bytes; receivers take at most {LARGEST_BODY:,}")
    return body


def sign(body: bytes, *, delivery: str, key: bytes, at: int, nonce: str) -> str:
    """The signature header. ``at`` is in Unix seconds."""
    return f"t={at},n={nonce},v1={_digest(body, delivery, key, at, nonce)}"


def verify(body: bytes, *, delivery: str, signature: str, key: bytes, now: float) -> str:
    """Answers the nonce of a genuine, recent signature; raises SignatureInvalid otherwise."""
    try:
        parts = dict(part.split("=", 1) for part in signature.split(","))
        at, nonce, digest = int(parts["t"]), parts["n"], parts["v1"]
    except (KeyError, ValueError):
        raise SignatureInvalid(f"{SIGNATURE_HEADER} is missing or not of the form t=…,n=…,v1=…") from None
    # The digest comes first: until it is right, nothing else in the header means anything.
    if not hmac.compare_digest(digest.encode(), _digest(body, delivery, key, at, nonce).encode()):
        raise SignatureInvalid("The signature does not fit the body")
    if abs(now - at) > TOLERANCE_SECONDS:
        raise SignatureInvalid(f"Signed {now - at:+.0f} s ago; the tolerance is {TOLERANCE_SECONDS} s")
    return nonce


def post(url: str, body: bytes, *, event: str, delivery: str) -> Answer:
    """One signed POST. Follows no redirect and no proxy. Raises DeliveryFailed or DeliveryImpossible."""
    connection, target = _connection(url)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "mainspring-samples",
        "Connection": "close",
        EVENT_HEADER: event,
        DELIVERY_HEADER: delivery,
        SIGNATURE_HEADER: sign(body, delivery=delivery, key=secret(), at=int(time.time()), nonce=secrets.token_hex(8)),
    }
    try:
        connection.request("POST", target, body, headers)
        # The connection will forget the socket, since the response takes it over: hold it, to shorten its time-out.
        sock = connection.sock
        sock.settimeout(_left(deadline))
        response = connection.getresponse()
        answer = b""
        while len(answer) < LARGEST_ANSWER and not response.isclosed():  # which closes the socket too
            sock.settimeout(_left(deadline))
            chunk = response.read1(LARGEST_ANSWER - len(answer))
            if not chunk:
                break
            answer += chunk
        return Answer(
            status=response.status,
            body=answer.decode(errors="replace"),
            retry_after=_seconds(response.headers.get("Retry-After")),
        )
    except UnicodeError as error:
        raise DeliveryImpossible(f"{url!r} names a host that cannot be: {error}") from error
    except TimeoutError:
        raise DeliveryFailed(f"{url} did not answer within {TIMEOUT_SECONDS:g} s") from None
    except (OSError, HTTPException) as error:
        raise DeliveryFailed(f"{url} could not be reached: {str(error) or type(error).__name__}") from error
    finally:
        connection.close()


def _connection(url: str) -> tuple[HTTPConnection, str]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise DeliveryImpossible(f"{url!r} is not a URL: {error}") from None
    if parts.scheme not in {"http", "https"} or not host or parts.username is not None:
        raise DeliveryImpossible(f"{url!r} is not an http or https URL without a password in it")
    target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    if not target.isascii() or not target.isprintable() or " " in target:
        raise DeliveryImpossible(f"{url!r} has characters that a URL must escape")
    if parts.scheme == "https":
        return HTTPSConnection(host, port, timeout=TIMEOUT_SECONDS, context=ssl.create_default_context()), target
    return HTTPConnection(host, port, timeout=TIMEOUT_SECONDS), target


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _digest(body: bytes, delivery: str, key: bytes, at: int, nonce: str) -> str:
    return hmac.new(key, f"{at}.{nonce}.{delivery}.".encode() + body, sha256).hexdigest()


def _seconds(header: str | None) -> float | None:
    """Only the form in seconds: the date form would need the receiver's clock."""
    return float(header) if header and header.isdecimal() else None
