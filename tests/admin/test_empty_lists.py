"""A list of the admin without rows says why it is empty and what to do next."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.utils.html import escape

from jobs.models import JobType, Pool, Schedule

pytestmark = pytest.mark.django_db

OURS = [of for model, of in admin.site._registry.items() if model._meta.app_label == "jobs"]


@pytest.fixture
def staff() -> Client:
    User.objects.create_superuser("root")
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get(username="root"))
    return client


@pytest.mark.parametrize("of", OURS, ids=lambda of: of.opts.model_name)
def test_every_list_of_ours_says_what_to_do_next(of: admin.ModelAdmin, staff: Client) -> None:
    for model in (JobType, Pool):  # those of the samples
        model.objects.all().delete()
    address = f"/admin/jobs/{of.opts.model_name}/"

    assert escape(of.nothing_yet) in staff.get(address).content.decode()
    assert "Nothing matches." in staff.get(address, {"q": "nowhere"}).content.decode()


def test_with_a_row_it_is_a_list(staff: Client) -> None:
    Schedule.objects.create(name="nightly", job_type="report.build", cron="0 5 * * *", payload={"year": 2026})

    page = staff.get("/admin/jobs/schedule/").content.decode()

    assert "There is no schedule yet" not in page
    assert "1 schedule" in page
    assert "Nothing matches." in staff.get("/admin/jobs/schedule/?owner=code").content.decode()
