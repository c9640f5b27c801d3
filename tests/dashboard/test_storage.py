"""Static files as production serves them: hashed names, and modules that import each other by those names."""

from __future__ import annotations

import re
from pathlib import Path

from django.core.management import call_command


def test_scripts_import_each_other_by_hashed_names(settings, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "dashboard.storage.HashedStaticFiles"},
    }

    call_command("collectstatic", interactive=False, verbosity=0)

    (main,) = (
        path for path in (tmp_path / "dashboard").glob("main.*.js") if re.fullmatch(r"main\.\w{12}\.js", path.name)
    )
    imported = re.findall(r'from\s*"\./([^"]+)"', main.read_text())
    assert len(imported) == 5
    for name in imported:
        assert re.fullmatch(r"\w+\.\w{12}\.js", name)
        assert (tmp_path / "dashboard" / name).exists()
