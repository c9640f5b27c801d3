"""What people do to schedules in the admin, besides editing them: each a page that asks, and does it on POST.

All of it goes through ``jobs.api.schedules``, as on the command line and on the dashboard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminSplitDateTime
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import FloatField, Form, SplitDateTimeField
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jobs.admin.acting import ActingAdmin, Deed, number_of, refuse_kept, sentence
from jobs.admin.pausing import ReasonForm
from jobs.admin.schedule_form import label_parts
from jobs.api import audit, pools, schedules
from jobs.api.reach import Reach
from jobs.api.schedule_history import history
from jobs.api.schedules import BackfillProgress
from jobs.exceptions import SchedulerError
from jobs.models import Schedule

CHANGES_SHOWN = 100
SLICE_SECONDS = 5.0
"""A request that makes many jobs stops after this time; the page goes on with the next one."""

RUN = "One job is made at once. The rhythm does not move."
PAUSE = (
    "It makes no jobs until it is resumed. What would have fired meanwhile is recorded as skipped and never made up. "
    "Jobs that it has made already run on."
)
RESUME = "It fires again from its next time on. What was due in the pause is not made up."
BACKFILL = "Makes a job for each time in the past at which it would have fired and did not."


class BackfillForm(Form):
    """A range of nominal times, both ends included, and how fast its jobs are made."""

    start = SplitDateTimeField(widget=AdminSplitDateTime, label="From")
    end = SplitDateTimeField(widget=AdminSplitDateTime, label="To")
    rate = FloatField(
        min_value=0.1, max_value=1000, initial=10, label="Jobs a second", help_text="So that they crowd nobody out."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if isinstance(field, SplitDateTimeField):
                label_parts(field)


class ScheduleActions(ActingAdmin):
    """The pages of one schedule, and the actions on a selection of them."""

    actions = ("run_selected", "pause_selected", "resume_selected")

    def found(self, request: HttpRequest, pk: str) -> Schedule:
        """The schedule, if this user may see it. Raises Http404, PermissionDenied."""
        schedule: Schedule | None = self.get_object(request, pk)
        if schedule is None:
            raise Http404
        if not self.has_view_or_change_permission(request, schedule):
            raise PermissionDenied
        return schedule

    def get_urls(self) -> list[URLPattern]:
        def page(route: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
            return path(f"<int:pk>/{route}/", self.admin_site.admin_view(view), name=f"jobs_schedule_{route}")

        return [
            page("run", self.run_view),
            page("pause", self.pause_view),
            page("resume", self.resume_view),
            page("backfill", self.backfill_view),
            page("changes", self.changes_view),
            *super().get_urls(),
        ]

    def tools(self, request: HttpRequest, schedule: Schedule) -> Iterable[dict[str, str]]:
        """The buttons above the form of a schedule, for what this user may do."""
        if self.has_operate_permission(request):
            yield self._tool("Run now", "run", schedule)
            yield (
                self._tool("Resume", "resume", schedule)
                if schedule.is_paused
                else self._tool("Pause", "pause", schedule)
            )
            yield self._tool("Backfill", "backfill", schedule)
        yield self._tool("Changes", "changes", schedule)

    @staticmethod
    def _tool(label: str, view: str, schedule: Schedule) -> dict[str, str]:
        return {"label": label, "url": reverse(f"admin:jobs_schedule_{view}", args=[schedule.pk])}

    # One schedule -----------------------------------------------------------------------------------------------------

    def run_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        return self._act(request, pk, "Run now", RUN, lambda schedule, form: _run(schedule.name, _who(request)))

    def pause_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        def pause(schedule: Schedule, form: Form) -> str:
            schedules.pause(schedule.name, by=_who(request), reason=form.cleaned_data["reason"])
            return f"Schedule {schedule.name} is paused."

        return self._act(request, pk, "Pause", PAUSE, pause, ReasonForm)

    def resume_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        def resume(schedule: Schedule, form: Form) -> str:
            schedules.resume(schedule.name, by=_who(request))
            return f"Schedule {schedule.name} goes on."

        return self._act(request, pk, "Resume", RESUME, resume)

    def changes_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """Who made it what it is, and back to any of its versions."""
        schedule = self.found(request, str(pk))
        may_restore = self.has_change_permission(request, schedule)
        if request.method == "POST":
            if not may_restore:
                raise PermissionDenied
            self._restore(request, schedule, request.POST.get("change", ""))
            return redirect(request.path)
        changes = history(schedule, CHANGES_SHOWN)
        page = self.page(request, "Changes", schedule) | {"changes": changes, "may_restore": may_restore}
        return TemplateResponse(request, "admin/jobs/schedule/changes.html", page)

    def _restore(self, request: HttpRequest, schedule: Schedule, change_id: str) -> None:
        try:
            with audit.acting(_who(request), "admin"):
                schedules.revert(schedule.name, int(change_id), by=_who(request))
        except ValueError:
            raise Http404 from None
        except SchedulerError as error:
            messages.error(request, sentence(error))
        else:
            messages.success(request, f"{schedule.name} is again what it was then.")

    def _act(
        self,
        request: HttpRequest,
        pk: int,
        title: str,
        says: str,
        perform: Callable[[Schedule, Form], str | SafeString],
        form_class: type[Form] = Form,
    ) -> HttpResponseBase:
        """Asks, and on POST does it, says what came of it and goes back to the schedule."""
        schedule = self._operable(request, pk)
        form = form_class(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            self.attempt(request, schedule.name, _reach, lambda: perform(schedule, form))
            return redirect("admin:jobs_schedule_change", schedule.pk)
        page = self.page(request, title, schedule) | {"form": form, "sentences": [says], "button": title}
        return TemplateResponse(request, "admin/jobs/act.html", page)

    # A range of the past ----------------------------------------------------------------------------------------------

    def backfill_view(self, request: HttpRequest, pk: int) -> HttpResponseBase:
        """First how many jobs the range makes; then, where that number was confirmed, the jobs, slice by slice."""
        schedule = self._operable(request, pk)
        form = BackfillForm(request.POST if request.method == "POST" else None)
        page = self.page(request, "Backfill", schedule)
        page |= {"form": form, "sentences": [BACKFILL], "button": "Count first", "media": self.media + form.media}
        if form.is_valid():
            counted = _number(request.POST.get("counted", ""))
            try:
                refuse_kept(pools.closed_to(request.user), _reach, schedule.name)
                if counted and "dealt" in request.POST:
                    return self._backfill(request, schedule, form, counted)
                number = schedules.backfill_count(schedule.name, form.cleaned_data["start"], form.cleaned_data["end"])
                if number and counted == number:
                    return self._backfill(request, schedule, form, counted)
            except SchedulerError as error:
                form.add_error(None, sentence(error))
            else:
                page |= _asked(number, form.cleaned_data["rate"])
        return TemplateResponse(request, "admin/jobs/act.html", page)

    def _backfill(self, request: HttpRequest, schedule: Schedule, form: BackfillForm, counted: int) -> HttpResponseBase:
        """One slice; the page then goes on with the firing after it."""
        dealt, made = _number(request.POST.get("dealt", "")), _number(request.POST.get("made", ""))
        start = _after(request.POST.get("until", "")) or form.cleaned_data["start"]
        with audit.acting(_who(request), "admin"):
            done = _slice(schedule.name, start, form.cleaned_data["end"], form.cleaned_data["rate"], _who(request))
        dealt, made = dealt + done.made + done.there, made + done.made
        if done.made + done.there < done.total:
            page = self.page(request, "Backfill", schedule) | {
                "form": form,
                "hides_fields": True,
                "sentences": [f"{dealt:,} of {_jobs(counted)} are there."],
                "button": "Go on",
                "carried": {"counted": counted, "dealt": dealt, "made": made, "until": str(done.until)},
                "goes_on": True,
            }
            return TemplateResponse(request, "admin/jobs/act.html", page)
        messages.success(request, f"Backfill of {schedule.name}: {_jobs(made)} made, {dealt - made:,} were there.")
        return redirect("admin:jobs_schedule_change", schedule.pk)

    # A selection ------------------------------------------------------------------------------------------------------

    @admin.action(description="Run selected schedules now", permissions=["operate"])
    def run_selected(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> HttpResponseBase | None:
        return self._act_on_rows(request, queryset, "run_selected", RUN_EACH)

    @admin.action(description="Pause selected schedules", permissions=["operate"])
    def pause_selected(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> HttpResponseBase | None:
        return self._act_on_rows(request, queryset, "pause_selected", PAUSE_EACH)

    @admin.action(description="Resume selected schedules", permissions=["operate"])
    def resume_selected(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> HttpResponseBase | None:
        return self._act_on_rows(request, queryset, "resume_selected", RESUME_EACH)

    def _act_on_rows(
        self, request: HttpRequest, queryset: QuerySet[Schedule], action: str, deed: Deed
    ) -> HttpResponseBase | None:
        return self.act_on_selected(request, list(queryset.values_list("name", flat=True)), action, deed)

    def _operable(self, request: HttpRequest, pk: int) -> Schedule:
        if not self.has_operate_permission(request):
            raise PermissionDenied
        return self.found(request, str(pk))


def _run(name: str, who: str) -> SafeString:
    return format_html("Schedule {} was started: job {}.", name, schedules.run(name, by=who).id)


def _pause_each(name: str, form: Form) -> None:
    schedules.pause(name, by=audit.actor().who, reason=form.cleaned_data["reason"])


def _reach(name: str) -> Reach:
    return schedules.reach_of([name])


RUN_EACH = Deed(
    "Run now",
    "One job of each is made at once.",
    lambda name, form: schedules.run(name, by=audit.actor().who),
    _reach,
)
PAUSE_EACH = Deed("Pause", PAUSE, _pause_each, _reach, ReasonForm)
RESUME_EACH = Deed("Resume", RESUME, lambda name, form: schedules.resume(name, by=audit.actor().who), _reach)


def _slice(name: str, start: datetime, end: datetime, rate: float, who: str) -> BackfillProgress:
    """Makes jobs for a while: how many were made, and how many there were already."""
    stop = time.monotonic() + SLICE_SECONDS
    done = BackfillProgress(0, 0, 0)
    for progress in schedules.backfill(name, start, end, rate=rate, by=who):
        done = progress
        if time.monotonic() > stop:
            break
    return done


def _after(until: str) -> datetime | None:
    """Where the next slice begins: behind the latest nominal time that was dealt with."""
    try:
        at = datetime.fromisoformat(until)
    except ValueError:
        return None
    return at + timedelta(milliseconds=1) if at.tzinfo else None


def _asked(number: int, rate: float) -> dict[str, Any]:
    """What the page says once it is known how many jobs a range makes."""
    if not number:
        return {"sentences": ["It would not have fired in this range."], "button": "Count again"}
    return {
        "sentences": [f"The range holds {_jobs(number)}. They are made in order, at most {rate:g} a second."],
        "button": f"Make {_jobs(number)}",
        "carried": {"counted": number},
    }


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _jobs(number: int) -> str:
    return number_of(number, "job")


def _who(request: HttpRequest) -> str:
    return str(request.user.get_username())
