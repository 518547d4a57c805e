"""Contraction of boxes by the conditions that outputs of a program are to meet.

The values of all operations are bounded forwards, the outputs intersected with their conditions, and the operations
inverted one after the other from the last to the first (HC4-revise: Benhamou, Goualard, Granvilliers and Puget 1999).
No argument that meets the conditions is lost; where a value that must exist has no bounds left, the box has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fsm_dyn.programs.intervals import ULPS, Interval, add, apply, divide, multiply, outward, root, subtract
from fsm_dyn.programs.program import Program

NOTHING: Final = Interval(np.array([np.nan]), np.array([np.nan]))

Mask = npt.NDArray[np.bool_]


class Contracted(NamedTuple):
    """Smaller boxes: ``arguments`` of shape (n_arguments, n_boxes), and ``kept``, which of them may meet all."""

    arguments: Interval
    kept: Mask


class Contractor:
    """Contracts boxes by conditions on the outputs of a program.

    Parameters
    ----------
    program : Program
    variables : sequence of int
        Numbers of the arguments that differ from box to box.
    constants : Interval
        Bounds of all arguments, arrays of shape (n_arguments,); those of variables are not read.
    conditions : mapping of str to Interval
        For outputs of one axis the interval in which each entry is to be, arrays of shape (n_entries,).
    """

    def __init__(
        self, program: Program, variables: Sequence[int], constants: Interval, conditions: Mapping[str, Interval]
    ) -> None:
        self.variables, first = list(variables), program.first_instruction
        moving = set(self.variables)
        self._values = [
            *(Interval(constants.low[[i]], constants.high[[i]]) for i in range(len(program.arguments))),
            *(Interval(np.array([value]), np.array([value])) for value in program.constants),
        ]
        self._steps: list[tuple[int, str, tuple[int, ...]]] = []
        with np.errstate(all="ignore"):
            for k, (op, operands) in enumerate(program.instructions, start=first):
                if moving.isdisjoint(operands):
                    self._values.append(apply(op, *[self._values[i] for i in operands]))
                else:
                    moving.add(k)
                    self._steps.append((k, op, operands))
                    self._values.append(NOTHING)
        self._moving = moving
        self._goals = [
            (index, Interval(np.array([low]), np.array([high])))
            for output in program.results
            if output.name in conditions
            for index, low, high in zip(output.indices, *conditions[output.name], strict=True)
        ]

    def __call__(self, boxes: Interval) -> Contracted:
        """Return smaller boxes; arrays of shape (n_variables, n_boxes)."""
        values = self._values.copy()
        for variable, low, high in zip(self.variables, *boxes, strict=True):
            values[variable] = Interval(low, high)
        with np.errstate(all="ignore"):
            for k, op, operands in self._steps:
                values[k] = apply(op, *[values[i] for i in operands])
            sweep = _BackwardSweep(values, self._moving, boxes.low.shape[1])
            for index, goal in self._goals:
                sweep.meet(index, goal)
            for k, op, operands in reversed(self._steps):
                if k in sweep.met and op in _RULES:
                    _RULES[op](sweep, values[k], operands)
        low, high = ([np.broadcast_to(values[i][side], sweep.kept.shape) for i in self.variables] for side in (0, 1))
        return Contracted(Interval(np.array(low), np.array(high)), sweep.kept)


class _BackwardSweep:
    """The values of one program over some boxes while its operations are inverted."""

    def __init__(self, values: list[Interval], moving: set[int], boxes: int) -> None:
        self.values, self.moving, self.met, self.kept = values, moving, set[int](), np.ones(boxes, bool)

    def meet(self, index: int, other: Interval, where: Mask | None = None) -> None:
        """Intersect a value that must exist with an interval, in the boxes ``where`` alone if that is given."""
        value = self.values[index]
        low, high = np.maximum(value.low, other.low), np.minimum(value.high, other.high)
        if where is not None:
            low, high = np.where(where, low, value.low), np.where(where, high, value.high)
            self.kept &= ~where | (low <= high)
        else:
            self.kept &= low <= high
        if index in self.moving:
            self.values[index] = Interval(low, high)
            self.met.add(index)


Rule = Callable[[_BackwardSweep, Interval, tuple[int, ...]], None]


def _neg(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    sweep.meet(operands[0], Interval(-r.high, -r.low))


def _add(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a in sweep.moving:
        sweep.meet(a, subtract(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, subtract(r, sweep.values[a]))


def _sub(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a in sweep.moving:
        sweep.meet(a, add(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, subtract(sweep.values[a], r))


def _quotient(a: Interval, b: Interval) -> Interval:
    """Return the solutions x of ``b x = a``: all numbers where both may be zero."""
    found = divide(a, b)
    if b.low.size == 1 and b.low[0] > 0.0:
        return found
    free = (a.low <= 0.0) & (a.high >= 0.0) & (b.low <= 0.0) & (b.high >= 0.0)
    return Interval(np.where(free, -np.inf, found.low), np.where(free, np.inf, found.high))


def _mul(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a == b:
        _square(sweep, r, a)
        return
    if a in sweep.moving:
        sweep.meet(a, _quotient(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, _quotient(r, sweep.values[a]))


def _square(sweep: _BackwardSweep, r: Interval, operand: int) -> None:
    size = root(r).high
    sweep.meet(operand, Interval(-size, size))


def _div(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    a, b = operands
    if a in sweep.moving:
        sweep.meet(a, multiply(r, sweep.values[b]))
    if b in sweep.moving:
        sweep.meet(b, _quotient(sweep.values[a], r))


def _pow(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    exponent = sweep.values[operands[1]]
    if np.all((exponent.low == 2.0) & (exponent.high == 2.0)):
        _square(sweep, r, operands[0])


def _sqrt(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    low, high = np.maximum(r.low, 0.0), r.high
    sweep.meet(operands[0], outward(low * low, high * high))


def _abs(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    sweep.meet(operands[0], Interval(-r.high, r.high))


def _sin(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    """Invert the sine within the quarter turns next to zero, where it rises."""
    a, quarter = sweep.values[operands[0]], np.nextafter(np.pi / 2, 0.0)
    inverse = outward(np.arcsin(np.clip(r.low, -1.0, 1.0)), np.arcsin(np.clip(r.high, -1.0, 1.0)), ULPS)
    sweep.meet(operands[0], inverse, (a.low >= -quarter) & (a.high <= quarter) & (r.low <= 1.0) & (r.high >= -1.0))


def _cos(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    """Invert the cosine on either side of zero, within half a turn; on both sides its size bounds the angle."""
    a, half = sweep.values[operands[0]], np.nextafter(np.pi, 0.0)
    inverse = outward(np.arccos(np.clip(r.high, -1.0, 1.0)), np.arccos(np.clip(r.low, -1.0, 1.0)), ULPS)
    inside = (a.low >= -half) & (a.high <= half)
    sweep.meet(operands[0], Interval(-inverse.high, inverse.high), inside)
    sweep.meet(operands[0], inverse, inside & (a.low >= 0.0))
    sweep.meet(operands[0], Interval(-inverse.high, -inverse.low), inside & (a.high <= 0.0))


def _min(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    for operand in operands:
        sweep.meet(operand, Interval(r.low, np.full_like(r.low, np.inf)))


def _max(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    for operand in operands:
        sweep.meet(operand, Interval(np.full_like(r.high, -np.inf), r.high))


def _where(sweep: _BackwardSweep, r: Interval, operands: tuple[int, ...]) -> None:
    """Pass the result to the branch that is certain; a condition is certain where it cannot be zero, or is zero."""
    c, a, b = operands
    truth = sweep.values[c]
    sweep.meet(a, r, (truth.low > 0.0) | (truth.high < 0.0))
    sweep.meet(b, r, (truth.low == 0.0) & (truth.high == 0.0))


_RULES: Final[dict[str, Rule]] = {
    "neg": _neg,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "sqrt": _sqrt,
    "abs": _abs,
    "sin": _sin,
    "cos": _cos,
    "min": _min,
    "max": _max,
    "where": _where,
}
