"""``manage.py dev``: everything needed to see the product work, in one terminal."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from contextlib import suppress
from importlib import import_module
from inspect import getfile
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, reverse

from jobs.conf import Settings, get_settings
from jobs.management.development import Interruption, Screen, Stack, describe_end, free_port, is_free, manage
from jobs.store import embedded
from jobs.worker.reload import source_roots

FIRST_PORT = 8000
LOGIN = "admin"

PAGES = {"Dashboard": "dashboard:overview", "Admin": "admin:index"}

READY = """
  Mainspring is running.

{pages}
    Login       {login}
    Store       {store}

  Try next, in a second terminal:
    {python} manage.py enqueue {example} --wait
    {python} manage.py jobs list --state dead
    {python} manage.py dlq resubmit --all --yes
    {python} manage.py doctor

  Ctrl-C stops everything. {kept}
"""


class Command(BaseCommand):
    help = "Runs everything needed to see the product work: server, web, workers and sample jobs. Ctrl-C stops it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--port", type=_port, metavar="N", help="of the web server (default: 8000 or the next free one)"
        )
        parser.add_argument("--no-samples", action="store_true", help="do not keep a stream of sample jobs going")

    def handle(self, *, port: int | None, no_samples: bool, **_: Any) -> None:
        if not django_settings.DEBUG:
            raise CommandError("dev is for development only, and DJANGO_DEBUG is 0.", returncode=4)
        port = self._port(port)
        interruption = Interruption()
        settings = get_settings()
        self.stdout.write("Preparing the database …")
        call_command("migrate", verbosity=0, interactive=False)
        login = self._login(settings)
        self.stdout.write("Starting the store …")
        embedded.ensure(settings.redis_url, settings.var_dir)

        url = f"http://127.0.0.1:{port}"
        samples = not no_samples and apps.is_installed("samples")
        commands = self._commands(port, samples=samples)
        screen = Screen(sys.stdout, list(commands), colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
        self.stdout.write("Starting " + ", ".join(commands) + " …")
        stack = Stack(commands, {**os.environ, "SAMPLES_BASE_URL": url, "PYTHONUNBUFFERED": "1"}, screen)
        ended = None
        try:
            if stack.wait_until_ready(f"{url}{resolve_url(django_settings.LOGIN_URL)}", interruption):
                screen.say(self._banner(url, login, settings, samples=samples))
                ended = stack.watch(interruption)
            else:
                ended = stack.ended_part()
                if ended is None and not interruption.wanted:
                    screen.say(f"{url} did not answer in time; see the lines above.")
            if ended is not None:
                screen.say(describe_end(ended))
            screen.say("\nStopping …")
        finally:
            stack.end()
            gone = embedded.leave(settings.redis_url, settings.var_dir)
        screen.say(
            "Everything has stopped." if gone else "Stopped. The store stays for the other processes that use it."
        )
        if not interruption.wanted:
            raise CommandError("dev ended by itself.")

    def _port(self, wanted: int | None) -> int:
        if wanted is not None:
            if not is_free(wanted):
                raise CommandError(f"Port {wanted} is in use. Leave out --port to get a free one.")
            return wanted
        found = free_port(FIRST_PORT)
        if found is None:
            raise CommandError(f"No free port from {FIRST_PORT} on. Name one with --port N.")
        return found

    def _commands(self, port: int, *, samples: bool) -> dict[str, list[str]]:
        """In the order in which they are asked to end."""
        commands = {"samples": manage("samples_stream")} if samples else {}
        return {**commands, "worker": manage("runworkers", "--reload", "--grace", "5"), "web": web_command(port)}

    def _login(self, settings: Settings) -> str:
        """Words for the banner. Makes the throw-away account only in a database that is as throw-away as it."""
        users = get_user_model()._default_manager
        existing = users.filter(**{users.model.USERNAME_FIELD: LOGIN}).first()
        if existing is not None and existing.check_password(LOGIN):
            return f"{LOGIN} / {LOGIN}"
        if _lives_in(settings.var_dir) and not users.filter(is_superuser=True).exists():
            users.create_superuser(LOGIN, f"{LOGIN}@example.com", LOGIN)
            return f"{LOGIN} / {LOGIN}   (made just now, for this machine only)"
        return "your own account (manage.py createsuperuser makes one)"

    def _banner(self, url: str, login: str, settings: Settings, *, samples: bool) -> str:
        if settings.redis_url == "memory:":
            store, kept = "bundled Valkey, in memory", "The jobs are lost then; the database stays."
        elif settings.redis_url == "embedded:":
            folder = _shown(settings.var_dir)
            what = "jobs and database" if _lives_in(settings.var_dir) else "jobs"
            store, kept = f"bundled Valkey, data in {folder}/", f"Nothing is lost: {what} stay in {folder}/."
        else:
            store, kept = "the server of SCHEDULER_REDIS_URL", "Jobs stay on that server."
        example = """report.build --payload '{"year": 2015}'""" if samples else "TYPE"
        return READY.format(pages=pages(url), login=login, store=store, kept=kept, example=example, python=_python())


def pages(url: str) -> str:
    """Where the project has put the dashboard and the admin; a line for each that it has."""
    lines = []
    for title, name in PAGES.items():
        with suppress(NoReverseMatch):
            lines.append(f"    {title:<12}{url}{reverse(name)}")
    return "\n".join(lines)


def web_command(port: int) -> list[str]:
    """The command line of the project's web process, which follows its source."""
    command = [sys.executable, "-m", "uvicorn", _application(), "--port", str(port)]
    command += ["--lifespan", "off", "--no-access-log", "--log-level", "warning", "--ws-max-size", "65536"]
    command += ["--timeout-graceful-shutdown", "3", "--reload"]
    for folder in dict.fromkeys([*source_roots(), _project_folder()]):
        command += ["--reload-dir", str(folder)]
    return command


def _application() -> str:
    """The ASGI application of the project, as uvicorn wants it named."""
    named = getattr(django_settings, "ASGI_APPLICATION", None) or f"{_project()}.asgi.application"
    module, _, name = named.rpartition(".")
    return f"{module}:{name}"


def _project() -> str:
    """The package that the settings are in."""
    return os.environ["DJANGO_SETTINGS_MODULE"].partition(".")[0]


def _project_folder() -> Path:
    return Path(getfile(import_module(_project()))).resolve().parent


def _python() -> str:
    """This interpreter, as one would type it here."""
    here = f"{Path.cwd()}{os.sep}"
    return sys.executable.removeprefix(here)


def _shown(path: Path) -> str:
    """Relative to where the user stands, if it is below that."""
    path = path.resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _lives_in(var_dir: Path) -> bool:
    """Whether the database is a file under the var dir."""
    if connection.vendor != "sqlite":
        return False
    return Path(str(connection.settings_dict["NAME"])).resolve().is_relative_to(var_dir.resolve())


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 65_536:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a port: write a number from 1 to 65535")
