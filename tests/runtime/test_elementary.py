"""Elementary functions against mpmath: errors in units in the last place, special values of C99, parity, monotony."""

import math
import random
import struct
from pathlib import Path

import mpmath
import pytest

import fsm_dyn.runtime
from fsm_dyn.runtime import library
from fsm_dyn.runtime.library import ELEMENTARY
from tests.runtime import elementary_tables

INF, NAN = math.inf, math.nan
LARGEST_ERROR = 0.8  # units in the last place; where the result is subnormal, it is rounded twice

LIMITS = {
    "exp": (-746, 715),
    "sinh": (-711, 711),
    "cosh": (-711, 711),
    "tanh": (-25, 25),
    "asin": (-1, 1),
    "acos": (-1, 1),
}
MPMATH = {"pow": mpmath.power, **{name: getattr(mpmath, name) for name in ELEMENTARY if name != "pow"}}


def inner(name, arity):
    """A function that kernels do not call, and the runtime itself does."""
    types = (arity + 1) * (library.c_double,)
    return library.ctypes.CFUNCTYPE(*types)(library.address(f"fsm_{name}"))


expm1, hypot = inner("expm1", 1), inner("hypot", 2)


def arguments(name, rng, count):
    """Yield arguments of every size, and some where it is difficult."""
    low, high = LIMITS.get(name, (-1e308, 1e308))
    drawn = [
        lambda: rng.uniform(max(low, -8), min(high, 8)),
        lambda: rng.uniform(low, high),
        lambda: rng.choice([-1, 1]) * math.exp(rng.uniform(-40, min(math.log(high), 40))),
        lambda: struct.unpack("d", rng.randbytes(8))[0],
        lambda: rng.randint(-(10**6), 10**6) * math.pi / 2 * (1 + rng.choice([-1, 0, 1]) * 2**-52),
        lambda: 1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-16, -1),
    ]
    while count:
        x = rng.choice(drawn)()
        x = abs(x) if name == "log" else x
        if low <= x <= high and math.isfinite(x) and x != 0:
            count -= 1
            yield x


def pairs(name, rng, count):
    """Yield pairs of arguments of ``atan2`` or ``pow``."""
    while count:
        if name == "atan2":
            draw = rng.choice([lambda: rng.uniform(-8, 8), lambda: struct.unpack("d", rng.randbytes(8))[0]])
            x, y = draw(), draw()
            if not (math.isfinite(x) and math.isfinite(y) and x and y):
                continue
        else:
            x = rng.choice([rng.uniform(0.5, 2), 10 ** rng.uniform(-300, 300), 1 + rng.uniform(-1, 1) * 1e-6])
            y = rng.uniform(-1, 1) * rng.choice([1, 10, 1e3, 1e9])
            if not 1e-15 < abs(y * math.log(x)) < 708:
                continue
        count -= 1
        yield x, y


def error(got, exact):
    """Return the error in units in the last place of the exact value."""
    nearest = float(exact)
    if math.isinf(nearest):
        return 0.0 if got == nearest else INF
    return float(abs(mpmath.mpf(got) - exact) / math.ulp(nearest)) if math.isfinite(got) else INF


@pytest.mark.parametrize("name", ELEMENTARY)
def test_errors_stay_below_one_unit_in_the_last_place(name):
    rng, two = random.Random(name), name in ("atan2", "pow")
    with mpmath.workprec(1300 if name in ("sin", "cos", "tan") else 300):  # of a large angle its multiples of pi go
        for given in pairs(name, rng, 400) if two else ((x,) for x in arguments(name, rng, 500)):
            exact = MPMATH[name](*map(mpmath.mpf, given))
            assert error(ELEMENTARY[name](*given), exact) < LARGEST_ERROR, given


def test_exp_minus_one_is_right_to_the_last_place():
    rng = random.Random(11)
    sizes = [rng.choice([-1, 1]) * 10 ** rng.uniform(-18, 1.6) for _ in range(400)]
    around = [x + y for x in (0.25, -0.25, -44.0, 44.0) for y in (-1e-9, 0.0, 1e-9)]
    for x in (*sizes, *around, 700.0, -700.0, 2.0**-54, 2.0**-55, 5e-324):
        with mpmath.workprec(300):
            assert error(expm1(x), mpmath.expm1(mpmath.mpf(x))) < LARGEST_ERROR, x
    for x, expected in ((0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (710.0, INF)):
        assert struct.pack("d", expm1(x)) == struct.pack("d", expected)
    assert math.isnan(expm1(NAN))


def test_lengths_are_right_to_the_last_place_at_every_size():
    """Also where squares would be infinite, zero or subnormal, with either sign and in either order."""
    rng = random.Random(12)
    for _ in range(600):
        x = rng.choice([-1, 1]) * rng.uniform(1, 10) * 10.0 ** rng.randint(-290, 307)
        y = x * rng.choice([-1, 1]) * 10 ** rng.uniform(-18, 0)
        with mpmath.workprec(200):
            exact = mpmath.sqrt(mpmath.mpf(x) ** 2 + mpmath.mpf(y) ** 2)
            assert error(hypot(x, y), exact) < LARGEST_ERROR, (x, y)
        assert hypot(x, y) == hypot(-y, x) == hypot(y, -x)
    for x, y, expected in (
        (0.0, -0.0, 0.0), (-3.0, 4.0, 5.0), (0.0, -2.0, 2.0), (5e-324, 0.0, 5e-324), (1.5e308, 1.5e308, INF),
        (INF, NAN, INF), (NAN, -INF, INF), (1.0, -INF, INF),
    ):  # fmt: skip
        assert hypot(x, y) == expected
    assert math.isnan(hypot(NAN, 1.0))
    assert math.isnan(hypot(0.0, NAN))


EDGES = (0.0, -0.0, 2.0, -3.0, INF, -INF)
SPECIAL = [
    *((name, (x,), x) for name in ("sin", "tan", "asin", "atan", "sinh", "tanh") for x in (0.0, -0.0, 5e-324, -1e-310)),
    *((name, (x,), NAN) for name in ("sin", "cos", "tan") for x in (INF, -INF, NAN)),
    *((name, (x,), NAN) for name in ("asin", "acos") for x in (1.0000000000000002, -INF, NAN)),
    ("cos", (0.0,), 1.0), ("acos", (1.0,), 0.0), ("acos", (-1.0,), math.pi), ("asin", (1.0,), math.pi / 2),
    ("atan", (INF,), math.pi / 2), ("atan", (-INF,), -math.pi / 2), ("tanh", (INF,), 1.0), ("sinh", (-INF,), -INF),
    ("cosh", (-INF,), INF), ("cosh", (0.0,), 1.0), ("exp", (0.0,), 1.0), ("exp", (INF,), INF), ("exp", (-INF,), 0.0),
    ("exp", (710.0,), INF), ("exp", (-746.0,), 0.0), ("exp", (NAN,), NAN), ("log", (1.0,), 0.0), ("log", (0.0,), -INF),
    ("log", (-1.0,), NAN), ("log", (INF,), INF), ("log", (NAN,), NAN), ("log", (5e-324,), -744.4400719213812),
    *(("atan2", (y, x), math.atan2(y, x)) for y in EDGES for x in EDGES),
    ("atan2", (NAN, 1.0), NAN), ("atan2", (1.0, NAN), NAN),
    *(("pow", (x, 0.0), 1.0) for x in (0.0, -2.0, INF, NAN)), *(("pow", (1.0, y), 1.0) for y in (3.0, -INF, NAN)),
    ("pow", (NAN, 1.0), NAN), ("pow", (2.0, NAN), NAN), ("pow", (-8.0, 3.0), -512.0), ("pow", (-2.0, 0.5), NAN),
    ("pow", (-2.0, -2.0), 0.25), ("pow", (-0.0, -3.0), -INF), ("pow", (-0.0, 3.0), -0.0), ("pow", (0.0, -2.0), INF),
    ("pow", (-1.0, INF), 1.0), ("pow", (2.0, INF), INF), ("pow", (2.0, -INF), 0.0), ("pow", (0.5, -INF), INF),
    ("pow", (-INF, 3.0), -INF), ("pow", (-INF, -3.0), -0.0), ("pow", (INF, 0.5), INF), ("pow", (2.0, 5000.0), INF),
    ("pow", (-2.0, 5001.0), -INF), ("pow", (2.0, -5000.0), 0.0), ("pow", (2.0, -1074.0), 5e-324),
    ("pow", (-1.0, 1e300), 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expected"), SPECIAL, ids=str)
def test_special_values_are_those_of_c99(name, given, expected):
    got = ELEMENTARY[name](*given)
    assert struct.pack("d", got) == struct.pack("d", expected) or (math.isnan(got) and math.isnan(expected))


def test_powers_of_integers_are_exact():
    for base in range(2, 40):
        for exponent in range(1, 12):
            if base**exponent < 2**53:
                assert ELEMENTARY["pow"](float(base), float(exponent)) == float(base**exponent)


def test_sines_and_cosines_come_in_pairs_and_have_parity():
    rng = random.Random(3)
    both = (library.c_double * 2)()
    pair = library.ctypes.CFUNCTYPE(None, library.c_double, library.ctypes.c_void_p)(library.address("fsm_sin_cos"))
    for x in (0.0, -0.0, 1e-300, INF, *arguments("sin", rng, 2000)):
        pair(x, both)
        expected = [ELEMENTARY["sin"](x), ELEMENTARY["cos"](x)]
        assert struct.pack("2d", *both) == struct.pack("2d", *expected) or math.isinf(x)
        assert math.isinf(x) or (ELEMENTARY["sin"](-x), ELEMENTARY["cos"](-x)) == (-expected[0], expected[1])
        assert not max(map(abs, expected)) > 1


@pytest.mark.parametrize("name", ["exp", "log", "atan", "tanh", "sinh"])
def test_functions_that_rise_do(name):
    """Across the borders of the tables and of the cases, number by number."""
    starts = [1.0, 0.25, -0.25, 0.0108, 1.0078125, 0.99609375, 1.40625, 2.0**-27, 7.5 / 64, 40.0, 22.0]
    for x in starts:
        if name == "log" and x < 0:
            continue
        near = [x]
        for _ in range(40):
            near = [math.nextafter(near[0], -INF), *near, math.nextafter(near[-1], INF)]
        values = [ELEMENTARY[name](value) for value in near]
        assert values == sorted(values), x


def test_the_tables_are_what_mpmath_gives():
    path = Path(fsm_dyn.runtime.__file__).parent / "elementary_tables.h"
    assert path.read_text() == elementary_tables.text()
