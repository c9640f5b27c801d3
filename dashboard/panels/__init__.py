"""The panels, in the order in which they stand in the navigation. Order on the page is policy, so it is written out."""

from __future__ import annotations

from dashboard.panels.audit import Audit
from dashboard.panels.base import Panel
from dashboard.panels.bulk import Bulk
from dashboard.panels.charts import Charts
from dashboard.panels.dead import Dead
from dashboard.panels.doctor import Doctor
from dashboard.panels.jobs import Jobs
from dashboard.panels.overview import Overview
from dashboard.panels.pools import Pools
from dashboard.panels.schedules import Schedules
from dashboard.panels.topology import Topology
from dashboard.panels.workers import Workers
from dashboard.panels.workflows import Workflows

PANELS: tuple[Panel, ...] = (
    Overview(),
    Jobs(),
    Dead(),
    Pools(),
    Workers(),
    Schedules(),
    Workflows(),
    Charts(),
    Topology(),
    Audit(),
    Doctor(),
)

ELSEWHERE: tuple[Panel, ...] = (Bulk(),)
"""Pages that others lead to, and that have no place of their own in the navigation."""

BY_SLUG = {panel.slug: panel for panel in (*PANELS, *ELSEWHERE)}

__all__ = ["BY_SLUG", "ELSEWHERE", "PANELS", "Panel"]
