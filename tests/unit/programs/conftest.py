"""Random programs and a C compiler, for the tests of straight-line programs."""

import ctypes
import itertools
import shutil
import subprocess

import numpy as np
import pytest

from fsm_dyn.programs.graph import OPERATIONS, ExpressionGraph
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import rebuild

SMOOTH = ("neg", "add", "sub", "mul", "sin", "cos", "tanh", "atan")
LAYOUT = Layout(q=("q1", "q2"), u=("u1", "u2"), p=("m", "lip[0]"), w=("push",), contacts=("tip",), memory=("hits",))


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """Keep machine code made by these tests away from the user's cache, which the tests after them go on using."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FSM_DYN_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def layout():
    return LAYOUT


@pytest.fixture
def random_program():
    """Return a function that makes a program whose outputs are all its intermediate values."""

    def make(seed, size=60, ops=tuple(OPERATIONS)):
        rng = np.random.default_rng(seed)
        graph = ExpressionGraph()
        nodes = [graph.symbol(name) for name in LAYOUT.arguments]
        nodes += [graph.constant(value) for value in (0.5, -2.0, 3.0, 1.5)]
        while len(nodes) < size:
            op = ops[rng.integers(len(ops))]
            operands = [nodes[-rng.integers(1, min(len(nodes), 25) + 1)] for _ in range(OPERATIONS[op].arity)]
            node = rebuild(graph, op, operands)
            if node.constant_value is None and node not in nodes:
                nodes.append(node)
        return Program.from_nodes(LAYOUT, {"all": [node for node in nodes if node.operands]})

    return make


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory):
    """Return a function from C source and a name to a Python function ``(t, x, c, size) -> out``."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    directory, numbers = tmp_path_factory.mktemp("c"), itertools.count()

    def build(source, name, *flags):
        stem = directory / f"unit{next(numbers)}"
        stem.with_suffix(".c").write_text(source)
        command = [compiler, "-std=c99", "-O0", "-Wall", "-Wextra", "-Werror", *flags, "-shared", "-fPIC"]
        subprocess.run([*command, stem.with_suffix(".c"), "-o", stem.with_suffix(".so"), "-lm"], check=True)
        function = getattr(ctypes.CDLL(str(stem.with_suffix(".so"))), name)
        function.argtypes = [ctypes.c_double] + 3 * [ctypes.c_void_p]
        function.restype = None

        def call(t, x, c, size):
            x, c, out = np.array(x, dtype=float), np.array(c, dtype=float), np.empty(size)
            function(t, x.ctypes.data, c.ctypes.data, out.ctypes.data)
            return out

        return call

    return build
