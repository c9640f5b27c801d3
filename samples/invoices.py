"""An invoice: its numbers, and what cannot be one. Money is decimal throughout."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

NUMBER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")
MOST_LINES = 500
CENT = Decimal("0.01")


class InvoiceInvalid(Exception):
    """The invoice cannot be issued as asked for."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One position of an invoice."""

    description: str
    quantity: int
    unit_price: Decimal

    @property
    def amount(self) -> Decimal:
        return cents(self.quantity * self.unit_price)


@dataclass(frozen=True, kw_only=True)
class Invoice:
    """A checked invoice. Raises InvoiceInvalid when made from what cannot be one."""

    number: str
    customer: str
    issued: date
    currency: str
    vat_percent: Decimal
    lines: list[Line]

    def __post_init__(self) -> None:
        if not NUMBER.fullmatch(self.number):
            raise InvoiceInvalid(f"{self.number!r} is no invoice number: letters, digits and dashes, at most 40")
        if not 1 <= len(self.lines) <= MOST_LINES:
            raise InvoiceInvalid(f"Invoice {self.number} has {len(self.lines)} lines; it needs 1 to {MOST_LINES}")
        if not (self.vat_percent.is_finite() and 0 <= self.vat_percent <= 100):
            raise InvoiceInvalid(f"Invoice {self.number} has a VAT of {self.vat_percent} %")
        for line in self.lines:
            if line.quantity < 1 or not (line.unit_price.is_finite() and 0 <= line.unit_price < 10**9):
                raise InvoiceInvalid(f"Invoice {self.number} cannot bill {line.quantity} × {line.unit_price}")

    @property
    def net(self) -> Decimal:
        return sum((line.amount for line in self.lines), Decimal(0))

    @property
    def vat(self) -> Decimal:
        return cents(self.net * self.vat_percent / 100)

    @property
    def total(self) -> Decimal:
        return self.net + self.vat


def cents(amount: Decimal) -> Decimal:
    """Rounded as on paper: half a cent goes up."""
    return amount.quantize(CENT, ROUND_HALF_UP)
