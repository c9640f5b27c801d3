"""An invoice as a PDF; the same invoice always makes the same bytes.

Apart from ``samples.invoices``, since the drawing library takes half a second to import: only workers that draw pay.
"""

from __future__ import annotations

import io
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import reportlab
from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

from samples.invoices import Invoice


def as_pdf(invoice: Invoice) -> bytes:
    """One or more A4 pages."""
    regular, bold = _fonts()
    text = ParagraphStyle("text", fontName=regular, fontSize=10, leading=14)
    small = ParagraphStyle("small", parent=text, fontSize=8, leading=11, textColor=colors.grey)
    title = ParagraphStyle("title", parent=text, fontName=bold, fontSize=20, leading=26)
    right = ParagraphStyle("right", parent=text, alignment=TA_RIGHT)

    def cell(content: str, style: ParagraphStyle = text) -> Paragraph:
        return Paragraph(escape(_drawable(content)), style)

    rows: list[list[Any]] = [
        [cell("Description"), cell("Quantity", right), cell("Unit price", right), cell("Amount", right)],
        *(
            [cell(line.description), cell(f"{line.quantity:,}", right), cell(f"{line.unit_price:,.2f}", right),
             cell(f"{line.amount:,.2f}", right)]
            for line in invoice.lines
        ),
    ]  # fmt: skip
    sums = [("Net", invoice.net), (f"VAT {invoice.vat_percent.normalize():f} %", invoice.vat), ("Total", invoice.total)]
    rows += [["", "", cell(label, right), cell(f"{amount:,.2f} {invoice.currency}", right)] for label, amount in sums]
    table = Table(rows, colWidths=[80 * mm, 22 * mm, 30 * mm, 38 * mm], repeatRows=1)
    table.setStyle(
        TableStyle(
            [
                ("LINEBELOW", (0, 0), (-1, 0), 0.8, colors.black),
                ("LINEBELOW", (0, 1), (-1, -len(sums) - 1), 0.25, colors.lightgrey),
                ("LINEABOVE", (2, -1), (-1, -1), 0.8, colors.black),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
            ]
        )
    )
    content = io.BytesIO()
    # invariant: no time of making and no random id in the file, so that a second attempt writes the very same invoice.
    document = SimpleDocTemplate(
        content, pagesize=A4, leftMargin=20 * mm, rightMargin=20 * mm, topMargin=20 * mm, bottomMargin=20 * mm,
        title=f"Invoice {invoice.number}", author="Mainspring samples", invariant=1,
    )  # fmt: skip
    document.build(
        [
            cell(f"Invoice {invoice.number}", title),
            Spacer(0, 4 * mm),
            cell(f"To {invoice.customer}"),
            cell(f"Issued on {invoice.issued:%d %B %Y}"),
            Spacer(0, 8 * mm),
            table,
            Spacer(0, 10 * mm),
            cell("Made by the samples of Mainspring; nothing is owed.", small),
        ]
    )
    return content.getvalue()


@cache
def _fonts() -> tuple[str, str]:
    """Registers the fonts that ship with reportlab; embedded, so the file looks alike everywhere."""
    folder = Path(reportlab.__file__).parent / "fonts"
    for name, file in (("Vera", "Vera.ttf"), ("Vera-Bold", "VeraBd.ttf")):
        pdfmetrics.registerFont(TTFont(name, folder / file))
    return "Vera", "Vera-Bold"


def _drawable(text: str) -> str:
    """The text with what the fonts cannot draw replaced: by its base letter if it has one, else by a question mark."""
    font: Any = pdfmetrics.getFont(_fonts()[0])
    glyphs = font.face.charToGlyph

    def drawn(character: str) -> str:
        if ord(character) in glyphs:
            return character
        base = unicodedata.normalize("NFKD", character)[0]
        return base if ord(base) in glyphs else "?"

    return "".join(drawn(character) for character in unicodedata.normalize("NFC", text))
