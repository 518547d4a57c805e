"""The parts stand in one order and import only what stands before them; no cycles, and no SymPy at run time."""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import fsm_dyn
from tests.source_trees import PACKAGE, modules, nodes

ROOT = Path(__file__).parents[1]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

# From the bottom up, as docs/architecture.md describes it. Parts of one line do not know each other.
ORDER = [
    ["core"],
    ["runtime"],
    ["programs", "draw"],
    ["language"],
    ["derive"],
    ["automaton"],
    ["run"],
    ["plot", "analysis"],
    ["live"],
    ["devices", "page"],
    ["exports"],
    ["__init__"],
    ["cli"],
    ["__main__"],
]
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}

# Where SymPy may be imported: in the derivation, which also prints equations for people.
SYMPY_AT_HOME = "derive"


def dotted(path):
    parts = ["fsm_dyn", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


KNOWN = {dotted(path) for path in modules()}


@cache
def imports(path):
    """Every module imported anywhere in a file: in functions and for annotations too."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in KNOWN else node.module)
    return found


def part(module):
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def test_imports_follow_the_order():
    against = []
    for path in modules():
        own = part(dotted(path))
        assert own in RANK, f"the part '{own}' has no place in the order"
        for module in imports(path):
            if module.split(".")[0] == "fsm_dyn" and part(module) != own and RANK[part(module)] >= RANK[own]:
                against.append(f"{dotted(path)} imports {module}")
    assert against == []


def section(title):
    """Rows of the table in a section of docs/architecture.md, without its heading, as lists of cells."""
    text = ARCHITECTURE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_table_of_parts_is_complete_and_in_order():
    documented = [re.findall(r"`(\w+)`", row[0]) for row in section("The parts")]
    parts = [name for names in documented for name in names]
    assert sorted(parts) == sorted(set(RANK) - {"__init__"})
    assert [RANK[name] for name in parts] == sorted(RANK[name] for name in parts)


def test_where_does_it_live_names_existing_files():
    rows = section("Where does it live?")
    assert len(rows) == 10
    for _, path in rows:
        assert (ROOT / path.strip("`")).is_file(), path


def test_every_public_name_is_stable_or_provisional():
    rows = section("Public names")
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(names) == sorted(fsm_dyn.__all__)
    assert all(re.search("stable|provisional", row[2]) for row in rows)


def pages():
    return [path for path in sorted((ROOT / "docs").rglob("*.md")) if "gallery" not in path.parts]


@pytest.mark.parametrize("page", pages(), ids=lambda path: path.relative_to(ROOT / "docs").as_posix())
def test_modules_and_files_named_in_pages_exist(page):
    """Dotted names and paths of the package in backticks; what comes after a module is an attribute of it."""
    text = page.read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"`(fsm_dyn/[\w/.]+)`", text) if not (ROOT / name).exists()]
    for name in re.findall(r"`(fsm_dyn\.\w+(?:\.\w+)*)", text):
        module = max((known for known in KNOWN if f"{name}.".startswith(f"{known}.")), key=len)
        attributes = name[len(module) + 1 :].split(".") if name != module else []
        if attributes and not hasattr(importlib.import_module(module), attributes[0]):
            missing.append(name)
    assert missing == []


def test_functions_of_the_runtime_named_in_its_page_exist():
    text = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted((PACKAGE / "runtime").glob("*.[ch]")))
    missing = {
        name
        for name in set(re.findall(r"\bfsm_[a-z_]+\b", text)) - {"fsm_dyn", "fsm_runtime"}
        if not re.search(rf"\b{name}\b", sources)
    }
    files = {name for name in re.findall(r"\b([a-z_]+\.[ch])\b", text) if not (PACKAGE / "runtime" / name).is_file()}
    assert missing | files == set()


# File names that several folders have: one thing at several stages, which the folders name.
ONE_MEANING = {
    "gamepad": "a device: driver, emulator",
    "hapkit": "a device: driver, emulator",
    "inverse3": "a device: driver, emulator",
    "pantograph": "a device: driver, emulator",
    "replay": "a recording played again: the run, the motion of its device",
    "run": "a run: what was recorded of it, the command",
    "study": "a study: runs, figure, command",
    "udp": "a device: driver, emulator",
}
UNSPECIFIC = {"base", "common", "core", "helpers", "misc", "tools", "util", "utils"}


def test_a_file_name_has_one_meaning():
    """No name joins two concepts, none is unspecific, and what several folders call the same is the same."""
    sources = [path for suffix in ("py", "c", "h", "js") for path in sorted(PACKAGE.rglob(f"*.{suffix}"))]
    own = [path for path in sources if "vendor" not in path.parts and path.stem not in ("__init__", "__main__")]
    assert [path.name for path in own if {"and", "or"} & {*path.stem.split("_")}] == []
    assert [path.name for path in own if path.stem in UNSPECIFIC] == []
    folders = Counter(path.stem for path in own if path.suffix == ".py")
    assert {name for name, count in folders.items() if count > 1} == ONE_MEANING.keys()


def test_there_are_no_cycles():
    graph = nx.DiGraph()
    for path in modules():
        for module in imports(path) & KNOWN:
            if module != dotted(path):
                graph.add_edge(dotted(path), module)
    cycles = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    assert cycles == []


def test_sympy_stays_in_the_derivation():
    using = {dotted(path): {m.split(".")[0] for m in imports(path)} & {"sympy", "mpmath"} for path in modules()}
    elsewhere = {module: used for module, used in using.items() if used and part(module) != SYMPY_AT_HOME}
    assert elsewhere == {"fsm_dyn.automaton.proof_check": {"mpmath"}}  # the check of geometric proofs, on demand


# Parts that a process may load which only steps a compiled automaton: `language` reads the model's text, `draw`
# shortens labels, and of `derive` the modules that embed modes first reached.
RUNNING = {"core", "runtime", "programs", "draw", "language", "automaton", "run", "live", "devices"}
EMBEDDING = {
    "assembly", "elimination", "embedding", "enumeration", "guards", "mode_programs", "tree_embedding",
    "unconstrained_system",
}  # fmt: skip
DERIVATION = {"fsm_dyn.automaton.compilation", "fsm_dyn.core.processes", "fsm_dyn.language.builder"}


def deriving(loaded):
    """Those of the modules loaded that a process has no use for which only steps a compiled automaton."""
    own = {name for name in loaded if name.startswith("fsm_dyn.")}
    allowed = RUNNING | {"derive"}
    strange = own & DERIVATION | {name for name in own if part(name) not in allowed}
    strange |= {name for name in own if part(name) == "derive" and name.count(".") == 2} - {
        f"fsm_dyn.derive.{name}" for name in EMBEDDING
    }
    return sorted(strange | set(loaded) & {"sympy", "mpmath", "matplotlib"})


def test_nothing_executes_text():
    """No eval, exec, pickle or parser of SymPy's on a user's text."""
    against = []
    for path in modules():
        names = {x.func.id for x in nodes(path) if isinstance(x, ast.Call) and isinstance(x.func, ast.Name)}
        bad = names & {"eval", "exec", "compile", "__import__", "sympify", "parse_expr"}
        bad |= {module.split(".")[0] for module in imports(path)} & {"pickle", "shelve", "marshal", "dill"}
        against += [f"{dotted(path)}: {name}" for name in bad]
    assert against == []


def test_a_saved_automaton_runs_without_the_derivation(tmp_path):
    fsm_dyn.compile("pendulum_with_stop").save(tmp_path / "pendulum.json")
    code = f"""
import sys
import fsm_dyn
graph = fsm_dyn.open_graph({str(tmp_path / "pendulum.json")!r})
trajectory = fsm_dyn.simulate(graph, until=0.5)
assert trajectory.transitions, "it should strike the stop"
trajectory.energy, trajectory.multipliers
assert "<svg" in graph._repr_html_() and "<svg" in trajectory._repr_html_()
print(*sys.modules, sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert deriving(done.stdout.split()) == []


# Where a name is taken apart for something else than its role: to typeset it, to shorten it, to name a class, to read
# the left side of an equation or a quantity of a connection, or the connection that several constraints form.
TAKEN_APART = {
    "fsm_dyn.programs.sources", "fsm_dyn.derive.unconstrained_system", "fsm_dyn.derive.printing",
    "fsm_dyn.runtime.abi_build", "fsm_dyn.derive.pin_forces", "fsm_dyn.language.check_references",
    "fsm_dyn.analysis.equation_check", "fsm_dyn.language.requirement", "fsm_dyn.programs.pin_programs",
}  # fmt: skip
FILES = {".yaml", ".json", ".mcap", ".c", ".h"}


def names_taken_apart(path):
    """Lines that look at what a name ends with, or at its parts between underscores."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            wanted, given = node.func.attr, [n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant)]
            texts = [text for text in given if isinstance(text, str)]
            ending = wanted in ("endswith", "removesuffix") and {*texts} - FILES - {"_"}
            parting = wanted in ("split", "rsplit", "partition", "rpartition") and "_" in texts
            if (ending and any(text.startswith((".", "_")) for text in texts)) or parting:
                yield f"{dotted(path)}:{node.lineno} {wanted}({', '.join(texts)})"


def test_no_role_is_read_from_a_name():
    """What a name stands for is a field of the data that has the name."""
    found = [line for path in modules() if dotted(path) not in TAKEN_APART for line in names_taken_apart(path)]
    assert found == []
    assert {line.split(":")[0] for path in modules() for line in names_taken_apart(path)} == TAKEN_APART


def test_tests_import_each_other_through_packages():
    """No module of the tests is put into sys.modules by hand, or found by its path."""
    by_hand = re.compile(r"sys\.modules\[[^]]+\]\s*=|spec_from_file_location\((?!\"other\")")
    against = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != Path(__file__) and (found := by_hand.search(path.read_text(encoding="utf-8")))
    ]
    assert against == []


def test_no_name_of_a_class_is_defined_twice():
    """Every driver of a device has a class ``Driver``, as the contract of drivers demands."""
    names = Counter(node.name for path in modules() for node in nodes(path) if isinstance(node, ast.ClassDef))
    assert names.pop("Driver") > 1
    assert {name for name, count in names.items() if count > 1} == set()


MOST_STATEMENTS, MOST_LINES, LONGEST_FUNCTION = 51, 900, 60
#: generated: a line for each constant of the headers of the runtime, and for each key of the language
LONGER = {"abi.py": 2000, "builder_methods.py": 1200}


def test_functions_and_files_stay_short():
    """As in C, where tests/runtime/test_layers.py counts lines; those of a docstring do not count."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    for path in modules():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= LONGER.get(path.name, MOST_LINES), dotted(path)
        for node in nodes(path):
            if isinstance(node, functions):
                count = sum(isinstance(each, ast.stmt) for each in ast.walk(node)) - 1
                assert count <= MOST_STATEMENTS, f"{dotted(path)}.{node.name}: {count} statements"
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if ast.get_docstring(node) is not None:
                    lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
                assert lines <= LONGEST_FUNCTION, f"{dotted(path)}.{node.name}: {lines} lines"


def test_unit_tests_mirror_the_parts():
    """A folder for each package; the tests of exports and of the runtime are folders beneath tests."""
    packages = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    folders = {path.name for path in (ROOT / "tests" / "unit").iterdir() if any(path.glob("*.py"))}
    assert folders == packages - {"exports", "runtime"}
    assert all((ROOT / "tests" / name).is_dir() for name in ("exports", "runtime"))


def repeated_code(folder, *paths):
    """Return what pylint reports of repeated code, with the settings of the project."""
    command = [sys.executable, "-m", "pylint", f"--rcfile={ROOT / 'pyproject.toml'}", "--score=no", *map(str, paths)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 8), done.stderr  # 8: what it calls a refactoring message
    return done.stdout


@pytest.mark.parametrize("count", [7, 8])
def test_repeated_code_is_found_from_eight_lines_on(count, tmp_path):
    pytest.importorskip("pylint")
    lines = "".join(f"value_{k} = {k}\n" for k in range(count))
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text(f"{name} = 1\n{lines}{name}_more = 2\n", encoding="utf-8")
    assert ("R0801" in repeated_code(tmp_path, "one.py", "other.py")) == (count == 8)
