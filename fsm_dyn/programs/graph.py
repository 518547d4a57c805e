"""The hash-consed graph of operations from which every program is made (docs/theory.md, "Straight-line programs").

The table of operations has their arity, meaning in Python and in NumPy, and kind for counting.  Comparisons and logic
yield the numbers 0.0 and 1.0; any number other than zero counts as true.  Everything else of the package (folding of
constants, NumPy evaluation, checking of stored programs) reads this table, so an operation has the same meaning
everywhere.
"""

from __future__ import annotations

import contextlib
import gc
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fsm_dyn.core.errors import InputError
from fsm_dyn.runtime.library import ELEMENTARY

# -- Table of operations -------------------------------------------------------------------------------------


class Operation(NamedTuple):
    """One operation."""

    arity: int  # number of operands
    kind: str  # class for counting: ``multiply``, ``add``, ``divide``, ``trig``, ``other`` or ``free``
    scalar: Callable[..., float]  # value for Python floats; may raise if the value does not exist
    array: Callable[..., Any]  # value for NumPy arrays, element by element; NaN propagates as in IEEE arithmetic


def _sign(x: float) -> float:
    return float((x > 0.0) - (x < 0.0))


def _truth(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a NumPy predicate into a function with values 0.0 and 1.0."""
    return lambda *operands: function(*operands).astype(np.float64)


def half_integer(exponent: float) -> int | None:
    """Return n if ``exponent == n + 1/2`` with 0 <= n <= 4: such powers are products with one square root."""
    whole = exponent - 0.5
    return int(whole) if whole in (0.0, 1.0, 2.0, 3.0, 4.0) else None


def _power(base: Any, exponent: Any) -> Any:
    whole = half_integer(float(exponent)) if np.ndim(exponent) == 0 else None
    if whole is None:
        return np.power(base, exponent)
    result = np.sqrt(base)
    for _ in range(whole):
        result = result * base
    return result


OPERATIONS: dict[str, Operation] = {
    "neg": Operation(1, "free", lambda a: -a, np.negative),
    "add": Operation(2, "add", lambda a, b: a + b, np.add),
    "sub": Operation(2, "add", lambda a, b: a - b, np.subtract),
    "mul": Operation(2, "multiply", lambda a, b: a * b, np.multiply),
    "div": Operation(2, "divide", lambda a, b: a / b, np.divide),
    "pow": Operation(2, "other", ELEMENTARY["pow"], _power),
    "sqrt": Operation(1, "other", math.sqrt, np.sqrt),
    "exp": Operation(1, "other", ELEMENTARY["exp"], np.exp),
    "log": Operation(1, "other", ELEMENTARY["log"], np.log),
    "sin": Operation(1, "trig", ELEMENTARY["sin"], np.sin),
    "cos": Operation(1, "trig", ELEMENTARY["cos"], np.cos),
    "tan": Operation(1, "trig", ELEMENTARY["tan"], np.tan),
    "asin": Operation(1, "trig", ELEMENTARY["asin"], np.arcsin),
    "acos": Operation(1, "trig", ELEMENTARY["acos"], np.arccos),
    "atan": Operation(1, "trig", ELEMENTARY["atan"], np.arctan),
    "atan2": Operation(2, "trig", ELEMENTARY["atan2"], np.arctan2),
    "sinh": Operation(1, "other", ELEMENTARY["sinh"], np.sinh),
    "cosh": Operation(1, "other", ELEMENTARY["cosh"], np.cosh),
    "tanh": Operation(1, "other", ELEMENTARY["tanh"], np.tanh),
    "abs": Operation(1, "other", abs, np.abs),
    "sign": Operation(1, "other", _sign, np.sign),
    "floor": Operation(1, "other", lambda a: float(math.floor(a)), np.floor),
    "mod": Operation(2, "other", lambda a, b: a % b, np.mod),
    "min": Operation(2, "other", min, np.minimum),
    "max": Operation(2, "other", max, np.maximum),
    "lt": Operation(2, "other", lambda a, b: float(a < b), _truth(np.less)),
    "le": Operation(2, "other", lambda a, b: float(a <= b), _truth(np.less_equal)),
    "eq": Operation(2, "other", lambda a, b: float(a == b), _truth(np.equal)),
    "ne": Operation(2, "other", lambda a, b: float(a != b), _truth(np.not_equal)),
    "and": Operation(2, "other", lambda a, b: float(a != 0.0 and b != 0.0), _truth(np.logical_and)),
    "or": Operation(2, "other", lambda a, b: float(a != 0.0 or b != 0.0), _truth(np.logical_or)),
    "not": Operation(1, "other", lambda a: float(a == 0.0), _truth(np.logical_not)),
    "where": Operation(3, "other", lambda c, a, b: a if c != 0.0 else b, lambda c, a, b: np.where(c != 0.0, a, b)),
}

TRUTH_VALUED = frozenset({"lt", "le", "eq", "ne", "and", "or", "not"})


def fold(op: str, operands: tuple[float, ...]) -> float | None:
    """Return the value of an operation on constants, or None without a finite value.

    ``op``: a key of :data:`OPERATIONS`; ``operands``: finite values, their number the arity.
    """
    try:
        value = OPERATIONS[op].scalar(*operands)
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) else None


# -- Graph of operations -------------------------------------------------------------------------------------

# -- The hash-consed graph of operations ---------------------------------------------------------------------
#
# The hash-consed graph of operations from which every program is made (docs/theory.md, straight-line programs).
#
# A node is built once per graph: two nodes are the same object exactly when they are the same expression, so common
# subexpressions cost nothing and no later search for them is needed. Nodes are built with ordinary operators.
# Rewriting is local: a rule looks at a node and its operands, never further. Nothing is expanded.
#
# The rules hold wherever both sides are defined; if one side is not (``x - x`` at an infinite ``x``), the finite side
# is taken. Signs have a normal form, so ``a - b`` and ``b - a`` share one subtraction:
#
# - factors, numerators and denominators carry no sign: it stands in front of the product or quotient;
# - a difference has its operands in the order of their making, with a ``neg`` in front if need be;
# - a negative addend makes a difference; a constant is always added, never subtracted.

CONSTANT = "const"
SYMBOL = "sym"
NUMBERS = (int, float, np.number)
LARGEST_UNROLLED_POWER = 16


class Node:
    """An expression in a :class:`Graph`; compared and hashed by identity.

    Do not construct nodes: ask the graph, or use operators and :mod:`fsm_dyn.programs.functions`. ``op``: a key of
    :data:`~fsm_dyn.programs.graph.OPERATIONS`, or ``const`` or ``sym``. ``operands``: operands of the operation.
    ``name``: the name of a symbol, else empty. ``index``: number in the order of making; operands always have smaller
    ones.
    """

    __slots__ = ("constant_value", "graph", "index", "name", "op", "operands")

    def __init__(
        self,
        graph: ExpressionGraph,
        op: str,
        operands: tuple[Node, ...],
        constant_value: float | None,
        name: str,
        index: int,
    ) -> None:
        self.graph = graph
        self.op = op
        self.operands = operands
        self.constant_value = constant_value
        self.name = name
        self.index = index

    @property
    def is_zero(self) -> bool:
        """Whether this is the constant 0."""
        return self.constant_value == 0.0

    @property
    def is_one(self) -> bool:
        """Whether this is the constant 1."""
        return self.constant_value == 1.0

    def __add__(self, other: Scalar) -> Node:
        if type(other) is not Node:
            if not isinstance(other, NUMBERS):
                return NotImplemented
            other = self.graph.constant(other)
        return self.graph.add(self, other)

    def __radd__(self, other: Scalar) -> Node:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return self.graph.add(self.graph.constant(other), self)

    def __sub__(self, other: Scalar) -> Node:
        if type(other) is not Node:
            if not isinstance(other, NUMBERS):
                return NotImplemented
            other = self.graph.constant(other)
        return self.graph.subtract(self, other)

    def __rsub__(self, other: Scalar) -> Node:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return self.graph.subtract(self.graph.constant(other), self)

    def __mul__(self, other: Scalar) -> Node:
        if type(other) is not Node:
            if not isinstance(other, NUMBERS):
                return NotImplemented
            other = self.graph.constant(other)
        return self.graph.multiply(self, other)

    def __rmul__(self, other: Scalar) -> Node:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return self.graph.multiply(self.graph.constant(other), self)

    def __truediv__(self, other: Scalar) -> Node:
        if type(other) is not Node:
            if not isinstance(other, NUMBERS):
                return NotImplemented
            other = self.graph.constant(other)
        return self.graph.divide(self, other)

    def __rtruediv__(self, other: Scalar) -> Node:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return self.graph.divide(self.graph.constant(other), self)

    def __pow__(self, other: Scalar) -> Node:
        if type(other) is not Node:
            if not isinstance(other, NUMBERS):
                return NotImplemented
            other = self.graph.constant(other)
        return self.graph.power(self, other)

    def __rpow__(self, other: Scalar) -> Node:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return self.graph.power(self.graph.constant(other), self)

    def __neg__(self) -> Node:
        return self.graph.negate(self)

    def __pos__(self) -> Node:
        return self

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value while it is built: use compare() and where(), or .is_zero")

    def __repr__(self) -> str:
        if self.constant_value is not None:
            return repr(self.constant_value)
        if self.op == SYMBOL:
            return self.name
        below = (f"#{node.index}" if node.operands else repr(node) for node in self.operands)
        return f"{self.op}({', '.join(below)})"


Scalar: TypeAlias = Node | float


class ExpressionGraph:
    """Owner of nodes; makes every node at most once.

    Examples
    --------
    >>> graph = Graph()
    >>> x = graph.symbol("x")
    >>> 2 * x + 0 is x + x - 0 * x, x * 2 is 2 * x
    (False, True)
    """

    __slots__ = ("_constants", "_count", "_interned", "_lock", "_sealed", "_symbols", "one", "zero")

    def __init__(self) -> None:
        self._sealed = False
        self._lock = threading.RLock()
        self._interned: dict[tuple[str, tuple[Node, ...]], Node] = {}
        self._constants: dict[float, Node] = {}
        self._symbols: dict[str, Node] = {}
        self._count = 0
        self.zero = self.constant(0.0)
        self.one = self.constant(1.0)

    def __len__(self) -> int:
        return self._count

    def seal(self) -> None:
        """Allow further nodes inside :meth:`scratch` only."""
        self._sealed = True

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Make temporary nodes: those made inside are forgotten at the end.

        The order of operands follows the numbers of nodes, and rounding follows this order. Results derived inside
        therefore do not depend on earlier derivations. One thread at a time is inside.
        """
        with self._lock:
            made: tuple[dict[Any, Node], ...] = (self._interned, self._constants, self._symbols)
            lengths, count, sealed = [len(nodes) for nodes in made], self._count, self._sealed
            self._sealed = False
            try:
                yield
            finally:
                for nodes, length in zip(made, lengths, strict=True):
                    while len(nodes) > length:
                        nodes.popitem()  # the newest
                self._count, self._sealed = count, sealed

    def _next(self) -> int:
        """Return the number of the next node."""
        if self._sealed:
            raise TypeError("a sealed graph makes no nodes outside scratch()")
        self._count += 1
        return self._count - 1

    def constant(self, value: Scalar) -> Node:
        """Return the node of a finite number; a node of this graph is returned as it is.

        Raises InputError: the number is not finite, or the node belongs to another graph.
        """
        if isinstance(value, Node):
            return self.own(value)
        node = self._constants.get(value)
        if node is None:
            number = float(value) + 0.0  # one zero: -0.0 + 0.0 is 0.0
            if not math.isfinite(number):
                raise InputError("a constant of an expression must be finite", found=repr(number))
            node = self._constants[number] = Node(self, CONSTANT, (), number, "", self._next())
        return node

    def symbol(self, name: str) -> Node:
        """Return the node of the symbol `name`, the same one each time."""
        node = self._symbols.get(name)
        if node is None:
            node = self._symbols[name] = Node(self, SYMBOL, (), None, name, self._next())
        return node

    def own(self, node: Node) -> Node:
        """Return `node` if it is of this graph, raise :class:`InputError` otherwise."""
        if node.graph is not self:
            raise InputError("an expression of one graph met a node of another", found=repr(node))
        return node

    def intern(self, op: str, operands: tuple[Node, ...]) -> Node:
        """Return the node `op(operands)` as it stands, without rewriting; made on first use."""
        key = (op, operands)
        node = self._interned.get(key)
        if node is None:
            for operand in operands:
                if operand.graph is not self:
                    self.own(operand)
            node = self._interned[key] = Node(self, op, operands, None, "", self._next())
        return node

    def apply(self, op: str, *operands: Node) -> Node:
        """Return `op(operands)`, folded if all operands are constants and the value is finite."""
        values = []
        for operand in operands:
            if operand.constant_value is None:
                return self.intern(op, operands)
            values.append(operand.constant_value)
        value = fold(op, tuple(values))
        return self.intern(op, operands) if value is None else self.constant(value)

    def negate(self, a: Node) -> Node:
        """Return ``-a``."""
        if a.op == "neg":
            return a.operands[0]
        if a.constant_value is not None:
            return self.constant(-a.constant_value)
        return self.intern("neg", (a,))

    def add(self, a: Node, b: Node) -> Node:
        """Return ``a + b``."""
        if a.constant_value is not None or b.constant_value is not None:
            return self._shift(a, b) if a.constant_value is not None else self._shift(b, a)
        if b.op == "neg":
            return self.subtract(a, b.operands[0])
        if a.op == "neg":
            return self.subtract(b, a.operands[0])
        return self.intern("add", (a, b) if a.index <= b.index else (b, a))

    def subtract(self, a: Node, b: Node) -> Node:
        """Return ``a - b``."""
        if a is b:
            return self.zero
        if b.constant_value is not None:
            return self._shift(self.constant(-b.constant_value), a)
        if b.op == "neg":
            return self.add(a, b.operands[0])
        if a.constant_value is not None:
            return self.negate(self._shift(self.constant(-a.constant_value), b))
        if a.op == "neg":
            return self.negate(self.add(a.operands[0], b))
        if a.index <= b.index:
            return self.intern("sub", (a, b))
        return self.negate(self.intern("sub", (b, a)))

    def multiply(self, a: Node, b: Node) -> Node:
        """Return ``a * b``."""
        if a.constant_value is not None:
            return self._scale(a, b)
        if b.constant_value is not None:
            return self._scale(b, a)
        if a.op == "neg":
            return self.negate(self.multiply(a.operands[0], b))
        if b.op == "neg":
            return self.negate(self.multiply(a, b.operands[0]))
        return self.intern("mul", (a, b) if a.index <= b.index else (b, a))

    def divide(self, a: Node, b: Node) -> Node:
        """Return ``a / b``; division by the constant 0 is kept, it shows as NaN or infinity when run."""
        if b.constant_value is not None and b.constant_value != 0.0:
            return self._divide_by_constant(a, b.constant_value)
        if a.is_zero:
            return a if not b.is_zero else self.intern("div", (a, b))
        if a is b:
            return self.one
        if b.op == "neg":
            return self.negate(self.divide(a, b.operands[0]))
        if a.op == "neg":
            return self.negate(self.divide(a.operands[0], b))
        if a.constant_value is not None and a.constant_value < 0.0:
            return self.negate(self.divide(self.constant(-a.constant_value), b))
        return self.intern("div", (a, b))

    def power(self, a: Node, b: Node) -> Node:
        """Return ``a ** b``: whole powers up to 16 as products, 1/2 as a square root, others as ``pow``.

        A power of 3/2 stays a ``pow``, because its derivative (a square root) exists at 0, unlike the derivative of
        the product ``x sqrt(x)``; emitters write it as this product.
        """
        exponent = b.constant_value
        if exponent is None or a.constant_value is not None:
            return self.apply("pow", a, b)
        if exponent == 0.5:
            return self.apply("sqrt", a)
        if exponent < 0.0:
            return self.divide(self.one, self.power(a, self.constant(-exponent)))
        if exponent.is_integer() and exponent <= LARGEST_UNROLLED_POWER:
            return self._whole_power(a, int(exponent))
        return self.intern("pow", (a, b))

    def _shift(self, a: Node, b: Node) -> Node:
        """Return ``a + b`` for a constant `a`; constants of nested sums are joined."""
        constant, inner = a.constant_value, b.constant_value
        assert constant is not None  # the callers' condition
        if constant == 0.0:
            return b
        if inner is not None:
            return self.apply("add", a, b)
        if b.op == "add":
            inner = b.operands[0].constant_value
            if inner is not None and math.isfinite(constant + inner):
                return self._shift(self.constant(constant + inner), b.operands[1])
        if b.op == "neg":
            return self.negate(self._shift(self.constant(-constant), b.operands[0]))
        return self.intern("add", (a, b))

    def _scale(self, a: Node, b: Node) -> Node:
        """Return ``a * b`` for a constant `a`; constants of nested products are joined."""
        constant, inner = a.constant_value, b.constant_value
        assert constant is not None  # the callers' condition
        if inner is not None:
            return self.apply("mul", a, b)
        if constant == 0.0:
            return a
        if constant == 1.0:
            return b
        if constant < 0.0:
            return self.negate(self._scale(self.constant(-constant), b))
        if b.op == "neg":
            return self.negate(self._scale(a, b.operands[0]))
        if b.op == "mul":
            inner = b.operands[0].constant_value
            if inner is not None and 0.0 < constant * inner < math.inf:
                return self._scale(self.constant(constant * inner), b.operands[1])
        return self.intern("mul", (a, b))

    def _divide_by_constant(self, a: Node, b: float) -> Node:
        """Return ``a / b`` for a constant `b` other than 0; a product if the reciprocal is exact."""
        if a.constant_value is not None:
            return self.apply("div", a, self.constant(b))
        if b < 0.0:
            return self.negate(self._divide_by_constant(a, -b))
        if math.frexp(b)[0] == 0.5 and math.isfinite(1.0 / b):  # a power of two
            return self._scale(self.constant(1.0 / b), a)
        if a.op == "neg":
            return self.negate(self._divide_by_constant(a.operands[0], b))
        if a.op == "mul":
            inner = a.operands[0].constant_value
            if inner is not None and 0.0 < inner / b < math.inf:
                return self._scale(self.constant(inner / b), a.operands[1])
        return self.intern("div", (a, self.constant(b)))

    def _whole_power(self, a: Node, exponent: int) -> Node:
        """Return ``a ** exponent`` by repeated squaring."""
        result, square = self.one, a
        while exponent:
            if exponent & 1:
                result = self.multiply(result, square)
            exponent >>= 1
            if exponent:
                square = self.multiply(square, square)
        return result


# -- Pause of the garbage collector while many nodes are created ---------------------------------------------


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Switch the collector off temporarily: objects made meanwhile stay in use anyway."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
