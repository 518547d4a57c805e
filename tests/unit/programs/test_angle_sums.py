"""Sines of sums from the sines of the parts."""

import numpy as np

from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.sources import share_angles

LAYOUT = Layout(q=("a", "b", "c"), p=("p",))


def check(build):
    """Return the numbers of sine and cosine calls before and after, values compared at arbitrary angles."""
    graph = ExpressionGraph()
    outputs = build(*[graph.symbol(name) for name in "abcp"])
    program = Program.from_nodes(LAYOUT, {"out": outputs, "again": [outputs]})
    shared = share_angles(program)
    assert shared.outputs == program.outputs
    x = np.random.default_rng(0).uniform(-7, 7, (50, 3))
    for name in program.outputs:
        before, after = (each.evaluate(0, x, [0.4])[name] for each in (program, shared))
        np.testing.assert_allclose(after, before, rtol=0, atol=4e-15)
    return program.counts().trig, shared.counts().trig


def test_sums_of_known_angles():
    assert check(lambda a, b, c, p: [sin(a), cos(b), sin(a + b), cos(a - b), sin(b - a), cos(-a - b)]) == (6, 4)


def test_sums_of_sums():
    assert check(lambda a, b, c, p: [sin(a), sin(b), sin(c), cos(a + b), sin((a + b) + c), cos((a + b) - c)]) == (6, 6)
    assert check(lambda a, b, c, p: [sin(a) * cos(a), sin(b) * cos(b), sin(a + b) * cos(a + b)]) == (6, 4)


def test_a_constant_offset():
    assert check(lambda a, b, c, p: [sin(a), cos(a), sin(a + 0.3), cos(a + 0.3)]) == (4, 2)


def test_what_is_not_known_stays():
    assert check(lambda a, b, c, p: [sin(a), cos(a), sin(a + p), cos(a + b)]) == (4, 4)


def test_sines_within_angles():
    assert check(lambda a, b, c, p: [sin(a), cos(a), sin(sin(a)), sin(a + sin(a)), cos(cos(a + sin(a)))]) == (6, 5)


def test_programs_without_sines_are_left_alone():
    graph = ExpressionGraph()
    program = Program.from_nodes(LAYOUT, {"out": graph.symbol("a") * 2.0})
    assert share_angles(program) is program
