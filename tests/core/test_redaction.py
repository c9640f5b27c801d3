"""What people are not shown, and that nothing else is hidden from them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.conf import SECRET_KEYS
from jobs.core.redaction import DEEPEST, MASK, Redaction, restored

redaction = Redaction(SECRET_KEYS)

HIDING = [
    *("password", "PASSWORD", "userPassword", "user_password", "password2", "x-api-key", "apiKey", "API_KEY_OLD"),
    *("apikey", "access_token", "accessToken", "Authorization", "Set-Cookie", "HTTPSecret", "card.number"),
]

TREES = st.recursive(
    st.none() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["a", "token", "b c"]), inner),
    max_leaves=12,
)


class TestKeys:
    @pytest.mark.parametrize("key", HIDING)
    def test_a_key_that_holds_the_words_of_a_secret_hides_its_value(self, key: str) -> None:
        assert redaction.value({key: "hunter2"}) == {key: MASK}

    @pytest.mark.parametrize("key", ["to", "max_tokens", "keyboard", "api", "number_of_cards", "passwordless", "", "•"])
    def test_other_keys_hide_nothing(self, key: str) -> None:
        assert redaction.value({key: "hunter2"}) == {key: "hunter2"}

    def test_a_type_may_name_more_of_them(self) -> None:
        assert redaction.value({"iban": "DE02", "to": "ann"}, names=["iban"]) == {"iban": MASK, "to": "ann"}


class TestData:
    def test_secrets_are_hidden_at_any_depth_and_with_all_that_is_in_them(self) -> None:
        data = {"user": {"login": {"password": "a"}}, "list": [{"token": [1, 2]}, {"credentials": {"id": 7}}, 3]}

        shown = redaction.value(data)

        assert shown == {"user": {"login": {"password": MASK}}, "list": [{"token": MASK}, {"credentials": MASK}, 3]}

    def test_what_is_not_there_is_not_called_hidden(self) -> None:
        assert redaction.value({"token": None}) == {"token": None}

    def test_what_lies_too_deep_to_be_looked_through_is_hidden(self) -> None:
        nested: Any = {"password": "hunter2"}
        for _ in range(DEEPEST + 5):
            nested = [nested]

        assert "hunter2" not in json.dumps(redaction.value(nested))

    @given(TREES)
    def test_hiding_twice_is_hiding_once_and_leaves_the_original_alone(self, data: Any) -> None:
        before = json.dumps(data)

        shown = redaction.value(data)

        assert redaction.value(shown) == shown
        assert json.dumps(data) == before
        assert restored(shown, data) == data


class TestText:
    @pytest.mark.parametrize(
        "text",
        [
            "login failed: password=hunter2",
            "password: hunter2",
            "{'password': 'hunter2', 'to': 'ann'}",
            '{"api_key":"hunter2"}',
            "Authorization: Bearer hunter2",
            "POST https://ann:hunter2@example.com/x failed",
            "connect(token='hunter2')",
            "a\nsecret = hunter2\nb",
        ],
    )
    def test_pairs_whose_key_hides_lose_their_value(self, text: str) -> None:
        shown = redaction.text(text)

        assert "hunter2" not in shown
        assert MASK in shown

    @pytest.mark.parametrize(
        "text",
        ["the token was refused", "max_tokens=5", "see https://example.com/token/page", "line 3: expected ')'", ""],
    )
    def test_other_text_stays_as_it_is(self, text: str) -> None:
        assert redaction.text(text) == text

    def test_what_the_data_beside_it_hides_is_hidden_in_every_form_in_which_it_may_be_quoted(self) -> None:
        secret = 'it\'s "ü" \\ one'
        secrets = redaction.secrets({"password": secret, "pin": "1234"})

        for text in (f"refused {secret}!", f"refused {secret!r}", f"refused {json.dumps(secret)}"):
            shown = redaction.text(text, secrets)
            assert "one" not in shown, text

        assert redaction.text("pin 1234", secrets) == "pin 1234"

    def test_short_values_do_not_blank_out_the_text(self) -> None:
        assert redaction.text("an error in a line", redaction.secrets({"token": "a", "secret": True, "pwd": 1})) == (
            "an error in a line"
        )

    def test_it_takes_time_in_proportion_to_the_text_whatever_the_text(self) -> None:
        for hostile in ("a" * 200_000, "a=" * 100_000, "'" * 200_000, "://" * 70_000, "password: '" + "\\" * 200_000):
            began = time.process_time()
            redaction.text(hostile)
            assert time.process_time() - began < 2, hostile[:12]


class TestRestoring:
    def test_what_was_left_masked_is_put_back_and_what_was_changed_is_kept(self) -> None:
        original = {"to": "ann", "token": "t-1", "list": [{"token": "t-2"}, 1]}
        edited = {"to": "bob", "token": MASK, "list": [{"token": "t-3"}, 1, 2]}

        assert restored(edited, original) == {"to": "bob", "token": "t-1", "list": [{"token": "t-3"}, 1, 2]}

    def test_a_mask_with_nothing_behind_it_stays_a_mask(self) -> None:
        assert restored({"new": MASK, "list": [MASK]}, {"list": []}) == {"new": MASK, "list": [MASK]}
