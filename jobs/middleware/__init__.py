"""Middleware: what wraps each attempt in a worker (``SCHEDULER["MIDDLEWARE"]``) and each enqueue in a producer
(``SCHEDULER["ENQUEUE_MIDDLEWARE"]``). ``Logging`` and ``Tracing`` fit into both lists."""

from jobs.middleware.around import Around, Outcome
from jobs.middleware.chain import AsgirefBridge, Bridge, Call, chain
from jobs.middleware.logging import Logging
from jobs.middleware.tracing import Tracing

__all__ = ["Around", "AsgirefBridge", "Bridge", "Call", "Logging", "Outcome", "Tracing", "chain"]
