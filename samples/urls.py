"""Addresses below ``/samples/``."""

from __future__ import annotations

from django.urls import path

from samples import views

app_name = "samples"

urlpatterns = [
    path("", views.home, name="home"),
    path("receiver/", views.set_receiver, name="set-receiver"),
    path("files/<str:kind>/<str:name>", views.file, name="file"),
    path("webhooks/", views.receive, name="webhook"),
    path("webhooks/<str:behaviour>/", views.receive, name="webhook-behaviour"),
]
