"""Jobs as people may see them: what their type redacts and what its key names as a secret is masked, wherever it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from jobs.conf import Settings
from jobs.core.fingerprint import fingerprint, parts_of
from jobs.core.job import Attempt, Job
from jobs.core.job_log import LogLine
from jobs.core.redaction import Redaction
from jobs.registry import registry


class Visible:
    """Masks by the setting REDACT_KEYS and by ``redact=`` of types: as this process has registered them, and as each
    job has carried it with it since its enqueue.
    """

    def __init__(self, settings: Settings) -> None:
        self._redaction = Redaction(settings.redact_keys)

    def job(self, job: Job) -> Job:
        """The job without its secrets: in payload, result, errors, meta, tags, progress and keys."""
        names = hidden_in(job)
        secrets = self._redaction.secrets(job.payload, names)
        shown: dict[str, Any] = {
            "payload": self._redaction.value(job.payload, names),
            "result": self._shown(job.result, names, secrets),
            "meta": self._shown(job.meta, names, secrets),
            "tags": [self.text(tag, secrets) for tag in job.tags],
            "progress": self._in_texts(job.progress, secrets),
            "error": self._in_texts(job.error, secrets),
            "attempts": [self._attempt(attempt, secrets) for attempt in job.attempts],
        }
        for key in ("unique_key", "concurrency_key", "rate_key"):
            if (text := getattr(job, key)) is not None:
                shown[key] = self.text(text, secrets)
        return msgspec.structs.replace(job, **shown)

    def lines(self, job: Job, lines: Iterable[LogLine]) -> list[LogLine]:
        """What the job has logged, without what its payload hides. ``job``: as it was read."""
        names = hidden_in(job)
        secrets = self._redaction.secrets(job.payload, names)
        return [
            msgspec.structs.replace(
                line,
                message=self.text(line.message, secrets),
                fields=self._shown(line.fields, names, secrets),
            )
            for line in lines
        ]

    def error(self, error: Any, job: Job | None) -> Any:
        """What is kept of an error beside its job, such as by the node of a run. None: the job is kept no more, and
        what its payload hid is not known; ``key=value`` is hidden all the same.
        """
        secrets = [] if job is None else self._redaction.secrets(job.payload, hidden_in(job))
        return self._in_texts(error, secrets)

    def result(self, type: str, value: Any, job: Job | None) -> Any:
        """What is kept of a result beside its job, of this type. None: as above."""
        secrets = [] if job is None else self._redaction.secrets(job.payload, hidden_in(job))
        return self._shown(value, hidden_by(type) if job is None else hidden_in(job), secrets)

    def fingerprint(self, job: Job) -> str:
        """Of the error that it ended with, as people may see it: one of the whole message would confirm to them what
        they guess of its hidden part.
        """
        return fingerprint(*self.error_parts(job))

    def error_parts(self, job: Job) -> tuple[str, str, str]:
        """Class, message and place of the error that it ended with, as people may see them."""
        secrets = self._redaction.secrets(job.payload, hidden_in(job))
        error_type, message, place = (self.text(part, secrets) for part in parts_of(job.error))
        return error_type, message, place

    def quoted(self, job: Job, text: str) -> str:
        """A text that may quote what the job holds, such as a key of its limits."""
        return self.text(text, self._redaction.secrets(job.payload, hidden_in(job)))

    def value(self, type: str, value: Any) -> Any:
        """Any data that belongs to a type, such as the payload of a schedule."""
        return self._redaction.value(value, hidden_by(type))

    def text(self, text: str, secrets: Iterable[str] = ()) -> str:
        return self._redaction.text(text, secrets)

    def _attempt(self, attempt: Attempt, secrets: list[str]) -> Attempt:
        return msgspec.structs.replace(attempt, error=self._in_texts(attempt.error, secrets))

    def _shown(self, value: Any, names: Iterable[str], secrets: list[str]) -> Any:
        """Data whose texts may quote secrets too."""
        return self._in_texts(self._redaction.value(value, frozenset(names)), secrets)

    def _in_texts(self, value: Any, secrets: list[str]) -> Any:
        match value:
            case str():
                return self.text(value, secrets)
            case list():
                return [self._in_texts(item, secrets) for item in value]
            case dict():
                return {key: self._in_texts(item, secrets) for key, item in value.items()}
            case _:
                return value


def hidden_by(type: str) -> frozenset[str]:
    """The arguments that the type redacts; none where this process has not registered it."""
    return frozenset(registry.get(type).redact) if type in registry else frozenset()


def hidden_in(job: Job) -> frozenset[str]:
    """The arguments of this job that are hidden, also in a process that does not know its type."""
    return hidden_by(job.type).union(job.redact)
