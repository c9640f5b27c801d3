"""Pages of runs of workflows, and what is read on them."""

from __future__ import annotations

from typing import Any

from tests.dashboard.browsing import tags

NIGHTLY: list[dict[str, Any]] = [
    {"key": "extract"},
    {"key": "load", "depends_on": ["extract"]},
    {"key": "ok", "on_success": ["load"]},
    {"key": "alarm", "on_failure": ["extract", "load"], "join": "any"},
    {"key": "clean", "on_complete": ["load"]},
]


def page_of(run: str, query: str = "") -> str:
    return f"/dashboard/workflows/{run}/{query}"


def boxes(response: Any) -> dict[str, dict[str, str | None]]:
    """Key of each box of the picture → its attributes."""
    return {str(found["data-box"]): found for tag, found in tags(response) if tag == "a" and "data-box" in found}


def rows(response: Any, what: str = "node ") -> list[str]:
    return [
        str(found["data-key"]).removeprefix(what)
        for tag, found in tags(response)
        if tag == "tr" and str(found.get("data-key", "")).startswith(what)
    ]


def links(response: Any) -> list[str]:
    return [str(found["href"]) for tag, found in tags(response) if tag == "a" and found.get("href")]
