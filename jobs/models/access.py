"""The permissions of dashboard, API and command tokens. They belong to no row, so this model has no table."""

from __future__ import annotations

from django.db import models


class Access(models.Model):  # noqa: DJ008 - there is never an instance to name
    """What a person may do with running work. Each permission stands alone; none includes another."""

    class Meta:
        managed = False
        verbose_name_plural = "access"
        default_permissions = ()
        permissions = (
            ("view_dashboard", "Can see jobs, pools, workers and the dead-letter list"),
            ("operate", "Can cancel, retry, resubmit, run now, pause, resume and scale"),
            ("enqueue", "Can enqueue jobs"),
            ("administer", "Can delete, discard, edit payloads, change partitions and see redacted values"),
        )
