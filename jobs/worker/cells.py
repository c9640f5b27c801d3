"""Memory that a child and its supervisor share, so that a fact outlives the process that wrote it.

The child writes into one cell per slot which job it has started; after a crash the supervisor reads which jobs were
really running. The supervisor writes into the header how far its last successful renewal reached; the child reads
its own deadlines from it without a message.

Layout, in native 8-byte words: header ``[renewed_at, renewed_batch, cells used, …]`` of 64 bytes, then cells of 256
bytes ``[batch, started_at_ms, times_out_at, id length, id …]``. A cell whose ``batch`` word is 0 is empty: that word is
written last when a job starts and first when it ends. A reader that meets two jobs of one batch in the moment of their
change may mix them; that can only happen with a live writer, where it marks a job that is not there, which the store
ignores.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from math import inf
from typing import NamedTuple

MAX_SLOTS = 4096
"""Most slots of one process, over all its pools."""

_MOST_CELLS = 2 * MAX_SLOTS
"""Each pool has a thread more than slots. The pages of unused cells are never touched and cost no memory."""

_HEADER_BYTES = 64
_CELL_BYTES = 256
_CELL_WORDS = _CELL_BYTES // 8
_TOTAL_BYTES = _HEADER_BYTES + _MOST_CELLS * _CELL_BYTES
_BODY = struct.Struct("@QdH200s")  # started_at_ms, times_out_at, length, id: 8 bytes of a cell are the batch word
_RENEWED_AT, _RENEWED_BATCH, _USED = 0, 1, 2


class StartedJob(NamedTuple):
    """A job found in a cell."""

    batch: int
    id: str
    started_at_ms: int  # on the server's clock, as the child reckons it
    times_out_at: float = inf  # monotonic; inf: never


class Cells:
    """One child's shared memory, from either side."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _TOTAL_BYTES)
        self._times = memoryview(self._memory).cast("d")
        self._words = memoryview(self._memory).cast("Q")
        self._free: list[Cell] = []

    # the supervisor's side

    def note_renewal(self, began_at: float, through_batch: int) -> None:
        """Every open batch up to ``through_batch`` was renewed by calls that began at ``began_at`` (monotonic)."""
        self._times[_RENEWED_AT] = began_at  # first: whoever sees the new batch number must see this time with it
        self._words[_RENEWED_BATCH] = through_batch

    def started(self) -> list[StartedJob]:
        """The jobs that are running, or were when the child died."""
        return [job for index in range(self._words[_USED]) if (job := self._read(index))]

    # the child's side

    def renewed_at(self, batch: int) -> float:
        """When the last renewal that covered the batch began, on the monotonic clock; 0.0 when none did yet."""
        return self._times[_RENEWED_AT] if batch <= self._words[_RENEWED_BATCH] else 0.0

    def new_cell(self) -> Cell:
        """A cell for one more slot. ValueError where all are taken."""
        if self._free:
            return self._free.pop()
        index = self._words[_USED]
        if index >= _MOST_CELLS:
            raise ValueError(f"a worker process has at most {_MOST_CELLS} threads that run jobs")
        self._words[_USED] = index + 1
        return Cell(self._memory, self._words, index)

    def give_back(self, cell: Cell) -> None:
        """The slot is no more."""
        cell.leave()
        self._free.append(cell)

    def _read(self, index: int) -> StartedJob | None:
        word = _word_of(index)
        batch = self._words[word]
        if not batch:
            return None
        started_at_ms, times_out_at, length, raw = _BODY.unpack_from(self._memory, word * 8 + 8)
        if self._words[word] != batch:  # ended, or another job began, while we read
            return None
        return StartedJob(batch, raw[:length].decode("utf-8", "replace"), started_at_ms, times_out_at)


class Cell:
    """Where one slot says which job it runs. Written by that slot only."""

    def __init__(self, memory: mmap.mmap, words: memoryview[int], index: int) -> None:
        self._memory = memory
        self._words = words
        self._word = _word_of(index)
        self._body_at = self._word * 8 + 8

    def enter(self, batch: int, job_id: str, started_at_ms: int, times_out_at: float = inf) -> None:
        raw = job_id.encode()
        _BODY.pack_into(self._memory, self._body_at, started_at_ms, times_out_at, len(raw), raw)
        self._words[self._word] = batch

    def leave(self) -> None:
        self._words[self._word] = 0


def create() -> int:
    """A file descriptor of fresh shared memory; it can be passed to another process. Zeroed: no job, no renewal."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("mainspring-cells")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, _TOTAL_BYTES)
    return fd


def _word_of(index: int) -> int:
    return _HEADER_BYTES // 8 + index * _CELL_WORDS
