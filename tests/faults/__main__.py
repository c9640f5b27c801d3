"""``python -m tests.faults [--profile long] [--scenario NAME]…``: runs the fault scenarios and prints their reports.

Exit code 1 if anything that the guarantees forbid was seen. Histories of failed runs are kept and named.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

from tests.faults.scenarios import PROFILES, SCENARIOS  # noqa: E402 – needs Django


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="long")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), action="append")
    parser.add_argument("--keep", action="store_true", help="keep the histories of passed runs too")
    options = parser.parse_args()
    passed = True
    for name in options.scenario or SCENARIOS:
        folder = Path(tempfile.mkdtemp(prefix=f"faults-{name}-"))
        began = time.monotonic()
        report = SCENARIOS[name](folder, PROFILES[options.profile])
        print(f"\n{name}, {options.profile}, {time.monotonic() - began:.0f} s: {report}", flush=True)
        if report.passed and not options.keep:
            shutil.rmtree(folder)
        else:
            print(f"  histories: {folder}")
        passed = passed and report.passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
