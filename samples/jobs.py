"""The job types of the samples. The work itself is in the modules beside this one; here is how it is scheduled.

Each names the errors that no retry can mend (``dead_on``, ``Dead``), leaves the others to its backoff, and may run
twice without harm: Mainspring promises *at least* once, so a handler has to be indifferent to a second time.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email

from jobs import Context, Dead, Exponential, Fixed, Retry, job
from samples import images, invoices, outputs, reports, webhooks

LONGEST_WAIT_SECONDS = 3600.0


@job(
    "email.send",
    pool="critical",
    priority=5,
    max_retries=3,
    backoff=Exponential(base=0.5, cap=10, jitter=0.2),
    timeout=30,
    dead_on=(ValueError,),  # a line break in a header: no retry makes it safe
)
def send_email(to: str, subject: str, body: str = "", *, ctx: Context) -> dict[str, Any]:
    """Sends one message through Django's mail backend; in development that is a file in ``var/samples/mail``."""
    try:
        validate_email(to)
    except ValidationError:
        raise Dead(f"{to!r} is not an e-mail address") from None
    # The job's id as Message-ID: should the job run twice, mail programs show one message.
    message_id = f"<{ctx.id}@mainspring.invalid>"
    outputs.folder("mail")
    EmailMessage(subject, body or subject, to=[to], headers={"Message-ID": message_id}).send()
    return {"to": to, "message_id": message_id}


@job(
    "webhook.dispatch",
    max_retries=4,
    backoff=Exponential(base=1, cap=30, jitter=0.2),
    timeout=20,
    dead_on=(webhooks.DeliveryImpossible,),
)
def dispatch_webhook(url: str, event: str, data: dict[str, Any], *, ctx: Context) -> dict[str, Any]:
    """Posts a signed event. Busy receivers are tried again when they ask for it, a clear refusal is final."""
    answer = webhooks.post(url, webhooks.encode(event, data), event=event, delivery=ctx.id)
    if answer.accepted:
        return {"status": answer.status, "answer": answer.body[:500]}
    ctx.log.info("%s answered %d at attempt %d", url, answer.status, ctx.attempt)
    complaint = f"{url} answered {answer.status}: {answer.body[:200]}"
    if answer.is_final:
        raise Dead(complaint)
    if answer.retry_after is not None:
        raise Retry(after=min(answer.retry_after, LONGEST_WAIT_SECONDS), reason=complaint)
    raise webhooks.DeliveryFailed(complaint)


@job("invoice.generate", max_retries=1, timeout=60, dead_on=(invoices.InvoiceInvalid,))
def generate_invoice(
    number: str,
    customer: str,
    lines: list[invoices.Line],
    issued: date,
    currency: str = "EUR",
    vat_percent: Decimal = Decimal(20),
) -> dict[str, Any]:
    """Makes an invoice as a PDF. Its file is named after its number: a second run writes the same file again."""
    invoice = invoices.Invoice(
        number=number, customer=customer, lines=lines, issued=issued, currency=currency, vat_percent=vat_percent
    )
    from samples.invoice_pdf import as_pdf  # here: see there

    pdf = as_pdf(invoice)
    path = outputs.write("invoices", f"{number}.pdf", pdf)
    return {"file": path.name, "bytes": len(pdf), "total": f"{invoice.total} {currency}"}


@job("report.build", pool="background", max_retries=1, timeout=120, dead_on=(reports.NoReadings,))
def build_report(year: int, resamples: int = 5000, *, ctx: Context) -> dict[str, Any]:
    """Aggregates a year of weather by month, with a bootstrap interval for each mean temperature."""
    if not 100 <= resamples <= 100_000:
        raise Dead(f"resamples must be from 100 to 100,000, not {resamples:,}")
    lines: list[reports.Month] = []
    for done, month in enumerate(reports.months(year, resamples=resamples), start=1):
        ctx.raise_if_cancelled()
        lines.append(month)
        ctx.progress(done, 12, f"{month.month}: {month.mean:.1f} °C")
    path = outputs.write("reports", f"seattle-{year}.csv", reports.as_csv(lines))
    return {
        "file": path.name,
        "days": sum(line.days for line in lines),
        "missing_days": sum(line.missing for line in lines),
        "warmest": max(line.warmest for line in lines),
        "precipitation_mm": round(sum(line.precipitation for line in lines), 1),
    }


@job("report.compare", pool="background", max_retries=1, timeout=30)
def compare_years(*, ctx: Context) -> dict[str, Any]:
    """Puts the reports beside each other that its parents in a workflow have built. Alone it has nothing to compare."""
    found = sorted((result for result in ctx.parents.values() if result), key=lambda result: str(result["file"]))
    lines = [
        f"{result['file']}: warmest {result['warmest']} °C, {result['precipitation_mm']} mm in {result['days']} days"
        for result in found
    ]
    return {"years": len(found), "summary": "\n".join(lines) or "No year to compare."}


@job(
    "image.process",
    pool="background",
    max_retries=2,
    backoff=Fixed(2),
    timeout=60,
    dead_on=(images.ImageUnusable,),
)
def process_image(source: str, sizes: list[int], *, ctx: Context) -> dict[str, Any]:
    """Makes thumbnails of one of the shipped images. ``sizes`` are the longer sides, in pixels."""
    made: dict[str, int] = {}
    for done, (size, path) in enumerate(images.thumbnails(source, sizes), start=1):
        ctx.raise_if_cancelled()
        made[path.name] = path.stat().st_size
        ctx.progress(done, len(sizes), f"{size} px")
    return {"files": made}
