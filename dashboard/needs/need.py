"""One thing that needs somebody, as the overview tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Need:
    """One thing that needs somebody: a finding with its noun linked, and the cause in one line."""

    mark: str  # icon: "dead" or "warning"
    before: str
    noun: str
    url: str
    after: str
    cause: str
    command: str = ""  # what would help, to be run by hand
    action: str = ""  # label of the link that leads to the remedy
    action_url: str = ""  # where that link leads, if not where the noun does
    about: tuple[str, str] = ("", "")  # "pool", "schedule" or "group" and which: what its evidence is drawn of
    pool: str = ""  # which one may be paused until this is put right

    @property
    def key(self) -> str:
        return f"{self.mark} {self.before}{self.noun}"
