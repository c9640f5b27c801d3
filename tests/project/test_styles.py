"""The one style sheet that pages ask for: what the parts in styles/ make."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_is_made_of_the_parts_as_they_are_now(tmp_path: Path) -> None:
    for folder in ("bin", "styles"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    made = tmp_path / "static" / "dashboard" / "styles.css"
    made.parent.mkdir(parents=True)

    subprocess.run([tmp_path / "bin" / "styles"], check=True)

    assert made.read_text() == (ROOT / "static" / "dashboard" / "styles.css").read_text(), "run bin/styles"


def test_no_part_is_left_out() -> None:
    joined = (ROOT / "static" / "dashboard" / "styles.css").read_text()

    assert [part.name for part in (ROOT / "styles").glob("*") if part.read_text() not in joined] == []


def test_parts_for_one_kind_of_page_mean_nothing_to_the_others() -> None:
    """Each page gets all of them, so a class that two of them style would change its looks on both."""
    styled = {part: classes_of((ROOT / "styles" / f"{part}.css").read_text()) for part in ("lists", "job", "workflows")}

    assert {(one, other): styled[one] & styled[other] for one, other in combinations(styled, 2)} == {
        pair: set() for pair in combinations(styled, 2)
    }


def classes_of(sheet: str) -> set[str]:
    """Classes that it styles wherever they stand."""
    rules = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    selectors = ",".join(re.findall(r"([^{}]+)\{", rules)).split(",")
    return {selector.strip() for selector in selectors if re.fullmatch(r"\.[\w-]+", selector.strip())}
