"""How the library starts inside a Django project."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = "Mainspring"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Registers the system checks and the job types of all apps. Asks neither database nor Redis."""
        from jobs import api, checks  # noqa: F401 - importing the checks registers them; the api serves ``from jobs import``
        from jobs.api import starting  # noqa: F401 - registers the job type by which schedules start workflows
        from jobs.conf import get_settings, problems
        from jobs.registry import autodiscover
        from jobs.services import definitions, reconciler

        reconciler.connect(self)
        definitions.connect(self)
        # Settings that cannot be read are the business of the system check, which names what to write instead.
        if not problems(getattr(settings, "SCHEDULER", {})):
            autodiscover(get_settings().autodiscover)
