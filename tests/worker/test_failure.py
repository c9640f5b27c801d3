from __future__ import annotations

import json
from typing import Any

import pytest

from jobs.worker.failure import MESSAGE_LIMIT, describe_error


def described(error: BaseException, limit: int = 16_384) -> dict[str, Any]:
    return json.loads(describe_error(error, limit))


def caught(error: BaseException) -> BaseException:
    try:
        raise error
    except BaseException as raised:
        return raised


def test_type_message_and_traceback() -> None:
    found = described(caught(ValueError("no luck")))

    assert found["type"] == "ValueError"
    assert found["message"] == "no luck"
    assert "in caught" in found["traceback"]
    assert found["traceback"].endswith("ValueError: no luck\n")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("\ud800", "\\ud800"), ("x" * 10_000, "x" * MESSAGE_LIMIT + f"… ({10_000 - MESSAGE_LIMIT} more characters)")],
)
def test_a_class_may_be_called_whatever_its_author_likes(name: str, shown: str) -> None:
    class Strange(Exception): ...

    Strange.__qualname__ = name
    assert described(caught(Strange("no luck")))["type"] == shown


def test_a_class_whose_name_cannot_be_read_is_described_by_the_rest() -> None:
    class Nameless(type):
        def __getattribute__(cls, name: str) -> Any:
            if name == "__qualname__":
                raise SystemExit
            return super().__getattribute__(name)

    class Strange(Exception, metaclass=Nameless): ...

    found = described(caught(Strange("no luck")))
    assert (found["type"], found["message"]) == ("(its name cannot be read: SystemExit)", "no luck")


def test_causes_are_part_of_the_traceback() -> None:
    def fail() -> None:
        try:
            {}["missing"]
        except KeyError as error:
            raise RuntimeError("outer") from error

    with pytest.raises(RuntimeError) as info:
        fail()
    assert "KeyError: 'missing'" in described(info.value)["traceback"]


def test_a_long_message_is_cut_and_says_so() -> None:
    message = described(caught(ValueError("x" * 10_000)))["message"]
    assert message == "x" * MESSAGE_LIMIT + f"… ({10_000 - MESSAGE_LIMIT} more characters)"


def test_a_long_traceback_is_cut_in_the_middle_and_keeps_both_ends() -> None:
    text = described(caught(ValueError("the end " * 500)), limit=1000)["traceback"]
    assert text.startswith("Traceback (most recent call last)")
    assert "bytes cut" in text
    assert text.rstrip().endswith("the end")
    assert len(text.encode()) < 1100


def test_an_error_whose_message_cannot_be_read_still_has_a_name() -> None:
    class Spiteful(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    found = described(caught(Spiteful()))
    assert found["type"].endswith("Spiteful")
    assert found["message"] == "(its message cannot be read: KeyboardInterrupt)"


def test_lone_surrogates_and_nul_become_text_that_can_be_stored() -> None:
    message = described(caught(ValueError("half \ud800 and \x00")))["message"]
    assert message == "half \\ud800 and \x00"


def test_endless_recursion_is_described_in_bounds() -> None:
    def forever() -> None:
        forever()

    with pytest.raises(RecursionError) as info:
        forever()
    assert len(describe_error(info.value, 2000)) < 5000
