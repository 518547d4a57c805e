"""Splitting a long program into parts that pass values through an array."""

from __future__ import annotations

from dataclasses import dataclass, field

from fsm_dyn.programs.program import Program


@dataclass
class Part:
    """A run of consecutive instructions that becomes one function.

    Attributes
    ----------
    start, stop : int
        Range of instructions.
    received : dict of int to int
        Values of earlier parts that are read here, with their places in the array.
    kept : dict of int to int
        Values made here that later parts read, with their places.
    outputs : list of (int, int)
        Places in what the kernel writes, with the numbers of the values.
    """

    start: int
    stop: int
    received: dict[int, int] = field(default_factory=dict)
    kept: dict[int, int] = field(default_factory=dict)
    outputs: list[tuple[int, int]] = field(default_factory=list)


def divide(program: Program, longest: int) -> tuple[list[Part], int]:
    """Cut `program` into parts of at most `longest` instructions.

    Returns
    -------
    parts : list of Part
        At least one.
    slots : int
        Length of the array; places are used again when nobody reads them any more.
    """
    n = len(program.instructions)
    pieces = max(1, -(-n // longest))
    length = max(1, -(-n // pieces))
    parts = [Part(start, min(start + length, n)) for start in range(0, max(n, 1), length)]
    first = program.first_instruction
    known: list[tuple[int, int]] = []  # constants and arguments: any part can write them, one alone would be long
    for place, index in enumerate(i for output in program.results for i in output.indices):
        (known if index < first else parts[(index - first) // length].outputs).append((place, index))
    share = max(1, -(-len(known) // len(parts)))
    for k, part in enumerate(parts):
        part.outputs = sorted(part.outputs + known[k * share : (k + 1) * share])
    if len(parts) == 1:
        return parts, 0
    last = {
        index: number
        for number, part in enumerate(parts)
        for _, operands in program.instructions[part.start : part.stop]
        for index in operands
        if index >= first
    }
    return parts, _assign(parts, last, first)


def _assign(parts: list[Part], last: dict[int, int], first: int) -> int:
    """Give every value that crosses from part to part a place; `last` is the last part that reads a value."""
    free: list[int] = []
    held: dict[int, int] = {}
    slots = 0
    for number, part in enumerate(parts):
        part.received = dict(held)
        for index in [index for index in held if last[index] == number]:
            free.append(held.pop(index))
        for index in range(first + part.start, first + part.stop):
            if last.get(index, number) > number:
                if not free:
                    free.append(slots)
                    slots += 1
                held[index] = part.kept[index] = free.pop()
    return slots
