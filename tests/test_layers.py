"""The direction of imports, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.fresh import modules_after

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "condviz"
FILES = sorted(PACKAGE.rglob("*.py"))

# A part may import from parts with a lower number, and from itself. Parts of one number do not know each other.
LEVELS = {
    "errors": 0,
    "paths": 0,
    "types": 0,
    "__version__": 0,
    "spec": 1,
    "encoder": 2,
    "data": 2,
    "methods": 4,
    "models": 5,
    "evaluation": 6,
    "analysis": 7,
    "store": 6,
    "training": 8,
    "plots": 9,
    "interop": 9,
    "cli": 11,
    "ui": 10,
    "__main__": 12,
}
SHARED = {"base", "catalog", "routing", "encoders", "under"}
"""Modules of condviz.methods that hold no method themselves."""
SAVING = {
    "condviz.models.manifest.check_replaceable",
    "condviz.models.registry.load",
    "condviz.models.checkpoints.export",
}
LIGHT = {"torch", "condviz.encoder", "condviz.models", "condviz.methods"}
"""What figures are not allowed to know: they turn finished results into pictures."""


def part(path: Path) -> str:
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py")


@cache
def imports(path: Path, *, top_level: bool = False) -> tuple[str, ...]:
    """Return the dotted name of every import; with `top_level` only of those that run when the module is imported."""
    package = [*path.relative_to(ROOT).with_suffix("").parts]

    def visit(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = package[: -child.level] if child.level else []
                module = ".".join([*base, *([child.module] if child.module else [])])
                # `from condviz import types` names a module, `from condviz.types import Pair` a name in one.
                yield from (f"{module}.{alias.name}" for alias in child.names)
            elif not (top_level and (isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _typing_only(child))):
                yield from visit(child)

    return tuple(visit(parse(path)))


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def users(module: str, *, top_level: bool = False) -> set[str]:
    """Give the files of the package that import a third-party module."""
    return {
        path.relative_to(PACKAGE).as_posix()
        for path in FILES
        if any(name.split(".")[0] == module for name in imports(path, top_level=top_level))
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_down(path: Path) -> None:
    own = part(path)
    if own == "__init__":
        return
    assert own in LEVELS, f"condviz/{own} has no level yet: add it to LEVELS where it belongs."
    for name in imports(path):
        words = name.split(".")
        if words[0] != "condviz" or len(words) < 2 or words[1] == own:
            continue
        if (own, name) == ("types", "condviz.plots.to_html"):
            continue  # a result draws itself in a notebook; imported when that is asked for
        if own == "methods" and name in SAVING:
            continue  # a model saves and loads itself, as in other libraries; imported when that is asked for
        assert words[1] in LEVELS, f"{path.name} imports {name}: say which module of condviz it means."
        assert LEVELS[words[1]] < LEVELS[own], f"{path.name} ({own}) imports {name}: that points up."


def test_each_toolkit_stays_in_its_place() -> None:
    assert all(file.startswith("ui/") for file in users("gradio"))
    assert all(file.startswith("plots/") for file in users("plotly"))
    assert users("umap") <= {"analysis/layout.py"}
    assert users("umap", top_level=True) == set()
    assert users("spaces", top_level=True) == set()


def test_methods_do_not_know_each_other() -> None:
    for path in (PACKAGE / "methods").glob("*.py"):
        if path.stem != "__init__":
            known = {name.split(".")[2] for name in imports(path) if name.startswith("condviz.methods.")}
            assert known <= {*SHARED, path.stem}, f"{path.name} imports {sorted(known)}: share through base.py."


def test_figures_know_only_results() -> None:
    for path in (PACKAGE / "plots").rglob("*.py"):
        found = [name for name in imports(path) if any(name == low or name.startswith(f"{low}.") for low in LIGHT)]
        assert not found, f"{path.name} imports {found}."


def test_importing_the_package_loads_no_toolkit() -> None:
    heavy = {"torch", "gradio", "plotly", "umap", "sklearn", "pandas", "transformers", "datasets"}
    assert not modules_after("import condviz") & heavy
