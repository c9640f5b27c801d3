"""What the frame around every page shows: the navigation with its counts, the title, the state of the store."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from dashboard.figures import figures, version
from dashboard.overall import Overall
from dashboard.panels import PANELS


def shell(overall: Overall) -> dict[str, Any]:
    """The context that ``dashboard/shell.html`` needs."""
    found = figures(overall)
    return {
        "overall": overall,
        "now": overall.now,
        "figures": found,
        "version": version(found),
        "panels": PANELS,
        "zone_name": timezone.get_current_timezone_name(),
    }
