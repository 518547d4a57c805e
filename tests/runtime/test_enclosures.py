"""Enclosures hold what they enclose: random programs of every operation along random motions, against their values."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from fsm_dyn.programs.enclosure_code import enclosure_code
from fsm_dyn.programs.graph import OPERATIONS
from fsm_dyn.programs.program import Layout, Output, Program
from fsm_dyn.runtime import library
from fsm_dyn.runtime.abi import JET_NUMBERS

pytestmark = pytest.mark.runtime

LAYOUT = Layout(q=("a", "b"), u=("c",), p=("p",))
SEEDS = 2000
POINTS = np.linspace(0.0, 1.0, 33)
_WRAPPER = """
#include "enclosure.h"
void enclose(const int64_t *code, const double *numbers, const double *c, struct fsm_jet *jets, struct fsm_jet *middle,
             double reach, int64_t order)
{
    struct fsm_enclosure p = fsm_enclosure_at(code, numbers);
    fsm_enclose_fixed(&p, c, 3, jets);
    for (int64_t i = p.moving; middle != NULL && i < fsm_enclosure_size(&p) - p.operations; i++) {
        middle[i] = jets[i];
    }
    fsm_enclose(&p, NULL, order, jets, middle, reach);
}
void enclose_rates(const int64_t *code, const double *numbers, const double *c, struct fsm_jet *jets,
                   const int8_t *needed, int64_t seed)
{
    struct fsm_enclosure p = fsm_enclosure_at(code, numbers);
    fsm_enclose_fixed(&p, c, 3, jets);
    fsm_enclose(&p, NULL, 2, jets, NULL, 0.0);
    for (int64_t k = 0; k < p.moving; k++) {
        jets[k].rate = (struct fsm_interval){k == seed ? -1.0 : 0.0, k == seed ? 1.0 : 0.0};
    }
    fsm_enclose_rates(&p, needed, jets);
}
void enclose_values(const int64_t *code, const double *numbers, const double *c, struct fsm_jet *jets)
{
    struct fsm_enclosure p = fsm_enclosure_at(code, numbers);
    fsm_enclose_fixed(&p, c, 3, jets);
    fsm_enclose_values(&p, NULL, jets);
}
"""


@pytest.fixture(scope="module")
def enclose(tmp_path_factory):
    folder = tmp_path_factory.mktemp("enclosures")
    source, built = folder / "enclose.c", folder / "enclose.so"
    source.write_text(_WRAPPER, encoding="utf-8")
    runtime = Path(library.__file__).parent
    files = [runtime / name for name in ("enclosure.c", "enclosure_code.c", "elementary.c")]
    options = ["-std=c99", "-O2", "-ffp-contract=off", "-fPIC", "-shared", "-DFSM_ALL_VISIBLE", f"-I{runtime}"]
    subprocess.run(["cc", *options, source, *files, "-o", built, "-lm"], check=True)
    found = ctypes.CDLL(str(built))
    found.enclose.restype = found.enclose_values.restype = None
    return found


def random_program(rng):
    """Return a program of a few operations, each of which reads arguments, constants or operations before it."""
    constants = (2.0, -1.5, 0.3, 3.0)
    first = len(LAYOUT.arguments) + len(constants)
    instructions = []
    for k in range(rng.integers(1, 9)):
        op = rng.choice(list(OPERATIONS))
        instructions.append((str(op), tuple(int(rng.integers(first + k)) for _ in range(OPERATIONS[op].arity))))
    if rng.random() < 0.3:
        k = first + len(instructions)
        one, other = rng.choice(first + len(instructions), 2, replace=False)
        instructions += [("mul", (int(one),) * 2), ("mul", (int(other),) * 2), ("add", (k, k + 1)), ("sqrt", (k + 2,))]
    values = tuple(range(first, first + len(instructions)))
    return Program(LAYOUT, constants, tuple(instructions), (Output("guards", (len(values),), values),))


def jets_of(polynomials, length):
    """Return bounds of the value and two rates of quadratics in [0, length], and in its middle: (n, 6) each."""
    s = np.array([0.0, length])
    rows = []
    for c0, c1, c2 in polynomials:
        turn = [-c1 / (2.0 * c2)] if c2 != 0.0 and 0.0 < -c1 / (2.0 * c2) < length else []
        values = [c0 + x * (c1 + x * c2) for x in (*s, *turn)]
        rates = c1 + 2.0 * c2 * s
        room = 1e-14 * max(map(abs, values))
        rows.append([min(values) - room, max(values) + room, *np.sort(rates), 2.0 * c2, 2.0 * c2])
    m = 0.5 * length
    middle = [
        [v, v, r, r, 2.0 * c2, 2.0 * c2]
        for c0, c1, c2 in polynomials
        for v, r in [(c0 + m * (c1 + m * c2), c1 + 2.0 * c2 * m)]
    ]
    return np.array(rows), np.array(middle)


def _holds(bounds, values, room, about):
    """Assert that values lie within bounds, up to their rounding."""
    assert bounds[0] <= values.min() + room, about
    assert values.max() - room <= bounds[1], about


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("narrowed", [False, True])
def test_values_and_rates_lie_within(enclose, narrowed, order):
    bounded = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        program = random_program(rng)
        code = enclosure_code(program)
        length = float(rng.choice([1e-6, 1e-3, 0.1, 2.0]))
        motion = np.vstack([[0.7, 1.0, 0.0], rng.normal(size=(3, 3)) * rng.choice([0.0, 1.0, 10.0])])
        p = rng.normal()
        jets, middle = np.zeros((code.values, JET_NUMBERS)), np.zeros((code.values, JET_NUMBERS))
        arguments = code.arguments[: code.moving]
        jets[: code.moving], middle[: code.moving] = (
            part.reshape(-1, JET_NUMBERS) for part in jets_of(motion[arguments], length)
        )
        words = np.concatenate([[0], code.words]).astype(np.int64)
        context, numbers = np.array([p]), np.array(code.numbers)
        enclose.enclose(
            *(ctypes.c_void_p(array.ctypes.data) for array in (words, numbers, context, jets)),
            ctypes.c_void_p(middle.ctypes.data if narrowed else None), ctypes.c_double(0.5 * length),
            ctypes.c_int64(order),
        )  # fmt: skip
        low, high, least, most, lower, upper = jets[code.outputs[-1]]
        s = POINTS * length
        t, *x = (c0 + s * (c1 + s * c2) for c0, c1, c2 in motion)
        y = program.evaluate(t, np.stack(x, axis=-1), np.full((len(s), 1), p))["guards"]
        if not np.isfinite(y).all():  # what does not exist is left out
            continue
        y = y[..., -1]
        steep = any(op in ("acos", "asin", "sqrt", "pow", "log", "mod") for op, _ in program.instructions)
        room = (3e-8 if steep else 1e-12) * max(1.0, abs(y).max())  # rounding, magnified where a slope has no bound
        about = f"seed {seed}: {program.instructions}"
        _holds((low, high), y, room, about)
        slopes = np.diff(y) / np.diff(s)
        loose = 1e-9 * max(1.0, abs(slopes).max()) + 2.0 * room / np.diff(s)[0]
        _holds((least, most), slopes, loose, about)
        bends = np.diff(slopes) / np.diff(s)[0]
        loose = 1e-6 * max(1.0, abs(bends).max()) + 8.0 * room / np.diff(s)[0] ** 2
        _holds((lower, upper), bends, loose, about)
        bounded += bool(np.isfinite([low, high, least, most]).all())
    assert bounded > SEEDS // 3


def test_slopes_lie_within(enclose):
    """The evaluation of rates alone, of one argument after the other: bounds of slopes over a region."""
    bounded = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        program = random_program(rng)
        code = enclosure_code(program)
        middle, half = rng.normal(size=4), rng.choice([1e-3, 0.1, 1.0], size=4)
        words, numbers = np.concatenate([[0], code.words]).astype(np.int64), np.array(code.numbers)
        context, needed = np.array([rng.normal()]), np.ones(code.values, np.int8)
        points = middle + half * rng.uniform(-1.0, 1.0, (33, 4))
        for k, argument in enumerate(code.arguments[: code.moving]):
            jets = np.zeros((code.values, JET_NUMBERS))
            moving = list(code.arguments[: code.moving])
            jets[: code.moving, 0], jets[: code.moving, 1] = (middle - half)[moving], (middle + half)[moving]
            enclose.enclose_rates(
                *(ctypes.c_void_p(a.ctypes.data) for a in (words, numbers, context, jets, needed)), ctypes.c_int64(k)
            )
            least, most = jets[code.outputs[-1], 2:4]
            ends = points.copy(), points.copy()
            ends[0][:, argument], ends[1][:, argument] = middle[argument] - half[argument], points[:, argument]
            y = [
                program.evaluate(end[:, 0], end[:, 1:], np.broadcast_to(context, (33, 1)))["guards"][..., -1]
                for end in ends
            ]
            if np.isfinite(y).all() and np.isfinite([least, most]).all():
                way = ends[1][:, argument] - ends[0][:, argument]
                room = 1e-9 * (1.0 + abs(np.array(y)).max()) + 1e-9 * abs(most) * way
                assert (abs(y[1] - y[0]) <= most * way + room).all(), f"seed {seed}: {program.instructions}"
                bounded += 1
    assert bounded > SEEDS // 3


def test_values_at_a_point_lie_within(enclose):
    """The evaluation of values alone, from which bounds of terms begin."""
    seen = 0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        program = random_program(rng)
        code = enclosure_code(program)
        point, context = np.append(0.7, rng.normal(size=3)), np.array([rng.normal()])
        jets = np.zeros((code.values, JET_NUMBERS))
        jets[: code.moving, :2] = point[code.arguments[: code.moving], None]
        words, numbers = np.concatenate([[0], code.words]).astype(np.int64), np.array(code.numbers)
        enclose.enclose_values(*(ctypes.c_void_p(a.ctypes.data) for a in (words, numbers, context, jets)))
        y = program.evaluate(point[0], point[None, 1:], context[None])["guards"].ravel()[-1]
        low, high = jets[code.outputs[-1], :2]
        if np.isfinite(y):
            assert low - 1e-12 * (1.0 + abs(y)) <= y <= high + 1e-12 * (1.0 + abs(y)), f"seed {seed}"
            seen += bool(np.isfinite([low, high]).all())
    assert seen > SEEDS // 3
