"""Docstrings name classes that exist, and remedies name keys and functions that exist."""

import ast
import builtins
import re
from importlib import import_module

from fsm_dyn.language.describe_keys import json_schema
from fsm_dyn.runtime.abi import STATUS_TEXTS, Status
from tests.source_trees import PACKAGE, modules, nodes, tree

TYPED = re.compile(r"^[\w*, .`]+ : (.*)")
SECTION = re.compile(r"(Parameters|Attributes|Other Parameters|Returns|Yields|Raises|Warns|Notes|See Also|Examples)")
ROLE = re.compile(r":(?:class|exc):`~?(?:[\w.]*\.)?([A-Z]\w*)`")
#: SymPy's class, in the docstring of a method whose module imports SymPy whole.
ELSEWHERE = {"Symbol"}


def known_classes():
    """Classes of the package, those that it imports, aliases of types, and Python's own."""
    known = {*dir(builtins), *ELSEWHERE}
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                known |= {item.asname or item.name for item in node.names}
        for node in tree(path).body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            known |= {target.id for target in targets if isinstance(target, ast.Name)}
    return known


def classes_in(docstring):
    """Names of classes in the types of a docstring's sections, and in its references."""
    section = ""
    yield from ROLE.findall(docstring)
    for line in docstring.split("\n"):
        heading = SECTION.fullmatch(line)
        section = heading[1] if heading else section
        typed = TYPED.match(line)
        if section in ("Parameters", "Attributes", "Other Parameters"):
            text = typed[1] if typed else ""
        else:
            text = line if section in ("Returns", "Yields", "Raises") and line[:1].isalpha() and not heading else ""
        yield from re.findall(r"(?<![\w.`'\"])[A-Z][a-z]\w*", text)


def test_classes_in_docstrings_exist():
    example = (
        "Give :class:`~fsm_dyn.a.Gone`.\n\nParameters\n----------\nrun : RawRun\n\nReturns\n-------\nLost\n    It.\n"
    )
    assert list(classes_in(example)) == ["Gone", "RawRun", "Lost"]
    known = known_classes()
    gone = [
        f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 1)}: {name}"
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
        for name in classes_in(ast.get_docstring(node) or "")
        if name not in known
    ]
    assert gone == []


def remedies():
    """Place and text of every remedy: in arguments, after ``remedy:`` in texts, and of statuses."""
    for path in modules():
        for node in nodes(path):
            if isinstance(node, ast.keyword) and node.arg == "remedy":
                parts = [item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)]
                yield (
                    f"{path.relative_to(PACKAGE)}:{node.value.lineno}",
                    " ".join(part for part in parts if isinstance(part, str)),
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "remedy: " in node.value:
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node.value.split("remedy: ", 1)[1]

    yield from ((status.name, STATUS_TEXTS[status][2]) for status in Status)


def keys_of_the_language():
    """Every key of a model file that the schema knows."""
    found, waiting = set(), [json_schema()]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found |= set(part.get("properties", {}))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return found


def exists(dotted):
    """Whether a dotted name is a module, or an attribute of one."""
    parts = dotted.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for name in parts[k:]:
            found = getattr(found, name, None)
        return found is not None
    return False


def test_what_remedies_name_exists():
    keys = keys_of_the_language()
    assert {"impacts", "restitution_law", "on_inconsistent"} <= keys
    places = list(remedies())
    assert len(places) > 100
    for place, text in places:
        for name in re.findall(r"\bfsm_dyn(?:\.\w+)+", text):
            assert exists(name), f"{place}: {name}"
        for key in re.findall(r"\b([a-z]+(?:_[a-z]+)+): |(?<!\S)([a-z]+): [a-z]+$", text):
            assert {*key} - {""} <= keys, f"{place}: {text}"
