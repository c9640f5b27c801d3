"""``ctx.log``: a logger whose lines are also kept with the job, for those who ask later what an attempt was doing."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime
from sys import exc_info as current_error
from typing import Any

import msgspec

from jobs.core.job import iso
from jobs.core.wording import shown

Keep = Callable[[int, str, dict[str, Any]], None]
"""Takes ``(level, message, fields)`` to where lines are kept. Must not block: async handlers call it too."""

KEPT_LEVEL = logging.INFO
"""Lines below it are kept only where the logger lets them through."""

ARGUMENTS_OF_LOGGING = frozenset({"exc_info", "extra", "stack_info", "stacklevel"})
"""Every other named argument is a field of the line."""


TRACEBACK = "traceback"
"""The field that holds what an exception left."""


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line that an attempt has logged. ``number`` counts from 1 in the attempt, lines that are gone included."""

    attempt: int
    number: int
    at: datetime
    level: str  # INFO, WARNING, …
    message: str
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        """The message with its fields, but for a traceback: ``built May rows=12``."""
        fields = (f"{name}={value}" for name, value in self.fields.items() if name != TRACEBACK)
        return " ".join((self.message, *fields))

    @property
    def traceback(self) -> str:
        """Of the exception that the line is about; empty where there is none."""
        return str(self.fields.get(TRACEBACK, ""))

    def as_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {name: getattr(self, name) for name in self.__struct_fields__} | {"at": iso(self.at)}


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """Named arguments that ``logging`` does not know are fields: ``ctx.log.info("built %s", month, rows=12)``.

    The record that goes to the process's log carries ``job_id``, ``job_type``, ``pool`` and ``attempt``, and the fields
    as ``fields``.
    """

    def __init__(self, logger: logging.Logger, facts: Mapping[str, object], keep: Keep | None) -> None:
        super().__init__(logger, facts)
        self._facts = facts
        self._keep = keep

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """See ``logging.Logger.log``. All the other methods come here. Raises nothing, whatever is to be shown."""
        fields = {name: kwargs.pop(name) for name in kwargs.keys() - ARGUMENTS_OF_LOGGING}
        is_wanted = self.logger.isEnabledFor(level)
        if not is_wanted and (self._keep is None or level < KEPT_LEVEL):
            return
        message = _message(msg, args)
        if message is None:  # as shown, also in the log of the process: the mistake is no reason to lose the line
            message = f"{msg if isinstance(msg, str) else shown(msg)} {shown(args)}"
            msg, args = "%s", (message,)
        if self._keep is not None:
            self._keep(level, message, fields | _raised(kwargs.get("exc_info")))
        if is_wanted:
            kwargs["extra"] = {**self._facts, "fields": fields, **(kwargs.get("extra") or {})}
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
            self.logger.log(level, msg, *args, **kwargs)


def _message(msg: object, args: tuple[Any, ...]) -> str | None:
    """As ``LogRecord.getMessage`` makes it; None where the arguments do not fit, or cannot be made text."""
    try:
        text = str(msg)
        if not args:
            return text
        return text % (args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args)
    except Exception:  # the values' own code runs here
        return None


def _raised(exc_info: object) -> dict[str, str]:
    """The traceback that the line is about, as a field."""
    info: Any = exc_info
    if isinstance(exc_info, BaseException):
        info = (type(exc_info), exc_info, exc_info.__traceback__)
    elif exc_info and not isinstance(exc_info, tuple):
        info = current_error()
    if not info or info[0] is None:
        return {}
    try:
        return {TRACEBACK: "".join(traceback.format_exception(*info))}
    except Exception:  # not what an exception left
        return {TRACEBACK: shown(exc_info)}
