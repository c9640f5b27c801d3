"""What is written about the commands. That the generated reference is up to date is tested with the architecture."""

from argparse import _SubParsersAction

import pytest
from django.core.management import load_command_class

from jobs.management.errors import Exit
from tests.commands.conftest import ROOT


@pytest.mark.parametrize("command", ["jobs", "dlq", "pools", "workers", "scheduler"])
def test_each_verb_says_what_it_does_with_an_example(command):
    parser = load_command_class("jobs", command).create_parser("manage.py", command)
    [verbs] = [action.choices for action in parser._actions if isinstance(action, _SubParsersAction)]

    for name, verb in verbs.items():
        assert verb.description.endswith("."), name
        assert f"manage.py {command} {name}" in verb.epilog, name


def test_each_exit_code_is_explained():
    page = (ROOT / "docs/guides/command-line.md").read_text()

    for code in Exit:
        assert f"\n| {int(code)} |" in page


def test_each_finding_of_doctor_has_a_section():
    page = (ROOT / "docs/guides/troubleshooting.md").read_text()

    for check in (
        *("settings", "store", "server version", "persistence", "memory", "clock", "workers"),
        *("channel layer", "database", "time zone"),
    ):
        assert f"\n### {check}\n" in page
