"""Addresses of the pages, of the resources behind them, and of the two health probes."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from dashboard import exports, health, login, metrics, results, reveal, saved, views, zones
from dashboard.actions.views import action
from dashboard.api.urls import index
from dashboard.outage import told_without_database
from dashboard.panels import ELSEWHERE, PANELS
from dashboard.workflows import views as workflows

app_name = "dashboard"

dashboard = [
    *(
        path("" if panel.slug == "overview" else f"{panel.slug}/", views.page, {"slug": panel.slug}, name=panel.slug)
        for panel in (*PANELS, *ELSEWHERE)
    ),
    path("job/", views.job, name="job_by_query"),
    path("jobs/<path:job_id>/", views.job, name="job"),
    path("workflows/<str:run_id>/", workflows.run, name="run"),
    path("fragments/run/", workflows.fragment, name="run_fragment"),
    path("find/", views.find, name="find"),
    path("raw/", views.raw, name="raw"),
    path("audit/export/", exports.audit, name="audit_export"),
    path("reveal/", reveal.reveal, name="reveal"),
    path("snapshot/", views.snapshot, name="snapshot"),
    path("fragments/<slug:slug>/", views.fragment, name="fragment"),
    path("bulk/results/", results.results, name="bulk_results"),
    path("actions/<slug:noun>/<slug:verb>/", action, name="action"),
    path("views/save/", saved.save, name="view_save"),
    path("views/forget/", saved.forget, name="view_forget"),
    path("theme/", views.theme, name="theme"),
    path("timezone/", zones.choose, name="timezone"),
]

urlpatterns = [
    path("", views.home, name="home"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("accounts/login/", login.Login.as_view(), name="login"),
    path("accounts/logout/", told_without_database(LogoutView.as_view()), name="logout"),
    path("dashboard/", include(dashboard)),
    path("ws/dashboard/", views.socket, name="socket"),  # over ``websocket`` it leads to ``dashboard.routing``
    path("api/v1", index),  # else the site would lead to the slash, and answer in HTML
    path("api/v1/", include("dashboard.api.urls")),
]
