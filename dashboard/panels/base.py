"""What every panel is: a page with a place in the navigation, a template, and what that template shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from django.http import HttpRequest

from dashboard import links
from dashboard.overall import Overall
from dashboard.permissions import VIEW


@dataclass(frozen=True)
class Badge:
    """A count beside a panel's name in the navigation. Shown only when something is wrong."""

    mark: str  # icon: "dead" or "warning"
    figure: str  # key of the live figure that it shows
    words: str  # said after the number, for screen readers: fits one as well as many


class Panel:
    """One page. A panel reads through ``dashboard.reads`` and computes what its template shows; nothing else."""

    slug: ClassVar[str]
    title: ClassVar[str]
    icon: ClassVar[str]
    group: ClassVar[str] = ""
    key: ClassVar[str]  # the second key of its shortcut: g, then this
    badge: ClassVar[Badge | None] = None
    permission: ClassVar[str] = VIEW
    """Who may open it; others see it nowhere."""
    on_phone: ClassVar[bool] = False
    """Whether it has one of the four places in the bar of small screens; the others stand behind "More"."""
    refresh_seconds: ClassVar[float] = 2.0
    """How often an open page may fetch this panel anew while something changes (its figures come more often)."""

    @property
    def template(self) -> str:
        return f"dashboard/panels/{self.slug}.html"

    @property
    def url_name(self) -> str:
        return f"dashboard:{self.slug}"

    @property
    def url(self) -> str:
        return links.address(self.url_name)

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        """What the template shows. May raise StoreUnavailable and JobNotFound; the views answer those."""
        raise NotImplementedError
