"""``python -m benchmarks engine│first-row│limits│pages│peers│sockets│wheel│workflows [--short] [--json]``.

Exit code 1 when a bar is missed (not with ``--short``).
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import engine, first_row, limits, pages, peers, sockets, wheel, workflows

MEASURES = {
    "engine": engine.run,  # the engine beside the bare ceiling
    "first-row": first_row.run,  # how soon the first row of a list is in sight, in a browser
    "limits": limits.run,  # jobs with limits beside jobs without
    "pages": pages.run,  # pages of the dashboard with a million jobs beside a few
    "peers": peers.run,  # beside other queues
    "sockets": sockets.run,  # 200 open pages while a thousand jobs a second run
    "wheel": wheel.run,  # its timers beside those of the standard library
    "workflows": workflows.run,  # runs of workflows beside plain jobs
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure ours beside other things.")
    parser.add_argument("what", choices=tuple(MEASURES), help="what to measure; each says beside what")
    parser.add_argument("--short", action="store_true", help="a minute instead of many; the figures are rough")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--no-aof", action="store_true", help="a server without append-only file")
    options = parser.parse_args()
    measure = MEASURES[options.what]
    holds = measure(short=options.short, as_json=options.json, persistent=not options.no_aof)
    return 0 if holds or options.short else 1


if __name__ == "__main__":
    sys.exit(main())
