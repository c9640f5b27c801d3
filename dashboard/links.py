"""Addresses of things. A job's id is any printable text, so it is encoded whole, and two ids that a browser would take
for steps in a path go into the query string instead.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from django.urls import reverse


def job_url(job_id: str) -> str:
    """The page of one job."""
    if _is_path_step(job_id):
        return f"{reverse('dashboard:job_by_query')}?{urlencode({'id': job_id})}"
    return reverse("dashboard:jobs") + quote(job_id, safe="") + "/"


def job_fragment_url(job_id: str) -> str:
    """What an open page of the job fetches when something changed."""
    return f"{reverse('dashboard:fragment', args=['job'])}?{urlencode({'id': job_id})}"


def _is_path_step(job_id: str) -> bool:
    return any(step in ("", ".", "..") for step in job_id.split("/"))
