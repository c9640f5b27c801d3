"""A leased job on its way to a slot."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.core.job import LeasedJob
from jobs.registry import JobType
from jobs.worker.batch import Batch


class Work(msgspec.Struct, frozen=True, gc=False):
    """With the batch in which it came, and the type that will run it."""

    batch: Batch
    lease: LeasedJob
    job_type: JobType[..., Any]
