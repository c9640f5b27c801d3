"""The web process: ``uvicorn scheduler_project.asgi:application``."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")

http = get_asgi_application()  # sets Django up, so it comes before anything that needs models

from dashboard.routing import site  # noqa: E402

application = site(http)
