"""A function of the project that wants to be called: named in the settings, free to do anything, unable to do harm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.db import close_old_connections
from django.utils.module_loading import import_string

log = logging.getLogger("jobs.runtime")


class Hook:
    """The function at a dotted path, imported when it is first needed. Blocking or async."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, subject: Any) -> None:
        """Calls it and comes back whatever happens: an exception is logged and ends here."""
        try:
            close_old_connections()
            function: Callable[[Any], Any] = import_string(self.path)
            (async_to_sync(function) if iscoroutinefunction(function) else function)(subject)
        except BaseException:  # SystemExit of a library, a cancelled task: the thread has other things to do
            log.exception("the hook %s failed", self.path)
        finally:
            close_old_connections()
