"""Invoices: right to the cent, readable as PDF, the same bytes every time."""

from __future__ import annotations

import io
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from pypdf import PdfReader

from samples.invoice_pdf import as_pdf
from samples.invoices import Invoice, InvoiceInvalid, Line


def invoice(**changes: Any) -> Invoice:
    lines = [
        Line(description="Balance wheel", quantity=3, unit_price=Decimal("19.99")),
        Line(description="Jewel <bearing> & more", quantity=1, unit_price=Decimal("0.035")),
    ]
    facts: dict[str, Any] = {
        "number": "2026-000042", "customer": "Ada & Co.", "issued": date(2026, 3, 1), "currency": "EUR",
        "vat_percent": Decimal(20), "lines": lines,
    }  # fmt: skip
    return Invoice(**facts | changes)


def text_of(pdf: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages)


def test_amounts_are_rounded_half_up_to_the_cent() -> None:
    bill = invoice()

    assert [line.amount for line in bill.lines] == [Decimal("59.97"), Decimal("0.04")]
    assert (bill.net, bill.vat, bill.total) == (Decimal("60.01"), Decimal("12.00"), Decimal("72.01"))


def test_the_pdf_says_what_was_billed() -> None:
    text = text_of(as_pdf(invoice()))

    for words in ("Invoice 2026-000042", "Ada & Co.", "01 March 2026", "Jewel <bearing> & more", "59.97", "72.01 EUR"):
        assert words in text


def test_the_same_invoice_makes_the_same_bytes() -> None:
    assert as_pdf(invoice()) == as_pdf(invoice())


def test_a_long_invoice_has_several_pages_with_the_heading_on_each() -> None:
    lines = [Line(description=f"Part {number}", quantity=1, unit_price=Decimal(1)) for number in range(120)]

    pages = PdfReader(io.BytesIO(as_pdf(invoice(lines=lines)))).pages

    assert len(pages) > 2
    assert all("Unit price" in page.extract_text() for page in pages)


def test_letters_that_the_font_lacks_are_replaced_not_dropped() -> None:
    text = text_of(as_pdf(invoice(customer="Łukasz Żak ✂ Söhne")))

    assert "Łukasz Zak ? Söhne" in text


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"lines": []}, "0 lines"),
        ({"number": "../../etc"}, "no invoice number"),
        ({"number": "x" * 41}, "no invoice number"),
        ({"vat_percent": Decimal(-1)}, "VAT"),
        ({"vat_percent": Decimal("NaN")}, "VAT"),
        ({"lines": [Line(description="x", quantity=0, unit_price=Decimal(1))]}, "cannot bill 0"),
        ({"lines": [Line(description="x", quantity=1, unit_price=Decimal("Infinity"))]}, "cannot bill"),
        ({"lines": [Line(description="x", quantity=1, unit_price=Decimal(-1))]}, "cannot bill"),
    ],
)
def test_what_cannot_be_billed_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvoiceInvalid, match=complaint):
        invoice(**changes)
