"""Tokens of the HTTP API: what stands for a user in requests of programs. The secret itself is kept nowhere."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone


class ApiToken(models.Model):
    """One token. It may do what its user may, within its scopes, until it expires or is revoked.

    ``digest`` is SHA-256 of the secret. A secret is 256 random bits, so nobody finds it from its digest, and a slow
    hash would protect no more. ``scopes``: words of ``jobs.api.tokens.SCOPES``; none: all that the user may.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(max_length=100, blank=True, help_text="What uses it, for whoever has to decide about it.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.JSONField(default=list, blank=True, help_text="Empty: whatever the user may.")
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="To the minute.")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]
        default_permissions = ("view", "delete")
        verbose_name = "API token"
        verbose_name_plural = "API tokens"

    def __str__(self) -> str:
        return self.name or f"token {self.pk}"

    def state_at(self, now: datetime) -> str:
        """``active``, ``revoked`` or ``expired``."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"
