"""Files of the samples: whole, listed newest first, bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from samples import outputs


def test_a_file_is_written_under_its_kind(samples_dir: Path) -> None:
    path = outputs.write("reports", "a.csv", b"1,2")

    assert path == samples_dir / "reports" / "a.csv"
    assert path.read_bytes() == b"1,2"


def test_writing_again_replaces_the_file_and_leaves_nothing_beside_it() -> None:
    outputs.write("reports", "a.csv", b"old")
    outputs.write("reports", "a.csv", b"new")

    assert [path.read_bytes() for path in outputs.folder("reports").iterdir()] == [b"new"]


def test_a_write_that_fails_leaves_the_old_file_and_no_half_one(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs.write("reports", "a.csv", b"old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        outputs.write("reports", "a.csv", b"new")

    assert [path.read_bytes() for path in outputs.folder("reports").iterdir()] == [b"old"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="no kind of output called 'letters'"):
        outputs.folder("letters")


def test_the_newest_files_come_first_and_unfinished_ones_not_at_all() -> None:
    for age, name in ((30, "old"), (10, "new"), (20, "middle"), (0, ".unfinished-x")):
        path = outputs.write("reports", name, b"")
        os.utime(path, (1_000_000 - age, 1_000_000 - age))

    assert [path.name for path in outputs.latest("reports")] == ["new", "middle", "old"]
    assert [path.name for path in outputs.latest("reports", 1)] == ["new"]


def test_tidying_keeps_the_newest_of_each_kind() -> None:
    for number in range(5):
        for kind in ("reports", "invoices"):
            path = outputs.write(kind, f"{number}", b"")
            os.utime(path, (number, number))

    removed = outputs.tidy(keep=2)

    assert removed == 6
    assert [path.name for path in outputs.latest("reports")] == ["4", "3"]
    assert [path.name for path in outputs.latest("invoices")] == ["4", "3"]


def test_tidying_removes_what_a_killed_job_left_but_not_what_one_is_writing() -> None:
    left, written = (outputs.folder("reports") / f".unfinished-{name}" for name in ("left", "written"))
    for path in (left, written):
        path.touch()
    os.utime(left, (0, 0))

    outputs.tidy()

    assert not left.exists()
    assert written.exists()
