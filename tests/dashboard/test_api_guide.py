"""The guide of the HTTP API: each of its examples is asked for, and its answers have the fields that it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dashboard.api.errors import _STATUSES
from jobs import api
from jobs.api.tokens import SCOPES
from jobs.models import Schedule
from tests.dashboard import greeting  # noqa: F401 - its job types
from tests.dashboard.asking import Answer, Program
from tests.dashboard.seeding import Shop

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "api.md").read_text()
EXAMPLES = re.compile(r"^```sh\n(?P<asked>.*?)^```(?:\n\n```json\n(?P<told>.*?)^```)?", re.MULTILINE | re.DOTALL)


def carried_out(line: str, program: Program) -> Answer:
    """What ``curl`` would get."""
    words = iter(shlex.split(line)[1:])
    method, body, address = "get", None, ""
    for word in words:
        if word == "-X":
            method = next(words).lower()
        elif word == "-d":
            body = json.loads(next(words))
        elif word == "-H":
            assert next(words) == "Authorization: Bearer $TOKEN"
        else:
            address = word
    parts = urlsplit(address.removeprefix("$HOST/api/v1/"))
    return program.ask(method, parts.path, body, **dict(parse_qsl(parts.query)))


def fields(value: Any) -> Any:
    """Names of fields, of the first item where there are many."""
    if isinstance(value, dict):
        return {name: fields(each) for name, each in value.items() if name != "payload"}
    return [fields(value[0])] if isinstance(value, list) and value else None


def shows(told: Any, answered: Any) -> bool:
    """Whether all that is told of is in the answer."""
    if isinstance(told, dict):
        return all(name in answered and shows(each, answered[name]) for name, each in told.items())
    return not isinstance(told, list) or shows(told[0], answered[0])


@pytest.mark.django_db
def test_each_example_works(root: Program, shop: Shop) -> None:
    shop.ready(pool="critical")
    Schedule.objects.create(name="weekly", job_type="http.greet", cron="0 5 * * 1")
    api.workflows.define({"name": "nightly", "nodes": [{"key": "load", "type": "http.greet"}]})
    examples = [*EXAMPLES.finditer(GUIDE)]
    asked = 0
    for example in examples:
        for line in example["asked"].replace("\\\n", " ").strip().splitlines():
            answer = carried_out(line, root)
            asked += 1
            assert answer.status in (200, 201), (line, answer)
        if example["told"]:
            assert shows(fields(json.loads(example["told"])), answer.document), example["told"]
    assert asked > 12


def test_scopes_and_statuses_are_told() -> None:
    assert all(f"| `{scope}` |" in GUIDE for scope in SCOPES)
    assert all(f"| {status} |" in GUIDE for _, status in _STATUSES)
