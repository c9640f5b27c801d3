"""The Tab key: what may come next, in the words and names that there are."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jobs import api
from jobs.exceptions import StoreUnavailable
from jobs.management import completing
from jobs.management.commands.completion import BASH, FISH, ZSH
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
        (("jobs", "list", "--state", "dead", "--sta"), ["--state"]),
    ],
)
def test_commands_verbs_options_and_their_words(cli, words, found):
    assert after(cli, *words) == found


@pytest.mark.parametrize("words", [("jobs", ""), ("jobs", "no-such-verb", "")])
def test_where_no_verb_stands_yet_all_verbs_may_come(cli, words):
    assert {"cancel", "delete", "list", "retry", "run-now", "show"} <= set(after(cli, *words))
    assert after(cli, *words) == sorted(after(cli, *words))


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


def in_bash(line: str, cursor: int) -> str:
    """What bash would offer for these words, each in angles."""
    bash = shutil.which("bash")
    assert bash is not None
    script = f'{BASH}COMP_WORDS=({line}); COMP_CWORD={cursor}; _mainspring; printf "<%s>" "${{COMPREPLY[@]}}"'
    return subprocess.run([bash, "-c", script], env=os.environ, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """Says with which words it was called, itself and an interpreter before it."""
    for name, says in (("manage.py", '"$@"'), ("python3.11", '"${1##*/}" "$@"')):
        (tmp_path / name).write_text(f'#!/bin/bash\nprintf "%s\\n" {says}\n')
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_bash_asks_with_the_words_up_to_the_cursor(stand_in: Path):
    said = in_bash(f'{stand_in}/manage.py jobs list --pool "" --json', 4)

    assert said == "<completion><next><--><jobs><list><--pool>", "the empty word makes an empty line, which is no reply"


def test_bash_knows_the_command_line_after_an_interpreter_and_no_other_script(stand_in: Path):
    python, manage = stand_in / "python3.11", stand_in / "manage.py"

    assert in_bash(f"{python} {manage} jobs li --json", 3) == (f"<manage.py><{manage}><completion><next><--><jobs><li>")
    assert in_bash(f"{python} other.py jobs li", 3) == "<>"
    assert in_bash(f"{python} {manage}", 1) == "<>", "its own name is not there yet"


def test_what_bash_puts_into_the_line_is_a_name_and_no_command(tmp_path: Path):
    names = tmp_path / "manage.py"
    names.write_text("#!/bin/sh\nprintf '%s\\n' '$(touch x)' 'a b' 'x; reboot' '*' '`id`'\n")
    names.chmod(0o755)

    assert in_bash(f"{names} pools show", 2) == r"<\$\(touch\ x\)><a\ b><x\;\ reboot><\*><\`id\`>"


def run_in(shell: str, script: str) -> str:
    """What the script prints in this shell, where it is installed."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} is installed (Debian: apt-get install {shell})")
    bare = {"zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}[shell]
    return subprocess.run([found, *bare, script], env=os.environ, capture_output=True, text=True, check=True).stdout


ZSH_ALONE = """
compdef() { :; }
compadd() { shift; printf "<%s>" "$@"; }  # which quotes what it puts into the line
_files() { printf "files"; }
"""


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """Answers with two names, one of them hostile; with none to ``jobs wait``. Keeps what it was asked."""
    (tmp_path / "manage.py").write_text(
        f"""#!/bin/sh
printf '<%s>' "$@" > {tmp_path}/asked
[ "$5" = wait ] || printf '%s\\n' 'media' 'me x; touch {tmp_path}/ran'
"""
    )
    (tmp_path / "manage.py").chmod(0o755)
    return tmp_path


def in_zsh(names: Path, line: str, current: int) -> str:
    return run_in("zsh", f"{ZSH_ALONE}{ZSH}words=({names}/manage.py {line}); CURRENT={current}; _mainspring")


def test_zsh_asks_with_the_words_up_to_the_cursor_and_offers_names_whole(names: Path):
    assert in_zsh(names, 'pools show "" --json', 4) == f"<media><me x; touch {names}/ran>"
    assert (names / "asked").read_text() == "<completion><next><--><pools><show><>"


def test_zsh_offers_files_where_there_is_no_name(names: Path):
    assert in_zsh(names, "jobs wait x", 4) == "files"


def in_fish(names: Path, line: str) -> list[str]:
    return run_in("fish", f"{FISH}complete -C '{names}/manage.py {line}'").splitlines()


def test_fish_asks_with_the_words_up_to_the_cursor_and_offers_names_whole(names: Path):
    assert in_fish(names, "pools show me") == [f"me x; touch {names}/ran", "media"]
    assert (names / "asked").read_text() == "<completion><next><--><pools><show><me>"
    assert not (names / "ran").exists()


def test_fish_offers_files_where_there_is_no_name(names: Path):
    assert in_fish(names, f"jobs wait {names}/ma") == [f"{names}/manage.py"]
