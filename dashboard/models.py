"""What people keep for themselves and each other: lists that they come back to."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """A list narrowed by a filter, under a name. Only its owner sees it, unless it is shared."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    page = models.CharField(max_length=20, help_text="The panel whose list it is: jobs or dead.")
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=2000, blank=True, help_text="The filter, as it stands in the address.")
    is_shared = models.BooleanField("shared", default=False)

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["owner", "page", "name"], name="dashboard_one_view_of_a_name")]

    def __str__(self) -> str:
        return self.name
