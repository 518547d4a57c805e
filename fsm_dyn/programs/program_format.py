"""Validating reader of stored programs: every size, index and operation is checked."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.programs.layout import Layout
from fsm_dyn.programs.operations import OPERATIONS

FORMAT: Literal[1] = 1
MOST_VALUES = 2_000_000
MOST_ARGUMENTS = 100_000
MOST_OUTPUTS = 1_000_000
MOST_AXES = 8

Instruction: TypeAlias = tuple[str, tuple[int, ...]]
_Number = Annotated[int, Meta(ge=0)]
_Names = Annotated[tuple[str, ...], Meta(max_length=MOST_ARGUMENTS)]
_LENGTHS = {name: operation.arity + 1 for name, operation in OPERATIONS.items()}


class Output(NamedTuple):
    """A named result: where its entries (row-major) stand among the values of the program."""

    name: Annotated[str, Meta(max_length=200)]
    shape: Annotated[tuple[Annotated[int, Meta(ge=0, le=MOST_OUTPUTS)], ...], Meta(max_length=MOST_AXES)]
    indices: Annotated[tuple[_Number, ...], Meta(max_length=MOST_OUTPUTS)]


class _StoredLayout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names of a layout."""

    q: _Names
    u: _Names
    p: _Names
    w: _Names
    contacts: _Names
    memory: _Names


@functools.lru_cache(maxsize=4)  # all programs of an automaton have one
def _layout(stored: _StoredLayout) -> Layout:
    return Layout(**msgspec.structs.asdict(stored))


class StoredProgram(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program as it is stored; an instruction is a list of an operation and the numbers of its operands."""

    format: Literal[1]
    layout: _StoredLayout
    constants: Annotated[tuple[float, ...], Meta(max_length=MOST_VALUES)]
    instructions: Annotated[
        tuple[Annotated[tuple[str | _Number, ...], Meta(min_length=1)], ...], Meta(max_length=MOST_VALUES)
    ]
    outputs: Annotated[tuple[Output, ...], Meta(max_length=MOST_OUTPUTS)]

    def checked(self) -> tuple[Layout, tuple[float, ...], tuple[Instruction, ...], tuple[Output, ...]]:
        """Return layout, constants, instructions and results, of which every operand is computed before it is read.

        Raises
        ------
        InputError
            They do not hold together.
        """
        layout = _layout(self.layout)
        if not all(map(math.isfinite, self.constants)):
            raise _refusal("a constant is not finite", "")
        known = len(layout.arguments) + len(self.constants)
        instructions: list[Any] = []
        for row in self.instructions:
            op, operands = row[0], row[1:]
            if _LENGTHS.get(op) != len(row):  # type: ignore[arg-type]
                raise _refusal(
                    "unknown operation, or not with so many operands", row, did_you_mean(str(op)[:40], OPERATIONS)
                )
            for operand in operands:
                if type(operand) is not int or operand >= known:
                    raise _refusal(f"an operand is to be the number of a value computed before, below {known}", row)
            instructions.append((op, operands))
            known += 1
        total = 0
        for output in self.outputs:
            total += len(output.indices)
            if math.prod(output.shape) != len(output.indices) or max(output.indices, default=0) >= known:
                raise _refusal("an output does not fit its shape, or holds what is not computed", output.name)
        if len({output.name for output in self.outputs}) < len(self.outputs) or total > MOST_OUTPUTS:
            raise _refusal("outputs of one name, or too many", total)
        return layout, self.constants, tuple(instructions), self.outputs


def _refusal(what: str, found: object, remedy: str = "") -> InputError:
    return InputError(f"stored program: {what}", found=repr(found)[:200], remedy=remedy)
