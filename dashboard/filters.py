"""What a list of jobs is narrowed to: read from the query string, written back into it, shown as removable chips.

The words are the command line's: ``state`` (repeatable), ``pool``, ``type``, ``tag``, ``search``, ``group``,
``since``, ``older``, ``worker``, ``attempts``, ``limit``, ``cursor``. Whatever arrives is bounded and cleaned here;
what cannot be used is named in ``problems``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from dashboard import reads
from dashboard.formats import has_a_clock, state_word
from jobs.api import JobFilter
from jobs.core.states import JobState
from jobs.core.type_pattern import check_type_pattern
from jobs.exceptions import OptionInvalid

PAGE = 50
PAGE_MAX = 900
"""All rows of a page can be selected and sent as one form, of which Django takes at most 1,000 fields."""

TEXT_MAX = 200
CURSOR_MAX = 2000
STATES = tuple(str(state) for state in JobState)
STATE_ALIASES = {"running": "leased", "retry": "retry_wait", "retry-wait": "retry_wait", "retrying": "retry_wait"}
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
DEPLOY = "deploy"
"""Instead of a moment: when workers first told of the newest version of the code."""

DURATION = re.compile(r"(\d{1,9})([smhd])")
WORDS = ("pool", "type", "tag", "search", "group", "since", "older", "worker", "attempts")
"""Those that narrow, beside the states."""

SEARCHED = re.compile(r"\b([a-z]{2,12}):(?=\S)")
"""What looks like a word of the search box, in what was left over as text to be searched for."""

WORD = re.compile(r'\b(state|pool|type|tag|since|older|worker|attempts|group):("[^"]*"|\S+)')


@dataclass(frozen=True)
class Chip:
    """One filter in force: its word, its value and the query string of the same list without it."""

    word: str
    value: str
    without: str


@dataclass(frozen=True)
class Filters:
    states: tuple[str, ...] = ()
    pool: str = ""
    type: str = ""
    tag: str = ""
    search: str = ""
    group: str = ""  # fingerprint of an error
    since: str = ""  # as written: ISO 8601, a duration back from now, or ``deploy``
    older: str = ""  # a moment too: in its present state for so long
    worker: str = ""  # text in the name of its worker
    attempts: str = ""  # started at least so often
    limit: int = PAGE
    cursor: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, query: QueryDict) -> Filters:
        """From a query string or a form's hidden fields, whatever they hold."""
        problems: list[str] = []
        states: list[str] = []
        for word in (word for given in query.getlist("state")[:50] for word in given.split(",")):
            word = _clean(word).lower()
            state = STATE_ALIASES.get(word, word)
            if state in STATES:
                states.append(state)
            elif word:
                near = get_close_matches(word, STATES, n=1)
                problems.append(f"“{word[:40]}” is no state." + (f" Did you mean {near[0]}?" if near else ""))
        moments = {word: _clean(query.get(word, "")) for word in ("since", "older")}
        for word, text in moments.items():
            if text and not (word == "since" and text == DEPLOY) and moment_of(text, datetime.now(UTC)) is None:
                others = ", 2026-01-01T09:00Z or deploy" if word == "since" else " or 2026-01-01T09:00Z"
                problems.append(f"“{text[:40]}” is no time: write 90s, 5m, 2h, 7d{others}.")
                moments[word] = ""
        attempts = _clean(query.get("attempts", "")).removeprefix(">=")
        if attempts and not (attempts.isascii() and attempts.isdigit() and int(attempts[:9]) > 0 and len(attempts) < 7):
            problems.append(f"“{attempts[:40]}” is no number of attempts: write 2 for those that were started twice.")
            attempts = ""
        type = _clean(query.get("type", ""))
        try:
            check_type_pattern("type", type)
        except OptionInvalid as problem:
            problems.append(f"{problem}. {problem.fix}")
            type = ""
        return cls(
            states=tuple(dict.fromkeys(states)),
            pool=_clean(query.get("pool", "")),
            type=type,
            tag=_clean(query.get("tag", "")),
            search=_clean(query.get("search", "")),
            group=_clean(query.get("group", "")),
            since=moments["since"],
            older=moments["older"],
            worker=_clean(query.get("worker", "")),
            attempts=attempts,
            limit=_limit(query.get("limit", "")),
            cursor=_clean(query.get("cursor", ""), CURSOR_MAX),
            problems=tuple(problems),
        )

    @classmethod
    def from_words(cls, text: str) -> Filters:
        """From what was typed into the search box: ``state:dead pool:billing insufficient funds``."""
        query = QueryDict(mutable=True)
        for word, value in WORD.findall(text):
            query.appendlist(word, value.strip('"'))
        query["search"] = WORD.sub("", text)
        return cls.read(query)

    @property
    def narrowed(self) -> bool:
        """True when anything is filtered at all."""
        return bool(self.pairs)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What could not be used, and what is searched for as text and was hardly meant so."""
        near = {word: get_close_matches(word, ("state", *WORDS), n=1) for word in SEARCHED.findall(self.search)}
        meant = (f"“{word}:” is searched for as text. Did you mean {like[0]}:?" for word, like in near.items() if like)
        return (*self.problems, *meant)

    @property
    def looks_at_each(self) -> bool:
        """True where more than states and pool is asked for: then jobs are looked at one by one, newest first."""
        return any(getattr(self, word) for word in WORDS if word != "pool")

    @property
    def is_typed(self) -> bool:
        """True where something stands in the fields of its form; a group of errors is no field."""
        return any(getattr(self, word) for word in WORDS if word != "group")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The filter as (word, value): for hidden fields, chips and the query string."""
        pairs = [("state", state) for state in self.states]
        pairs += [(word, getattr(self, word)) for word in WORDS if getattr(self, word)]
        return pairs

    @property
    def query(self) -> str:
        """The query string of this list, from its first page."""
        pairs = list(self.pairs)
        if self.limit != PAGE:
            pairs.append(("limit", str(self.limit)))
        return urlencode(pairs)

    @property
    def chips(self) -> list[Chip]:
        return [Chip(word, value, self._without(word, value).query) for word, value in self.pairs]

    @property
    def words(self) -> str:
        """The filter as a sentence part: ``state dead, pool billing``; empty when nothing is filtered."""
        return _told(self.pairs)

    def of_group(self, fingerprint: str) -> Filters:
        """The same of one error alone, from its first page."""
        return replace(self, group=fingerprint, cursor="")

    def with_states(self, *states: str) -> Filters:
        return replace(self, states=states, cursor="")

    def at(self, cursor: str) -> str:
        """The query string of the page that begins at ``cursor``."""
        return self.query + ("&" if self.query else "") + urlencode({"cursor": cursor})

    def _without(self, word: str, value: str) -> Filters:
        if word == "state":
            return replace(self, states=tuple(state for state in self.states if state != value), cursor="")
        return replace(self, cursor="", **{word: ""})  # type: ignore[arg-type]  # all of these words are text

    def selection(self, now: datetime, until: datetime | None = None) -> JobFilter:
        """What the engine is asked for. ``until`` freezes it: later arrivals do not belong to it, nor does a deploy
        after that move where it begins. OptionInvalid where it begins with a deploy, and none is known.
        """
        return JobFilter(
            states=tuple(JobState(state) for state in self.states),
            pool=self.pool or None,
            type=self.type or None,
            tag=self.tag or None,
            search=self.search or None,
            fingerprint=self.group or None,
            since=self._since(now, until),
            before=moment_of(self.older, now) if self.older else None,
            worker=self.worker or None,
            attempts=int(self.attempts) if self.attempts else None,
            until=until,
        )

    def _since(self, now: datetime, until: datetime | None) -> datetime | None:
        if self.since == DEPLOY:
            return reads.newest_release(until).at
        return moment_of(self.since, now) if self.since else None


def words_of(selection: JobFilter, leave_out: Sequence[JobState] = ()) -> str:
    """A selection as a sentence part; its states only where they are not just these."""
    all_of_them = set(selection.states) == set(leave_out)
    pairs = [] if all_of_them else [("state", str(state)) for state in selection.states]
    given = {
        "pool": selection.pool,
        "type": selection.type,
        "tag": selection.tag,
        "search": selection.search,
        "group": selection.fingerprint,
        "since": selection.since and selection.since.isoformat(timespec="seconds"),
        "older": selection.before and selection.before.isoformat(timespec="seconds"),
        "worker": selection.worker,
        "attempts": selection.attempts and str(selection.attempts),
    }
    pairs += [(word, value) for word, value in given.items() if value]
    return _told(pairs)


def words_kept(filter: Mapping[str, Any]) -> str:
    """The same of a selection as the audit log keeps it: ``all jobs``, ``all jobs of state dead, pool billing``; as it
    is kept where that is none.
    """
    as_kept = json.dumps(filter, ensure_ascii=False)
    if not filter.keys() <= set(JobFilter.__struct_fields__):  # of a release that knew other words
        return as_kept
    try:
        words = words_of(msgspec.convert(filter, JobFilter, strict=False))
    except msgspec.ValidationError:
        return as_kept
    return f"all jobs of {words}" if words else "all jobs"


def _told(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{word} {state_word(value) if word == 'state' else value}" for word, value in pairs)


def _clean(text: str, limit: int = TEXT_MAX) -> str:
    """One line of printable text, bounded: control characters, lone surrogates and line ends are dropped."""
    return "".join(letter for letter in text[: limit * 2] if letter.isprintable()).strip()[:limit]


def _limit(text: str) -> int:
    try:
        return min(PAGE_MAX, max(1, int(text[:12])))
    except ValueError:
        return PAGE


def moment_of(text: str, now: datetime) -> datetime | None:
    """``5m`` → five minutes before ``now``; ISO 8601 as it stands, in UTC where it names no zone; None: neither."""
    if match := DURATION.fullmatch(text):
        try:
            back = now - timedelta(**{UNITS[match[2]]: int(match[1])})
        except OverflowError:
            return None
        return back if has_a_clock(back) else None
    try:
        at = parse_datetime(text.replace(" ", "+")) or parse_datetime(text)
    except ValueError:
        return None
    if at is None or not has_a_clock(at):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
