"""From an error to what a person reads, what a script reads, and the exit code of the process.

An error on the command line is one paragraph: what is wrong, with which input, and how to put it right. With ``--json``
it is ``{"error": {"code", "message", "fix"}}`` on standard error. Scripts branch on the exit codes: they do not change.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import Error as DatabaseError

from jobs.core.wording import shortened
from jobs.exceptions import (
    DuplicateJob,
    JobNotFound,
    JobTimeout,
    LeaseLost,
    OptionInvalid,
    OutcomeUnknown,
    PayloadInvalid,
    PayloadTooLarge,
    PoolFull,
    ScheduleInvalid,
    SchedulerError,
    StoreUnavailable,
    TopologyError,
    UnknownJobType,
    WorkflowInvalid,
    WrongState,
)


class Exit(IntEnum):
    """Why a command ended."""

    OK = 0
    FAILED = 1  # the job or the operation failed
    USAGE = 2  # wrong options or a request that can never be accepted
    NOT_FOUND = 3
    REFUSED = 4  # right as written, but not in this state of the world
    UNREACHABLE = 5  # the store does not answer
    PARTLY = 6  # some of it is done, or the time allowed for waiting is over
    INTERRUPTED = 130


_EXITS: tuple[tuple[tuple[type[SchedulerError], ...], Exit], ...] = (
    (
        (UnknownJobType, PayloadInvalid, PayloadTooLarge, OptionInvalid, ScheduleInvalid, WorkflowInvalid),
        Exit.USAGE,
    ),
    ((JobNotFound,), Exit.NOT_FOUND),
    ((DuplicateJob, PoolFull, WrongState, TopologyError, LeaseLost), Exit.REFUSED),
    # An unknown outcome is the store's silence too; the message says that the change may have happened.
    ((StoreUnavailable, OutcomeUnknown), Exit.UNREACHABLE),
    ((JobTimeout,), Exit.PARTLY),
)


def exit_for(error: SchedulerError) -> Exit:
    """The exit code of a command that ends with this error."""
    for classes, code in _EXITS:
        if isinstance(error, classes):
            return code
    return Exit.NOT_FOUND if error.code.endswith("_not_found") else Exit.FAILED


class CommandFailed(CommandError):
    """Ends a command. ``returncode`` is the exit code, ``code`` the word for machines, ``fix`` what to do about it.

    ``silent`` is for a command that has already said all there is to say in its output (a failed job, a failed check).
    """

    def __init__(self, message: str, *, exit: Exit, code: str, fix: str = "", silent: bool = False) -> None:
        super().__init__(shortened(message), returncode=int(exit))
        self.exit = exit
        self.code = code
        self.fix = fix
        self.silent = silent

    @classmethod
    def of(cls, error: SchedulerError) -> CommandFailed:
        return cls(str(error), exit=exit_for(error), code=error.code, fix=error.fix)

    @property
    def paragraph(self) -> str:
        return " ".join(part for part in (sentence(str(self)), sentence(self.fix)) if part)

    def as_dict(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": str(self), "fix": self.fix}}


def failure_of(error: BaseException) -> CommandFailed:
    """Whatever a command ended with, as something that can be told."""
    match error:
        case CommandFailed():
            return error
        case SchedulerError():
            return CommandFailed.of(error)
        case KeyboardInterrupt():
            return CommandFailed("Interrupted", exit=Exit.INTERRUPTED, code="interrupted")
        case ImproperlyConfigured():
            return _failed(error, "improperly_configured", fix="Put the settings right, then run 'manage.py check'.")
        case CommandError():
            return _failed(error, "command_error")
        case DatabaseError():
            return _failed(
                error, "database_unavailable", before="The database: ", fix="See 'manage.py doctor' and DATABASE_URL."
            )
        case OSError():
            return _failed(error, "system_error", before="The system: ")
        case _:
            return _failed(
                error,
                "unexpected_error",
                before=f"Unexpected {type(error).__name__}: ",
                fix="Run it again with --traceback to see where, and report it.",
            )


def _failed(error: BaseException, code: str, *, before: str = "", fix: str = "") -> CommandFailed:
    return CommandFailed(f"{before}{error}".strip(), exit=Exit.FAILED, code=code, fix=fix)


def usage(message: str, *, fix: str = "") -> CommandFailed:
    """A command line that cannot be carried out as written."""
    return CommandFailed(message, exit=Exit.USAGE, code="usage", fix=fix)


def sentence(text: str) -> str:
    """Closes a sentence that has no full stop, so that two of them can stand in one paragraph."""
    text = text.strip()
    return text if not text or text[-1] in ".!?:" else f"{text}."
