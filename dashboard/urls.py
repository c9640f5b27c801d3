"""Addresses of the pages, of the resources behind them, and of the two health probes."""

from __future__ import annotations

from django.contrib.auth.views import LogoutView
from django.urls import include, path

from dashboard import actions, controls, health, login, metrics, schedule_actions, views
from dashboard.panels import PANELS

app_name = "dashboard"

dashboard = [
    *(
        path("" if panel.slug == "overview" else f"{panel.slug}/", views.page, {"slug": panel.slug}, name=panel.slug)
        for panel in PANELS
    ),
    path("job/", views.job, name="job_by_query"),
    path("jobs/<path:job_id>/", views.job, name="job"),
    path("find/", views.find, name="find"),
    path("raw/", views.raw, name="raw"),
    path("snapshot/", views.snapshot, name="snapshot"),
    path("fragments/<slug:slug>/", views.fragment, name="fragment"),
    path("confirm/<slug:verb>/", actions.confirm, name="confirm"),
    path("actions/<slug:verb>/", actions.act, name="act"),
    path("schedules/confirm/<slug:verb>/", schedule_actions.confirm, name="schedule_confirm"),
    path("schedules/actions/<slug:verb>/", schedule_actions.act, name="schedule_act"),
    path("controls/<slug:slug>/", controls.control, name="control"),
    path("theme/", views.theme, name="theme"),
]

urlpatterns = [
    path("", views.home, name="home"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("livez", health.livez, name="livez"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("accounts/login/", login.Login.as_view(), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("dashboard/", include(dashboard)),
]
