"""What people may do to a run of a workflow, to one of its nodes, and to a workflow."""

from __future__ import annotations
