"""Real servers for tests: where the shared one comes from, and private ones that a test may hurt."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import redis

from jobs.store import embedded, guardian
from tests.support.wait import eventually

CONTAINERS_REQUIRED = os.environ.get("REQUIRE_CONTAINERS", "") not in ("", "0")


class ValkeyServer:
    """A server of one's own, in a folder of its own, that dies with the test process whatever happens.

    Writes are in the append-only file before they are acknowledged, so that killing it may lose none of them.
    """

    def __init__(self, folder: Path, *, port: int | None = None, **options: str) -> None:
        self.folder = folder
        self.socket = str(folder / "valkey.sock")
        self.options = {"appendonly": "yes", "appendfsync": "always", **options}
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{quote(self.socket)}"

    def start(self) -> ValkeyServer:
        """Starts (again) and waits until it answers."""
        options = {
            "port": str(self.port or 0),
            "bind": "127.0.0.1",
            "unixsocket": self.socket,
            "dir": str(self.folder),
            "logfile": str(self.folder / "valkey.log"),
            "save": "",
            "maxmemory-policy": "noeviction",
        } | {name.replace("_", "-"): value for name, value in self.options.items()}
        Path(self.socket).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [embedded.binary(), *(part for name, value in options.items() for part in (f"--{name}", value))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_die_with_parent,
        )
        eventually(lambda: guardian.greeting(self.socket, within=1.0) == "+PONG\r\n")
        return self

    def kill(self) -> None:
        """SIGKILL: what a crash or the kernel's memory killer does."""
        self._signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        """SIGSTOP: there, and silent. ``cont`` wakes it."""
        self._signal(signal.SIGSTOP)

    def cont(self) -> None:
        self._signal(signal.SIGCONT)

    def shutdown(self) -> None:
        """SIGTERM: an orderly end."""
        if self.process is not None:
            self._signal(signal.SIGCONT)
            self._signal(signal.SIGTERM)
            self._gone()

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None, "the server was not started"
        self.process.send_signal(number)

    def _gone(self) -> None:
        assert self.process is not None
        self.process.wait(15)
        self.process = None


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(guardian.PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def shared_server() -> Iterator[tuple[str, str]]:
    """The server of the test session, as (URL, where it comes from): named → container → bundled."""
    if url := os.environ.get("SCHEDULER_TEST_REDIS_URL"):
        if CONTAINERS_REQUIRED:
            raise RuntimeError("REQUIRE_CONTAINERS and SCHEDULER_TEST_REDIS_URL contradict each other; unset one.")
        yield url, "named by SCHEDULER_TEST_REDIS_URL"
        return
    problem = engine_problem()
    if problem is None:
        with container() as url:
            yield url, "in a container"
        return
    if CONTAINERS_REQUIRED:
        raise RuntimeError(f"REQUIRE_CONTAINERS is set, but no container engine answers: {problem}")
    with tempfile.TemporaryDirectory(prefix="mainspring-valkey-") as folder:
        server = ValkeyServer(Path(folder), appendonly="no").start()
        try:
            yield server.url, "bundled"
        finally:
            server.kill()


def engine_problem() -> str | None:
    """Why containers cannot be used, or None when they can."""
    try:
        import docker
    except ImportError as error:
        return str(error)
    with warnings.catch_warnings():
        # Where nobody answers, the client forgets to close its socket.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            client = docker.from_env(timeout=5)
            client.ping()
            client.close()
        except Exception as error:  # whatever its transport raises
            return str(error)
        finally:
            gc.collect()
    return None


@contextmanager
def container() -> Iterator[str]:
    """A Valkey container by testcontainers; the image can be named by TEST_VALKEY_IMAGE."""
    from testcontainers.core.container import DockerContainer

    image = os.environ.get("TEST_VALKEY_IMAGE", "docker.io/valkey/valkey:9")
    with DockerContainer(image).with_exposed_ports(6379) as running:
        host, port = running.get_container_host_ip(), running.get_exposed_port(6379)
        url = f"redis://{host}:{port}/0"
        eventually(lambda: _pings(url), within=30)
        yield url


def _pings(url: str) -> bool:
    with redis.Redis.from_url(url, socket_timeout=1) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def describe(url: str) -> str:
    """Name and version of the server behind the URL."""
    with redis.Redis.from_url(url) as client:
        info: dict[str, Any] = client.info("server")
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    return f"Redis {info['redis_version']}"
