"""What every action is: a thing that somebody may do, described once. ``views`` asks, checks and tells for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from django import forms
from django.http import QueryDict
from django.urls import reverse

from dashboard.permissions import OPERATE
from jobs import api
from jobs.api.reach import Reach

REASON_MAX = 200
KEY_MAX = 40

PROBLEMS = {
    "required": "This is missing.",
    "max_length": "At most %(limit_value)s characters: these are %(show_value)s.",
    "min_value": "At least %(limit_value)s.",
    "max_value": "At most %(limit_value)s.",
}
"""What is wrong with a field, where it does not say so in words of its own."""


@dataclass(frozen=True)
class Order:
    """What somebody asks for: done to which things, with which answers, by whom."""

    ids: tuple[str, ...]
    values: Mapping[str, Any]
    by: str
    given: QueryDict = field(default_factory=QueryDict)
    """All that came with the request, as it came: for actions whose things are not named by id."""
    may: Callable[[str], bool] = lambda permission: False
    """Whether who asks holds a permission, where what is needed depends on the thing."""

    @property
    def id(self) -> str:
        """The one thing, for actions that are done to one; empty where it is done to everything."""
        return self.ids[0] if self.ids else ""

    @property
    def key(self) -> str | None:
        """Names what the order makes, so that the same order sent twice makes it once; None where it came without."""
        return self.given.get("key", "")[:KEY_MAX] or None

    def id_for(self, *content: object) -> str | None:
        """The key for what has this content: whoever goes back, changes the form and sends it again makes another."""
        return f"{self.key}-{sha256(repr(content).encode()).hexdigest()[:12]}" if self.key else None


@dataclass(frozen=True)
class Told:
    """What came of it, as a sentence. ``goto``: where to go on when the page it came from is not the place any more."""

    text: str
    ok: bool = True
    status: int = 200
    goto: str = ""


class Refused(Exception):
    """It cannot be done as it was asked for; the text says why and what to do."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class ActionForm(forms.Form):
    """What an action asks for before it is done: at least why, which the audit log keeps."""

    use_required_attribute = False
    now: str = ""
    """How the thing stands now, where that helps to answer."""

    reason = forms.CharField(
        label="Why", required=False, max_length=REASON_MAX, widget=forms.TextInput({"placeholder": "for the audit log"})
    )

    def __init__(
        self, *arguments: Any, ids: Sequence[str] = (), given: QueryDict | None = None, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.ids = tuple(ids)
        self.given = given if given is not None else QueryDict()
        for each in self.fields.values():
            each.widget.attrs.setdefault("autocomplete", "off")
        self.prepare()
        for each in self.fields.values():
            for code, words in PROBLEMS.items():
                if each.error_messages.get(code) in (None, forms.Field.default_error_messages.get(code)):
                    each.error_messages[code] = words

    def focus_on_what_is_wrong(self) -> None:
        """Whoever answered wrongly goes on where it was wrong."""
        wrong = next((name for name in self.fields if name in self.errors), "")
        if wrong:
            self.fields[wrong].widget.attrs["autofocus"] = True

    def prepare(self) -> None:
        """Fits the questions to the things: their present values, what can be chosen."""


@dataclass(frozen=True)
class Question:
    """What the page says before an action is done. ``ids``: those that it will be done to; ``number``: how many they
    are where they are not named; none and a sentence in ``nothing_left`` means that there is nothing to do.

    ``things`` are some of them with their addresses. ``hidden`` goes with the answer: what the question was about.
    """

    title: str
    says: str
    ids: tuple[str, ...]
    things: tuple[tuple[str, str, str], ...] = ()  # what, id, address
    nothing_left: str = ""
    detail: str = ""
    number: int | None = None
    hidden: tuple[tuple[str, str], ...] = ()
    button: str = ""
    """What its button says, where that is not the action and the number."""
    chooses: bool = False
    """The answer is no order yet, but leads to the next question."""
    pool: str = ""
    """Where jobs begin to wait by it, if it is one pool: that can be paused first."""
    problem: str = ""
    """What was wrong with the answer before, which is asked for again."""

    @property
    def is_empty(self) -> bool:
        return bool(self.nothing_left) and not (len(self.ids) if self.number is None else self.number)

    @property
    def more(self) -> int:
        """How many are not named."""
        return len(self.ids) - len(self.things) if self.things else 0


def key_for(given: QueryDict) -> tuple[str, str]:
    """The hidden field that gives an order its key: the one that came with the request, else a new one."""
    return "key", given.get("key", "")[:KEY_MAX] or api.bulk.new_id()


@dataclass(frozen=True, kw_only=True)
class Action:
    """One thing that somebody may do. ``perform`` does it and says what came of it, or raises Refused, SchedulerError.

    ``says``: what will happen, before it does; ``final``: it cannot be taken back; ``panel``: whose page it belongs to;
    ``key``: the letter that presses its button in the row of the thing.
    """

    noun: str
    verb: str
    label: str
    says: str
    perform: Callable[[Order], Told]
    panel: str
    permission: str = OPERATE
    form: type[ActionForm] = ActionForm
    final: bool = False
    key: str = ""

    @property
    def slug(self) -> str:
        return f"{self.noun}.{self.verb}"

    @property
    def asks(self) -> bool:
        """It is never done at one press: it needs answers, or a second thought."""
        return self.final or self.form is not ActionForm

    @property
    def url(self) -> str:
        """GET asks, POST does."""
        return reverse("dashboard:action", args=[self.noun, self.verb])

    def pools_of(self, ids: tuple[str, ...]) -> Reach:
        """The pools that it touches when it is done to these, None for every pool: who may act in only some pools is
        judged by it.
        """
        return frozenset(ids) if self.noun == "pool" else None

    def reach(self, ids: tuple[str, ...], given: QueryDict) -> Reach:
        """The same for a whole request."""
        return self.pools_of(ids)

    def question(self, ids: tuple[str, ...], given: QueryDict) -> Question:
        """What is asked before it is done to these; ``given`` is what else came with the request."""
        return Question(f"{self.label} {next(filter(None, ids), 'everything')}?", self.says, ids)
