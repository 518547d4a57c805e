"""Reading stored programs, which may come from a stranger: nothing is believed, everything is bounded."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from fsm_dyn.errors import InputError, nearest
from fsm_dyn.programs.layout import Layout
from fsm_dyn.programs.operations import OPERATIONS

FORMAT = 1
MOST_VALUES = 2_000_000
MOST_ARGUMENTS = 100_000
MOST_OUTPUTS = 1_000_000
MOST_AXES = 8

StoredProgram = tuple[
    Layout,
    tuple[float, ...],
    tuple[tuple[str, tuple[int, ...]], ...],
    list[tuple[str, tuple[int, ...], tuple[int, ...]]],
]


def read_program(data: object) -> StoredProgram:
    """Check the stored form of a program and return its parts.

    Raises
    ------
    InputError
        Saying which part is wrong, with what was found.
    """
    keys = {"format", "layout", "constants", "instructions", "outputs"}
    if not isinstance(data, dict) or set(data) != keys:
        _refuse("a program is a mapping", sorted(map(str, data)) if isinstance(data, dict) else data, sorted(keys))
    if type(data["format"]) is not int or data["format"] != FORMAT:
        _refuse("format of another version", data["format"], FORMAT)
    layout = _layout(data["layout"])
    constants = _constants(data["constants"])
    first = len(layout.arguments) + len(constants)
    instructions = _instructions(data["instructions"], first)
    outputs = _outputs(data["outputs"], first + len(instructions))
    return layout, constants, instructions, outputs


def _refuse(what: str, found: object, allowed: object = "") -> NoReturn:
    raise InputError(f"stored program: {what}", found=repr(found)[:200], allowed=str(allowed))


def _list(data: object, what: str, longest: int) -> list[Any]:
    if not isinstance(data, list):
        _refuse(f"{what} must be a list", data)
    if len(data) > longest:
        _refuse(f"too many {what}", len(data), f"at most {longest}")
    return data


def _layout(data: object) -> Layout:
    if isinstance(data, dict):
        for value in data.values():
            _list(value, "names", MOST_ARGUMENTS)
    return Layout.from_data(data)


def _constants(data: object) -> tuple[float, ...]:
    constants = _list(data, "constants", MOST_VALUES)
    for value in constants:
        # whole numbers too: other writers of JSON may drop the point of 2.0
        if not (type(value) is int and abs(value) <= 2**53) and not (type(value) is float and math.isfinite(value)):
            _refuse("a constant must be a finite number", value)
    return tuple(float(value) for value in constants)


def _instructions(data: object, first: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    instructions = []
    for known, row in enumerate(_list(data, "instructions", MOST_VALUES), start=first):
        if not isinstance(row, list) or not row or not isinstance(row[0], str):
            _refuse("an instruction is a list of an operation and operands", row)
        op, *operands = row
        operation = OPERATIONS.get(op)
        if operation is None:
            remedy = nearest(op[:40], OPERATIONS)
            raise InputError("stored program: unknown operation", found=repr(op)[:200], remedy=remedy)
        if len(operands) != operation.arity:
            _refuse(f"'{op}' takes {operation.arity} operands", operands)
        instructions.append((op, _indices(operands, known)))
    return tuple(instructions)


def _outputs(data: object, known: int) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    outputs, names, total = [], set(), 0
    for row in _list(data, "outputs", MOST_OUTPUTS):
        if not isinstance(row, list) or len(row) != 3 or not isinstance(row[0], str) or len(row[0]) > 200:
            _refuse("an output is a list of name, shape and indices", row)
        name = row[0]
        if name in names:
            _refuse("two outputs of one name", name)
        names.add(name)
        shape = tuple(_list(row[1], "axes", MOST_AXES))
        if any(type(length) is not int or not 0 <= length <= MOST_OUTPUTS for length in shape):
            _refuse(f"shape of the output '{name}'", row[1])
        indices = _indices(_list(row[2], "indices", MOST_OUTPUTS), known)
        total += len(indices)
        if math.prod(shape) != len(indices) or total > MOST_OUTPUTS:
            _refuse(f"shape of the output '{name}' does not fit its indices", (shape, len(indices)))
        outputs.append((name, shape, indices))
    return outputs


def _indices(values: list[Any], known: int) -> tuple[int, ...]:
    """Check that every value is the number of something computed before, of which there are `known`."""
    for value in values:
        if type(value) is not int or not 0 <= value < known:
            _refuse("an operand must be the number of a value computed before", value, f"0 to {known - 1}")
    return tuple(values)
