"""Which ids a caller may give a job."""

from __future__ import annotations

from jobs.exceptions import OptionInvalid
from jobs.store.codec.ids import route_in

ID_BYTES = 200


def checked_id(job_id: str | None) -> str:
    """The id itself; OptionInvalid where it cannot be a job's."""
    if not isinstance(job_id, str) or not can_be_id(job_id):
        raise OptionInvalid(
            f"{job_id!r} cannot be a job id.",
            fix=f"Use 1 to {ID_BYTES} bytes of printable text without spaces at its ends.",
        )
    if route_in(job_id) is not None:
        raise OptionInvalid(
            f"{job_id!r} has the form of the ids that the scheduler makes.", fix="Choose an id of another form."
        )
    return job_id


def can_be_id(job_id: str) -> bool:
    """Whether any job may have it."""
    try:
        size = len(job_id.encode())
    except UnicodeEncodeError:
        return False
    return 0 < size <= ID_BYTES and job_id.isprintable() and job_id.strip() == job_id
