"""Liveness and readiness over HTTP, for whatever keeps worker hosts running. Loopback only.

``/livez``: the supervisor's main loop has moved lately. ``/readyz``: jobs are being consumed, or could be if there were
any; otherwise 503 and the reason.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jobs.exceptions import OptionInvalid

Probe = Callable[[], tuple[bool, dict[str, Any]]]
"""Answers whether all is well, and the facts."""


class HealthServer:
    """Serves until it is closed. ``port`` 0 takes a free one; one that cannot be had is OptionInvalid."""

    def __init__(self, port: int, *, livez: Probe, readyz: Probe) -> None:
        probes = {"/livez": livez, "/readyz": readyz}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                probe = probes.get(self.path.partition("?")[0])
                if probe is None:
                    self._answer(404, {"error": "not found", "paths": sorted(probes)})
                    return
                well, facts = probe()
                self._answer(200 if well else 503, facts)

            def _answer(self, status: int, facts: dict[str, Any]) -> None:
                body = json.dumps(facts).encode() + b"\n"
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Probes come every few seconds: nobody wants to read of them."""

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except (OSError, OverflowError) as error:
            raise OptionInvalid(f"--health-port {port} cannot be used: {error}", fix="Choose a free port.") from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
