"""Instants at which programs jump because the time passes a bound: ``where(t < 0.5 s, ...)``.

A step ends there: none passes over a pulse, each sees one branch alone.  Every switch is found: bounds of
arguments of choices and of their rates, by interval arithmetic, prove where there is none, and where there is one at
most.  They are found in order, from time zero on, in blocks whose lengths depend on the programs and parameters alone:
the switches of a long run begin with those of a short one, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.expression_tree import CASE_FUNCTIONS
from fsm_dyn.programs import functions as f
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.intervals import Interval, enclose
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import reachable, rebuild, tangent

_CHOICES: Final = CASE_FUNCTIONS | {"lt", "le"}
_FIRST_BLOCK: Final = 2.0**-6  # s
_FEW: Final = 1024  # parts of a block, for each choice, below which the next block is longer
_MANY: Final = 8192  # parts of a block, for each choice, above which it is halved
_FINEST: Final = 2.0**-36  # s; closer switches of one choice are not told apart


class _Choice(NamedTuple):
    """A choice between expressions of the time and parameters."""

    jump: Program  # of ``jump``, which is constant between switches
    # of ``margin`` and ``rate``: the choice switches when the first is zero, or whole if it ``counts``.  The values of
    # choices within it are memory.
    bounds: Program
    inner: tuple[int, ...]  # numbers of these choices
    counts: bool


@lru_cache(maxsize=64)
def choices(program: Program) -> tuple[_Choice, ...]:
    """Return the choices of a program between expressions of ``t`` and parameters alone, inner ones first."""
    if not any(op in _CHOICES for op, _ in program.instructions):
        return ()
    graph, symbols, outputs = program.graph()
    clock, constant = symbols["t"], {symbols[name] for name in program.layout.p}
    timed: dict[Node, bool] = {}  # nodes of t and parameters alone: whether t is among them
    smooth: dict[Node, Node] = {}  # the same nodes with symbols for jumping choices
    found: list[tuple[Node, Node, bool]] = []
    for node in reachable([node for array in outputs.values() for node in array.ravel()]):
        if not node.operands:
            if node is clock or node in constant or node.constant_value is not None:
                timed[node], smooth[node] = node is clock, node
        elif all(operand in timed for operand in node.operands):
            timed[node] = any(timed[operand] for operand in node.operands)
            operands = [smooth[operand] for operand in node.operands]
            if not (timed[node] and node.op in _CHOICES):
                smooth[node] = rebuild(graph, node.op, operands)
                continue
            jumps, margin = _jumps(node, operands)
            marks = [graph.symbol(f"choice.{len(found) + i}") for i in range(len(jumps))]
            found += [(jump, margin, node.op in ("floor", "mod")) for jump in jumps]
            smooth[node] = _chosen(node.op, marks, operands)
    return tuple(_choice(program.layout.p, clock, len(found), *item) for item in found)


def _jumps(node: Node, operands: Sequence[Node]) -> tuple[list[Node], Node]:
    """Return the jumping quantity of a choice, by value or slope, and its margin in terms of smooth operands."""
    zero = node.graph.zero
    a, b = operands[0], operands[-1]
    match node.op:
        case "min" | "max":
            return [f.compare("<", *node.operands)], a - b
        case "abs" | "sign":  # of zero, the sign is neither
            return [f.compare("<", node.operands[0], zero), f.compare(">", node.operands[0], zero)], a
        case "mod":  # as the remainder has it: the quotient is rounded
            return [f.floor((node.operands[0] - node) / node.operands[1] + 0.5)], a / b
        case "floor":
            return [node], a
    return [node], a - b


def _chosen(op: str, marks: Sequence[Node], operands: Sequence[Node]) -> Node:
    """Return a choice in terms of its jumping quantity and of smooth operands."""
    a, b, first = operands[0], operands[-1], marks[0]
    match op:
        case "min":
            return f.where(first, a, b)
        case "max":
            return f.where(first, b, a)
        case "abs":
            return (marks[1] - first) * a
        case "sign":
            return marks[1] - first
        case "mod":
            return a - b * first
    return first


def _choice(parameters: tuple[str, ...], clock: Node, count: int, jump: Node, margin: Node, counts: bool) -> _Choice:
    """Return the programs of one of ``count`` choices."""
    (rate,) = tangent([margin], {clock: clock.graph.one})
    names = {f"choice.{number}": number for number in range(count)}
    within = {node.name for node in reachable([margin]) if not node.operands and node.constant_value is None}
    inner = tuple(number for name, number in names.items() if name in within)
    memory = Layout(p=parameters, memory=tuple(f"choice.{number}" for number in inner))
    return _Choice(
        Program.from_nodes(Layout(p=parameters), {"jump": jump}),
        Program.from_nodes(memory, {"margin": margin, "rate": rate}),
        inner,
        counts,
    )


class _Parts(NamedTuple):
    """Intervals of time in which the choices within a choice are constant: begin and end (s), and their values."""

    low: Floats
    high: Floats
    inner: Floats

    def halves(self) -> _Parts:
        """Return both halves of every interval, the earlier first."""
        middle = self.low + 0.5 * (self.high - self.low)
        low, high = np.stack([self.low, middle], 1).ravel(), np.stack([middle, self.high], 1).ravel()
        return _Parts(low, high, np.repeat(self.inner, 2, axis=0))

    def of(self, which: Booleans) -> _Parts:
        """Return the marked intervals."""
        return _Parts(self.low[which], self.high[which], self.inner[which])


class _TooManyPartsError(Exception):
    """A block has more parts than are looked at together, or switches hardly apart."""


def _at(choice: _Choice, parameters: Floats, times: Floats) -> Floats:
    """Return the jumping quantities at instants (s)."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(choice.jump.evaluate(times, np.zeros(0), parameters)["jump"], times.shape)


def _enclosed(choice: _Choice, parameters: Floats, parts: _Parts) -> tuple[Interval, Interval]:
    """Return bounds of margin and rate over intervals of time."""
    count = len(parts.low)
    fixed = np.broadcast_to(parameters[:, None], (len(parameters), count))
    ends = [np.concatenate([time[None], fixed, parts.inner.T]) for time in (parts.low, parts.high)]
    bounds = enclose(choice.bounds, Interval(*ends))
    return bounds["margin"], bounds["rate"]


def _brackets(choice: _Choice, parameters: Floats, parts: _Parts, most: int) -> tuple[Floats, Floats, int]:
    """Return intervals (s) with one switch of a choice each, and how many intervals were looked at."""
    found: list[tuple[Floats, Floats]] = []
    looked_at = 0
    while len(parts.low):
        looked_at += len(parts.low)
        if looked_at > most:
            raise _TooManyPartsError
        margin, rate = _enclosed(choice, parameters, parts)
        decided = margin.empty | (
            np.floor(margin.low) == np.floor(margin.high) if choice.counts else (margin.low > 0.0) | (margin.high < 0.0)
        )
        steady = (rate.low > 0.0) | (rate.high < 0.0) | ((rate.low == 0.0) & (rate.high == 0.0))
        first, last = _at(choice, parameters, parts.low), _at(choice, parameters, parts.high)
        alone = steady & (abs(first - last) <= 1.0) & ~np.isnan(first - last)
        told = decided | alone | (parts.high - parts.low <= np.maximum(_FINEST, 8.0 * np.spacing(parts.high)))
        one = told & (first != last)  # also for margins with a value at one end alone
        found.append((parts.low[one], parts.high[one]))
        parts = parts.of(~told).halves()
    return np.concatenate([low for low, _ in found]), np.concatenate([high for _, high in found]), looked_at


def _bisected(choice: _Choice, parameters: Floats, low: Floats, high: Floats) -> Floats:
    """Return the neighbouring numbers (s) between which a choice switches, shape (n, 2), one in each interval."""
    before = _at(choice, parameters, low)
    middle = low + 0.5 * (high - low)
    while ((low < middle) & (middle < high)).any():
        same = _at(choice, parameters, middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
        middle = low + 0.5 * (high - low)
    return np.stack([low, high], 1)


def _switches_between(
    found: Sequence[_Choice], parameters: Floats, begin: float, end: float, most: int
) -> tuple[Floats, int]:
    """Return the neighbouring pairs of numbers in a block (s) between which choices switch, shape (n, 2), in order."""
    pairs: list[Floats] = []
    looked_at = 0
    for choice in found:
        cuts = np.unique(np.concatenate([np.zeros((0, 2)), *(pairs[number] for number in choice.inner)]).ravel())
        edges = np.unique(np.concatenate([[begin], cuts, [end]]))
        low, high = edges[:-1], edges[1:]
        middle = low + 0.5 * (high - low)
        inner = [_at(found[number], parameters, middle) for number in choice.inner]
        parts = _Parts(low, high, np.stack(inner, 1) if inner else np.zeros((len(low), 0)))
        low, high, count = _brackets(choice, parameters, parts, most - looked_at)
        looked_at += count
        pairs.append(np.unique(_bisected(choice, parameters, low, high), axis=0))
        if (np.diff(pairs[-1][:, 0]) < 2.0 * _FINEST).any():
            raise _TooManyPartsError
    return np.unique(np.concatenate(pairs), axis=0), looked_at


def switch_blocks(programs: Sequence[Program], parameters: Floats, until: float) -> Iterator[Floats]:
    """Yield the switches of programs from time zero on, block by block.

    ``programs``: of the same parameters; ``parameters``, float64 array, shape (n_p,); ``until``: the last block is the
    one in which this time (s) lies. Yields neighbouring pairs of numbers (s) between which a program switches, in
    order; float64 array, shape (n, 2). Raises InputError: switches are too close to be told apart.
    """
    each = [found for program in programs if (found := choices(program))]
    begin, length = 0.0, _FIRST_BLOCK
    while each and begin < until:
        end = begin + length
        try:
            blocks = [_switches_between(found, parameters, begin, end, _MANY * len(found)) for found in each]
        except _TooManyPartsError:
            length *= 0.5
            if length <= max(1024.0 * _FINEST, 1024.0 * float(np.spacing(end))):
                raise InputError(
                    f"choices between expressions of t switch too often near t = {begin:.9g} s",
                    allowed=f"switches of one choice that are farther apart than {_FINEST:.2g} s",
                    remedy="leave out a choice between two expressions that are equal except for rounding",
                ) from None
            continue
        yield np.unique(np.concatenate([pairs for pairs, _ in blocks]), axis=0)
        begin = end
        if sum(count for _, count in blocks) < _FEW * sum(map(len, each)):
            length *= 2.0


class SwitchWindows:
    """The switches of programs over time, window by window, as needed by a run.

    Windows overlap in one switch: the last of one is the first of the next.  Its place depends on the programs and
    parameters alone. ``programs``: of the same parameters; ``parameters``, float64 array, shape (n_p,); ``until``: time
    (s) up to which switches are looked for.
    """

    LENGTH: Final = 4096  # switches in a window, and the one in common with the next

    def __init__(self, programs: Sequence[Program], parameters: Floats, until: float) -> None:
        self._given = programs, parameters, until
        self._blocks: Iterator[Floats] = iter(())
        self._kept = np.zeros((0, 2))
        self._first = 0  # number of the first kept window
        self._restart()

    def window(self, number: int) -> tuple[Floats, float]:
        """Return a window's switches, shape (n, 2), and when (s) the next one takes over, infinity if none does."""
        if number < self._first:
            self._restart()
        while self._first < number:
            self._fill()
            self._kept = self._kept[self.LENGTH :]
            self._first += 1
        self._fill()
        window = self._kept[: self.LENGTH + 1]
        return window, float(window[-1, 0]) if len(window) > self.LENGTH else np.inf

    def number_at(self, t: float) -> int:
        """Return the number of the window in which a run is at ``t`` (s)."""
        number = self._first if self._first and self.window(self._first)[0][0, 0] <= t else 0
        while self.window(number)[1] <= t:
            number += 1
        return number

    def _restart(self) -> None:
        """Begin with the first window."""
        self._blocks, self._kept, self._first = switch_blocks(*self._given), np.zeros((0, 2)), 0

    def _fill(self) -> None:
        """Find switches until there is a window of them, or no more."""
        while len(self._kept) <= self.LENGTH:
            block = next(self._blocks, None)
            if block is None:
                return
            self._kept = np.concatenate([self._kept, block[~np.isin(block[:, 0], self._kept[-1:, 0])]])
