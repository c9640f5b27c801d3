"""What the admin pages of mirrored rows share: rows that the engine keeps a copy of, shown beside live numbers.

The row is what counts. Redis being away costs a page its numbers and delays the copy, and both are said; it never costs
anybody their edit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.text import capfirst

from jobs.api import audit, budget
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreUnavailable
from jobs.models import JobType, Pool
from jobs.services.reconciler import Reconciled

Row = JobType | Pool

PATIENCE_SECONDS = 1.5
"""How long a page waits for the store before it goes on without."""

UNKNOWN = "–"
"""Shown for a number that could not be read, or of which there is none."""


class LiveChangeList(ChangeList):
    """Asks for live numbers once per page, after the rows of the page are known."""

    model_admin: MirroredAdmin

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if request.method == "GET":  # the numbers of a submitted action would never be seen
            self.model_admin.add_live_numbers(request, self.result_list)


class MirroredAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django's takes none
    """Pushes each change to the engine once it is committed, and tells the user when that has to wait."""

    unseen: Any = None
    """The numbers of a row of which the engine has never heard."""

    noun: str
    """The first half of what is written into the audit log: ``pool`` in ``pool.change``."""

    def live_numbers(self) -> Mapping[str, Any]:
        """Numbers by row name, in one bounded read. Raises SchedulerError."""
        raise NotImplementedError

    def push(self, names: Collection[str]) -> Reconciled:
        """Carries the rows to the engine. Raises StoreUnavailable."""
        raise NotImplementedError

    def add_live_numbers(self, request: HttpRequest, rows: Collection[Row]) -> None:
        """Puts ``live`` on each row: its numbers, or None."""
        try:
            with budget(PATIENCE_SECONDS):
                numbers: Mapping[str, Any] | None = self.live_numbers()
        except SchedulerError as error:
            numbers = None
            messages.warning(request, f"Live numbers are missing: the store is unreachable. {_sentence(error)}")
        for row in rows:
            setattr(row, "live", None if numbers is None else numbers.get(row.name, self.unseen))  # noqa: B010 - not a field of the model

    def push_on_commit(self, request: HttpRequest, names: Collection[str]) -> None:
        """Call it inside the transaction that changes the rows; what is pushed is what was committed."""
        transaction.on_commit(partial(self._push_and_tell, request, tuple(names)))

    def _push_and_tell(self, request: HttpRequest, names: Collection[str]) -> None:
        try:
            with budget(PATIENCE_SECONDS):
                done = self.push(names)
        except (StoreUnavailable, OutcomeUnknown) as error:
            messages.warning(
                request,
                "Saved, but not yet in force: the store is unreachable. Workers take the change over within seconds of "
                f"its return; nothing needs to be saved again. {_sentence(error)}",
            )
        else:
            for subject, reason in done.refused.items():
                messages.error(request, f"Saved, but the engine refused the values for {subject}: {reason}")

    # Whoever changes something here, and what, stands in the audit log ----------------------------------------------

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with acting_in_admin(request):
            return super().changeform_view(request, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with acting_in_admin(request):
            return super().changelist_view(request, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with acting_in_admin(request):
            return super().delete_view(request, *args, **kwargs)

    # The four ways by which the admin changes rows -------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Row, form: ModelForm[Any], change: bool) -> None:
        before = _values(type(obj)._default_manager.filter(pk=obj.pk).first()) if change else {}
        super().save_model(request, obj, form, change)
        after = _values(obj)
        changed = [field for field in after if after[field] != before.get(field)]
        if changed:
            audit.record(
                f"{self.noun}.{'change' if change else 'add'}",
                obj.name,
                before={field: before.get(field) for field in changed} if change else None,
                after={field: after[field] for field in changed},
            )
        self.push_on_commit(request, [obj.name])

    def delete_model(self, request: HttpRequest, obj: Row) -> None:
        name = obj.name
        super().delete_model(request, obj)
        audit.record(f"{self.noun}.delete", name)
        self.push_on_commit(request, [name])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        names = list(queryset.values_list("name", flat=True))
        super().delete_queryset(request, queryset)
        audit.record(f"{self.noun}.delete", ", ".join(names))
        self.push_on_commit(request, names)

    def update_all(self, request: HttpRequest, queryset: QuerySet[Any], **values: Any) -> int:
        """For actions: sets the values in all rows of the queryset and answers how many rows there were."""
        labels = [capfirst(str(queryset.model._meta.get_field(name).verbose_name)) for name in values]
        with transaction.atomic():
            names = list(queryset.values_list("name", flat=True))
            for row in queryset.model._default_manager.filter(name__in=names):
                self.log_change(request, row, [{"changed": {"fields": labels}}])
            queryset.model._default_manager.filter(name__in=names).update(**values)
            audit.record(f"{self.noun}.change", ", ".join(names), after=values)
            self.push_on_commit(request, names)
        return len(names)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LiveChangeList


def _values(row: Row | None) -> dict[str, Any]:
    """What people may edit of a row."""
    fields = row._meta.concrete_fields if row else ()
    return {field.name: getattr(row, field.name) for field in fields if field.editable}


def acting_in_admin(request: HttpRequest) -> AbstractContextManager[Any]:
    """Within it, what is controlled is controlled by this user, from the admin."""
    return audit.acting(request.user.get_username(), "admin")


def live_number(name: str, description: str) -> Callable[[Any, Any], Any]:
    """A list column for one of the live numbers."""

    def column(self: Any, row: Any) -> Any:
        live = getattr(row, "live", None)
        return UNKNOWN if live is None else getattr(live, name)

    return admin.display(description=description)(column)


def _sentence(error: SchedulerError) -> str:
    return f"{error} {error.fix}".strip()
