"""Figures of several rounds, what they are compared with, and the conditions they were taken under."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from statistics import median
from typing import Any

import redis


@dataclass(frozen=True)
class Bar:
    """What a figure must hold: its value, or its ratio to the reference, at least or at most ``limit``."""

    limit: float
    of: str = "ratio"  # "ratio" or "value"
    at_most: bool = False

    def holds(self, figure: Figure) -> bool:
        measured = figure.ratio if self.of == "ratio" else figure.value
        if measured is None:
            return False
        return measured <= self.limit if self.at_most else measured >= self.limit

    def __str__(self) -> str:
        sign = "≤" if self.at_most else "≥"
        return f"{sign} {self.limit:g}{' ×' if self.of == 'ratio' else ''}"


@dataclass
class Figure:
    """One measured thing: a value each round, and in the same round the value of what it is compared with."""

    name: str
    unit: str
    bar: Bar | None = None
    ours: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)

    def add(self, ours: float, reference: float | None = None) -> None:
        self.ours.append(ours)
        if reference is not None:
            self.reference.append(reference)

    @property
    def value(self) -> float:
        return median(self.ours)

    @property
    def ratio(self) -> float | None:
        """Median of the rounds' own ratios: what slows the machine for a whole round cancels out."""
        if not self.reference:
            return None
        return median(ours / other for ours, other in zip(self.ours, self.reference, strict=True))

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.value,
            "reference_median": median(self.reference) if self.reference else None,
            "ratio": self.ratio,
            "bar": str(self.bar) if self.bar else None,
            "holds": self.bar.holds(self) if self.bar else None,
            "rounds": self.ours,
            "reference_rounds": self.reference,
        }


def conditions(client: redis.Redis, packages: Iterable[str]) -> dict[str, str]:
    """All that a reader needs in order to judge the figures: versions, cores, server, load of the machine."""
    info: dict[str, Any] = client.info()
    server = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {info['redis_version']}"
    persistence = client.config_get("append*")
    return {
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "server": server,
        "connection": "unix socket" if info.get("tcp_port") == 0 else "tcp, loopback",
        "append-only file": f"{persistence['appendonly']}, fsync {persistence['appendfsync']}",
        **{name: _installed(name) for name in packages},
    }


def show(title: str, facts: dict[str, str], figures: Iterable[Figure], *, reference: str, as_json: bool) -> bool:
    """Prints the report; true when every bar holds."""
    figures = list(figures)
    if as_json:
        document = {"title": title, "conditions": facts, "figures": [figure.as_dict() for figure in figures]}
        print(json.dumps(document, indent=2))
    else:
        print(f"\n{title}\n")
        print(_line("", "ours", reference, "ratio", "bar", ""))
        for figure in figures:
            print(_row(figure))
        print()
        for name, fact in facts.items():
            print(f"  {name:<18} {fact}")
    return all(figure.bar.holds(figure) for figure in figures if figure.bar)


def progress(text: str) -> None:
    """Says on stderr what is being measured."""
    print(f"  {text}", file=sys.stderr, flush=True)


def _row(figure: Figure) -> str:
    ratio = figure.ratio
    return _line(
        f"{figure.name}, {figure.unit}",
        _number(figure.value),
        _number(median(figure.reference)) if figure.reference else "",
        f"{ratio:.2f} ×" if ratio is not None else "",
        str(figure.bar) if figure.bar else "",
        ("ok" if figure.bar.holds(figure) else "MISSED") if figure.bar else "",
    )


def _line(*cells: str) -> str:
    name, *rest = cells
    return f"  {name:<52}" + "".join(f"{cell:>12}" for cell in rest)


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
