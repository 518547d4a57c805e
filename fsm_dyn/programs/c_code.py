"""C source of a program: the signature of the kernels, one line per operation, C99 and the standard library."""

from __future__ import annotations

import re

from fsm_dyn.errors import InputError
from fsm_dyn.programs.operations import half_integer
from fsm_dyn.programs.program import Program

HELPERS = """\
static inline double kernel_sign(double a) { return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; }
static inline double kernel_min(double a, double b) { return a < b || a != a ? a : b; }
static inline double kernel_max(double a, double b) { return a > b || a != a ? a : b; }
static inline double kernel_mod(double a, double b)
{
    const double r = fmod(a, b);
    return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
"""

_KEYWORDS = (
    " auto break case char const continue default do double else enum extern float for goto if inline int long "
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
)
_TEMPLATES = {
    "neg": "-{0}",
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "abs": "fabs({0})",
    "sign": "kernel_sign({0})",
    "min": "kernel_min({0}, {1})",
    "max": "kernel_max({0}, {1})",
    "mod": "kernel_mod({0}, {1})",
    "pow": "pow({0}, {1})",
    "atan2": "atan2({0}, {1})",
    "lt": "(double)({0} < {1})",
    "le": "(double)({0} <= {1})",
    "eq": "(double)({0} == {1})",
    "ne": "(double)({0} != {1})",
    "and": "(double)({0} != 0.0 && {1} != 0.0)",
    "or": "(double)({0} != 0.0 || {1} != 0.0)",
    "not": "(double)({0} == 0.0)",
    "where": "{0} != 0.0 ? {1} : {2}",
    **{
        name: name + "({0})"
        for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "floor")
    },
}
_ELEMENTARY = frozenset(
    {"sin", "cos", "tan", "asin", "acos", "atan", "exp", "log", "sinh", "cosh", "tanh", "atan2", "pow"}
)


def to_c(program: Program, name: str) -> str:
    """Return C source with the function ``void name(double t, const double *x, const double *c, double *out)``.

    Parameters
    ----------
    program : Program
    name : str
        An identifier of C.

    Raises
    ------
    InputError
        `name` is no identifier.

    Notes
    -----
    The text is a complete translation unit; :func:`c_function` gives the function alone, to be put behind
    :data:`HELPERS` with others.
    """
    return f"#include <math.h>\n\n{HELPERS}\n{c_function(program, name)}"


def c_function(program: Program, name: str, own_functions: bool = False) -> str:
    """Return the function of :func:`to_c` alone, not static.

    Parameters
    ----------
    program : Program
    name : str
        An identifier of C.
    own_functions : bool
        Whether the runtime's elementary functions are called (``runtime/elementary.h``), as machine code does, which
        gives the same bits.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or f" {name} " in _KEYWORDS:
        raise InputError("a function of C needs an identifier as its name", found=repr(name)[:200])
    read = {index for _, operands in program.instructions for index in operands}
    read.update(index for output in program.results for index in output.indices)
    values, lines = _arguments(program, read)
    first = len(values)
    constants = dict(enumerate(program.constants, start=first))
    values += [repr(value) if value >= 0.0 else f"({value!r})" for value in program.constants]
    for k, (op, operands) in enumerate(program.instructions):
        texts = [values[index] for index in operands]
        right = _power(texts[0], constants.get(operands[1])) if op == "pow" else None
        prefix = "fsm_" if own_functions and op in _ELEMENTARY else ""
        lines.append(f"const double v{k} = {right or prefix + _TEMPLATES[op].format(*texts)};")
        values.append(f"v{k}")
    place = 0
    for output in program.results:
        lines.append(f"/* {re.sub(r'[^A-Za-z0-9_.]', '_', output.name)} */")
        for index in output.indices:
            lines.append(f"out[{place}] = {values[index]};")
            place += 1
    head = f"void {name}(double t, const double *restrict x, const double *restrict c, double *restrict out)"
    return f"{head}\n{{\n" + "".join(f"    {line}\n" for line in lines) + "}\n"


def _arguments(program: Program, read: set[int]) -> tuple[list[str], list[str]]:
    """Return a C name for every argument and the lines that load those that are `read`."""
    layout = program.layout
    names, lines, taken = ["t"], ["(void)t, (void)x, (void)c, (void)out;"], set()
    for index, argument in enumerate(layout.arguments[1:], start=1):
        array, place = ("x", index - 1) if index <= layout.n_x else ("c", index - 1 - layout.n_x)
        name = f"{array}_{re.sub(r'[^A-Za-z0-9]+', '_', argument)}"
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
        if index in read:
            lines.append(f"const double {name} = {array}[{place}];")
    return names, lines


def _power(base: str, exponent: float | None) -> str | None:
    """Return the text of a power whose exponent is n + 1/2, else None."""
    whole = None if exponent is None else half_integer(exponent)
    return None if whole is None else " * ".join([f"sqrt({base})"] + whole * [base])
