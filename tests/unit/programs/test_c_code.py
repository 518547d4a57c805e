import numpy as np
import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.graph import OPERATIONS, ExpressionGraph
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.sources import to_c
from fsm_dyn.programs.traversal import rebuild


def test_it_reads_well(layout):
    graph = ExpressionGraph()
    q1, lip = graph.symbol("q1"), graph.symbol("lip[0]")
    source = to_c(Program.from_nodes(layout, {"gap": q1 * 2 - lip, "force": -1.5}), "gap")
    assert source.startswith("#include <math.h>\n")
    body = source[source.index("void gap(") :]
    assert body == (
        "void gap(double t, const double *restrict x, const double *restrict c, double *restrict out)\n"
        "{\n"
        "    (void)t, (void)x, (void)c, (void)out;\n"
        "    const double x_q1 = x[0];\n"
        "    const double c_lip_0_ = c[1];\n"
        "    const double v0 = 2.0 * x_q1;\n"
        "    const double v1 = v0 - c_lip_0_;\n"
        "    /* gap */\n"
        "    out[0] = v1;\n"
        "    /* force */\n"
        "    out[1] = (-1.5);\n"
        "}\n"
    )


def test_names_that_look_alike_in_c(compile_c):
    layout = Layout(q=("a.b", "a_b", "a-b", "a_b_", "θ", "φ"))
    graph = ExpressionGraph()
    program = Program.from_nodes(layout, {"all": [graph.symbol(name) * 2 for name in layout.q]})
    out = compile_c(to_c(program, "f"), "f")(0.0, np.arange(6.0), [], 6)
    np.testing.assert_array_equal(out, 2 * np.arange(6.0))


def test_every_operation_has_a_spelling(layout, compile_c):
    graph = ExpressionGraph()
    symbols = [graph.symbol(name) for name in ("q1", "q2", "u1")]
    nodes = [rebuild(graph, op, symbols[: operation.arity]) for op, operation in OPERATIONS.items()]
    nodes += [symbols[0] ** 1.5, symbols[0] ** 2.5]
    program = Program.from_nodes(layout, {"all": nodes})
    x, c = [0.4, 0.7, 0.2, 0.0], np.zeros(8)
    out = compile_c(to_c(program, "f"), "f")(0.0, x, c, len(nodes))
    np.testing.assert_allclose(out, program.evaluate(0.0, x, c)["all"], rtol=4e-16)


def test_output_names_cannot_leave_their_comment(layout, compile_c):
    program = Program.from_nodes(layout, {'*/ system("true"); /*': 1.0, "a\nb": 2.0})
    source = to_c(program, "f")
    assert "system(" not in source
    assert list(compile_c(source, "f")(0.0, np.zeros(4), np.zeros(8), 2)) == [1.0, 2.0]


@pytest.mark.parametrize("name", ["", "1f", "f g", "f()", "while", "é"])
def test_names_of_functions(layout, name):
    with pytest.raises(InputError, match="identifier"):
        to_c(Program.from_nodes(layout, {"a": 1.0}), name)
