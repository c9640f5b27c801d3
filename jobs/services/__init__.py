"""The duties of every worker host: classes with a ``tick`` (see ``jobs.runtime.service``). None needs to be alone.

``runworkers`` makes the list; a new service is a file here and a line there.
"""
