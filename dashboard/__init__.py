"""The dashboard: server-rendered pages, the one WebSocket that keeps them live, and the actions people take on them.

Imports ``jobs.api``, ``jobs.core`` and ``jobs.exceptions``, nothing else of ``jobs``.
"""
