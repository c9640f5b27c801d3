"""An exception as the JSON that is kept with the attempt, whatever its author did to it."""

from __future__ import annotations

import traceback
from types import TracebackType

import msgspec

MESSAGE_LIMIT = 2000
"""Characters of a message; the traceback holds it again, in its own limit."""

_OUR_FILES = __file__.rpartition("/")[0]


def describe_error(error: BaseException, traceback_limit: int) -> bytes:
    """``{"type", "message", "traceback"}``. The traceback is cut in the middle beyond ``traceback_limit`` bytes."""
    return msgspec.json.encode(
        {
            "type": _clean(_cut_end(_name(error), MESSAGE_LIMIT)),
            "message": _clean(_cut_end(_message(error), MESSAGE_LIMIT)),
            "traceback": _cut_middle(_clean(_formatted(error)), traceback_limit),
        }
    )


def _name(error: BaseException) -> str:
    try:
        return str(type(error).__qualname__)
    except BaseException as trouble:
        return f"(its name cannot be read: {type(trouble).__qualname__})"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as trouble:  # its author's code runs here and may raise anything
        return f"(its message cannot be read: {type(trouble).__qualname__})"


def _formatted(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, _beyond_our_frames(error.__traceback__)))
    except BaseException as trouble:
        return f"(its traceback cannot be read: {type(trouble).__qualname__})"


def _beyond_our_frames(frames: TracebackType | None) -> TracebackType | None:
    """The reader wants the handler's frames, not ours that called it."""
    handlers = frames
    while handlers is not None and handlers.tb_frame.f_code.co_filename.startswith(_OUR_FILES):
        handlers = handlers.tb_next
    return handlers or frames


def _clean(text: str) -> str:
    """Lone surrogates, which no UTF-8 can carry, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def _cut_end(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def _cut_middle(text: str, limit: int) -> str:
    """Both ends matter: where it began, and what was raised."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    half = limit // 2
    head, tail = raw[:half].decode(errors="ignore"), raw[-half:].decode(errors="ignore")
    return f"{head}\n… {len(raw) - 2 * half} bytes cut …\n{tail}"
