"""The web process: ``uvicorn scheduler_project.asgi:application``."""

from __future__ import annotations

import os
import warnings

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")

# WhiteNoise hands files over by a synchronous iterator, which costs nothing for files of our size.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

http = get_asgi_application()  # sets Django up, so it comes before anything that needs models

from dashboard.routing import site  # noqa: E402

application = site(http)
