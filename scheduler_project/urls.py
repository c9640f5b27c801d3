"""Addresses: the dashboard owns the site, the admin and the samples have a corner each."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("dashboard.urls")),
]

if apps.is_installed("samples"):
    urlpatterns.append(path("samples/", include("samples.urls")))
