"""Both sides of the shared memory, here in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobs.worker import cells
from jobs.worker.cells import MAX_SLOTS, Cells, StartedJob
from tests.support.wait import eventually


@pytest.fixture
def sides() -> Iterator[tuple[Cells, Cells]]:
    """(the supervisor's, the child's)"""
    fd = cells.create()
    yield Cells(fd), Cells(fd)
    os.close(fd)


def test_a_started_job_is_seen_until_it_ends(sides: tuple[Cells, Cells]) -> None:
    supervisor, child = sides
    cell = child.new_cell()

    cell.enter(7, "job-1", 1_800_000_000_123, 456.5)
    assert supervisor.started() == [StartedJob(7, "job-1", 1_800_000_000_123, 456.5)]
    cell.leave()
    assert supervisor.started() == []


def test_every_slot_has_a_cell_of_its_own(sides: tuple[Cells, Cells]) -> None:
    supervisor, child = sides
    for number in range(50):
        child.new_cell().enter(1, f"job-{number}", number)
    assert [job.id for job in supervisor.started()] == [f"job-{number}" for number in range(50)]


def test_the_longest_id_that_a_caller_may_choose_fits(sides: tuple[Cells, Cells]) -> None:
    supervisor, child = sides
    longest = "ü" * 100
    child.new_cell().enter(1, longest, 1)
    assert [job.id for job in supervisor.started()] == [longest]


def test_a_thread_more_for_each_pool_finds_a_cell_and_what_goes_beyond_is_refused(sides: tuple[Cells, Cells]) -> None:
    _, child = sides
    for _ in range(2 * MAX_SLOTS):
        child.new_cell()
    with pytest.raises(ValueError, match="at most 8192 threads"):
        child.new_cell()


def test_a_cell_that_was_given_back_is_empty_and_serves_again(sides: tuple[Cells, Cells]) -> None:
    supervisor, child = sides
    cell = child.new_cell()
    cell.enter(1, "job-1", 1)
    child.give_back(cell)
    assert supervisor.started() == []
    assert child.new_cell() is cell


def test_a_renewal_counts_for_the_batches_it_covered_and_for_no_younger_one(sides: tuple[Cells, Cells]) -> None:
    supervisor, child = sides
    assert child.renewed_at(1) == 0.0

    supervisor.note_renewal(123.5, through_batch=4)

    assert child.renewed_at(4) == 123.5
    assert child.renewed_at(5) == 0.0


WRITER = """
import sys
from jobs.worker.cells import Cells
cell = Cells(int(sys.argv[1])).new_cell()
number = 0
print(flush=True)
while True:
    number += 1
    cell.enter(number, f"{number}-" * 9, number)
    sum(range(20))
    cell.leave()
"""


def test_a_reader_never_sees_half_of_a_job() -> None:
    fd = cells.create()
    with subprocess.Popen([sys.executable, "-c", WRITER, str(fd)], pass_fds=(fd,), stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        supervisor = Cells(fd)
        seen: list[StartedJob] = []
        eventually(lambda: seen.extend(supervisor.started()) or len(seen) > 1000, every=0)
        writer.kill()
    os.close(fd)
    assert all(job.id == f"{job.started_at_ms}-" * 9 for job in seen)


def test_what_a_killed_process_had_started_can_still_be_read() -> None:
    fd = cells.create()
    died = WRITER.replace("cell.leave()", "print(flush=True); import time; time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", died, str(fd)], pass_fds=(fd,), stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.stdout.readline()
        writer.kill()
    assert Cells(fd).started() == [StartedJob(1, "1-" * 9, 1)]
    os.close(fd)
