"""Workflows in the admin: a form of nodes and edges that is checked as a whole, the graph, and the versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from jobs import job, workflows
from jobs.engine import Engine
from jobs.models import AuditEntry, Workflow
from jobs.registry import registry
from tests.admin.test_schedule import staff

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django.fixtures import Settings as DjangoSettings

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/workflow/"
ADD = f"{LIST}add/"


@pytest.fixture(autouse=True)
def paper() -> Iterator[None]:
    """A job type for the nodes."""

    def print_paper(day: str = "", *, copies: int = 1) -> None: ...

    with registry.restored():
        job("paper.print")(print_paper)
        yield


@pytest.fixture
def nightly() -> Workflow:
    nodes = [
        {"key": "extract", "type": "paper.print"},
        {"key": "load", "type": "paper.print", "depends_on": ["extract"], "delay": 60},
    ]
    workflows.define({"name": "nightly", "nodes": nodes}, by="ana")
    return Workflow.objects.get(name="nightly")


def form(
    nodes: list[dict[str, str]], edges: list[tuple[str, str, str]], row: Workflow | None = None, **more: str
) -> dict[str, str]:
    """What a browser sends. ``edges``: (who waits, for what end, of whom). ``row``: its nodes and edges come first."""
    sent = {"description": "", "timeout": "", **({} if row else {"name": "nightly"}), **more}
    known = {"nodes": [*row.nodes.all()], "edges": [*row.edges.all()]} if row else {"nodes": [], "edges": []}
    for prefix, forms in (
        ("nodes", nodes),
        ("edges", [{"child": child, "kind": kind, "parent": parent} for child, kind, parent in edges]),
    ):
        sent |= {f"{prefix}-TOTAL_FORMS": str(len(forms)), f"{prefix}-INITIAL_FORMS": str(len(known[prefix]))}
        for number, fields in enumerate(forms):
            at = f"{prefix}-{number}"
            if number < len(known[prefix]):
                sent[f"{at}-id"] = str(known[prefix][number].pk)
            sent |= {f"{at}-{name}": value for name, value in fields.items()}
    return sent


def node(key: str, **fields: str) -> dict[str, str]:
    return {"key": key, "job_type": "paper.print", "payload": "{}", "join": "all", "more": "{}", **fields}


def change_url(row: Workflow) -> str:
    return reverse("admin:jobs_workflow_change", args=[row.pk])


class TestForm:
    def test_nodes_and_edges_of_one_form_become_a_workflow_with_a_version(self, admin_client: Client) -> None:
        nodes = [
            node("extract", payload='{"day": {"$from": "run.payload.day"}}'),
            node("load", pool="slow", max_retries="0", more='{"delay": 60}'),
            node("alarm", join="any"),
            node("clean", always="on"),
        ]
        edges = [
            ("load", "on_success", "extract"),
            ("alarm", "on_failure", "extract"),
            ("alarm", "on_failure", "load"),
            ("clean", "on_complete", "load"),
        ]

        response = admin_client.post(ADD, form(nodes, edges, description="Each night."))

        assert response.status_code == 302
        stored = workflows.definition("nightly")
        assert (stored.version, stored.changed_by, stored.description) == (1, "admin", "Each night.")
        assert stored.definition.as_dict()["nodes"] == [
            {"key": "extract", "type": "paper.print", "payload": {"day": {"$from": "run.payload.day"}}},
            {
                "key": "load",
                "type": "paper.print",
                "depends_on": ["extract"],
                "pool": "slow",
                "max_retries": 0,
                "delay": 60.0,
            },
            {"key": "alarm", "type": "paper.print", "on_failure": ["extract", "load"], "join": "any"},
            {"key": "clean", "type": "paper.print", "on_complete": ["load"], "always": True},
        ]
        [entry] = AuditEntry.objects.all()
        assert (entry.who, entry.source, entry.action, entry.target) == (
            "admin",
            "admin",
            "workflow.create",
            "nightly",
        )

    @pytest.mark.parametrize(
        ("nodes", "edges", "words"),
        [
            pytest.param(
                [node("a"), node("b"), node("c")],
                [("a", "on_success", "c"), ("b", "on_success", "a"), ("c", "on_success", "b")],
                "3 nodes wait for each other",
                id="a cycle of three",
            ),
            pytest.param(
                [node("a")], [("a", "on_success", "b")], "waits for &#x27;b&#x27;, which is no node", id="who"
            ),
            pytest.param([node("a")], [("b", "on_success", "a")], "&#x27;b&#x27; waits for &#x27;a&#x27;", id="stray"),
            pytest.param([node("a")], [("a", "on_success", "a")], "waits for itself", id="an edge to itself"),
            pytest.param([node("a"), node("a")], [], "duplicate", id="a key twice"),
            pytest.param([node("a", job_type="paper.prnt")], [], "Did you mean", id="an unknown job type"),
            pytest.param([node("a", payload='{"copies": "x"}')], [], "copies", id="arguments that do not fit"),
            pytest.param([node("a", join="most")], [], "join", id="a join that is none"),
            pytest.param([node("a", more='{"dleay": 1}')], [], "dleay", id="an option that is none"),
            pytest.param([node("a", payload="[1]")], [], "payload", id="a payload that is no object"),
        ],
    )
    def test_what_is_no_workflow_is_refused_with_its_nodes_named(
        self, admin_client: Client, nodes: Any, edges: Any, words: str
    ) -> None:
        response = admin_client.post(ADD, form(nodes, edges))

        assert response.status_code == 200
        assert words in response.content.decode()
        assert not Workflow.objects.exists()

    def test_a_problem_stands_at_the_node_that_it_is_about(self, admin_client: Client) -> None:
        response = admin_client.post(ADD, form([node("good"), node("bad", job_type="nope")], []))

        good, bad = response.context["inline_admin_formsets"][0].formset.forms[:2]
        assert not good.errors
        assert "No job type 'nope'" in bad.non_field_errors()[0]

    def test_a_change_is_a_new_version_and_a_save_without_one_is_none(
        self, admin_client: Client, nightly: Workflow
    ) -> None:
        rows = [node("extract"), node("load", more='{"delay": 60}')]
        edges = [("load", "on_success", "extract")]
        admin_client.post(change_url(nightly), form(rows, edges, nightly))
        assert workflows.definition("nightly").version == 1

        admin_client.post(
            change_url(nightly), form([*rows, node("send")], [*edges, ("send", "on_success", "load")], nightly)
        )

        newest, _ = workflows.versions("nightly")
        assert (newest.number, newest.by, newest.added) == (2, "admin", ("send",))

    def test_a_node_that_goes_must_take_its_edges_along(self, admin_client: Client, nightly: Workflow) -> None:
        rows = [node("extract") | {"DELETE": "on"}, node("load")]

        refused = admin_client.post(change_url(nightly), form(rows, [("load", "on_success", "extract")], nightly))

        assert "waits for &#x27;extract&#x27;, which is no node" in refused.content.decode()
        assert nightly.nodes.count() == 2


class TestGraph:
    def test_it_is_drawn_below_the_form(self, admin_client: Client, nightly: Workflow) -> None:
        page = admin_client.get(change_url(nightly)).content.decode()

        assert 'aria-label="Graph of 2 nodes, from left to right"' in page
        assert 'data-from="extract" data-to="load"' in page
        assert "extract  paper.print\n└─ load  paper.print" in page

    def test_it_is_drawn_as_it_is_typed_and_nothing_is_saved(self, admin_client: Client) -> None:
        edges = [("b", "on_failure", "a")]

        page = admin_client.post(ADD, form([node("a"), node("b")], edges, _draw="Draw")).content.decode()

        assert "a  paper.print\n└─ b  paper.print · if a fails" in page
        assert not Workflow.objects.exists()

    def test_one_that_is_too_large_for_a_form_is_shown_and_told_how_to_be_changed(
        self, admin_client: Client, nightly: Workflow, settings: DjangoSettings
    ) -> None:
        settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 110

        page = admin_client.get(change_url(nightly)).content.decode()

        assert "workflows export nightly" in page
        assert "nodes-TOTAL_FORMS" not in page
        assert "└─ load  paper.print" in page

    def test_rows_that_do_not_hold_together_say_so(self, admin_client: Client, nightly: Workflow) -> None:
        nightly.nodes.filter(key="extract").delete()  # by other means than this form

        assert "which is no node" in admin_client.get(change_url(nightly)).content.decode()


class TestVersions:
    def test_one_goes_back_to_any_of_them(self, admin_client: Client, nightly: Workflow) -> None:
        workflows.define({"name": "nightly", "nodes": [{"key": "only", "type": "paper.print"}]}, by="ben")
        url = reverse("admin:jobs_workflow_versions", args=[nightly.pk])
        page = admin_client.get(url).content.decode()
        assert "new: only" in page
        assert "gone: extract, load" in page

        done = admin_client.post(url, {"version": "1"}, follow=True)

        assert "again what it was in version 1: version 3" in done.content.decode()
        assert [found.key for found in workflows.definition("nightly").definition.nodes] == ["extract", "load"]

    @pytest.mark.parametrize("version", ["", "x", "9", "-1"])
    def test_a_version_that_is_none_changes_nothing(
        self, admin_client: Client, nightly: Workflow, version: str
    ) -> None:
        admin_client.post(reverse("admin:jobs_workflow_versions", args=[nightly.pk]), {"version": version})

        assert workflows.definition("nightly").version == 1

    def test_the_definition_can_be_taken_away_as_a_file(self, admin_client: Client, nightly: Workflow) -> None:
        response = admin_client.get(reverse("admin:jobs_workflow_file", args=[nightly.pk]))

        assert response.json() == workflows.export(["nightly"])[0]
        assert "attachment" in response["Content-Disposition"]


class TestRuns:
    def test_one_is_started_with_a_payload(self, admin_client: Client, engine: Engine, nightly: Workflow) -> None:
        url = reverse("admin:jobs_workflow_start", args=[nightly.pk])
        assert admin_client.get(url).status_code == 200
        assert "Write an object" in admin_client.post(url, {"payload": "[1]"}).content.decode()

        page = admin_client.post(url, {"payload": '{"day": "monday"}'}, follow=True).content.decode()

        [run] = workflows.list(name="nightly").items
        assert (run.payload, run.version, run.started_by) == ({"day": "monday"}, 1, "admin")
        assert run.id in page
        entry = AuditEntry.objects.get(action="workflow.start")
        assert (entry.who, entry.source) == ("admin", "admin")


class TestRights:
    def test_who_may_look_sees_no_button_that_changes(self, client: Client, nightly: Workflow) -> None:
        client.force_login(staff("view_workflow"))

        page = client.get(change_url(nightly)).content.decode()

        assert "└─ load  paper.print" in page
        assert 'value="Draw"' not in page
        assert "_save" not in page
        versions = reverse("admin:jobs_workflow_versions", args=[nightly.pk])
        assert client.post(versions, {"version": "1"}).status_code == 403
        assert client.post(change_url(nightly), form([node("x")], [], nightly)).status_code == 403

    def test_nobody_reads_an_argument_that_is_redacted_and_it_stays_as_it_was(self, client: Client) -> None:
        def login(user: str, password: str) -> None: ...

        job("paper.login", redact=("password",))(login)
        payload = {"user": "ana", "password": "hunter2"}
        workflows.define({"name": "w", "nodes": [{"key": "a", "type": "paper.login", "payload": payload}]})
        row = Workflow.objects.get(name="w")
        user = staff("view_workflow")
        client.force_login(user)
        urls = [change_url(row), reverse("admin:jobs_workflow_file", args=[row.pk])]
        shown = [client.get(url).content.decode() for url in urls]
        user.user_permissions.add(Permission.objects.get(codename="change_workflow"))

        shown += [client.get(url).content.decode() for url in urls]

        assert not [page for page in shown if "hunter2" in page or "ana" not in page]
        masked = client.get(urls[0]).context["inline_admin_formsets"][0].formset.forms[0]["payload"].value()
        client.post(urls[0], form([node("a", job_type="paper.login", payload=masked), node("b")], [], row))
        assert workflows.definition("w").definition.nodes[0].payload == payload
        client.post(urls[0], form([node("a", payload=masked), node("b")], [], row))
        assert workflows.definition("w").definition.nodes[0].type == "paper.login"

    def test_who_may_change_workflows_may_change_their_nodes(self, client: Client, nightly: Workflow) -> None:
        client.force_login(staff("view_workflow", "change_workflow"))

        client.post(change_url(nightly), form([node("extract"), node("load"), node("new")], [], nightly))

        assert workflows.definition("nightly").version == 2

    @pytest.mark.parametrize("page", ["versions", "file"])
    def test_a_page_of_a_workflow_asks_for_the_right_to_see_it(
        self, client: Client, nightly: Workflow, page: str
    ) -> None:
        client.force_login(staff("view_schedule"))

        assert client.get(reverse(f"admin:jobs_workflow_{page}", args=[nightly.pk])).status_code == 403

    def test_deleting_one_is_written_down(self, admin_client: Client, nightly: Workflow) -> None:
        admin_client.post(reverse("admin:jobs_workflow_delete", args=[nightly.pk]), {"post": "yes"})

        assert workflows.names() == []
        assert AuditEntry.objects.filter(action="workflow.delete", who="admin", source="admin").count() == 1


def test_no_page_needs_an_inline_script_or_style(admin_client: Client, nightly: Workflow) -> None:
    for url in (LIST, ADD, change_url(nightly), reverse("admin:jobs_workflow_versions", args=[nightly.pk])):
        page = admin_client.get(url).content.decode()
        assert "<style" not in page
        assert ' style="' not in page
        assert " onclick=" not in page


def test_the_list_says_how_large_each_is_and_which_version(admin_client: Client, nightly: Workflow) -> None:
    page = admin_client.get(LIST).content.decode()

    assert '<td class="field-node_count">2</td>' in page
    assert '<td class="field-version">1</td>' in page
