"""Docstrings follow numpydoc: parameters, results, errors and shapes of arrays where they are promised."""

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

import fsm_dyn
import fsm_dyn.plot
from tests.source_trees import PACKAGE, modules, nodes, tree

#: What a driver, a law, a method and an exporter are made of.
EXTENDED = ("language/laws.py", "live/driver_protocol.py", "run/integrators.py", "exports/export.py")

ROOT = Path(__file__).parents[1]
ELSEWHERE = re.compile(r"(are|is) (those|that) of\s+(:\w+:)?`")  # a docstring may refer to that of another function
ARRAY = re.compile(r"\b(Floats|NDArray|ndarray)\b")
UNDOCUMENTED = {"self", "cls", "_"}


def sections(text):
    """Text of every numpydoc section by its title."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def own_nodes(function):
    """The nodes of a function without those of functions inside it."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)


def raised(function):
    calls = [node.exc for node in own_nodes(function) if isinstance(node, ast.Raise) and node.exc is not None]
    names = [getattr(call.func if isinstance(call, ast.Call) else call, "id", "") for call in calls]
    return {name for name in names if name[:1].isupper()}


def lacking(function):
    """What the docstring of a function lacks, as text."""
    text = ast.get_docstring(function) or ""
    found = sections(text)
    marks = {ast.unparse(decorator) for decorator in function.decorator_list}
    if "overload" in marks:
        return []
    if not text:
        return ["a docstring"]
    missing = [f"Raises {name}" for name in sorted(raised(function)) if name not in found.get("Raises", "")]
    if ELSEWHERE.search(text) or marks & {"property", "cached_property"}:
        return missing
    names = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    documented = found.get("Parameters", "")
    for parameter in names:
        if parameter.arg in UNDOCUMENTED or parameter.arg.startswith("_"):
            continue
        entry = re.search(rf"^[^\n]*\b{parameter.arg}\b[^\n]*(\n +[^\n]*|\n(?=\n))*", documented, re.MULTILINE)
        if entry is None and len(names) <= 2 and re.search(rf"\b{parameter.arg}\b", text.split("\n\n")[0]):
            continue  # "Return the word of an event"
        if entry is None:
            missing.append(f"parameter {parameter.arg}")
        elif parameter.annotation and ARRAY.search(ast.unparse(parameter.annotation)) and "shape" not in entry[0]:
            missing.append(f"shape of {parameter.arg}")
    returns = function.returns is not None and ast.unparse(function.returns) not in ("None", "NoReturn", "Self")
    # a summary with the result is enough, as in "Return the mode of this name" or "Write a file and return its path"
    if (
        returns
        and not {"Returns", "Yields"} & set(found)
        and not re.match(r"Return|Whether|How (many|much)|Yield", text)
        and not re.search(r"\breturn\b", text.split("\n\n")[0])
    ):
        missing.append("Returns")
    return missing


def functions_of(node):
    return [f for f in node.body if isinstance(f, ast.FunctionDef) and not f.name.startswith("_")]


def report(path, functions, prefix=""):
    where = path.relative_to(PACKAGE).as_posix()
    return [f"{where}: {prefix}{f.name}: {', '.join(found)}" for f in functions if (found := lacking(f))]


def classes_of(path, names=None):
    found = [c for c in tree(path).body if isinstance(c, ast.ClassDef) and not c.name.startswith("_")]
    return [c for c in found if names is None or c.name in names]


def of_classes(path, names=None):
    return [row for c in classes_of(path, names) for row in report(path, functions_of(c), f"{c.name}.")]


def source_of(value):
    return Path(inspect.getsourcefile(inspect.unwrap(value)))


PUBLIC = {name: getattr(fsm_dyn, name) for name in fsm_dyn.__all__}


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if not inspect.isclass(value)])
def test_public_function(name):
    path, found = source_of(PUBLIC[name]), PUBLIC[name].__name__
    functions = [f for f in functions_of(tree(path)) if f.name == found]
    assert functions, "not found where it is loaded from"
    assert report(path, functions) == []


def test_methods_of_public_classes():
    classes = [value for value in PUBLIC.values() if inspect.isclass(value)]
    assert [row for c in classes for row in of_classes(source_of(c), {c.__name__})] == []


@pytest.mark.parametrize("file", EXTENDED)
def test_what_extenders_use(file):
    path = PACKAGE / file
    assert report(path, functions_of(tree(path))) + of_classes(path) == []


def main_functions(path):
    """The function that a module is named after, or its only public one."""
    functions = functions_of(tree(path))
    return [f for f in functions if f.name == path.stem] or (functions if len(functions) == 1 else [])


def unstated(function):
    """Errors and shapes that the docstring of an internal function leaves out, in any form."""
    text = ast.get_docstring(function)
    if not text:
        return ["a docstring"]
    if ELSEWHERE.search(text):
        return []
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    arrays = [a.arg for a in arguments if a.annotation and ARRAY.search(ast.unparse(a.annotation))]
    shaped = re.search(r"\bshapes?\b|\(n", text)
    return [f"raises {name}" for name in sorted(raised(function)) if name not in text] + [
        f"shape of {name}" for name in arrays if not name.startswith("_") and not shaped
    ]


def test_main_functions_of_modules():
    # a docstring of a command is the help that its user reads
    paths = [p for p in sorted(PACKAGE.rglob("*.py")) if p.relative_to(PACKAGE).parts[0] != "cli"]
    found = {f"{path.name}: {f.name}": unstated(f) for path in paths for f in main_functions(path)}
    assert {name: lacks for name, lacks in found.items() if lacks} == {}


def documented():
    """Names that texts and shipped mechanisms import, that fsm_dyn and its figures offer, and classes these return."""
    texts = [
        p.read_text("utf-8") for p in [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("mechanisms/*.py")]
    ]
    names = {*fsm_dyn.__all__, *fsm_dyn.plot.__all__, "Driver"}
    for text in texts:
        names.update(re.findall(r"\bfsm_dyn(?:\.\w+)*\.(\w+)", text))
        for group in re.findall(r"from fsm_dyn[\w.]* import (\([^)]*\)|.*)", text):
            names.update(re.findall(r"\w+", group))
    top = defaultdict(list)
    for node in (n for path in modules() for n in tree(path).body if isinstance(n, ast.FunctionDef | ast.ClassDef)):
        top[node.name].append(node)
    waiting = [node for name in names for node in top.get(name, ())]
    while waiting:
        node = waiting.pop()
        own = node.body if isinstance(node, ast.ClassDef) else ()
        read = [n.annotation for n in own if isinstance(n, ast.AnnAssign)] + [*getattr(node, "bases", ())]
        read += [f.returns for f in (functions_of(node) if own else [node]) if f.returns]
        new = {word for n in read for word in re.findall(r"\w+", ast.unparse(n))} - names
        waiting += [inner for name in new for inner in top.get(name, ())]
        names |= new
    return names


def superfluous(node, where=""):
    """Functions and classes within a node that have sections although no text leads to them."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef):
            name = f"{where}{inner.name}"
            if {"Parameters", "Returns", "Raises", "Attributes"} & sections(ast.get_docstring(inner) or "").keys():
                yield name
            yield from superfluous(inner, f"{name}.")


def test_sections_of_documented_names_and_extension_points_only():
    # elsewhere a sentence has shapes, units and errors, and the comment of a field has its facts
    names, found = documented(), []
    for path in modules():
        file = path.relative_to(PACKAGE).as_posix()
        if file not in EXTENDED and file.split("/")[0] not in ("cli", "runtime"):
            found += [f"{file}: {n}" for n in superfluous(tree(path)) if n.split(".")[0] not in names]
    assert found == []


def run_together(text):
    """Entries of a docstring's parameters, results and attributes within the line of another one."""
    wanted = [found for title, found in sections(text).items() if title in ("Parameters", "Returns", "Attributes")]
    return [line for found in wanted for line in found.splitlines() if re.search(r"^\w.* : .*\s\w+ : ", line)]


def test_no_two_entries_share_a_line():
    kinds = (ast.FunctionDef, ast.ClassDef)
    found = [(p, ast.get_docstring(n) or "") for p in modules() for n in nodes(p) if isinstance(n, kinds)]
    assert [f"{path.name}: {line}" for path, text in found for line in run_together(text)] == []


def test_entries_in_one_line_are_found():
    text = "Do.\n\nParameters\n----------\nx : array y : float, optional\nz, w : array, shape (n : 3)\n"
    assert run_together(text) == ["x : array y : float, optional"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x: Floats) -> None:\n    '''Do.'''", ["parameter x"]),
        (
            "def f(x: Floats) -> None:\n    '''Do.\n\n    Parameters\n    ----------\n    x : array\n    '''",
            ["shape of x"],
        ),
        ("def f() -> int:\n    '''Do.'''", ["Returns"]),
        ("def f() -> int:\n    '''Return it.'''\n    raise InputError('no')", ["Raises InputError"]),
        ("def f(x: int) -> int:\n    pass", ["a docstring"]),
        ("def f(x: int) -> int:\n    '''Return ``x``.\n\n    Parameters\n    ----------\n    x : int\n    '''", []),
    ],
)
def test_what_lacks_is_found(source, expected):
    assert lacking(ast.parse(source).body[0]) == expected
