"""Reads the process environment for the settings module. Knows types, not meanings."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off", ""}


def text(name: str, default: str = "") -> str:
    """The variable, or the default when it is unset or empty."""
    return os.environ.get(name, "").strip() or default


def boolean(name: str, default: bool) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    word = value.strip().lower()
    if word not in TRUE | FALSE:
        raise ImproperlyConfigured(f"{name}={value!r} is neither yes nor no. Use 1 or 0.")
    return word in TRUE


def seconds(name: str, default: float) -> float:
    value = text(name)
    try:
        number = float(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(
            f"{name}={value!r} is not a number of seconds. Use, for example, {name}=10."
        ) from None
    return number


def words(name: str, default: list[str] | None = None) -> list[str]:
    """A comma-separated list."""
    found = [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]
    return found or list(default or [])


def secret_key(name: str, *, development: bool, var_dir: Path) -> str:
    """The key from the environment. In development one is made up once and kept under the var dir.

    A key written in the source would let anybody who read it forge sessions of a development server on the network.
    """
    if key := text(name):
        return key
    if not development:
        raise ImproperlyConfigured(
            f"{name} is required when DJANGO_DEBUG=0. Make one with: "
            "python -c 'import secrets; print(secrets.token_urlsafe(50))'"
        )
    path = var_dir / "secret-key"
    try:
        return path.read_text()
    except FileNotFoundError:
        pass
    key = secrets.token_urlsafe(50)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=path.parent)  # readable by its owner only
    with os.fdopen(descriptor, "w") as file:
        file.write(key)
    try:
        os.link(draft, path)  # refuses to overwrite: of two processes that start together, the first one's key stays
    except FileExistsError:
        key = path.read_text()
    finally:
        os.unlink(draft)
    return key


def channel_host(url: str) -> str | dict[str, object]:
    """The engine's server in the form that the channel layer wants.

    Of a cluster it needs one node only: published messages reach every node by themselves.
    """
    parts = urlsplit(url)
    if parts.scheme.startswith("redis+sentinel"):
        credentials, _, nodes = parts.netloc.rpartition("@")
        service, _, database = parts.path.strip("/").partition("/")
        host: dict[str, object] = {
            "sentinels": [_host_and_port(node, 26379) for node in nodes.split(",")],
            "master_name": unquote(service),
            "db": int(database or 0),
        }
        username, _, password = credentials.partition(":")
        if password:
            host["password"] = unquote(password)
        if username:
            host["username"] = unquote(username)
        return host
    if parts.scheme.startswith("redis+cluster"):
        credentials, at, nodes = parts.netloc.rpartition("@")
        return f"redis://{credentials}{at}{nodes.split(',')[0]}/0"
    return url


def _host_and_port(node: str, default: int) -> tuple[str, int]:
    host, colon, port = node.rpartition(":")
    return (host, int(port)) if colon else (node, default)
