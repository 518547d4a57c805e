"""Coordinates that can be chosen: shifting them together with others changes none of the values that are asked for.

Where a block stands to a pad, say, depends on the difference of their coordinates alone; among all configurations that
are alike in this one can be taken in which the block's coordinate is zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from fsm_dyn.programs.program import Program

Direction = Mapping[int, Fraction]  # rates of arguments; those left out do not move


def free_shifts(program: Program, arguments: Sequence[int]) -> dict[int, Direction]:
    """Return arguments that can be chosen without loss of generality, each with the direction of its shift.

    Parameters
    ----------
    program : Program
        All of its outputs are to stay as they are.
    arguments : sequence of int
        Numbers of the arguments that may be shifted: those without bounds.

    Returns
    -------
    dict of int to mapping of int to Fraction
        By the argument, which comes first in its direction; the other arguments that can be chosen do not move in it.
        Rates are whole numbers, floats without rounding.
    """
    solved = _reduced(_still(program, arguments))
    found: dict[int, Direction] = {}
    for argument in arguments:
        if argument in solved:
            continue
        moved = {argument: Fraction(1), **{i: -row[argument] for i, row in solved.items() if argument in row}}
        whole = math.lcm(*(rate.denominator for rate in moved.values()))
        moved = {i: whole * rate for i, rate in moved.items()}
        if all(Fraction(float(rate)) == rate for rate in moved.values()):
            found[argument] = moved
    return found


def _still(program: Program, arguments: Sequence[int]) -> list[dict[int, Fraction]]:
    """Return sums of arguments, by their factors, that suffice for all outputs to stay if they stay.

    Each value is such a sum plus what stays anyway, as far as sums and constant factors make it; all that enters other
    operations is to stay.
    """
    n = len(program.arguments)
    moving: dict[int, dict[int, Fraction]] = {argument: {argument: Fraction(1)} for argument in arguments}
    still: list[dict[int, Fraction]] = []
    for k, (op, operands) in enumerate(program.instructions, start=program.first_instruction):
        parts = [moving.get(i, {}) for i in operands]
        known = [program.constants[i - n] for i in operands if n <= i < program.first_instruction]
        if op in ("add", "sub"):
            total = _added(parts[0], Fraction(1 if op == "add" else -1), parts[1])
        elif op == "neg":
            total = _added({}, Fraction(-1), parts[0])
        elif op == "mul" and known and math.isfinite(known[0]):
            total = _added({}, Fraction(known[0]), parts[0] or parts[1])
        else:
            total, still = {}, still + [part for part in parts if part]
        if total:
            moving[k] = total
    return still + [moving[i] for output in program.results for i in output.indices if i in moving]


def _reduced(rows: Sequence[Mapping[int, Fraction]]) -> dict[int, dict[int, Fraction]]:
    """Return equations solved for one argument each: by it, with factor 1, and no other solved one in its row."""
    solved: dict[int, dict[int, Fraction]] = {}
    for row in rows:
        left = dict(row)
        for argument in [i for i in left if i in solved]:
            left = _added(left, -left[argument], solved[argument])
        if not left:
            continue
        pivot = next(iter(left))
        left = {i: value / left[pivot] for i, value in left.items()}
        solved = {i: _added(other, -other.get(pivot, Fraction(0)), left) for i, other in solved.items()} | {pivot: left}
    return solved


def _added(row: Mapping[int, Fraction], factor: Fraction, other: Mapping[int, Fraction]) -> dict[int, Fraction]:
    total = {i: row.get(i, Fraction(0)) + factor * other.get(i, Fraction(0)) for i in {**row, **other}}
    return {i: value for i, value in total.items() if value}
