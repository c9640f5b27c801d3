"""Addresses of a project that has put the dashboard below a path of its own."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def front(request: HttpRequest) -> HttpResponse:
    return HttpResponse("the project's own page")


urlpatterns = [path("ops/", include("dashboard.urls")), path("samples/", include("samples.urls")), path("", front)]
