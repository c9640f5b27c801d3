"""No module of the product needs another that needs it: what is read first can be understood first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("jobs", "dashboard", "samples", "scheduler_project")


def test_no_modules_import_each_other_in_a_circle_not_even_late() -> None:
    """Inside functions and by ``import_module`` too, where a circle is hidden from ``lint-imports``; names that only
    types need are no part of it."""
    modules = {_name(path): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    graph = {name: {found for found in _imports(path, modules) if found != name} for name, path in modules.items()}
    assert len(graph["jobs.runtime.relaying"]) > 5

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' → '.join(error.args[1])}") from None


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imports(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    for node in _nodes(ast.parse(path.read_text())):
        match node:
            case ast.Import(names):
                wanted = [alias.name for alias in names]
            case ast.ImportFrom(str(module), names):
                inside = [f"{module}.{alias.name}" for alias in names]
                wanted = [each if each in modules else module for each in inside]
            case ast.Call(ast.Name("import_module"), [ast.Constant(str(module)), *_]):
                wanted = [module]
            case _:
                continue
        yield from (module for module in wanted if module in modules)


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _nodes(child)
