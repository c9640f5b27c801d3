"""The Tab key: what may come next, in the words and names that there are."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jobs import api
from jobs.exceptions import StoreUnavailable
from jobs.management import completing
from jobs.management.commands.completion import BASH
from jobs.management.completing import candidates
from jobs.models import Schedule


def after(cli, *words):
    result = cli("completion", "next", "--", *words)
    assert (result.code, result.err) == (0, "")
    return result.out.splitlines()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("dl",), ["dlq"]),
        (("pools", "pa"), ["pause"]),
        (("dlq", "resubmit", "--al"), ["--all"]),
        (("jobs", "list", "--state", "retry"), ["retry_wait"]),
        (("jobs", "list", "--limit", ""), []),
        (("jobs", "list", "--json", "--state", "de"), ["dead"]),
        (("no-such-command", ""), []),
        (("jobs", "no-such-verb", ""), ["cancel", "delete"]),
    ],
)
def test_commands_verbs_options_and_their_words(cli, words, found):
    assert after(cli, *words)[: len(found) or None] == found


def test_names_of_pools_and_types(cli):
    api.enqueue("commands.greet", {}, pool="media")

    assert after(cli, "pools", "show", "me") == ["media"]
    assert after(cli, "jobs", "list", "--pool", "me") == ["media"]
    assert after(cli, "enqueue", "commands.g") == ["commands.greet"]
    assert after(cli, "jobs", "list", "--type", "commands.l") == ["commands.login"]


def test_names_of_schedules(db):
    Schedule.objects.create(name="nightly", job_type="commands.greet", cron="0 5 * * *")

    assert candidates(["schedules", "run", ""]) == ["nightly"]


def test_a_store_that_is_away_is_no_error(cli, monkeypatch):
    def away():
        raise StoreUnavailable("gone")

    monkeypatch.setitem(completing._NAMES, "POOL", away)

    assert after(cli, "pools", "show", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(cli, shell):
    script = cli("completion", shell).out

    assert "completion next -- " in script
    assert "manage.py" in script.splitlines()[-1]


def test_bash_asks_with_the_words_up_to_the_cursor(tmp_path: Path):
    bash = shutil.which("bash")
    assert bash is not None
    stand_in = tmp_path / "manage.py"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    stand_in.chmod(0o755)
    line = f'COMP_WORDS=({stand_in} jobs list --pool "" --json); COMP_CWORD=4; _mainspring; '
    line += 'printf "<%s>" "${COMPREPLY[@]}"'

    said = subprocess.run([bash, "-c", BASH + line], env=os.environ, capture_output=True, text=True, check=True)

    assert said.stdout == "<completion><next><--><jobs><list><--pool>", (
        "the empty word makes an empty line, which is no reply"
    )
