"""A project of one's own, made by the letter of the quickstart."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).parents[2]

VISIT = """
import json, os, sys
import django
django.setup()
from django.core.management import call_command
from django.test import Client, override_settings
from django.urls import reverse
from dashboard.subpath import address
from jobs.management.commands import dev
from mysite.asgi import application

call_command("check", fail_level="WARNING")
visitor = Client(SERVER_NAME="localhost")
addresses = (reverse("dashboard:login"), "/static/dashboard/styles.css", "/livez", "/admin/login/")
with override_settings(ROOT_URLCONF="mysite.below"):
    below = {name: reverse(f"dashboard:{name}") for name in ("login", "overview", "socket")}
    answers = {name: visitor.get(path).status_code for name, path in below.items() if name != "socket"}
    wanted = address({"path": below["socket"]}).url_name
json.dump({
    "below": [below, answers, wanted],
    "protocols": sorted(application.application.application_mapping),
    "answers": {address: visitor.get(address).status_code for address in addresses},
    "web": dev.web_command(8000),
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``startproject`` makes, with the files of the quickstart."""
    folder = tmp_path_factory.mktemp("own")
    call_command("startproject", "mysite", str(folder))
    section = (ROOT / "docs" / "quickstart.md").read_text().partition("## In a project of your own")[2]
    files = dict(re.findall(r"^`(mysite/\w+\.py)`.*?^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE))
    assert sorted(files) == ["mysite/asgi.py", "mysite/settings.py", "mysite/urls.py"]
    settings = files["mysite/settings.py"].replace("/opt/mainspring", str(ROOT))
    files["mysite/settings.py"] = (folder / "mysite" / "settings.py").read_text() + settings
    files["mysite/below.py"] = files["mysite/urls.py"].replace('path("", include', 'path("ops/", include')
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_the_files_of_the_quickstart_make_a_site_with_pages_styles_and_a_websocket(project):
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("SCHEDULER_", "DJANGO_"))}

    visit = subprocess.run(
        [sys.executable, "-W", "error", "-c", VISIT],
        cwd=project,
        env={**outside, "PYTHONPATH": f"{project}{os.pathsep}{ROOT}", "DJANGO_SETTINGS_MODULE": "mysite.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert visit.returncode == 0, visit.stderr
    seen = json.loads(visit.stdout.splitlines()[-1])
    assert set(seen["answers"].values()) == {200}, seen["answers"]
    below = {"login": "/ops/accounts/login/", "overview": "/ops/dashboard/", "socket": "/ops/ws/dashboard/"}
    assert seen["below"] == [below, {"login": 200, "overview": 302}, "socket"]
    assert seen["protocols"] == ["http", "websocket"]
    assert "mysite.asgi:application" in seen["web"]
    assert str(project / "mysite") in seen["web"], "its own code is followed"
    assert str(ROOT / "dashboard") in seen["web"]
