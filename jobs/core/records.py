"""Which job a log record came from: what a handler, or anything that it calls, writes into the process's log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

import msgspec

from jobs.core.context import Context, current_context
from jobs.core.redaction import Redaction
from jobs.core.wording import visible

LINE = "%(asctime)s %(process)d %(levelname)s %(job)s%(message)s"
"""Of a worker whose project has no logging of its own."""


class JobOfRecord(logging.Filter):
    """Gives each record ``job_id``, ``job_type`` and ``attempt`` (empty outside of jobs), for formats to name.

    Workers put it on every handler that the project has configured.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        context = _context()
        facts = (context.id, context.type, context.attempt) if context else ("", "", "")
        for name, fact in zip(("job_id", "job_type", "attempt"), facts, strict=True):
            if name not in record.__dict__:  # the project may have given it another meaning
                setattr(record, name, fact)
        return True


class Redacting(logging.Filter):
    """Takes secrets out of each record: ``key=value`` of keys that hide, and what the payload of the job that writes it
    hides. ``names_of``: job type → the arguments that it redacts.
    """

    def __init__(self, redaction: Redaction, names_of: Callable[[str], frozenset[str]]) -> None:
        super().__init__()
        self._redaction = redaction
        self._names_of = names_of
        self._secrets_in = lru_cache(64)(self._read_secrets)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.__dict__.setdefault("is_redacted", False):  # another handler's turn
            return True
        record.is_redacted = True
        secrets = self._secrets()
        with suppress(Exception):  # arguments that do not fit: the handler will say so
            record.msg, record.args = self._redaction.text(record.getMessage(), secrets), None
        if record.exc_info and record.exc_info[0] and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._redaction.text(record.exc_text, secrets)
        if isinstance(fields := record.__dict__.get("fields"), dict):
            record.fields = self._redaction.value(fields)
        return True

    def _secrets(self) -> tuple[str, ...]:
        context = _context()
        return self._secrets_in(context.type, context.lease.payload) if context else ()

    def _read_secrets(self, type: str, payload: bytes) -> tuple[str, ...]:
        with suppress(ValueError):  # a payload that went bad
            return tuple(self._redaction.secrets(msgspec.json.decode(payload), self._names_of(type)))
        return ()


class JobFormatter(logging.Formatter):
    """A formatter whose format may hold ``%(job)s``: ``[email.send ID #1]`` and a space in a job, nothing elsewhere.

    A message is one line, whatever names and reasons it quotes: nobody writes a second record into it.
    """

    def format(self, record: logging.LogRecord) -> str:
        JobOfRecord().filter(record)
        facts = record.__dict__
        record.job = f"[{facts['job_type']} {facts['job_id']} #{facts['attempt']}] " if facts["job_id"] else ""
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = visible(record.message)
        return super().formatMessage(record)


class WorthAPlace(logging.Filter):
    """The scheduler's own records, what jobs write, and warnings of anybody.

    Django's have handlers of their own, which show those of failed receivers to nobody outside of DEBUG.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == "django" and record.name != "django.dispatch":
            return False
        return record.levelno >= logging.WARNING or record.name.startswith("jobs.") or _context() is not None


def name_jobs_in_records() -> None:
    """From now on the handlers that the project has configured give each record its job."""
    _filter_all(JobOfRecord())


def hide_secrets_in_records(redaction: Redaction, names_of: Callable[[str], frozenset[str]]) -> None:
    """From now on the handlers that the project has configured see no secrets. ``names_of``: see ``Redacting``."""
    _filter_all(Redacting(redaction, names_of))


def _filter_all(filter: logging.Filter) -> None:
    loggers = [logging.getLogger(), *logging.getLogger().manager.loggerDict.values()]
    for handler in (handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers):
        if not any(type(known) is type(filter) for known in handler.filters):
            handler.addFilter(filter)


def log_to_stderr() -> None:
    """For a project without logging of its own: its people still hear what happens to their workers and jobs."""
    root = logging.getLogger()
    if root.hasHandlers() or logging.getLogger("jobs").hasHandlers():
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JobFormatter(LINE))
    handler.addFilter(WorthAPlace())
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _context() -> Context | None:
    try:
        return current_context()
    except LookupError:
        return None
