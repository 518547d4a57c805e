"""The same program by NumPy, by LLVM and by a C compiler without optimisation."""

import numpy as np
import pytest

from fsm_dyn.programs.functions import absolute, compare, maximum, sin, where
from fsm_dyn.programs.graph import OPERATIONS, ExpressionGraph
from fsm_dyn.programs.kernels import compile_programs
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.sources import to_c

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-300, 1e300, 0.5])


def states(program, seed, special):
    rng = np.random.default_rng(seed)
    n = 1 + program.layout.n_x + program.layout.n_c
    values = rng.uniform(-2.0, 2.0, (40, n))
    if special:
        chosen = rng.random(values.shape) < 0.3
        values[chosen] = rng.choice(SPECIAL, chosen.sum())
    return values[:, 0], values[:, 1 : 1 + program.layout.n_x], values[:, 1 + program.layout.n_x :]


def assert_each_step_fits(program, t, x, c, out):
    """Check every value that was computed against NumPy's operation on the *computed* operands.

    So rounding does not build up, and steps of `floor` or comparisons are met with the same operands.  A fused
    product leaves out one rounding: of the size of the product, however small the sum is.
    """
    values = [t, *x, *c, *program.constants, *np.full(len(program.instructions), np.nan)]
    for index, value in zip(program.results[0].indices, out, strict=True):
        values[index] = value
    known = set(program.results[0].indices)
    first = program.first_instruction
    for k, (op, operands) in enumerate(program.instructions):
        if first + k not in known:
            continue
        inputs = [np.float64(values[i]) for i in operands]
        if any(i >= first and i not in known for i in operands):
            continue
        with np.errstate(all="ignore"):
            expected = OPERATIONS[op].array(*inputs)
            slack = 4e-16 * max(abs(v) for v in inputs) if op in ("add", "sub") else 0.0
        fits = np.allclose(
            values[first + k], expected, rtol=2e-15, atol=slack if np.isfinite(slack) else 0.0, equal_nan=True
        )
        # a fused product may stay finite, or become infinite, where the rounded one does not
        overflow = op in ("add", "sub") and max(abs(v) for v in inputs) > 1e307
        assert fits or overflow, (op, inputs, values[first + k], expected)


@pytest.mark.parametrize("seed", range(12))
def test_a_single_state_has_the_bits_of_numpys_operations(random_program, seed):
    """Its sums and products are Python's: signs of zeros and infinities are NumPy's, too."""
    program = random_program(seed, size=90)
    for t, x, c in zip(*states(program, seed, special=True), strict=True):
        values = [np.float64(t), *x, *c, *map(np.float64, program.constants)]
        with np.errstate(all="ignore"):
            for op, operands in program.instructions:
                values.append(np.float64(OPERATIONS[op].array(*[values[i] for i in operands])))
        expected = np.array([values[i] for i in program.results[0].indices])
        found = program.evaluate(t, x, c)["all"]
        numbers = ~np.isnan(expected)
        assert (np.isnan(found) == ~numbers).all()
        assert found[numbers].tobytes() == expected[numbers].tobytes()


@pytest.mark.parametrize("special", [False, True], ids=["ordinary", "special"])
@pytest.mark.parametrize("seed", range(12))
def test_every_operation(random_program, compile_c, seed, special):
    program = random_program(seed, size=90)
    kernel = compile_programs([program])[0]
    in_c = compile_c(to_c(program, "f"), "f")
    t, x, c = states(program, seed, special)
    batch = program.evaluate(t, x, c)["all"]
    for i in range(len(t)):
        assert_each_step_fits(program, t[i], x[i], c[i], batch[i])
        assert_each_step_fits(program, t[i], x[i], c[i], kernel(t[i], x[i], c[i]))
        assert_each_step_fits(program, t[i], x[i], c[i], in_c(t[i], x[i], c[i], program.size))


@pytest.mark.parametrize("seed", range(12))
def test_smooth_programs_agree_as_a_whole(random_program, compile_c, seed):
    program = random_program(
        seed, size=80, ops=("neg", "add", "sub", "mul", "sin", "cos", "tanh", "atan", "where", "lt")
    )
    kernel = compile_programs([program])[0]
    in_c = compile_c(to_c(program, "f"), "f")
    t, x, c = states(program, seed, special=False)
    batch = program.evaluate(t, x, c)["all"]
    well = np.abs(batch).max(axis=1) < 1e3
    for i in np.flatnonzero(well):
        np.testing.assert_allclose(kernel(t[i], x[i], c[i]), batch[i], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(in_c(t[i], x[i], c[i], program.size), batch[i], rtol=1e-9, atol=1e-9)


def test_nan_reaches_everything_that_depends_on_it(layout):
    graph = ExpressionGraph()
    q1, q2 = graph.symbol("q1"), graph.symbol("q2")
    a = q1 * q2 + sin(q1)
    outputs = [a, a - a * 2, maximum(a, 0), absolute(a), q2 * 2, where(compare("<", a, 0), 1, 2)]
    program = Program.from_nodes(layout, {"all": outputs})
    out = compile_programs([program])[0](0.0, [np.nan, 1, 0, 0], np.zeros(layout.n_c))
    np.testing.assert_equal(out, [np.nan] * 4 + [2.0, 2.0])
