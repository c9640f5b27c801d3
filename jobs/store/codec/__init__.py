"""Bytes in Redis ⇄ what Python holds.

``ids`` carry routes; ``bodies`` are what was asked for, ``records`` what became of it. ``leases`` reads both for
workers, ``jobs`` for people; ``runs`` are those of workflows. ``values`` are single numbers, times and texts.
"""
