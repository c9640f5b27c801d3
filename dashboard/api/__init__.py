"""The HTTP API: ``/api/v1/``. What may be done, and by whom, is what pages and commands do; only the form is JSON.

One module a noun. An address is a function of a router: it takes what ``bodies`` and ``words`` have checked, calls one
function of ``jobs.api`` and answers a document. Everything else (who asks, what is wrong, the audit log) is in
``access``, ``errors`` and ``service`` for all of them.
"""
