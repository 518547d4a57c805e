"""The parts stand in one order and import only what stands before them; no cycles, and no SymPy at run time."""

import ast
import subprocess
import sys
from pathlib import Path

import networkx as nx

import fsm_dyn

PACKAGE = Path(fsm_dyn.__file__).parent

# From the bottom up, as docs/architecture.md describes it. Parts of one line do not know each other.
ORDER = [
    ["errors", "interrupts", "renamed"],
    ["schemata", "processes"],
    ["runtime"],
    ["programs", "models", "graphics"],
    ["expressions", "laws"],
    ["spec"],
    ["symbolic"],
    ["modes"],
    ["automaton"],
    ["simulation"],
    ["online"],
    ["results"],
    ["plot"],
    ["compilation", "run_inputs"],
    ["resumption"],
    ["simulator"],
    ["simulation_api"],
    ["analysis", "live"],
    ["passivity"],
    ["devices", "viewer"],
    ["__init__"],
    ["cli"],
]
RANK = {part: rank for rank, parts in enumerate(ORDER) for part in parts}

# Where SymPy may be imported: in the derivation, which also prints equations for people.
SYMPY_AT_HOME = "symbolic"


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def dotted(path):
    parts = ["fsm_dyn", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


KNOWN = {dotted(path) for path in modules()}


def imports(path):
    """Every module imported anywhere in a file: in functions and for annotations too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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


def test_there_are_no_cycles():
    graph = nx.DiGraph()
    for path in modules():
        for module in imports(path) & KNOWN:
            if module != dotted(path):
                graph.add_edge(dotted(path), module)
    cycles = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
    assert cycles == []


def test_sympy_stays_in_the_derivation():
    using = {part(dotted(path)) for path in modules() if {m.split(".")[0] for m in imports(path)} & {"sympy", "mpmath"}}
    assert using <= {SYMPY_AT_HOME}


def test_nothing_executes_text():
    """No eval, exec, pickle or parser of SymPy's on whatever a user wrote."""
    against = []
    for path in modules():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {x.func.id for x in ast.walk(tree) if isinstance(x, ast.Call) and isinstance(x.func, ast.Name)}
        bad = names & {"eval", "exec", "compile", "__import__", "sympify", "parse_expr"}
        bad |= {module.split(".")[0] for module in imports(path)} & {"pickle", "shelve", "marshal", "dill"}
        against += [f"{dotted(path)}: {name}" for name in bad]
    assert against == []


def test_a_saved_automaton_runs_without_sympy(tmp_path):
    fsm_dyn.compile("pendulum_with_stop").save(tmp_path / "pendulum.json")
    code = f"""
import sys
import fsm_dyn
graph = fsm_dyn.open_graph({str(tmp_path / "pendulum.json")!r})
trajectory = fsm_dyn.simulate(graph, until=0.5)
assert trajectory.transitions, "it should strike the stop"
trajectory.energy, trajectory.multipliers
assert "<svg" in graph._repr_html_() and "<svg" in trajectory._repr_html_()
print(sorted({{name.split(".")[0] for name in sys.modules}} & {{"sympy", "mpmath", "matplotlib"}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
