"""Which pages may open the WebSocket: ours, by scheme, host and port, and those that settings trust."""

from __future__ import annotations

import pytest

from dashboard.origins import allowed


def handshake(
    origin: str | None, *, host: str = "jobs.example.com", scheme: str = "ws", **headers: str
) -> dict[str, object]:
    given = [(b"host", host.encode()), *((name.encode(), value.encode()) for name, value in headers.items())]
    if origin is not None:
        given.append((b"origin", origin.encode()))
    return {"type": "websocket", "scheme": scheme, "headers": given}


@pytest.fixture(autouse=True)
def _site(settings) -> None:
    settings.ALLOWED_HOSTS = ["jobs.example.com", "[::1]"]
    settings.CSRF_TRUSTED_ORIGINS = []
    settings.SECURE_PROXY_SSL_HEADER = None


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        ("http://jobs.example.com", "jobs.example.com", "ws"),
        ("http://jobs.example.com:80", "jobs.example.com", "ws"),
        ("http://jobs.example.com", "jobs.example.com:80", "ws"),
        ("https://jobs.example.com", "jobs.example.com", "wss"),
        ("http://jobs.example.com:8000", "jobs.example.com:8000", "ws"),
        ("http://JOBS.example.com", "jobs.example.com", "ws"),
        ("http://[::1]:8000", "[::1]:8000", "ws"),
    ],
)
def test_a_page_of_this_site_may(origin: str, host: str, scheme: str) -> None:
    assert allowed(handshake(origin, host=host, scheme=scheme))


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "https://evil.example",
        "http://jobs.example.com.evil.example",
        "http://evil-jobs.example.com",
        "https://jobs.example.com",  # other scheme
        "http://jobs.example.com:8000",  # other port
        "http://user@jobs.example.com",
        "http://jobs.example.com/path",
        "http://jobs.example.com:99999999",
        "http://[",
        "file://jobs.example.com",
        "http://jobs.example.com, http://evil.example",
    ],
)
def test_any_other_may_not(origin: str | None) -> None:
    assert not allowed(handshake(origin))


def test_an_origin_that_matches_a_forged_host_may_not() -> None:
    assert not allowed(handshake("http://evil.example", host="evil.example"))


def test_a_header_sent_twice_matches_nothing() -> None:
    twice = handshake("http://jobs.example.com")
    twice["headers"].append((b"origin", b"http://jobs.example.com"))  # type: ignore[attr-defined]

    assert not allowed(twice)


@pytest.mark.parametrize(
    ("listed", "origin", "may"),
    [
        ("https://ops.example.com", "https://ops.example.com", True),
        ("https://ops.example.com", "http://ops.example.com", False),
        ("https://ops.example.com:8443", "https://ops.example.com", False),
        ("https://*.example.org", "https://a.example.org", True),
        ("https://*.example.org", "https://example.org.evil", False),
    ],
)
def test_origins_listed_in_settings_may(listed: str, origin: str, may: bool, settings) -> None:
    settings.CSRF_TRUSTED_ORIGINS = [listed]

    assert allowed(handshake(origin)) is may


def test_behind_a_proxy_the_pages_scheme_comes_from_the_header_that_settings_trust(settings) -> None:
    secure = handshake("https://jobs.example.com", **{"x-forwarded-proto": "https"})
    assert not allowed(secure)

    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

    assert allowed(secure)
    assert not allowed(handshake("https://jobs.example.com", **{"x-forwarded-proto": "http"}))
