"""Programs as sympy expressions and LaTeX, for people to read; nothing that runs is made from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy

from fsm_dyn.programs import Counts, Node, Program, reachable
from fsm_dyn.symbolic.latex_printing import latex, latex_name
from fsm_dyn.symbolic.vectors import NO_DISTANCE

RATES = "x_dot"  # the output that holds the rates of all states
LONGEST_FRACTION = 64  # 0.5 is shown as 1/2, 0.1 as 0.1

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "neg": lambda a: -a,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": sympy.Pow,
    "sqrt": sympy.sqrt,
    "exp": sympy.exp,
    "log": sympy.log,
    "sin": sympy.sin,
    "cos": sympy.cos,
    "tan": sympy.tan,
    "asin": sympy.asin,
    "acos": sympy.acos,
    "atan": sympy.atan,
    "atan2": sympy.atan2,
    "sinh": sympy.sinh,
    "cosh": sympy.cosh,
    "tanh": sympy.tanh,
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "floor": sympy.floor,
    "mod": sympy.Mod,
    "min": sympy.Min,
    "max": sympy.Max,
}
_RELATIONS: dict[str, Callable[..., Any]] = {"lt": sympy.Lt, "le": sympy.Le, "eq": sympy.Eq, "ne": sympy.Ne}
_LOGIC: dict[str, Callable[..., Any]] = {"and": sympy.And, "or": sympy.Or, "not": sympy.Not}


@dataclass(frozen=True)
class Equations:
    """A program in readable form; printed as text, shown as LaTeX in a notebook.

    Attributes
    ----------
    definitions : tuple of (Symbol, expression)
        Intermediate symbols in the order in which they are needed; empty if they were put back in.
    results : dict of str to expression or matrix
        By the names of the outputs: scalars, column matrices, matrices.
    states : tuple of str
        Names of the coordinates and speeds, whose rates are the entries of the output ``x_dot``.
    counts : Counts
        Operations of the program itself.
    """

    definitions: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
    results: Mapping[str, Any]
    states: tuple[str, ...]
    counts: Counts

    @property
    def rates(self) -> dict[str, sympy.Expr]:
        """The rate of each coordinate and speed, where the program has the output ``x_dot``."""
        return dict(zip(self.states, self.results[RATES], strict=True)) if RATES in self.results else {}

    def latex(self) -> str:
        """Return one aligned equation per line, intermediate symbols first."""
        lines = self._lines()
        rows = [f"{pattern % latex_name(name)} &= {latex(value)}" for pattern, name, value in lines]
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def _lines(self) -> list[tuple[str, str, Any]]:
        """Return (pattern for the left side, its name, the right side) of every equation."""
        lines: list[tuple[str, str, Any]] = [("%s", symbol.name, value) for symbol, value in self.definitions]
        lines += [(r"\dot{%s}", name, value) for name, value in self.rates.items()]
        lines += [("%s", name, value) for name, value in self.results.items() if name != RATES]
        return lines

    def __str__(self) -> str:
        lines = [f"{name}{chr(39) if 'dot' in pattern else ''} = {value}" for pattern, name, value in self._lines()]
        c = self.counts
        lines.append(f"{c.multiply} products, {c.divide} quotients, {c.add} sums, {c.trig} sines, {c.other} others")
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        return f"$${self.latex()}$$"


def read_equations(
    program: Program, outputs: Sequence[str] | None = None, *, expand_symbols: bool = False
) -> Equations:
    """Return a program as sympy expressions.

    Parameters
    ----------
    program : Program
    outputs : sequence of str, optional
        Which outputs; all without it.
    expand_symbols : bool
        Whether to put intermediate symbols (``Z1``, ``Z2`` ... for what occurs more than once, as in Gillespie
        2003, (66)) back in; that can become very long.
    """
    _, _, arrays = program.graph()
    wanted = {name: arrays[name] for name in (outputs if outputs is not None else arrays)}
    nodes = [node for array in wanted.values() for node in array.ravel()]
    definitions, values = _translate(nodes, not expand_symbols)
    results: dict[str, Any] = {}
    for name, array in wanted.items():
        entries = [values[node] for node in array.ravel()]
        if array.ndim == 0:
            results[name] = entries[0]
        else:
            rows = array.shape[0]
            columns = len(entries) // rows if rows else 0
            results[name] = sympy.ImmutableMatrix(rows, columns, entries)
    return Equations(tuple(definitions), results, program.layout.x, program.counts())


def to_sympy(nodes: Sequence[Node]) -> list[sympy.Expr]:
    """Return nodes as sympy expressions, written out; symbols have the names of the nodes."""
    _, values = read_nodes(nodes)
    return [values[node] for node in nodes]


def read_nodes(
    nodes: Sequence[Node], longest: float = math.inf
) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], dict[Node, Any]]:
    """Return intermediate symbols with what they stand for, and nodes with their sympy expressions.

    Parameters
    ----------
    nodes : sequence of Node
    longest : float
        Number of operations, shared ones once, up to which all is written out and there are no intermediate symbols.
    """
    return _translate(nodes, sum(bool(node.operands) for node in reachable(nodes)) > longest)


def _translate(
    nodes: Sequence[Node], intermediate: bool
) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], dict[Node, Any]]:
    order = reachable(nodes)
    shared = _shared(order) if intermediate else frozenset[Node]()
    taken = {node.name for node in order}
    values: dict[Node, Any] = {}
    definitions: list[tuple[sympy.Symbol, sympy.Expr]] = []
    for node in order:
        value = _value(node, values)
        if node in shared:
            symbol = _fresh(len(definitions), taken)
            definitions.append((symbol, value))
            value = symbol
        values[node] = value
    return definitions, values


def _value(node: Node, values: Mapping[Node, Any]) -> Any:
    if node.constant_value is not None:
        return number(node.constant_value)
    if not node.operands:
        return sympy.Symbol(node.name)
    operands = [values[operand] for operand in node.operands]
    if node.op in _ARITHMETIC:
        return _ARITHMETIC[node.op](*operands)
    if node.op == "where":
        return sympy.Piecewise((operands[1], _truth(node.operands[0], values)), (operands[2], True))
    return sympy.Piecewise((1, _truth(node, values)), (0, True))


def _truth(node: Node, values: Mapping[Node, Any]) -> Any:
    """Return a node as a condition."""
    if node.op in _RELATIONS:
        return _RELATIONS[node.op](*[values[operand] for operand in node.operands])
    if node.op in _LOGIC:
        return _LOGIC[node.op](*[_truth(operand, values) for operand in node.operands])
    return sympy.Ne(values[node], 0)


def number(value: float) -> sympy.Expr:
    """Return a constant as an integer or a short fraction where it is one, else as a float.

    What is added to the squares of distances for the sake of their derivatives is no part of the formula: it is zero.
    """
    if abs(value) <= NO_DISTANCE:
        return sympy.S.Zero
    if Fraction(value).denominator <= LONGEST_FRACTION:
        return sympy.Rational(*value.as_integer_ratio())
    return sympy.Float(value)


def _shared(order: Sequence[Node]) -> frozenset[Node]:
    """Return the nodes worth a symbol: used at least twice, and more than a sign, a sine or a cosine."""
    uses: dict[Node, int] = {}
    for node in order:
        for operand in node.operands:
            uses[operand] = uses.get(operand, 0) + 1
    trivial = {"neg", "sin", "cos"}
    return frozenset(node for node in order if node.operands and node.op not in trivial and uses.get(node, 0) > 1)


def _fresh(count: int, taken: set[str]) -> sympy.Symbol:
    name = f"Z{count + 1}"
    while name in taken:
        name = "Z" + name
    taken.add(name)
    return sympy.Symbol(name)
