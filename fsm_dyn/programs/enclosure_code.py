"""Programs as the runtime encloses them: instructions as words, interpreted with intervals and two of their rates.

Guards are bounded over a step far more seldom than evaluated, so an interpreter suffices: machine code would take
longer to make than it ever runs. Exports have the same words as data (docs/decisions/0050). The arithmetic is the one
of :mod:`fsm_dyn.programs.intervals`, with rates (``runtime/enclosure.c``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.programs.graph import OPERATIONS
from fsm_dyn.programs.program import Instruction, Program
from fsm_dyn.runtime.abi import OPERAND_BITS, EnclosedOperation

_CODES: Final = {op: int(EnclosedOperation[op.upper()]) for op in (*OPERATIONS, "norm")}
_LONGEST_NORM: Final = 3
_COUNTS: Final = 7
_NO_SQUARE: Final = 1e-99  # m²: keeps the derivatives of a vanishing distance finite


class EnclosureCode(NamedTuple):
    """An output of a program in the form enclosed by the runtime."""

    # int64 array: seven counts (moving arguments, fixed ones, parameters among these, constants, operations on fixed
    # values, other operations, terms), the numbers of the arguments, the instructions, the values of the terms
    words: Integers
    numbers: Floats  # float64 array: the constants
    outputs: Integers  # int64 array: for each entry of the output the number of its value
    unknowns: int = 0  # of the equations in the terms, solved for forces

    def with_terms(self, terms: Integers, unknowns: int) -> EnclosureCode:
        """Return the code with the values from which so many unknowns are solved for."""
        words = np.concatenate([self.words, terms])
        words[_COUNTS - 1] = len(terms)
        return self._replace(words=words, unknowns=unknowns)

    @property
    def terms(self) -> int:
        """Number of terms from which forces are solved for."""
        return int(self.words[_COUNTS - 1])

    @property
    def moving(self) -> int:
        """Number of arguments changing in a step."""
        return int(self.words[0])

    @property
    def fixed(self) -> int:
        """Number of arguments changing between steps only."""
        return int(self.words[1])

    @property
    def arguments(self) -> Integers:
        """Numbers of the arguments, moving ones first."""
        return self.words[_COUNTS : _COUNTS + self.moving + self.fixed]

    @property
    def operations(self) -> int:
        """Number of operations on moving arguments."""
        return int(self.words[5])

    @property
    def values(self) -> int:
        """Number of values."""
        return int(self.words[[0, 1, 3, 4, 5]].sum())


def enclosure_code(program: Program, output: str | None = None) -> EnclosureCode | None:
    """Return the code to enclose an output, or all; None without entries, or if it is too long.

    ``output``: name of the output.
    """
    indices = tuple(i for item in program.results if output in (None, item.name) for i in item.indices)
    first, n = program.first_instruction, len(program.layout.arguments)
    instructions = _with_norms(program, indices)
    order = _waves_together(instructions)
    used = {i for _, operands in instructions.values() for i in operands} | set(indices)
    moving = _moving_arguments(program)
    changing = set(moving)
    for index in order:
        if any(i in changing for i in instructions[index][1]):
            changing.add(index)
    arguments = sorted(i for i in used if i < n)
    fixed = [i for i in arguments if i not in moving]
    parameters = range(1 + program.layout.n_x, 1 + program.layout.n_x + len(program.layout.p))
    fixed.sort(key=lambda i: (i not in parameters, i))
    parts = [
        [i for i in arguments if i in moving],
        fixed,
        sorted(i for i in used if n <= i < first),
        [i for i in order if i not in changing],
        [i for i in order if i in changing],
    ]
    number = {index: k for k, index in enumerate(i for part in parts for i in part)}
    if not indices or len(number) >= 1 << OPERAND_BITS:
        return None
    code = [_word(instructions[index], number) for part in parts[3:] for index in part]
    count = [len(part) for part in parts]
    counts = [count[0], count[1], sum(i in parameters for i in fixed), *count[2:], 0]
    return EnclosureCode(
        np.array([*counts, *parts[0], *parts[1], *code], np.int64),
        np.array([program.constants[i - n] for i in parts[2]], np.float64),
        np.array([number[i] for i in indices], np.int64),
    )


def _moving_arguments(program: Program) -> frozenset[int]:
    """Return the arguments changing in a step: the time, the state, the inputs and their rates."""
    layout = program.layout
    at = 1 + layout.n_x
    inputs = (layout.w_slice, layout.w_rate_slice, layout.w_rate2_slice, layout.w_rate3_slice)
    return frozenset(range(at)) | {at + i for part in inputs for i in range(part.start, part.stop)}


def _with_norms(program: Program, indices: tuple[int, ...]) -> dict[int, Instruction]:
    """Return the instructions on which some values depend, by the values they give."""
    first = program.first_instruction
    found: dict[int, Instruction] = {}
    ahead = [i for i in indices if i >= first]
    while ahead:
        index = ahead.pop()
        if index in found:
            continue
        instruction = program.instructions[index - first]
        squares = _roots_of_squares(program, instruction)
        found[index] = ("norm", squares) if squares else instruction
        ahead += [i for i in found[index][1] if i >= first]
    return found


def _waves_together(instructions: dict[int, Instruction]) -> list[int]:
    """Return the instructions in an order in which the sine and the cosine of an angle follow each other."""
    waves: dict[int, list[int]] = {}
    for index, (op, operands) in sorted(instructions.items()):
        if op in ("sin", "cos"):
            waves.setdefault(operands[0], []).append(index)
    order = []
    for index in sorted(instructions):
        op, operands = instructions[index]
        together = waves[operands[0]] if op in ("sin", "cos") else [index]
        order += together if together[0] == index else []
    return order


def _roots_of_squares(program: Program, instruction: Instruction) -> tuple[int, ...]:
    """Return the numbers of the values squared under a root of a sum of squares; empty for other instructions."""
    op, operands = instruction
    first, ahead, found = program.first_instruction, list(operands), []
    if op != "sqrt":
        return ()
    while ahead:
        index = ahead.pop()
        op, operands = program.instructions[index - first] if index >= first else ("", ())
        if first > index >= len(program.layout.arguments) and 0.0 <= _constant(program, index) <= _NO_SQUARE:
            continue
        if op == "add":
            ahead += operands
        elif op == "mul" and operands[0] == operands[1]:
            found.append(operands[0])
        else:
            return ()
        if len(found) > _LONGEST_NORM:
            return ()
    distinct = tuple(sorted(set(found)))
    return distinct if 1 < len(distinct) == len(found) else ()


def _constant(program: Program, index: int) -> float:
    return program.constants[index - len(program.layout.arguments)]


def _word(instruction: Instruction, number: dict[int, int]) -> int:
    """Return an instruction as a word; the norm of two numbers repeats the first."""
    op, operands = instruction
    places = [number[i] for i in operands]
    if op == "norm" and len(places) == 2:
        places.append(places[0])
    return _CODES[op] | sum(place << (8 + k * OPERAND_BITS) for k, place in enumerate(places))
