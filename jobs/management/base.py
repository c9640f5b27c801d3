"""The command that all commands are: parse, run, and end with the right exit code whatever happens.

A command does three things: it parses, calls one function of ``jobs.api``, and shows the answer.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from abc import abstractmethod
from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, handle_default_options
from django.db import connections

from jobs import api
from jobs.exceptions import SchedulerError
from jobs.management.arguments import Parser, Verbs, add_common
from jobs.management.errors import CommandFailed, failure_of
from jobs.management.output import Output

STORE_SECONDS = 5.0
"""How long one request to the store may take, retries included. A restart of the server is waited for; a person is not
kept waiting much longer than that for the news that it is gone."""


class SchedulerCommand(BaseCommand):
    """One command without verbs. A subclass gives ``options`` and ``run``."""

    # The store may be down, the settings half right: a command must still say what is wrong in its own words.
    requires_system_checks = ()
    examples = ""

    @abstractmethod
    def options(self, parser: Parser) -> None:
        """Adds what the command line may say."""

    def run(self, output: Output, **options: Any) -> None:
        """Carries it out. Raises SchedulerError or CommandFailed."""
        raise NotImplementedError

    # -- Django's interface -------------------------------------------------------------------------------------

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> Parser:
        parser = Parser(
            prog=f"{os.path.basename(prog_name)} {subcommand}",
            description=self.help or None,
            examples=self.examples,
            called_from_command_line=True,
            **options,
        )
        add_common(parser, top=True)
        self.options(parser)
        return parser

    def handle(self, *_args: Any, **options: Any) -> None:
        colour = True if options["force_color"] else False if options["no_color"] else None
        output = Output(self.stdout, self.stderr, as_json=options.pop("as_json"), colour=colour)
        run: Callable[..., None] = options.pop("run", None) or self.run
        try:
            with api.audit.acting(api.audit.system_user(), "command") as actor, api.budget(STORE_SECONDS):
                run(output, **options)
        except SchedulerError as error:
            raise CommandFailed.of(error) from error
        if actor.unrecorded:
            output.note(f"Done, but not written into the audit log: {actor.unrecorded[0]}")

    def run_from_argv(self, argv: list[str]) -> None:
        """The whole life of the command as a process, which ends with an exit code of the contract."""
        given = argv[2:]
        try:
            options = vars(self.create_parser(argv[0], argv[1]).parse_args(given))
            handle_default_options(Namespace(**options))
            self.execute(*options.pop("args", ()), **options)
            self.stdout.flush()
        except BrokenPipeError:
            # Whoever reads the output has seen enough: `jobs list | head` is no failure.
            self._drop_stdout()
        except (KeyboardInterrupt, Exception) as error:
            failure = failure_of(error)
            if "--traceback" in given and not failure.silent:
                traceback.print_exc(file=sys.stderr)
            self._say(failure, as_json="--json" in given)
            try:
                self.stdout.flush()
            except OSError:
                self._drop_stdout()
            sys.exit(int(failure.exit))
        finally:
            with suppress(ImproperlyConfigured):  # no database is configured: nothing to close
                connections.close_all()

    def _say(self, failure: CommandFailed, *, as_json: bool) -> None:
        if failure.silent:
            return
        if as_json:
            self.stderr.write(json.dumps(failure.as_dict()), style_func=str)
        else:
            Output(self.stdout, self.stderr, as_json=False).error(failure.paragraph)

    @staticmethod
    def _drop_stdout() -> None:
        """Sends what is still to be written nowhere: Python itself flushes once more at exit, and would complain."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class VerbCommand(SchedulerCommand):
    """A command with verbs, such as ``jobs list``. A subclass gives ``verbs``."""

    @abstractmethod
    def verbs(self, verbs: Verbs) -> None:
        """Adds each verb with its options and the method that carries it out."""

    def options(self, parser: Parser) -> None:
        self.verbs(Verbs(parser))
