"""The permissions that pages, API and tokens ask for."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection


@pytest.mark.django_db
def test_the_four_permissions_can_be_given_and_no_others_come_with_them() -> None:
    found = Permission.objects.filter(content_type__app_label="jobs", content_type__model="access")

    assert {permission.codename for permission in found} == {"view_dashboard", "operate", "enqueue", "administer"}


@pytest.mark.django_db
def test_a_user_has_only_what_was_given() -> None:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="operate", content_type__app_label="jobs"))

    assert user.has_perm("jobs.operate")
    assert not user.has_perm("jobs.view_dashboard")


@pytest.mark.django_db
def test_they_need_no_table() -> None:
    assert "jobs_access" not in connection.introspection.table_names()
