"""NumPy source of a program: a function of the arguments by name, one line per operation."""

from __future__ import annotations

import keyword
import re

from fsm_dyn.errors import InputError
from fsm_dyn.programs.program import Program

_TEMPLATES = {
    "neg": "-{0}",
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "pow": "np.power({0}, {1})",
    "abs": "np.abs({0})",
    "asin": "np.arcsin({0})",
    "acos": "np.arccos({0})",
    "atan": "np.arctan({0})",
    "atan2": "np.arctan2({0}, {1})",
    "mod": "np.mod({0}, {1})",
    "min": "np.minimum({0}, {1})",
    "max": "np.maximum({0}, {1})",
    "lt": "np.less({0}, {1}) * 1.0",
    "le": "np.less_equal({0}, {1}) * 1.0",
    "eq": "np.equal({0}, {1}) * 1.0",
    "ne": "np.not_equal({0}, {1}) * 1.0",
    "and": "np.logical_and({0}, {1}) * 1.0",
    "or": "np.logical_or({0}, {1}) * 1.0",
    "not": "np.logical_not({0}) * 1.0",
    "where": "np.where({0} != 0.0, {1}, {2})",
    **{
        name: f"np.{name}({{0}})"
        for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "floor")
    },
}


def to_numpy(program: Program, name: str) -> str:
    """Return Python source with ``name(t, x, c)``, which returns a dict of arrays by the names of the outputs.

    ``x`` and ``c`` are sequences in the order of the program's layout, SI units.

    Parameters
    ----------
    program : Program
        The program to write.

    Raises
    ------
    InputError
        `name` is no identifier of Python.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise InputError("a function of Python needs an identifier as its name", found=repr(name)[:200])
    layout, read = program.layout, {index for _, operands in program.instructions for index in operands}
    read.update(index for output in program.results for index in output.indices)
    values, lines, taken = ["t"], [], {"t", "x", "c", "np", name}
    for index, argument in enumerate(layout.arguments[1:], start=1):
        array, place = ("x", index - 1) if index <= layout.n_x else ("c", index - 1 - layout.n_x)
        values.append(_fresh(argument, taken))
        if index in read:
            lines.append(f"{values[-1]} = {array}[{place}]")
    values += [repr(value) for value in program.constants]
    for k, (op, operands) in enumerate(program.instructions, start=1):
        texts = [f"({values[i]})" if values[i].startswith("-") else values[i] for i in operands]
        values.append(_fresh(f"Z{k}", taken))
        lines.append(f"{values[-1]} = {_TEMPLATES[op].format(*texts)}")
    lines.append("return {")
    for output in program.results:
        entries = ", ".join(values[index] for index in output.indices)
        lines.append(f'    "{output.name}": np.array([{entries}], dtype=float).reshape({output.shape}),')
    lines.append("}")
    return f"import numpy as np\n\n\ndef {name}(t, x, c):\n" + "".join(f"    {line}\n" for line in lines)


def _fresh(argument: str, taken: set[str]) -> str:
    """Return an identifier for an argument that no other one has."""
    found = re.sub(r"\W+", "_", argument)
    while found in taken or keyword.iskeyword(found):
        found += "_"
    taken.add(found)
    return found
