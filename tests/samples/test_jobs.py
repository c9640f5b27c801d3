"""Each sample does its work for real, fails as real work does, and may be run twice."""

from __future__ import annotations

import csv
import email
import email.policy
import io
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
import pytest
from django.core import mail
from PIL import Image
from pypdf import PdfReader

from jobs import Dead, Retry, resubmit
from jobs.core.states import JobState
from jobs.registry import registry
from jobs.testing import drain
from samples import outputs, webhooks
from samples.jobs import dispatch_webhook
from samples.receiver import receiver

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings as DjangoSettings
    from pytest_django.live_server_helper import LiveServer


class Listener:
    """Takes what an attempt says of itself."""

    def __init__(self, reports: list[Any]) -> None:
        self._reports = reports

    def progress(self, *report: Any) -> None:
        self._reports.append(report)

    def keep_line(self, level: int, message: str, fields: dict[str, Any]) -> None: ...

    def run(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        return function(**arguments)


def run(name: str, *, job_id: str = "job-1", reports: list[Any] | None = None, **payload: Any) -> Any:
    """Runs a sample as a worker would: its payload goes through JSON, its context has an id and takes progress."""
    job_type = registry.get(name)
    arguments = job_type.decode(job_type.encode(payload))
    if not job_type.takes_context:
        return job_type.function(**arguments)
    context = job_type.context_of_call(arguments)
    context.lease.id = job_id
    if reports is not None:
        context.host = Listener(reports)
    return job_type.function(**arguments, ctx=context)


# email.send ----------------------------------------------------------------------------------------------------------


def test_a_mail_is_sent_under_the_jobs_own_id() -> None:
    answer = run("email.send", to="ada@example.com", subject="Hello", body="How are you?")

    (message,) = mail.outbox
    assert (message.to, message.subject, message.body) == (["ada@example.com"], "Hello", "How are you?")
    assert message.extra_headers["Message-ID"] == answer["message_id"] == "<job-1@mainspring.invalid>"


def test_in_development_a_mail_is_a_file(settings: DjangoSettings, samples_dir: Path) -> None:
    backend = "django.core.mail.backends.filebased.EmailBackend"
    if django.VERSION >= (6, 1):
        settings.MAILERS = {"default": {"BACKEND": backend, "OPTIONS": {"file_path": samples_dir / "mail"}}}
    else:
        settings.EMAIL_BACKEND = backend
        settings.EMAIL_FILE_PATH = samples_dir / "mail"

    run("email.send", to="ada@example.com", subject="Grüße")

    (path,) = outputs.latest("mail")
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    assert (message["To"], message["Subject"]) == ("ada@example.com", "Grüße")


@pytest.mark.parametrize(
    "address", ["", "ada at example.com", "ada@", "a@b@c", "ada@example.com\nBcc: all@example.com"]
)
def test_a_bad_address_is_dead_at_once(address: str) -> None:
    with pytest.raises(Dead, match="is not an e-mail address"):
        run("email.send", to=address, subject="Hello")

    assert mail.outbox == []


def test_a_line_break_in_the_subject_is_dead_at_once() -> None:
    with pytest.raises(registry.get("email.send").dead_on):
        run("email.send", to="ada@example.com", subject="Hello\nBcc: all@example.com")


# webhook.dispatch ----------------------------------------------------------------------------------------------------


def dispatch(live_server: LiveServer, path: str = "", **options: Any) -> Any:
    url = f"{live_server.url}/samples/webhooks/{path}"
    return run("webhook.dispatch", url=url, event="order.paid", data={"order": 7}, **options)


def test_the_receiver_takes_a_webhook(live_server: LiveServer) -> None:
    answer = dispatch(live_server)

    assert answer["status"] == 200
    assert '"accepted": "job-1"' in answer["answer"]


def test_a_second_run_of_the_same_job_is_a_duplicate_to_the_receiver(live_server: LiveServer) -> None:
    dispatch(live_server)

    assert '"duplicate": true' in dispatch(live_server)["answer"]


def test_a_busy_receiver_is_tried_again_when_it_says_and_then_takes_it(live_server: LiveServer) -> None:
    for _ in range(2):
        with pytest.raises(Retry, match="answered 503") as asked:
            dispatch(live_server, "flaky/")
        assert asked.value.after == 1

    assert dispatch(live_server, "flaky/")["status"] == 200


def test_a_broken_receiver_is_left_to_the_backoff(live_server: LiveServer) -> None:
    with pytest.raises(webhooks.DeliveryFailed, match="answered 500"):
        dispatch(live_server, "down/")


def test_an_outage_of_the_receiver_is_left_to_the_backoff(live_server: LiveServer) -> None:
    receiver.outage = True

    with pytest.raises(webhooks.DeliveryFailed, match="switched off"):
        dispatch(live_server)


def test_a_clear_refusal_is_dead_at_once(live_server: LiveServer) -> None:
    with pytest.raises(Dead, match="answered 410"):
        dispatch(live_server, "gone/")


def test_an_impossible_address_is_dead_at_once() -> None:
    with pytest.raises(registry.get("webhook.dispatch").dead_on):
        run("webhook.dispatch", url="ftp://example.com", event="order.paid", data={})


# invoice.generate ----------------------------------------------------------------------------------------------------

INVOICE = {
    "number": "2026-000042",
    "customer": "Ada & Co.",
    "lines": [{"description": "Balance wheel", "quantity": 3, "unit_price": "19.99"}],
    "issued": "2026-03-01",
}


def test_an_invoice_is_a_pdf_of_the_right_amount() -> None:
    answer = run("invoice.generate", **INVOICE)

    (path,) = outputs.latest("invoices")
    text = PdfReader(path).pages[0].extract_text()
    assert answer == {"file": "2026-000042.pdf", "bytes": path.stat().st_size, "total": "71.96 EUR"}
    assert "Ada & Co." in text
    assert "71.96 EUR" in text


def test_an_invoice_made_twice_is_the_same_file() -> None:
    run("invoice.generate", **INVOICE)
    once = [path.read_bytes() for path in outputs.latest("invoices")]

    run("invoice.generate", **INVOICE | {"issued": date(2026, 3, 1)})

    assert [path.read_bytes() for path in outputs.latest("invoices")] == once


@pytest.mark.parametrize("changes", [{"lines": []}, {"number": "../evil"}])
def test_an_invoice_that_cannot_be_issued_is_dead_at_once(changes: dict[str, Any]) -> None:
    with pytest.raises(registry.get("invoice.generate").dead_on):
        run("invoice.generate", **INVOICE | changes)

    assert outputs.latest("invoices") == []


# report.build --------------------------------------------------------------------------------------------------------


def test_a_report_is_a_file_of_twelve_months_and_tells_how_far_it_is() -> None:
    reports: list[Any] = []

    answer = run("report.build", year=2014, resamples=100, reports=reports)

    (path,) = outputs.latest("reports")
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert answer["file"] == path.name == "seattle-2014.csv"
    assert (answer["days"], answer["missing_days"]) == (365, 0)
    assert answer["precipitation_mm"] == pytest.approx(sum(float(row["precipitation"]) for row in rows), abs=0.05)
    assert [(current, total) for current, total, _ in reports] == [(number, 12) for number in range(1, 13)]


def test_a_year_without_data_is_dead_at_once() -> None:
    with pytest.raises(registry.get("report.build").dead_on, match="no readings for 2016"):
        run("report.build", year=2016)


@pytest.mark.parametrize("resamples", [0, 10**9])
def test_a_senseless_effort_is_refused(resamples: int) -> None:
    with pytest.raises(Dead, match="resamples"):
        run("report.build", year=2014, resamples=resamples)


# image.process -------------------------------------------------------------------------------------------------------


def test_an_image_becomes_thumbnails_of_the_sizes_asked_for() -> None:
    reports: list[Any] = []

    answer = run("image.process", source="cat.jpg", sizes=[32, 96], reports=reports)

    assert answer["files"].keys() == {"cat-32.jpg", "cat-96.jpg"}
    for path in outputs.latest("thumbnails"):
        with Image.open(path) as image:
            image.load()
            assert f"cat-{max(image.size)}.jpg" == path.name
    assert [report[:2] for report in reports] == [(1, 2), (2, 2)]


@pytest.mark.parametrize("source", ["interrupted-upload.jpg", "none.jpg", "../seattle-weather.csv"])
def test_an_image_that_cannot_be_used_is_dead_at_once(source: str) -> None:
    with pytest.raises(registry.get("image.process").dead_on):
        run("image.process", source=source, sizes=[64])


# The whole story -----------------------------------------------------------------------------------------------------


def test_an_outage_makes_a_dead_letter_and_resubmitting_it_after_the_repair_delivers_it(
    live_server: LiveServer,
) -> None:
    receiver.outage = True
    url = f"{live_server.url}/samples/webhooks/"
    handle = dispatch_webhook.enqueue(url=url, event="order.paid", data={"order": 7})
    (dead,) = drain(skip_waits=True)
    assert (dead.state, dead.attempt) == (JobState.DEAD, 1 + dead.max_retries)
    assert "switched off" in dead.error["message"]

    receiver.outage = False
    resubmit(handle.id)
    (delivered,) = drain()

    assert delivered.id == handle.id
    assert delivered.state == JobState.SUCCEEDED
    assert delivered.resubmissions == 1


def test_workers_that_draw_nothing_do_not_carry_the_drawing_libraries() -> None:
    program = (
        "import sys, django; django.setup(); "
        "from jobs.registry import registry; registry.get('invoice.generate'); "
        "print(*sorted({'PIL', 'reportlab'} & set(sys.modules)))"
    )

    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert result.stdout.strip() == ""
