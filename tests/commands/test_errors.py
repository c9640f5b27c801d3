"""From an error to an exit code and a paragraph."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import OperationalError

from jobs import api, exceptions
from jobs.exceptions import SchedulerError
from jobs.management.errors import CommandFailed, Exit, exit_for


def every_error(base=SchedulerError):
    """All errors of ours, whichever module defines them."""
    for error in base.__subclasses__():
        yield error
        yield from every_error(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (exceptions.UnknownJobType, 2),
        (exceptions.PayloadInvalid, 2),
        (exceptions.PayloadTooLarge, 2),
        (exceptions.OptionInvalid, 2),
        (exceptions.JobNotFound, 3),
        (api.PoolNotFound, 3),
        (api.WorkerNotFound, 3),
        (exceptions.DuplicateJob, 4),
        (exceptions.PoolFull, 4),
        (exceptions.WrongState, 4),
        (exceptions.StoreUnavailable, 5),
        (exceptions.OutcomeUnknown, 5),
        (exceptions.JobTimeout, 6),
        (exceptions.JobCancelled, 1),
    ],
)
def test_each_error_has_the_exit_code_of_the_contract(error, code):
    assert exit_for(error("x")) == code


def test_every_error_has_a_code_for_machines_of_its_own():
    codes = [error.code for error in every_error() if error.__module__.startswith("jobs.") and "code" in vars(error)]

    assert sorted(codes) == sorted(set(codes))
    assert all(code.replace("_", "").isalpha() and code.islower() for code in codes)


def test_a_paragraph_is_what_is_wrong_and_how_to_put_it_right():
    assert CommandFailed("It broke", exit=Exit.FAILED, code="x", fix="Mend it").paragraph == "It broke. Mend it."
    assert CommandFailed("It broke (twice)", exit=Exit.FAILED, code="x").paragraph == "It broke (twice)."
    assert CommandFailed("", exit=Exit.FAILED, code="x").paragraph == ""


def test_a_very_long_message_loses_its_middle(cli):
    result = cli("jobs", "show", "x" * 100_000)

    assert result.code == 3
    assert len(result.err) < 1_200
    assert len(cli("jobs", "show", "x" * 100_000, "--json").error["message"]) < 1_200


def fails(error):
    def fail(*_args, **_options):
        raise error

    return fail


def test_a_mistake_of_ours_is_a_paragraph_and_names_the_way_to_its_place(cli, monkeypatch):
    monkeypatch.setattr(api, "list_jobs", fails(ZeroDivisionError("oops")))

    result = cli("jobs", "list")

    assert result.code == 1
    assert result.err == (
        "Error: Unexpected ZeroDivisionError: oops. Run it again with --traceback to see where, and report it.\n"
    )
    assert "in fail" in cli("jobs", "list", "--traceback").err


def test_wrong_settings_are_told_as_such(cli, monkeypatch):
    monkeypatch.setattr(api, "list_jobs", fails(ImproperlyConfigured("SCHEDULER has no key 'X'.")))

    result = cli("jobs", "list", "--json")

    assert (result.code, result.error["code"]) == (1, "improperly_configured")


def test_a_database_that_is_away_is_told_as_such(cli, monkeypatch):
    monkeypatch.setattr(api.pools, "scale", fails(OperationalError("connection refused")))

    result = cli("pools", "scale", "default", "5", "--json")

    assert (result.code, result.error["code"]) == (1, "database_unavailable")
    assert "DATABASE_URL" in result.error["fix"]


def test_an_interrupt_exits_130(cli, monkeypatch):
    monkeypatch.setattr(api, "list_jobs", fails(KeyboardInterrupt()))

    assert cli("jobs", "list") == (130, "", "Error: Interrupted.\n")


def test_other_code_can_call_a_command_and_catch_what_it_says(capsys):
    call_command("enqueue", "commands.greet", json=True, count=2)
    assert '"count": 2' in capsys.readouterr().out

    with pytest.raises(CommandError, match="no job") as caught:
        call_command("jobs", "show", "nowhere")

    assert caught.value.returncode == 3
