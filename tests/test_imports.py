"""Every name that tests, benchmarks, pages and shipped mechanisms import from this repository exists where they look.

Imports within functions, in code blocks of pages and in programs written as texts are only met when their lines run; a
module or name that has moved is found here at once, by the texts alone.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import fsm_dyn
from tests.source_trees import tree

ROOT = Path(__file__).parents[1]
FOLDERS = ("tests", "mechanisms", "docs", "fsm_dyn")
NAMES = r"\([\w\s,#.:'-]*\)|\w+(?: as \w+)?(?:, *\w+(?: as \w+)?)*"
IMPORT = re.compile(rf"(?<![\w.])(?:from ((?:fsm_dyn|tests|mechanisms)[\w.]*) import ({NAMES})|import (fsm_dyn[\w.]+))")


def imported(text):
    """Yield the modules and names that a text imports; of a module alone, an empty name."""
    for module, names, alone in IMPORT.findall(text):
        if alone:
            yield alone.rstrip("."), ""
        for entry in re.sub(r"#.*", "", names).strip("()").split(","):
            if entry.strip():
                yield module, entry.split()[0]


def sources():
    folders = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md"))
    return [ROOT / "README.md", *sorted(folders)]


@cache
def file_of(module):
    place = ROOT.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None)


@cache
def text_of(path):
    return path.read_text("utf-8")


def bound(path):
    """Return the names that the statements of a module bind, those within its blocks too."""
    names, waiting = set(), list(tree(path).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        else:
            waiting += ast.iter_child_nodes(node)
    return names


@cache
def exists(module, name):
    path = file_of(module)
    if path is None:
        return ROOT.joinpath(*module.split(".")).is_dir() and (not name or file_of(f"{module}.{name}") is not None)
    if not name or file_of(f"{module}.{name}") or (module == "fsm_dyn" and hasattr(fsm_dyn, name)):
        return True
    usual = re.search(rf"^(?:def|class) {name}\b|^{name}(?:: [^=\n]+)? = ", text_of(path), re.MULTILINE)
    return usual is not None or name in bound(path)


def lost(path):
    missing = dict.fromkeys(item for item in imported(text_of(path)) if not exists(*item))
    return [f"{path.relative_to(ROOT)}: from {module} import {name or '...'}" for module, name in missing]


def test_every_imported_name_exists():
    others = [path for path in sources() if path != Path(__file__)]  # this one has planted faults
    assert [line for path in others for line in lost(path)] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("    from fsm_dyn.run.loop import run_automaton, run_automatic", ["run_automatic"]),
        ("from fsm_dyn.run.loop import (\n    run_automaton,  # of one\n    gone,\n)", ["gone"]),
        ("program = 'import sys; from fsm_dyn.run.moved import rows'", ["rows"]),
        ("from fsm_dyn.run import loop, circle\nimport fsm_dyn.run.loop, sys", ["circle"]),
        ("import fsm_dyn.run.circle", [""]),
        ("from fsm_dyn import simulate as run, simulates", ["simulates"]),
        ("from tests.source_trees import tree, forest", ["forest"]),
    ],
)
def test_a_name_that_is_gone_is_found(line, found):
    assert [name for module, name in imported(line) if not exists(module, name)] == found
