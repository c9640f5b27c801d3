"""rediss://: a server is only talked to when its certificate is trusted.

The bundled server is built without TLS, so a small proxy speaks TLS in front of it. The certificates were made for
these tests, are trusted by nobody and last a hundred years; the key of the authority was thrown away.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.conf import get_settings
from jobs.engine import Engine
from jobs.exceptions import StoreUnavailable
from jobs.store.connection import Store
from tests.support.steps import Steps
from tests.support.valkey import ValkeyServer

CERTIFICATES = Path(__file__).parent / "certificates"
AUTHORITY = CERTIFICATES / "authority.pem"


class TlsProxy:
    """Ends TLS and passes the bytes on to a Unix socket; one pair of threads per connection."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server-key.pem")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            client = self._context.wrap_socket(plain, server_side=True)
        except OSError:  # the client does not trust us
            plain.close()
            return
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._upstream)
            down = threading.Thread(target=pass_on, args=(server, client), daemon=True)
            down.start()
            pass_on(client, server)
            down.join(5)


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65_536):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def port(private_valkey: ValkeyServer) -> Iterator[int]:
    """Port of a server that speaks TLS."""
    proxy = TlsProxy(private_valkey.socket)
    yield proxy.port
    proxy.stop()


def test_a_server_whose_authority_is_trusted_is_used(port: int, namespace: str) -> None:
    store = Store(f"rediss://localhost:{port}/0?ssl_ca_certs={AUTHORITY}", namespace)
    steps = Steps(Engine(store, get_settings()))

    job_id = steps.enqueue()

    assert steps.complete(steps.lease()) == "ok"
    assert steps.state(job_id) == "succeeded"
    store.close()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("rediss://localhost:{port}/0", "CERTIFICATE_VERIFY_FAILED", id="an authority that nobody knows"),
        pytest.param(
            "rediss://127.0.0.1:{port}/0?ssl_ca_certs={authority}",
            "IP address mismatch",
            id="a name that the certificate does not have",
        ),
        pytest.param("redis://localhost:{port}/0", "closed|reset", id="a client that does not speak TLS"),
    ],
)
def test_a_server_that_cannot_be_trusted_is_not_talked_to(port: int, namespace: str, url: str, words: str) -> None:
    store = Store(url.format(port=port, authority=AUTHORITY), namespace, patience=0.3)

    with pytest.raises(StoreUnavailable, match=words):
        store.ping()

    store.close()


def test_checks_are_only_left_out_by_name(port: int, namespace: str) -> None:
    store = Store(f"rediss://localhost:{port}/0?ssl_cert_reqs=none&ssl_check_hostname=false", namespace)

    store.ping()

    store.close()
