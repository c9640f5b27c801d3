"""The documentation: complete, true to the code where it is made from it, and without dead links."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from jobs import Workflow
from jobs.core.states import TRANSITIONS, JobState

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def generated() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def test_the_reference_is_what_the_code_says():
    stale = [name for name, text in generated().items() if (DOCS / "reference" / name).read_text() != text]

    assert not stale, f"run `make docs`: {stale}"


def test_the_guide_knows_every_reason_why_a_job_does_not_run():
    source = (ROOT / "jobs" / "engine" / "explain.py").read_text()
    codes = re.findall(r'(?:code=|_pause\(\s*)"(\w+)"', source)

    _title, *told = re.findall(r"^\| `(\w+)` \|", (DOCS / "guides" / "why.md").read_text(), re.MULTILINE)

    assert sorted(told) == sorted(codes)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_whole(page):
    """A row that stands by itself, after an empty line say, is shown as text."""
    for block in re.split(r"\n\s*\n", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert not rows or set(rows[1 % len(rows)]) <= set("|-: "), rows[0]


def test_every_page_can_be_reached_from_the_index():
    linked = set(re.findall(r"\]\(([^)#\s]+)", (DOCS / "index.md").read_text()))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"index.md"}

    assert pages - linked == set()


def test_workflows_in_the_documentation_can_be_read_and_everything_that_writes_one_is_told():
    text = (DOCS / "guides/workflows.md").read_text()
    documents = re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    assert documents
    assert all(Workflow.from_json(each).definition() for each in documents)
    writers = {name for name in vars(Workflow) if not name.startswith("_")} - {"definition", "as_dict"}
    assert not [name for name in (*writers, "ctx.workflow.add", "add_many") if name not in text]


def test_the_lifecycle_names_every_state_and_every_way_out():
    text = (DOCS / "lifecycle.md").read_text()
    rows = {match[1]: match[0] for match in re.finditer(r"^\| `(\w+)` \|.*$", text, re.MULTILINE)}

    for state in JobState:
        row = rows[state.value]
        missing = [target.value for target in TRANSITIONS[state] if f"`{target.value}`" not in row]
        assert not missing, f"{state.value}: {missing}"


def test_every_service_of_worker_hosts_is_in_the_architecture():
    rows = re.findall(r"^\| ([\w, ]+) \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    told = {name for row in rows for name in row.split(", ")}
    sources = [path.read_text() for path in (ROOT / "jobs" / "services").glob("*.py")]
    services = {name for source in sources for name in re.findall(r'^    name = "([\w ]+)"$', source, re.MULTILINE)}

    assert {"relay", "promoter"} <= services
    assert services - told == set()


def test_every_make_target_in_the_menu_explains_itself():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    explained = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))

    assert targets == explained


def test_no_file_names_the_place_where_it_was_written():
    """Absolute paths of one machine are of no use on another."""
    places = {str(ROOT), str(Path.home())} - {"/"}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in listed:
        path = ROOT / name
        if path.suffix in {".py", ".md", ".sh", ".toml", ".txt", ".lua", ".html", ".js", ".css", ""} and path.is_file():
            text = path.read_text(errors="ignore")
            assert not [place for place in places if f"{place}/" in text], name


def test_modules_have_names_that_say_something():
    vague = {"utils", "util", "helpers", "helper", "common", "misc"}

    assert not [path for path in ROOT.glob("[a-z]*/**/*.py") if path.stem in vague and ".venv" not in path.parts]
