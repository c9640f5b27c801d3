"""What happens to jobs, as Django signals in the worker process that has brought it about.

The sender is the job type (the decorated function), so a receiver can ask for the jobs of one type alone.
``job_started`` is sent in the handler's own thread before it begins. The others are sent when the store has accepted
the end of the attempt, in a thread of their own: ``get_job`` tells the same then, and a slow receiver keeps no slot
from working. An exception in a receiver is logged and changes nothing. A signal is lost with its process; what must not
be missed is the business of ``SCHEDULER["ON_DEAD"]``.
"""

from __future__ import annotations

from django.dispatch import Signal

job_started = Signal()
"""An attempt begins. Arguments: ``job_id``, ``context``."""

job_finished = Signal()
"""A job has succeeded. Arguments: ``job_id``, ``context``, ``result`` (what the handler returned)."""

job_retrying = Signal()
"""An attempt has failed and the job will be tried again. Arguments: ``job_id``, ``context``, ``error``, ``delay``
(seconds).
"""

job_died = Signal()
"""A job has gone to the dead letters. Arguments: ``job_id``, ``context``, ``error``.

Where its worker died once too often, the host that buried it sends this: no handler was there, and ``context`` and
``error`` are None. ``context`` is None as well where the payload could not be read.
"""

__all__ = ["job_died", "job_finished", "job_retrying", "job_started"]
