"""Job types: how they are declared, called and found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from jobs import Context, Exponential, Fixed, UniqueBy, job
from jobs.core.job import LeasedJob, Route
from jobs.exceptions import OptionInvalid, PayloadInvalid, UnknownJobType
from jobs.registry import JobType, Registry, autodiscover, default_name, registry


@pytest.fixture(autouse=True)
def _forget_types() -> Iterator[None]:
    with registry.restored():
        yield


def send(to: str, subject: str = "hi") -> str:
    return f"{to}: {subject}"


def other(to: str) -> None: ...


class TestDeclaring:
    def test_the_defaults_are_those_of_the_contract(self) -> None:
        """AC-199: pool "default", 3 retries, 30 s time-out."""
        defaults = job("mail.send")(send).defaults

        assert (defaults.type, defaults.pool, defaults.priority) == ("mail.send", "default", 0)
        assert (defaults.max_retries, defaults.max_crashes, defaults.timeout) == (3, 3, 30.0)
        assert defaults.backoff == ("exponential", 1.0, 60.0, 0.2)
        assert (defaults.durability, defaults.result_ttl) == ("memory", None)

    def test_options_of_the_decorator_become_defaults_of_its_jobs(self) -> None:
        declared = job(
            "mail.send",
            pool="critical",
            priority=5,
            max_retries=0,
            max_crashes=1,
            backoff=Fixed(2),
            timeout=timedelta(minutes=2),
            retry_on=OSError,
            dead_on=[KeyError],
            concurrency=3,
            rate="100/m",
            result_ttl=60,
            redact=["subject"],
        )(send)

        assert (declared.defaults.pool, declared.defaults.priority) == ("critical", 5)
        assert (declared.defaults.timeout, declared.defaults.result_ttl) == (120.0, 60.0)
        assert (declared.retry_on, declared.dead_on) == ((OSError,), (KeyError,))
        assert (declared.concurrency, declared.rate, declared.redact) == (3, "100/m", ("subject",))

    def test_the_decorator_needs_no_parentheses(self) -> None:
        @job
        def tidy() -> None: ...

        assert isinstance(tidy, JobType)
        assert registry.get(tidy.name) is tidy

    def test_the_name_can_be_given_by_keyword(self) -> None:
        assert job(name="mail.send")(send).name == "mail.send"

    def test_a_job_type_looks_like_its_function(self) -> None:
        declared = job("mail.send")(send)

        assert declared.__name__ == "send"
        assert declared.__module__ == __name__
        assert declared.__wrapped__ is send  # type: ignore[attr-defined]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"pool": "a b"}, "pool"),
            ({"priority": 101}, "priority"),
            ({"max_retries": -1}, "max_retries"),
            ({"max_crashes": 0}, "max_crashes"),
            ({"backoff": 5}, "backoff"),
            ({"timeout": 0}, "timeout"),
            ({"unique": "too"}, "unique: mail.send has no argument 'too'"),
            ({"unique": 5}, "unique"),
            ({"unique": ["to", len]}, "unique"),
            ({"retry_on": "OSError"}, "retry_on"),
            ({"dead_on": [5]}, "dead_on"),
            ({"concurrency": 0}, "concurrency"),
            ({"rate": "many"}, "rate"),
            ({"rate": 5}, "rate"),
            ({"durability": "safe"}, "durability"),
            ({"result_ttl": -1}, "result_ttl"),
            ({"redact": "secret"}, "redact: mail.send has no argument 'secret'"),
            ({"retries": 5}, "@job has no option 'retries'"),
        ],
    )
    def test_a_wrong_option_is_refused_with_its_name_and_a_fix(self, options: dict[str, Any], said: str) -> None:
        with pytest.raises(OptionInvalid) as caught:
            job("mail.send", **options)(send)

        assert said in str(caught.value)
        assert caught.value.fix
        assert "mail.send" not in registry

    @pytest.mark.parametrize("name", ["", "a b", "é", "x" * 121, "a/b", ".a", "a\n", "\ud800", 5])
    def test_names_are_checked(self, name: Any) -> None:
        with pytest.raises(OptionInvalid, match="not a name for a job type"):
            JobType(send, name=name)

    @pytest.mark.parametrize("function", [5, len, staticmethod(send), JobType(send, name="x")])
    def test_only_functions_can_be_job_types(self, function: Any) -> None:
        with pytest.raises(TypeError, match="@job goes on a function"):
            JobType(function, name="x.y")

    def test_generators_are_refused(self) -> None:
        def numbers() -> Iterator[int]:
            yield 1

        with pytest.raises(TypeError, match="yields"):
            job("x.numbers")(numbers)

    def test_an_annotation_may_name_what_comes_later(self) -> None:
        def handler(when: Later) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        declared = job("x.later")(handler)
        globals()["Later"] = int
        try:
            assert declared.decode(declared.encode({"when": 5})) == {"when": 5}
        finally:
            del globals()["Later"]

    def test_a_call_needs_no_annotations(self) -> None:
        def handler(when: Never) -> int:  # type: ignore[name-defined]  # noqa: F821
            return 5

        assert job("x.called")(handler)(when=1) == 5

    def test_an_annotation_that_never_comes_is_an_error_at_first_use(self) -> None:
        def handler(when: Never) -> None: ...  # type: ignore[name-defined]  # noqa: F821

        with pytest.raises(TypeError, match=r"x\.never.*Never"):
            job("x.never")(handler).encode({"when": 5})


class TestNames:
    def test_a_function_of_an_installed_app_is_named_after_the_app(self) -> None:
        from samples import jobs as samples_jobs

        function = next(t.function for t in registry.all().values() if t.function.__module__ == samples_jobs.__name__)
        assert default_name(function) == f"samples.{function.__name__}"

    @pytest.mark.parametrize(
        ("module", "name"),
        [
            ("shop.mail", "mail.send"),
            ("shop.mail.jobs", "mail.send"),
            ("shop.mail.tasks", "mail.send"),
            ("mail", "mail.send"),
            ("jobs", "elsewhere.send"),
        ],
    )
    def test_elsewhere_it_is_named_after_its_module(
        self, module: str, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def function() -> None: ...

        function.__module__, function.__name__ = f"elsewhere.{module}", "send"
        assert default_name(function) == name


class TestCalling:
    def test_a_job_type_stays_a_function(self) -> None:
        declared = job("mail.send")(send)

        assert declared("Ann") == "Ann: hi"
        assert declared(to="Ann", subject="yo") == "Ann: yo"

    def test_an_async_job_type_stays_a_coroutine_function(self) -> None:
        @job("mail.async")
        async def send_later(to: str) -> str:
            return to

        assert send_later.is_async
        assert asyncio.run(send_later("Ann")) == "Ann"

    def test_a_call_without_context_is_given_one(self) -> None:
        @job("mail.ctx")
        def send(to: str, *, ctx: Context) -> tuple[str, int, bool]:
            ctx.progress(1, 2)
            return ctx.type, ctx.attempt, ctx.is_cancelled()

        assert send(to="Ann") == ("mail.ctx", 1, False)  # type: ignore[call-arg]

    def test_a_call_with_context_keeps_it(self) -> None:
        @job("mail.ctx")
        def send(to: str, ctx: Context) -> str:
            return ctx.id

        mine = send.context_of_call({})
        assert send("Ann", mine) == send(to="Ann", ctx=mine) == ""

    def test_errors_of_the_function_come_through(self) -> None:
        with pytest.raises(TypeError):
            job("mail.send")(send)()  # type: ignore[call-arg]


class TestFinding:
    def test_a_registered_type_is_found_by_name(self) -> None:
        declared = job("mail.send")(send)

        assert registry.get("mail.send") is declared
        assert registry.all()["mail.send"] is declared

    def test_an_unknown_name_is_answered_with_the_nearest(self) -> None:
        """AC-74: a job of a type that nobody registered is refused by name."""
        job("mail.send")(send)

        with pytest.raises(UnknownJobType) as caught:
            registry.get("mial.send")

        assert caught.value.fix == "Did you mean 'mail.send'?"

    def test_an_empty_registry_asks_whether_the_app_is_installed(self) -> None:
        with pytest.raises(UnknownJobType) as caught:
            Registry().get("x")

        assert "INSTALLED_APPS" in caught.value.fix

    @pytest.mark.parametrize("name", ["\ud800", "x" * 10_000, "{}", "", 5, None, []])
    def test_hostile_names_are_answered_in_words_that_can_be_shown(self, name: Any) -> None:
        with pytest.raises(UnknownJobType) as caught:
            registry.get(name)

        (str(caught.value) + caught.value.fix).encode()

    def test_another_function_cannot_take_a_name(self) -> None:
        declared = job("mail.send")(send)

        with pytest.raises(OptionInvalid, match=r"already registered by tests\.registry.*send"):
            job("mail.send")(other)

        assert registry.get("mail.send") is declared

    def test_two_functions_of_one_factory_are_two_functions(self) -> None:
        def made() -> Any:
            def inner() -> None: ...

            return inner

        job("x.made")(made())
        with pytest.raises(OptionInvalid, match="already registered"):
            job("x.made")(made())

    def test_a_module_that_is_loaded_again_replaces_its_types(self) -> None:
        job("mail.send")(send)
        again = job("mail.send")(send)

        assert registry.get("mail.send") is again

    def test_modules_of_installed_apps_are_discovered(self) -> None:
        autodiscover(["jobs", "tasks"])

        assert "email.send" in registry
        assert "webhook.dispatch" in registry


class TestUniqueness:
    def key(self, unique: Any, **payload: Any) -> str | None:
        def handler(account: int = 1, month: str = "may") -> None: ...

        declared = JobType(handler, name="x.unique", unique=unique)
        return declared.unique and declared.unique.key(declared.decode(declared.encode(payload)))

    def test_without_a_rule_nothing_is_unique(self) -> None:
        assert self.key(None) is None
        assert self.key(False) is None

    def test_true_means_one_job_of_the_type(self) -> None:
        """AC-57: unique without arguments is unique by type."""
        assert self.key(True, account=1) == self.key(True, account=2)

    def test_arguments_make_the_key_with_their_defaults_filled_in(self) -> None:
        assert self.key("account", account=5) == "5"
        assert self.key("account") == self.key("account", account=1)
        assert self.key(("account", "month"), account=5) == '[5,"may"]'

    def test_a_function_of_the_arguments_makes_the_key(self) -> None:
        assert self.key(lambda account, **_: f"a{account}", account=5) == "a5"

    def test_a_function_that_makes_no_key_is_told_so(self) -> None:
        with pytest.raises(OptionInvalid, match="unique key that the type's function made"):
            self.key(lambda **_: 5)

    def test_long_and_unprintable_values_are_digested(self) -> None:
        long, strange = self.key("month", month="x" * 1000), self.key("month", month="a\nb")

        assert len(long or "") == len(strange or "") == 64
        assert long != self.key("month", month="x" * 1001)

    def test_equal_arguments_make_one_key_whatever_the_order_they_come_in(self) -> None:
        """Sets are iterated in another order in each process."""

        def handler(words: set[str], limits: dict[str, int]) -> None: ...

        declared = JobType(handler, name="x.unique", unique=("limits", "words"))
        keys = {
            declared.unique and declared.unique.key({"words": words, "limits": limits})
            for words in ({"may", "june", "july"}, frozenset(["july", "may", "june"]))
            for limits in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
        }

        assert keys == {'[{"a":1,"b":2},["july","june","may"]]'}

    def test_the_rule_carries_window_and_answer(self) -> None:
        rule = UniqueBy("account", until=timedelta(minutes=5), on_duplicate="raise")

        assert (rule.until, rule.on_duplicate) == (300.0, "raise")
        with pytest.raises(OptionInvalid):
            UniqueBy("account", until="later")


class TestPayloads:
    def test_encode_and_decode_are_those_of_the_signature(self) -> None:
        declared = job("mail.send")(send)

        assert declared.decode(declared.encode({"to": "Ann"})) == {"to": "Ann", "subject": "hi"}
        with pytest.raises(PayloadInvalid, match=r"mail\.send: argument 'to'"):
            declared.encode({"to": 5})

    def test_the_context_is_not_part_of_it(self) -> None:
        def handler(to: str, *, ctx: Context) -> None: ...

        declared = job("mail.ctx")(handler)
        assert declared.takes_context
        assert declared.decode(b'{"to":"x"}') == {"to": "x"}

    def test_the_context_of_a_call_is_shaped_like_that_of_a_worker(self) -> None:
        context = job("mail.send", backoff=Exponential(2))(send).context_of_call({"to": "x"})

        assert isinstance(context.lease, LeasedJob)
        assert context.lease.route == Route("default", 0, 0)
        assert context.payload == {"to": "x"}
