"""Job types for tests of the HTTP API."""

from __future__ import annotations

from jobs import job


@job("http.greet", max_retries=1)
def greet(name: str = "Ana", *, times: int = 1) -> str:
    """A type with a signature, for payloads that fit and payloads that do not."""
    return f"Hello {name}! " * times


@job("http.login", redact=("password",))
def login_somewhere(user: str, password: str) -> None:
    """A type with an argument that nobody should see."""
