"""Write the constants of the elementary functions.

``python -m tests.runtime.elementary_tables > fsm_dyn/runtime/elementary_tables.h``.  Everything is worked out with 400
digits by mpmath; polynomials interpolate at Chebyshev points, which is within a small factor of the best one.
"""

import mpmath
from mpmath import mpf

DIGITS = 400
TINY = 1e-30  # below, a quotient of differences is its limit

HEADER = """/* Constants of the elementary functions, written by tests/runtime/elementary_tables.py. */

#ifndef FSM_ELEMENTARY_TABLES_H
#define FSM_ELEMENTARY_TABLES_H

#include "types.h"
"""


def short(x, bits):
    """Round to so many bits."""
    unit = mpf(2) ** (mpmath.floor(mpmath.log(abs(x), 2)) - bits + 1)
    return mpmath.nint(x / unit) * unit


def split(x, bits):
    """Return a number as a sum of two doubles, the first of so many bits."""
    first = float(short(x, bits)) if x else 0.0
    return first, float(x - mpf(first))


def polynomial(function, low, high, length):
    """Return coefficients of the polynomial that meets `function` at the Chebyshev points of an interval."""
    low, high = mpf(low), mpf(high)
    places = [mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * length)) for k in range(length)]
    nodes = [(low + high) / 2 + (high - low) / 2 * place for place in places]
    powers = mpmath.matrix([[x**j for j in range(length)] for x in nodes])
    return [float(value) for value in mpmath.lu_solve(powers, mpmath.matrix([function(x) for x in nodes]))]


def array(name, comment, values, kind="double"):
    """Return the text of an array of numbers or of rows of numbers."""
    rows = isinstance(values[0], tuple)
    shape = f"[{len(values)}]" + (f"[{len(values[0])}]" if rows else "")
    number = float.hex if kind == "double" else "0x{:08x}u".format
    lines, line = [], "   "
    for item in ("{" + ", ".join(map(number, value)) + "}" if rows else number(value) for value in values):
        if len(line) + len(item) > 114:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return f"\n/* {comment} */\nstatic const {kind} {name}{shape} = {{\n" + "\n".join([*lines, line]) + "\n};\n"


def constants(names, values):
    lines = (f"#define {name} {float(value).hex()}\n" for name, value in zip(names, values, strict=True))
    return "\n" + "".join(lines)


def beyond_square(function, sign, limit):
    """Return ``(function(x) - its terms up to x^2) / x^3`` of exp x or log(1 + x), with its limit at zero."""
    first = mpmath.mpf(0) if function(mpf(0)) == 0 else mpf(1)
    return lambda x: (function(x) - first - x - sign * x * x / 2) / x**3 if abs(x) > TINY else mpf(1) / limit


def of_square(function, order):
    """Return a function of z = x^2: what is left of an odd or even series."""
    if order == 1:  # (f(x) / x - 1) / x^2
        return lambda z: (function(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z
    return lambda z: (function(mpmath.sqrt(z)) - 1 + z / 2) / z**2


def logarithm_row(i):
    """Return a short reciprocal of the middle of an interval, and the logarithm of what it stands for in two parts."""
    c = {0: mpf(1), 127: mpf(1) / 2}.get(i) or short(mpf(256) / (2 * i + 257), 9)
    return (float(c), *split(-mpmath.log(c), 42))


def words(x, count):
    """Return the first bits of a number below one behind the point, 32 at a time."""
    return [int(mpmath.floor(x * mpf(2) ** (32 * (k + 1)))) % 2**32 for k in range(count)]


def text():
    """Return the header."""
    with mpmath.workdps(DIGITS):
        half, turn = mpmath.pi / 2, (mpmath.pi / 4) ** 2 * mpf("1.001")
        step, exp, log = mpmath.log(2) / 64, mpmath.exp, lambda x: mpmath.log(1 + x)
        parts, rest = [], half
        for _ in range(3):
            parts.append(short(rest, 33))
            rest -= parts[-1]
        on = "in powers of"
        return "".join([
            HEADER,
            constants([f"FSM_HALF_PI_{k}" for k in (1, 2, 3, 4)], [*parts, rest]),
            constants(["FSM_HALF_PI_HIGH", "FSM_HALF_PI_LOW"], split(half, 53)),
            constants(["FSM_TWO_OVER_PI"], [1 / half]),
            constants(["FSM_LN2_HIGH", "FSM_LN2_LOW"], split(mpmath.log(2), 42)),
            constants(["FSM_STEP_HIGH", "FSM_STEP_LOW", "FSM_STEPS"], [*split(step, 36), 1 / step]),
            array("fsm_sine", f"(sin x / x - 1) / x^2, {on} x^2, |x| <= pi / 4",
                  polynomial(of_square(mpmath.sin, 1), TINY, turn, 7)),
            array("fsm_cosine", f"(cos x - 1 + x^2 / 2) / x^4, {on} x^2, |x| <= pi / 4",
                  polynomial(of_square(mpmath.cos, 2), TINY, turn, 7)),
            array("fsm_arctangent", f"(atan x / x - 1) / x^2, {on} x^2, |x| <= 1/8",
                  polynomial(of_square(mpmath.atan, 1), TINY, mpf(1) / 64, 8)),
            array("fsm_exponential", f"(exp x - 1 - x - x^2 / 2) / x^3, {on} x, |x| <= ln 2 / 128",
                  polynomial(beyond_square(exp, 1, 6), -step / 2, step / 2, 4)),
            array("fsm_small_exponential", "the same for |x| <= 1/4",
                  polynomial(beyond_square(exp, 1, 6), -0.25, 0.25, 12)),
            array("fsm_logarithm", f"(log(1 + x) - x + x^2 / 2) / x^3, {on} x, |x| <= 1/125",
                  polynomial(beyond_square(log, -1, 3), -mpf(1) / 125, mpf(1) / 125, 9)),
            array("fsm_powers", "2^(i / 64) in two parts", [split(mpf(2) ** (mpf(i) / 64), 53) for i in range(64)]),
            array("fsm_logarithms", "for 1 + i / 128 and on: a reciprocal c of nine bits, -log c in two parts",
                  [logarithm_row(i) for i in range(128)]),
            array("fsm_arctangents", "atan(i / 64) in two parts",
                  [split(mpmath.atan(mpf(i) / 64), 53) for i in range(65)]),
            array("fsm_two_over_pi", "2 / pi behind the point, 32 bits each", words(1 / half, 40), "uint32_t"),
            "\n#endif\n",
        ])  # fmt: skip


if __name__ == "__main__":
    print(text(), end="")
