"""The permissions that pages, API and tokens ask for."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission, User


@pytest.mark.django_db
def test_the_four_permissions_can_be_given_and_no_others_are_there() -> None:
    found = Permission.objects.filter(content_type__app_label="jobs").values_list("codename", flat=True)

    models = [model._meta.model_name for model in apps.get_app_config("jobs").get_models()]
    of_django = {f"{verb}_{model}" for verb in ("add", "change", "delete", "view") for model in models}
    assert set(found) - of_django == {"view_dashboard", "operate", "enqueue", "administer"}


@pytest.mark.django_db
def test_a_user_has_only_what_was_given() -> None:
    user = User.objects.create_user("ada")
    user.user_permissions.add(Permission.objects.get(codename="operate", content_type__app_label="jobs"))

    assert user.has_perm("jobs.operate")
    assert not user.has_perm("jobs.view_dashboard")
