"""Which processes are there: for tests that nothing is left behind."""

from __future__ import annotations

from pathlib import Path


def living(program: str, *, cwd: Path | None = None) -> list[int]:
    """Process ids of a program or script, of those that run in the folder ``cwd``; no zombies."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # A server puts its own words behind its name; a script comes after the interpreter and its switches.
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").split()[:5]
            if any(Path(word).name == program for word in words) and (cwd is None or (entry / "cwd").readlink() == cwd):
                found.append(int(entry.name))
        except OSError:  # it ended while we looked
            continue
    return found


def parent_of(pid: int) -> int:
    return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
