"""Addresses of things. A job's id is any printable text, so it is encoded whole, and two ids that a browser would take
for steps in a path go into the query string instead.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import get_script_prefix, get_urlconf, reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language


def job_url(job_id: str) -> str:
    """The page of one job."""
    if _is_path_step(job_id):
        return f"{reverse('dashboard:job_by_query')}?{urlencode({'id': job_id})}"
    return address("dashboard:jobs") + quote(job_id, safe="") + "/"


def jobs_url(**words: str) -> str:
    """The list of jobs, narrowed by these words."""
    return f"{reverse('dashboard:jobs')}?{urlencode(words)}"


def bulk_url(operation_id: str) -> str:
    """The page of a bulk operation."""
    return f"{reverse('dashboard:bulk')}?{urlencode({'id': operation_id})}"


def job_fragment_url(job_id: str) -> str:
    """What an open page of the job fetches when something changed."""
    return f"{reverse('dashboard:fragment', args=['job'])}?{urlencode({'id': job_id})}"


def run_url(run_id: str, **query: str) -> str:
    """The page of one run of a workflow; empty words of the query are left out."""
    words = urlencode({name: value for name, value in query.items() if value})
    return address("dashboard:workflows") + quote(run_id, safe="") + "/" + (f"?{words}" if words else "")


def run_fragment_url(run_id: str, query: str) -> str:
    """What an open page of the run fetches when something changed."""
    return f"{reverse('dashboard:run_fragment')}?{urlencode({'id': run_id})}{f'&{query}' if query else ''}"


def address(name: str) -> str:
    """The same as ``reverse``, which takes its time over each of a thousand links."""
    return _address_of(name, get_script_prefix(), get_urlconf() or settings.ROOT_URLCONF, get_language())


@lru_cache(128)
def _address_of(name: str, prefix: str, urlconf: Any, language: str | None) -> str:
    """What an address hangs on besides its name: a request may have a prefix and addresses of its own, and they may
    begin with a language (``i18n_patterns``)."""
    return reverse(name, urlconf)


def _is_path_step(job_id: str) -> bool:
    return any(step in ("", ".", "..") for step in job_id.split("/"))


def own_address(request: HttpRequest, url: str) -> str:
    """The address when it is one of ours, else nothing."""
    if (
        url.startswith("/")
        and url.isprintable()
        and url_has_allowed_host_and_scheme(url, allowed_hosts={request.get_host()}, require_https=request.is_secure())
    ):
        return url
    return ""
