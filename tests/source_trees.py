"""Syntax trees of the package's sources, parsed and walked once a process for all tests that read them."""

import ast
from functools import cache
from pathlib import Path

import fsm_dyn

PACKAGE = Path(fsm_dyn.__file__).parent


@cache
def modules():
    """Return the paths of all Python sources of the package, sorted."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def tree(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path):
    """Return all nodes of the syntax tree of a file, in the order of ``ast.walk``."""
    return tuple(ast.walk(tree(path)))
