"""What others wrote and we ship: unchanged since it was made, with its licence."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "static" / "vendor"


def test_every_file_is_the_one_that_was_made_and_none_came_by_another_way() -> None:
    listed = dict(reversed(line.split("  ", 1)) for line in (VENDOR / "SHA256SUMS").read_text().splitlines())
    found = {f"./{path.relative_to(VENDOR)}": path for path in VENDOR.rglob("*") if path.is_file()}
    del found["./SHA256SUMS"]

    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items()} == listed


def test_each_has_its_licence_beside_it_and_a_fixed_version() -> None:
    locked = json.loads((ROOT / "vendor" / "package-lock.json").read_text())["packages"]
    for name, version in json.loads((ROOT / "vendor" / "package.json").read_text())["dependencies"].items():
        assert (VENDOR / name / "LICENSE").read_text().strip()
        assert locked[f"node_modules/{name}"]["version"] == version
        assert locked[f"node_modules/{name}"]["integrity"].startswith("sha512-")
