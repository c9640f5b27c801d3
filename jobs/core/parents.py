"""What the parents of a node have left behind, as its handler sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jobs.exceptions import ResultTooLarge

SUCCEEDED = "succeeded"

KEEP_IT_ELSEWHERE = "Let it store the data elsewhere and return a reference, or raise SCHEDULER['RESULT_LIMIT']."


class Ended(NamedTuple):
    """What a node left behind. ``state``: how it ended."""

    state: str
    result: Any = None
    error: Any = None


class Parents(Mapping[str, Any]):
    """Results of the parents that succeeded, by key. ``ended``: how each parent ended, with its result or error."""

    def __init__(self, ended: Mapping[str, Ended]) -> None:
        self.ended = ended

    def __getitem__(self, key: str) -> Any:
        """KeyError that says how the parent ended; ResultTooLarge where only the beginning of its result was kept."""
        if key not in self.ended:
            raise KeyError(f"{key!r} is no parent of this node that has ended")
        parent = self.ended[key]
        if parent.state != SUCCEEDED:
            raise KeyError(f"{key!r} is {parent.state} and left no result: see parents.ended[{key!r}]")
        if is_cut(parent.result):
            raise ResultTooLarge(too_large(key, parent.result), fix=KEEP_IT_ELSEWHERE)
        return parent.result

    def __iter__(self) -> Iterator[str]:
        return (key for key, parent in self.ended.items() if parent.state == SUCCEEDED)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<Parents {', '.join(f'{key}: {parent.state}' for key, parent in self.ended.items())}>"


def cut_result(size: int, preview: str = "") -> dict[str, Any]:
    """What stands for a result of so many bytes (at least), of which only the beginning was kept."""
    return {"cut": True, "bytes": size, "preview": preview}


def too_large(key: str, result: dict[str, Any]) -> str:
    """What is said of the result of a node that is cut."""
    return f"The result of {key!r} has {result['bytes']} bytes or more, too many to be handed on."


def is_cut(result: Any) -> bool:
    """Whether this stands for a result that was too large to be kept."""
    return isinstance(result, dict) and result.keys() == {"cut", "bytes", "preview"} and result["cut"] is True
