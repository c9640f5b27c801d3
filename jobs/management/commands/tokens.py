"""``tokens VERB``: what programs show to the HTTP API in place of a password."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from jobs import api
from jobs.api.tokens import SCOPES, Token
from jobs.management.arguments import Verbs, positive
from jobs.management.base import VerbCommand
from jobs.management.durations import duration
from jobs.management.output import Column, Output

TOKENS: tuple[Column[Token], ...] = (
    Column("ID", lambda token: token.id, right=True),
    Column("USER", lambda token: token.user),
    Column("STATE", lambda token: token.state),
    Column("SCOPES", lambda token: ", ".join(token.scopes) or "all"),
    Column("CREATED", lambda token: token.created_at),
    Column("EXPIRES", lambda token: token.expires_at),
    Column("USED", lambda token: token.last_used_at),
    Column("NAME", lambda token: token.name, elastic=True),
)


class Command(VerbCommand):
    help = "Make, list and revoke tokens of the HTTP API."
    examples = """
        manage.py tokens create ana --name ci --expires 90d --scope enqueue
        manage.py tokens list
        manage.py tokens revoke 7
    """

    def verbs(self, verbs: Verbs) -> None:
        creating = verbs.add(
            "create",
            self.create,
            help="Make a token that may do what a user may. It is shown this once.",
            examples="""
                manage.py tokens create ana --name ci --expires 90d --scope enqueue
                manage.py tokens create grafana --scope view --json | jq -r .token
            """,
        )
        creating.add_argument("user", metavar="USER", help="name of the user it stands for")
        creating.add_argument("--name", default="", metavar="TEXT", help="what will use it")
        creating.add_argument("--expires", type=duration, metavar="SPAN", help="ends by itself: 90d (default never)")
        creating.add_argument(
            "--scope",
            action="append",
            default=None,
            metavar="SCOPE",
            help=f"may do only this: {', '.join(SCOPES)}; give it again for more (default: all that the user may)",
        )
        verbs.add(
            "list", self.show_list, help="List tokens, never their secrets.", examples="manage.py tokens list --json"
        )
        revoking = verbs.add(
            "revoke", self.revoke, help="Take a token back, at once.", examples="manage.py tokens revoke 7"
        )
        revoking.add_argument("id", type=positive, metavar="ID", help="its number: see 'tokens list'")

    def create(
        self,
        output: Output,
        *,
        user: str,
        name: str,
        expires: timedelta | None,
        scope: Sequence[str] | None,
        **_options: Any,
    ) -> None:
        secret, made = api.tokens.create(user, name=name, expires=expires, scopes=scope or ())
        if output.as_json:
            output.document({"token": secret, **made.as_dict()})
        else:
            output.line(secret)
            output.note(f"This is token {made.id} of {made.user}. Keep it: it is not shown again.")

    def show_list(self, output: Output, **_options: Any) -> None:
        tokens = api.tokens.list()
        if output.as_json:
            output.document({"items": [token.as_dict() for token in tokens], "next_cursor": None})
        elif tokens:
            output.table(TOKENS, tokens)
        else:
            output.hint("There is no token yet: manage.py tokens create USER")

    def revoke(self, output: Output, *, id: int, **_options: Any) -> None:
        token = api.tokens.revoke(id)
        if output.as_json:
            output.document(token.as_dict())
        else:
            output.row(str(token.id), token.state)
