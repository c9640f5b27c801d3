"""The settings module as production and development meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def settings_under(expression: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Prints an expression over the settings of a fresh process that has this environment and no other of ours."""
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith(("SCHEDULER_", "DJANGO_", "DATABASE_"))
    }
    program = f"import json; from django.conf import settings; print(json.dumps({expression}, default=str))"
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**outside, "DJANGO_SETTINGS_MODULE": "scheduler_project.settings", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_production_without_a_key_ends_with_the_reason(var_dir):
    ended = settings_under("settings.DEBUG", DJANGO_DEBUG="0", SCHEDULER_VAR_DIR=str(var_dir))

    assert ended.returncode != 0
    assert "DJANGO_SECRET_KEY is required when DJANGO_DEBUG=0" in ended.stderr


def test_production_is_strict(var_dir):
    told = settings_under(
        "[settings.ALLOWED_HOSTS, settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE]"
        " + ['samples' in settings.INSTALLED_APPS]",
        DJANGO_DEBUG="0",
        DJANGO_SECRET_KEY="k" * 50,
        DJANGO_ALLOWED_HOSTS="jobs.example.com",
        SCHEDULER_VAR_DIR=str(var_dir),
    )

    assert json.loads(told.stdout) == [["jobs.example.com"], True, True, False]


def test_apps_named_in_the_environment_are_installed(var_dir):
    told = settings_under("settings.INSTALLED_APPS", SCHEDULER_APPS="shop,billing", SCHEDULER_VAR_DIR=str(var_dir))

    assert json.loads(told.stdout)[-2:] == ["shop", "billing"]


def test_the_database_is_sqlite_under_the_var_dir_or_what_the_url_says(var_dir):
    default = settings_under("settings.DATABASES['default']", SCHEDULER_VAR_DIR=str(var_dir))
    named = settings_under(
        "settings.DATABASES['default']", DATABASE_URL="postgres://me@db.example/jobs", SCHEDULER_VAR_DIR=str(var_dir)
    )

    assert json.loads(default.stdout)["NAME"] == str(var_dir / "db.sqlite3")
    assert json.loads(named.stdout)["ENGINE"] == "django.db.backends.postgresql"
    assert json.loads(named.stdout)["NAME"] == "jobs"


def test_reading_the_settings_starts_no_server(var_dir):
    told = settings_under("settings.CHANNEL_LAYERS['default']['CONFIG']['hosts']", SCHEDULER_VAR_DIR=str(var_dir))

    assert json.loads(told.stdout) == [f"unix://{var_dir}/valkey/valkey.sock"]
    assert not (var_dir / "valkey").exists()
