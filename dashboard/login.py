"""The login page: Django's own, with a brake on guessing."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator

from dashboard.outage import told_without_database

FAILURES = 10
FORGET_SECONDS = 300


@method_decorator(told_without_database, name="dispatch")
class Login(LoginView):
    """After ten wrong passwords for one name from one address, that pair waits five minutes.

    The count is kept in Django's cache: with a cache of its own in each process the brake is per process.
    """

    template_name = "registration/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if cache.get(self._key(), 0) >= FAILURES:
            return self.render_to_response(
                self.get_context_data(form=AuthenticationForm(request), braked=True), status=429
            )
        return super().post(request, *args, **kwargs)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        cache.add(self._key(), 0, FORGET_SECONDS)
        with suppress(ValueError):  # a cache that keeps nothing, or has just made room, brakes nobody
            cache.incr(self._key())
        return super().form_invalid(form)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        cache.delete(self._key())
        return super().form_valid(form)

    def _key(self) -> str:
        name = self.request.POST.get("username", "")[:200].casefold()
        who = f"{self.request.META.get('REMOTE_ADDR', '')}\n{name}"
        return "login-failures:" + hashlib.sha256(who.encode("utf-8", "replace")).hexdigest()
