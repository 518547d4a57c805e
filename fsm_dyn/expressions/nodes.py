"""The tree an expression is read into, and the one way to walk it: folding it over an algebra.

An *algebra* defines numbers, names and operations: floats (`FloatAlgebra`), kinds and dimensions
(`fsm_dyn.spec`), graph nodes or sympy (`fsm_dyn.symbolic`).  The tree itself means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from fsm_dyn.expressions.keywords import REFERENCE_FUNCTIONS
from fsm_dyn.expressions.units import Dimension

AxisLetter: TypeAlias = Literal["x", "y", "z"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number in SI units; ``dimension`` is None where it was written without a unit."""

    value: float
    dimension: Dimension | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """Something the model names, or ``t``."""

    id: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A unit vector of a frame: ``B.x``."""

    frame: str
    axis: AxisLetter


@dataclass(frozen=True, slots=True)
class Index:
    """An element of a vector parameter: ``lip[0]``."""

    name: str
    index: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the language; ``min`` and ``max`` always have two arguments (more are nested)."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary:
    """``-a``, ``+a``, ``not a``."""

    op: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """``a + b``, ``-``, ``*``, ``/``, ``**``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison; chains ``a < b < c`` are read as ``a < b and b < c``."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Boolean:
    """``a and b and ...`` or ``a or b or ...``."""

    op: str
    operands: tuple[Node, ...]


Node: TypeAlias = Number | Name | Axis | Index | Call | Unary | Binary | Compare | Boolean

V = TypeVar("V")


class Algebra(Protocol[V]):
    """What folding needs; every method gets already folded operands.

    `call` gets plain `Name` nodes, not values, for the functions in ``REFERENCE_FUNCTIONS``
    (``rate``, ``pos``, ``vel``, ``omega``): their arguments are names of things.
    """

    def number(self, node: Number, /) -> V:
        """Return the meaning of a number."""
        ...

    def name(self, name: str, /) -> V:
        """Return the meaning of a name."""
        ...

    def axis(self, frame: str, axis: AxisLetter, /) -> V:
        """Return the meaning of a frame's unit vector."""
        ...

    def index(self, name: str, index: int, /) -> V:
        """Return the meaning of an element of a vector parameter."""
        ...

    def call(self, function: str, arguments: list[Any], /) -> V:
        """Apply a function."""
        ...

    def unary(self, op: str, operand: V, /) -> V:
        """Apply ``-``, ``+`` or ``not``."""
        ...

    def binary(self, op: str, left: V, right: V, /) -> V:
        """Apply ``+ - * / **``."""
        ...

    def compare(self, op: str, left: V, right: V, /) -> V:
        """Compare two values."""
        ...

    def boolean(self, op: str, operands: list[V], /) -> V:
        """Combine conditions by ``and`` or ``or``."""
        ...


def fold(node: Node, algebra: Algebra[V]) -> V:
    """Evaluate `node` in `algebra`, operands first, from left to right.

    Parameters
    ----------
    node : Node
        What `parse` returned; its depth is bounded there, so recursion is safe.
    algebra : Algebra
        The meaning of the operations.

    Returns
    -------
    V
        The result of the algebra's methods for the root.
    """
    match node:
        case Number():
            return algebra.number(node)
        case Name(id=name):
            return algebra.name(name)
        case Axis(frame=frame, axis=axis):
            return algebra.axis(frame, axis)
        case Index(name=name, index=index):
            return algebra.index(name, index)
        case Unary(op=op, operand=operand):
            return algebra.unary(op, fold(operand, algebra))
        case Binary(op=op, left=left, right=right):
            return algebra.binary(op, fold(left, algebra), fold(right, algebra))
        case Compare(op=op, left=left, right=right):
            return algebra.compare(op, fold(left, algebra), fold(right, algebra))
        case Boolean(op=op, operands=operands):
            return algebra.boolean(op, [fold(operand, algebra) for operand in operands])
        case Call(function=function, arguments=arguments):
            if function in REFERENCE_FUNCTIONS:
                return algebra.call(function, list(arguments))
            return algebra.call(function, [fold(argument, algebra) for argument in arguments])


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct operands of `node`, those of reference functions included."""
    match node:
        case Call(arguments=arguments):
            return arguments
        case Boolean(operands=operands):
            return operands
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right) | Compare(left=left, right=right):
            return (left, right)
    return ()


def walk(node: Node) -> list[Node]:
    """Return `node` and everything below it, parents first."""
    found: list[Node] = []
    pending = [node]
    while pending:
        current = pending.pop()
        found.append(current)
        pending.extend(reversed(children(current)))
    return found


def free_names(node: Node) -> frozenset[str]:
    """Return every name `node` refers to: variables, frames of axes, points, vector parameters, ``t``."""
    names: set[str] = set()
    for part in walk(node):
        match part:
            case Name(id=name) | Index(name=name) | Axis(frame=name):
                names.add(name)
    return frozenset(names)
