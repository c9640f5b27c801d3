"""Static files as production serves them: hashed names, and modules that import each other by those names."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from django.core.management import call_command
from django.http import StreamingHttpResponse

from dashboard.routing import site


def test_scripts_import_each_other_by_hashed_names(settings, tmp_path: Path) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "dashboard.storage.HashedStaticFiles"},
    }

    call_command("collectstatic", interactive=False, verbosity=0)

    (start,), (main,) = (list((tmp_path / "dashboard").glob(f"{name}.{'?' * 12}.js")) for name in ("start", "main"))
    assert f'import("./{main.name}")' in start.read_text()
    imported = re.findall(r'from\s*"\./([^"]+)"', main.read_text())
    assert len(imported) == 5
    for name in imported:
        assert re.fullmatch(r"\w+\.\w{12}\.js", name)
        assert (tmp_path / "dashboard" / name).exists()


def test_files_that_a_site_hands_over_by_asgi_are_no_reason_to_warn(recwarn) -> None:
    """Also in a project of one's own, which has our site and no settings of ours for that."""
    site(None)

    response = StreamingHttpResponse(iter([b"body"]))
    assert asyncio.run(_received(response)) == b"body"
    assert not recwarn.list


async def _received(response: StreamingHttpResponse) -> bytes:
    return b"".join([part async for part in response])
