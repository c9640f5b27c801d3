"""Rows that people know by name: fixtures refer to them by it, since their numbers differ from database to database."""

from __future__ import annotations

from typing import Generic, TypeVar

from django.db import models

Row = TypeVar("Row", bound=models.Model)


class ByName(models.Manager[Row], Generic[Row]):
    """``dumpdata --natural-primary`` writes no numbers; ``loaddata`` then finds the row that has the name."""

    def get_by_natural_key(self, name: str) -> Row:
        return self.get(name=name)
