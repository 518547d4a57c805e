"""Compact forms of equations: never longer, equal to those of runs, exact where today's form is not."""

import os
import re
import subprocess
import sys

import mpmath
import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.derive.compact_forms import Cost, Fractions, with_quotients
from fsm_dyn.language import models
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import ExpressionGraph
from fsm_dyn.programs.traversal import evaluate


def per_evaluation(program):
    """Return the operations that are left when parameters have been used up once."""
    cost = Cost(program.layout.p, once=True)
    return round(cost(node for array in program.graph()[2].values() for node in array.ravel()))


@pytest.mark.parametrize(
    ("model", "mode", "most", "most_per_evaluation"),
    [
        ("shopping_cart", "sticking", 38, 21),
        ("shopping_cart", "rolling", 76, 72),
        ("rolling_disk", "rolling", 9, 3),
        ("spherical_wrist", "motion", 57, 44),
        ("compass_gait", "left_stance", 73, 51),
        ("double_pendulum_with_stop", "bent", 57, 36),
        ("pendulum_with_stop", "swinging", 3, 2),
    ],
)
def test_operations(kane, model, mode, most, most_per_evaluation):
    equations = kane(model, mode)
    compact = equations.compact_program()
    assert compact.counts().total <= min(most, equations.counts.together.total)
    assert per_evaluation(equations.compact_program(once=True)) <= most_per_evaluation


def assert_equal_at_states(equations, program, names=("q_dot", "u_dot"), states=300):
    """Compare at states near and far, more of them and others than the check of the forms themselves uses."""
    generator, layout = np.random.default_rng(7), program.layout
    x = generator.normal(0.0, 2.0, (states, layout.n_x))
    c = generator.uniform(0.2, 3.0, (states, layout.n_c))
    right, found = equations._on_rows(names).evaluate(0.1, x, c), program.evaluate(0.1, x, c)
    for name in names:
        size = 1.0 + np.abs(right[name]).max(axis=1, keepdims=True)
        # both have about the rounding of the mass matrix there
        assert np.nanmedian(np.abs(right[name] - found[name]) / size) < 1e-13
        assert np.nanmax(np.abs(right[name] - found[name]) / size) < 1e-7


@pytest.mark.parametrize(
    ("model", "mode"),
    [
        ("shopping_cart", "sticking"),
        ("rimless_wheel", "rolling"),
        ("rolling_disk", "sliding"),
        ("cam_flat_follower", "following"),  # driven: no speed is independent
    ],
)
@pytest.mark.parametrize("once", [False, True])
def test_same_values(kane, model, mode, once):
    equations = kane(model, mode)
    assert_equal_at_states(equations, equations.compact_program(once=once))


def test_forms_are_exact_at_a_singular_chart(kane):
    """u1, u2 of the stuck cart vanish together at L3 = L2 c4: the cancelled form has the limit, today's has not."""
    equations = kane("shopping_cart", "sticking")
    layout = equations.compact_program().layout
    values = {"mB": 20.0, "IB": 2.5, "mC": 0.8, "L1": 0.35, "L2": 0.7, "L3": 0.12, "turn": 2.0, "u1": 0.0}
    place = float(mpmath.acos(mpmath.mpf("0.12") / mpmath.mpf("0.7")))
    for distance in (1e-3, 1e-6, 1e-9, 1e-12):
        values["q4"] = place + distance
        x, c = np.array([values.get(n, 0.0) for n in layout.x]), np.array([values.get(n, 0.0) for n in layout.c])
        found = equations.compact_program().evaluate(0.0, x, c)["u_dot"][1]
        with mpmath.workdps(50):
            m = {name: mpmath.mpf(value) for name, value in values.items()}
            below, s4 = m["L3"] - m["L2"] * mpmath.cos(m["q4"]), mpmath.sin(m["q4"])
            # a rigid body about a fixed point: the wheel's axle and that of the rear wheels meet there
            moment = m["IB"] + m["mB"] * m["L1"] ** 2 + m["mC"] * m["L2"] * (m["L2"] - m["L3"] * mpmath.cos(m["q4"]))
            mass = m["mB"] + moment * s4**2 / below**2 + m["mC"] * (1 - m["L3"] * s4**2 / below)
            exact = float(s4**2 * m["turn"] / below**2 / mass)
        assert found == pytest.approx(exact, rel=1e-12)


def test_text_is_the_same_in_every_process(kane):
    mode = "fsm_dyn.compile('double_pendulum_with_stop').modes['bent']"
    code = f"import fsm_dyn; print({mode}.kane_equations.compact())"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert texts == {str(kane("double_pendulum_with_stop", "bent").compact()) + "\n"}


def test_equations_say_what_is_computed_once(kane):
    found = kane("shopping_cart", "sticking").compact("u_dot")
    assert {str(symbol) for symbol, _ in found.once} >= {"k1", "k2", "k3"}
    parameters = {"mB", "IB", "mC", "L1", "L2", "L3"}
    known = {str(symbol) for symbol, _ in found.once} | parameters
    assert all({str(s) for s in value.free_symbols} <= known for _, value in found.once)
    assert found.counts.total <= 32  # of 66, and 61 of the first acceleration alone


def test_c_source_in_two_functions(kane, tmp_path):
    """Parameters are read by the first function alone, and both together give the numbers of the program."""
    equations = kane("shopping_cart", "sticking")
    program = equations.compact_program("u_dot", once=True)
    source = equations.c_source("u_dot", compact=True, once=True)
    later = source[source.index("void evaluate(") :]
    assert "mB" not in later
    operations = [text for text in re.findall(r"const double v\d+ = (.*);", later) if not text.startswith("-")]
    assert len(operations) == per_evaluation(program) < 0.5 * len(program.instructions)  # counted in the text
    layout, generator = program.layout, np.random.default_rng(2)
    x, c = generator.uniform(0.3, 1.0, layout.n_x), generator.uniform(0.3, 1.0, layout.n_c)

    def numbers(values):
        return ", ".join(f"{value!r}" for value in values.tolist())

    main = f"""
#include <stdio.h>
int main(void) {{
    const double p[] = {{{numbers(c[: len(layout.p)])}}}, w[] = {{{numbers(c[len(layout.p) :])}}};
    const double x[] = {{{numbers(x)}}};
    double k[evaluate_SIZE_OF_K], out[3];
    evaluate_once(p, k);
    evaluate(0.0, x, w, k, out);
    printf("%.17g %.17g %.17g", out[0], out[1], out[2]);
    return 0;
}}
"""
    (tmp_path / "both.c").write_text(source + main, encoding="ascii")
    subprocess.run(
        ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "both.c", "-o", "both", "-lm"], cwd=tmp_path, check=True
    )
    run = subprocess.run([tmp_path / "both"], check=True, capture_output=True, text=True)
    np.testing.assert_allclose(
        [float(text) for text in run.stdout.split()], program.evaluate(0.0, x, c)["u_dot"], rtol=1e-13
    )


def test_reciprocals_become_quotients():
    graph = ExpressionGraph()
    a, b = graph.symbol("a"), graph.symbol("b")
    once, twice = 1.0 / b, 1.0 / (b + 1.0)
    found = with_quotients({("x", 0): a * once, ("x", 1): a * twice, ("x", 2): b * twice})
    assert found["x", 0] is a / b
    assert found["x", 1] is a * twice


def test_fractions_are_cancelled():
    """(x² - y²)/(x - y) and sin² + cos², which polynomials of other atoms do not cancel."""
    graph = ExpressionGraph()
    x, y = graph.symbol("x"), graph.symbol("y")
    node = (x * x - y * y) / (x - y) * (sin(x) * sin(x) + cos(x) * cos(x))
    fractions = Fractions([node])
    above, below = fractions.ratio(node)
    assert (len(above), below) == (2, fractions.ring.one)
    assert evaluate([node], {"x": 0.3, "y": 0.7})[0] == pytest.approx(1.0)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_no_mode_becomes_longer():
    """All modes of all shipped models derived at compile time."""
    before = after = 0
    for name in models.names():
        for mode in fsm_dyn.compile(name).modes.values():
            equations = mode.kane_equations
            compact = equations.compact_program()
            today = equations._on_rows(("q_dot", "u_dot")).counts().total
            assert compact.counts().total <= today, (name, mode.name)
            before, after = before + today, after + compact.counts().total

    assert after < before
