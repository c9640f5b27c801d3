"""Enqueueing: what reaches the store, and what is refused before it does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from jobs import JobHandle, aenqueue, aenqueue_many, budget, enqueue, get_job, job
from jobs.api import enqueue_many
from jobs.core.retry import Linear
from jobs.core.states import JobState
from jobs.engine import Engine
from jobs.exceptions import (
    DuplicateJob,
    OptionInvalid,
    PayloadInvalid,
    PayloadTooLarge,
    StoreUnavailable,
    UnknownJobType,
)
from tests.api.types import Address, job_type
from tests.support.valkey import ValkeyServer


class TestOneJob:
    def test_it_is_ready_with_the_defaults_of_its_type(self) -> None:
        handle = job_type().enqueue(to="Ann")

        job = get_job(handle.id)
        assert (job.type, job.pool, job.priority, job.state) == ("mail.send", "critical", 5, JobState.READY)
        assert (job.payload, job.attempt, job.max_retries, job.timeout) == ({"to": "Ann"}, 0, 3, 30.0)

    def test_the_handle_says_what_became_of_it(self) -> None:
        handle = job_type().enqueue(to="Ann")

        assert isinstance(handle, JobHandle)
        assert (handle.type, handle.pool, handle.state, handle.existing) == ("mail.send", "critical", "ready", False)
        assert list(handle.as_dict()) == ["id", "type", "pool", "state", "run_at", "existing"]

    def test_typed_arguments_are_stored_as_json(self) -> None:
        handle = job_type().enqueue(to="Ann", address=Address("High St"), when=datetime(2026, 1, 1, tzinfo=UTC))

        assert get_job(handle.id).payload == {
            "to": "Ann",
            "address": {"street": "High St"},
            "when": "2026-01-01T00:00:00Z",
        }

    def test_a_misfit_is_refused_and_nothing_is_stored(self, engine: Engine) -> None:
        with pytest.raises(PayloadInvalid, match=r"mail\.send: argument 'to'"):
            job_type().enqueue(to=5)

        assert engine.stats.snapshot().states["ready"] == 0

    @pytest.mark.parametrize("option", ["concurrency_key", "rate_key"])
    def test_a_key_of_a_limit_that_there_is_not_is_refused(self, option: str, engine: Engine) -> None:
        with pytest.raises(OptionInvalid, match=rf"{option}: mail\.send has no limit") as refused:
            job_type().using(**{option: "a"}).enqueue(to="Ann")  # type: ignore[misc]

        assert option.removesuffix("_key") + "=…" in refused.value.fix
        assert engine.stats.snapshot().states["ready"] == 0

    def test_arguments_have_names(self) -> None:
        for refused in (job_type(), job_type().using(delay=1)):
            with pytest.raises(PayloadInvalid, match=r"mail\.send: .* have names") as error:
                refused.enqueue("Ann")  # type: ignore[arg-type]
            assert error.value.fix.startswith("Write enqueue(to=…")

    def test_arguments_may_have_any_name(self) -> None:
        @job("x.handler")
        def handler(self: int, payload: int, options: int) -> None: ...

        handle = handler.enqueue(self=1, payload=2, options=3)
        assert get_job(handle.id).payload == {"self": 1, "payload": 2, "options": 3}

    def test_a_large_payload_is_refused_by_size(self) -> None:
        with pytest.raises(PayloadTooLarge, match="262144"):
            job_type().enqueue(to="x" * 1_000_000)


class TestByName:
    def test_a_type_can_be_enqueued_by_its_name(self) -> None:
        handle = enqueue("mail.send", {"to": "Ann"}, priority=9)

        assert get_job(handle.id).priority == 9

    def test_an_unknown_type_is_refused_with_the_nearest_name(self) -> None:
        with pytest.raises(UnknownJobType) as caught:
            enqueue("mial.send", {})

        assert caught.value.fix == "Did you mean 'mail.send'?"

    def test_a_producer_without_the_code_may_insist(self) -> None:
        handle = enqueue("other.type", {"any": [1, None]}, allow_unknown=True, pool="p")

        job = get_job(handle.id)
        assert (job.type, job.pool, job.payload, job.max_retries) == ("other.type", "p", {"any": [1, None]}, 3)

    def test_a_known_type_is_checked_even_then(self) -> None:
        with pytest.raises(PayloadInvalid):
            enqueue("mail.send", {}, allow_unknown=True)

    @pytest.mark.parametrize("name", ["", "a b", "\ud800", "x" * 200])
    def test_an_unknown_name_must_still_be_a_name(self, name: str) -> None:
        with pytest.raises(OptionInvalid, match="not a name for a job type"):
            enqueue(name, {}, allow_unknown=True)


class TestOptions:
    def test_they_go_over_the_defaults_of_the_type(self) -> None:
        handle = (
            job_type()
            .using(
                pool="background",
                priority=-7,
                max_retries=9,
                timeout=None,
                backoff=Linear(2, cap=10, jitter=0),
                tags=["nightly"],
                meta={"customer": "42"},
            )
            .enqueue(to="Ann")
        )

        job = get_job(handle.id)
        assert (job.pool, job.priority, job.max_retries, job.timeout) == ("background", -7, 9, None)
        assert (job.tags, job.meta) == (["nightly"], {"customer": "42"})

    def test_they_can_be_given_in_steps_and_the_last_one_counts(self) -> None:
        prepared = job_type().using(priority=1, delay=60)
        handle = prepared.using(priority=2, run_at=datetime(2000, 1, 1, tzinfo=UTC)).enqueue(to="Ann")

        job = get_job(handle.id)
        assert (job.priority, job.state) == (2, JobState.READY)
        assert prepared.enqueue(to="Ann").state == "scheduled"

    def test_a_wrong_one_is_refused_before_the_enqueue(self) -> None:
        with pytest.raises(OptionInvalid, match="priority"):
            job_type().using(priority=1000)

    def test_a_delay_counts_from_the_servers_now(self) -> None:
        handle = job_type().using(delay=timedelta(minutes=5)).enqueue(to="Ann")

        job = get_job(handle.id)
        assert job.state == JobState.SCHEDULED
        assert job.run_at - job.created_at == timedelta(minutes=5)

    def test_run_at_is_kept_to_the_millisecond(self) -> None:
        """AC-65: the stored due time is the one asked for."""
        run_at = datetime(2100, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)

        assert get_job(job_type().using(run_at=run_at).enqueue(to="Ann").id).run_at == run_at

    def test_a_past_run_at_means_now(self) -> None:
        assert job_type().using(run_at=datetime(2000, 1, 1, tzinfo=UTC)).enqueue(to="Ann").state == "ready"

    def test_an_id_of_the_caller_is_kept_and_cannot_be_used_twice(self) -> None:
        """AC-9 and AC-63."""
        handle = job_type().using(id="order {'7'} ü").enqueue(to="Ann")

        assert handle.id == "order {'7'} ü"
        with pytest.raises(DuplicateJob) as caught:
            job_type("mail.asend").using(id=handle.id).enqueue(to="Bob")
        assert caught.value.job_id == handle.id

    @pytest.mark.parametrize("durability", ["replicated", "disk", "database"])
    def test_a_durability_that_is_not_there_is_refused(self, durability: str) -> None:
        with pytest.raises(OptionInvalid, match=f'"{durability}" is not available'):
            job_type().using(durability=durability).enqueue(to="Ann")


class TestUniqueness:
    def test_a_second_job_of_a_key_is_the_first(self) -> None:
        """AC-59 and AC-63: by default the live job is answered."""
        unique = job_type().using(unique_key="welcome:42")
        first = unique.enqueue(to="Ann")
        second = unique.enqueue(to="Bob")

        assert (second.id, second.existing, first.existing) == (first.id, True, False)

    def test_it_can_be_refused_instead(self) -> None:
        """AC-55."""
        unique = job_type().using(unique_key="k", on_duplicate="raise", unique_until=300)
        unique.enqueue(to="Ann")

        with pytest.raises(DuplicateJob):
            unique.enqueue(to="Ann")

    def test_or_take_the_place_of_the_waiting_one(self) -> None:
        unique = job_type().using(unique_key="k", on_duplicate="replace", delay=60)
        first, second = unique.enqueue(to="Ann"), unique.enqueue(to="Bob")

        assert (get_job(first.id).state, get_job(second.id).state) == (JobState.CANCELLED, JobState.SCHEDULED)

    def test_the_rule_of_the_type_makes_the_key_of_each_payload(self) -> None:
        handles = job_type("mail.welcome").enqueue_many(
            [{"account": 1}, {"account": 2}, {"account": 1, "text": "again"}]
        )

        assert [handle.existing for handle in handles] == [False, False, True]
        assert get_job(handles[0].id).unique_key == "1"

    def test_a_key_of_the_call_goes_before_the_rule_of_the_type(self) -> None:
        welcome = job_type("mail.welcome")

        assert get_job(welcome.using(unique_key="mine").enqueue(account=1).id).unique_key == "mine"
        assert get_job(welcome.using(unique_key=None).enqueue(account=1).id).unique_key is None

    def test_a_window_without_a_key_is_refused(self) -> None:
        with pytest.raises(OptionInvalid, match="unique_until says nothing"):
            job_type().using(unique_until=60).enqueue(to="Ann")


class TestMany:
    def test_each_payload_becomes_a_job_in_order(self) -> None:
        handles = job_type().using(tags=["bulk"]).enqueue_many({"to": str(n)} for n in range(1500))

        assert len({handle.id for handle in handles}) == 1500
        assert [handle.id for handle in handles] == sorted(handle.id for handle in handles)
        assert get_job(handles[1234].id).payload == {"to": "1234"}
        assert get_job(handles[1234].id).tags == ["bulk"]

    def test_none_is_made_if_one_does_not_fit_and_the_error_counts(self, engine: Engine) -> None:
        with pytest.raises(PayloadInvalid, match=r"Payload 2 .*'to'"):
            job_type().enqueue_many([{"to": "a"}, {"to": "b"}, {"to": 5}])

        assert engine.stats.snapshot().states["ready"] == 0

    def test_an_empty_list_makes_nothing(self) -> None:
        assert job_type().enqueue_many([]) == []

    def test_an_id_or_a_key_cannot_be_shared(self) -> None:
        for options in ({"id": "x"}, {"unique_key": "x"}):
            with pytest.raises(OptionInvalid, match="names one job"):
                job_type().using(**options).enqueue_many([{"to": "a"}, {"to": "b"}])  # type: ignore[arg-type]

    def test_by_name_too(self) -> None:
        assert len(enqueue_many("mail.send", [{"to": "a"}, {"to": "b"}], delay=5)) == 2


class TestOverrides:
    """What an operator sets for a type stands between the type's defaults and the options of a call."""

    @pytest.fixture(autouse=True)
    def _overrides(self, engine: Engine) -> None:
        engine.types.set("mail.send", {"pool": "slow", "priority": 1, "max_retries": 7, "timeout": 99.0})

    def test_they_go_over_the_defaults(self) -> None:
        job = get_job(job_type().enqueue(to="Ann").id)

        assert (job.pool, job.priority, job.max_retries, job.timeout) == ("slow", 1, 7, 99.0)

    def test_options_of_the_call_go_over_them(self) -> None:
        job = get_job(job_type().using(pool="fast", priority=3, timeout=None).enqueue(to="Ann").id)

        assert (job.pool, job.priority, job.max_retries, job.timeout) == ("fast", 3, 7, None)

    def test_other_types_are_left_alone(self) -> None:
        assert get_job(job_type("mail.asend").enqueue(to="Ann").id).pool == "default"


@pytest.mark.django_db(transaction=True)
class TestOnCommit:
    def test_the_job_is_there_after_the_commit_under_the_id_of_its_handle(self, engine: Engine) -> None:
        with transaction.atomic():
            handle = job_type().using(on_commit=True).enqueue(to="Ann")

            assert (handle.id != "", handle.state) == (True, "uncommitted")
            assert engine.jobs.find(handle.id) is None

        assert handle.state == "ready"
        assert get_job(handle.id).payload == {"to": "Ann"}

    def test_a_rollback_leaves_no_job(self, engine: Engine) -> None:
        with transaction.atomic():
            handle = job_type().using(on_commit=True).enqueue(to="Ann")
            transaction.set_rollback(True)

        assert handle.state == "uncommitted"
        assert engine.jobs.find(handle.id) is None

    def test_outside_a_transaction_it_is_made_at_once(self) -> None:
        assert job_type().using(on_commit="default").enqueue(to="Ann").state == "ready"

    def test_errors_are_raised_where_the_caller_can_still_act(self) -> None:
        with transaction.atomic():
            with pytest.raises(PayloadTooLarge):
                job_type().using(on_commit=True).enqueue(to="x" * 1_000_000)
            with pytest.raises(PayloadInvalid):
                job_type().using(on_commit=True).enqueue()

    def test_many_jobs_wait_for_the_commit_too(self) -> None:
        with transaction.atomic():
            handles = job_type().using(on_commit=True).enqueue_many([{"to": "a"}, {"to": "b"}])

        assert [get_job(handle.id).payload["to"] for handle in handles] == ["a", "b"]

    def test_an_id_of_the_caller_is_kept(self) -> None:
        with transaction.atomic():
            handle = job_type().using(on_commit=True, id="mine").enqueue(to="Ann")

        assert get_job("mine").state == handle.state == "ready"

    def test_a_unique_job_that_was_there_is_answered_after_the_commit(self) -> None:
        unique = job_type().using(unique_key="k")
        first = unique.enqueue(to="Ann")
        with transaction.atomic():
            second = unique.using(on_commit=True).enqueue(to="Ann")

        assert (second.id, second.existing) == (first.id, True)


class TestAsync:
    async def test_every_way_to_enqueue_has_its_twin(self) -> None:
        handles = [
            await job_type().aenqueue(to="a"),
            await job_type().using(priority=1).aenqueue(to="b"),
            await aenqueue("mail.send", {"to": "c"}, priority=2),
            *await job_type().aenqueue_many([{"to": "d"}]),
            *await job_type().using(priority=3).aenqueue_many([{"to": "e"}]),
            *await aenqueue_many("mail.send", [{"to": "f"}]),
        ]

        assert [(await handle.arefresh()).payload["to"] for handle in handles] == list("abcdef")

    async def test_errors_are_those_of_the_blocking_form(self) -> None:
        with pytest.raises(PayloadInvalid):
            await job_type().aenqueue()


class TestServerAway:
    @pytest.fixture(autouse=True)
    def _own_server(self, settings: Any, private_valkey: ValkeyServer) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}

    def test_the_caller_is_told_and_no_unique_key_is_left_behind(self, private_valkey: ValkeyServer) -> None:
        """AC-62."""
        unique = job_type().using(unique_key="k", on_duplicate="raise")
        job_type().enqueue(to="before")
        private_valkey.kill()

        with pytest.raises(StoreUnavailable), budget(0.3):
            unique.enqueue(to="Ann")

        private_valkey.start()
        assert unique.enqueue(to="Ann").existing is False

    @pytest.mark.django_db(transaction=True)
    def test_after_a_commit_the_error_comes_out_of_the_block_that_committed(self, private_valkey: ValkeyServer) -> None:
        job_type().enqueue(to="before")
        handles: list[JobHandle] = []

        def sign_up() -> None:
            with transaction.atomic():
                handles.append(job_type().using(on_commit=True).enqueue(to="Ann"))
                private_valkey.kill()

        with pytest.raises(StoreUnavailable), budget(0.3):
            sign_up()

        assert handles[0].state == "uncommitted"
