"""What the README shows is what a newcomer types first: its Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from jobs import job, workflows
from jobs.registry import registry

README = (Path(__file__).parents[2] / "README.md").read_text()
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL))


def test_the_code_of_the_readme_registers_enqueues_and_starts_what_it_says() -> None:
    with registry.restored():
        for name in ("report.extract", "report.load", "notify"):
            job(name)(lambda **_: None)
        shown = {"__name__": "shop.jobs"}
        exec(compile(CODE.replace('"email.send"', '"readme.send"'), "README.md", "exec"), shown)

        assert shown["handle"].state == "ready"
        assert registry.get("report.nightly").schedule is not None
        (run,) = workflows.list().items
        assert run.name == "month-end"
