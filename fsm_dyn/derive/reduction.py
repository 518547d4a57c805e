"""Local reduction of small expressions, and fewer operations for several together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import ExpressionGraph, Node

# -- Local reduction of small expressions: Laurent polynomials modulo ``sin² + cos² = 1`` --------------------
#
# Not a simplifier: an expression is written as a sum of products of its atoms (symbols, sines, anything but a sum,
# product or quotient), squares of a sine and cosine are joined if terms vanish, and the result is kept only with fewer
# operations than the expression. This suffices to reduce the velocity ``c3 (c3 u1) + s3 (s3 u1)`` of the cart's axle to
# ``u1``, and it is cheap because long expressions are left alone.

Monomial = tuple[tuple[int, int], ...]  # ((atom's index, exponent ≠ 0), ...) in ascending order of the indices
Polynomial = dict[Monomial, float]

LARGEST = 48  # terms; longer sums are not worth reducing
DEEPEST = 160  # nodes below an expression; larger ones are left alone
UNIT: Monomial = ()

# A sum or product counts 2; sines and cosines count little, since others need them as well.
_WEIGHT = {"neg": 0, "add": 2, "sub": 2, "mul": 2, "sin": 1, "cos": 1, "div": 8, "sqrt": 8}
OPERATION = 2  # least saving of operations
_HEAVY = 16  # powers and the like


def cost(nodes: Iterable[Node]) -> int:
    """Return the weighted number of distinct operations below `nodes`, see ``_WEIGHT``."""
    total, seen, stack = 0, set[Node](), list(nodes)
    while stack:
        node = stack.pop()
        if node.operands and node not in seen:
            seen.add(node)
            total += _WEIGHT.get(node.op, _HEAVY)
            stack.extend(node.operands)
    return total


def is_small(node: Node, bound: int = DEEPEST) -> bool:
    """Whether fewer than `bound` distinct nodes lie below `node`."""
    seen, stack = {node}, [node]
    while stack:
        for operand in stack.pop().operands:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
        if len(seen) > bound:
            return False
    return True


class TooLargeError(Exception):
    """A sum has too many terms, or coefficients other than numbers."""


class Reducer:
    """Reduces nodes of one graph. ``units``: sets of symbols whose squares add up to 1 (Euler parameters)."""

    def __init__(self, graph: ExpressionGraph, units: Sequence[Sequence[Node]] = ()) -> None:
        self.graph = graph
        self._atoms: dict[int, Node] = {}
        self._polynomials: dict[Node, Polynomial] = {}
        self._reduced: dict[Node, Node] = {}
        self._units = {e.index: tuple(x.index for x in group) for group in units for e in group}
        for group in units:
            self._atoms.update({e.index: e for e in group})

    # -- nodes to polynomials ------------------------------------------------------------------------------

    def polynomial(self, node: Node) -> Polynomial:
        """Return `node` as a Laurent polynomial in its atoms. Raises TooLargeError: more than ``LARGEST`` terms."""
        result = self._polynomials.get(node)
        if result is None:
            result = self._polynomials[node] = self._expand(node)
        return result

    def _expand(self, node: Node) -> Polynomial:
        if node.constant_value is not None:
            return {UNIT: node.constant_value} if node.constant_value else {}
        match node.op:
            case "add":
                return plus(self.polynomial(node.operands[0]), self.polynomial(node.operands[1]))
            case "sub":
                return plus(self.polynomial(node.operands[0]), self.polynomial(node.operands[1]), -1.0)
            case "neg":
                return scaled(self.polynomial(node.operands[0]), -1.0)
            case "mul":
                return times(self.polynomial(node.operands[0]), self.polynomial(node.operands[1]))
            case "div":
                return self._quotient(*node.operands)
        return self._atom(node)

    def _quotient(self, numerator: Node, denominator: Node) -> Polynomial:
        below = self.polynomial(denominator)
        if len(below) == 1:
            return times(self.polynomial(numerator), inverse(below))
        self._atoms[denominator.index] = denominator
        return times(self.polynomial(numerator), {((denominator.index, -1),): 1.0})

    def _atom(self, node: Node) -> Polynomial:
        self._atoms[node.index] = node
        return {((node.index, 1),): 1.0}

    # -- sin² + cos² = 1 -----------------------------------------------------------------------------------

    def joined(self, polynomial: Polynomial) -> Polynomial:
        """Return the polynomial with squares of sines and cosines joined if it then has fewer terms."""
        squares = {atom for monomial in polynomial for atom, exponent in monomial if exponent >= 2}
        for atom in sorted(squares):
            partners = self._partners(atom)
            if partners:
                candidate = self._without_square(polynomial, atom, partners)
                if len(candidate) < len(polynomial):
                    polynomial = candidate
        return polynomial

    def normal(self, polynomial: Polynomial) -> Polynomial:
        """Return the polynomial without any square of a sine (or of the first of a unit set): zero only if it is 0."""
        while True:
            squares = {atom for monomial in polynomial for atom, exponent in monomial if exponent >= 2}
            targets = [atom for atom in squares if self._leads(atom)]
            if not targets:
                return polynomial
            polynomial = self._without_square(polynomial, targets[0], self._partners(targets[0]))

    def _leads(self, atom: int) -> bool:
        return self._atoms[atom].op == "sin" or (atom in self._units and self._units[atom][0] == atom)

    def _partners(self, atom: int) -> tuple[int, ...]:
        """Return the atoms whose squares complete this one's to 1."""
        if atom in self._units:
            return tuple(other for other in self._units[atom] if other != atom)
        node = self._atoms[atom]
        if node.op not in ("sin", "cos"):
            return ()
        partner = cos(node.operands[0]) if node.op == "sin" else sin(node.operands[0])
        self._atoms[partner.index] = partner
        return (partner.index,)

    def _without_square(self, polynomial: Polynomial, atom: int, partners: tuple[int, ...]) -> Polynomial:
        result: Polynomial = {}
        for monomial, coefficient in polynomial.items():
            exponent = dict(monomial).get(atom, 0)
            if exponent < 2:
                accumulate(result, monomial, coefficient)
                continue
            rest = shifted(monomial, atom, -2)
            accumulate(result, rest, coefficient)
            for partner in partners:
                accumulate(result, shifted(rest, partner, 2), -coefficient)
        return result

    # -- polynomials to nodes ------------------------------------------------------------------------------

    def node(self, polynomial: Polynomial) -> Node:
        """Return a node for the polynomial, the most frequent factor taken out first."""
        if not polynomial:
            return self.graph.zero
        if len(polynomial) > 1:
            factor = _frequent(polynomial)
            if factor is not None:
                return self._factored(polynomial, factor)
        total = self.graph.zero
        for monomial, coefficient in sorted(polynomial.items(), key=lambda item: (item[0] == UNIT, item)):
            total = total + self._term(monomial, coefficient)
        return total

    def _factored(self, polynomial: Polynomial, factor: tuple[int, int]) -> Node:
        atom, sign = factor
        inside: Polynomial = {}
        outside: Polynomial = {}
        for monomial, coefficient in polynomial.items():
            if dict(monomial).get(atom, 0) * sign > 0:
                inside[shifted(monomial, atom, -sign)] = coefficient
            else:
                outside[monomial] = coefficient
        sums = self.node(inside)
        product = sums * self._atoms[atom] if sign > 0 else sums / self._atoms[atom]
        return product + self.node(outside) if outside else product

    def _term(self, monomial: Monomial, coefficient: float) -> Node:
        above, below = self.graph.constant(coefficient), self.graph.one
        for atom, exponent in monomial:
            if exponent > 0:
                above = above * self._atoms[atom] ** exponent
            else:
                below = below * self._atoms[atom] ** -exponent
        return above / below

    # -- the reduction -------------------------------------------------------------------------------------

    def reduce(self, node: Node) -> Node:
        """Return `node`, or an equal one with fewer operations."""
        if not node.operands or node.op not in ("add", "sub", "mul", "div", "neg"):
            return node
        result = self._reduced.get(node)
        if result is None:
            result = self._reduced[node] = self._reduce(node)
        return result

    def forms(self, node: Node) -> list[Node]:
        """Return equal expressions: factored sums, unchanged and with squares of sines and cosines joined."""
        try:
            polynomial = self.polynomial(node)
            return [self.node(self.joined(polynomial)), self.node(self.joined(self.normal(polynomial)))]
        except TooLargeError:
            return []

    def _reduce(self, node: Node) -> Node:
        candidates = self.forms(node) if is_small(node) else []
        if not candidates:
            return node
        best = min(candidates, key=lambda candidate: cost([candidate]))
        return best if cost([best]) + OPERATION <= cost([node]) else node

    def is_zero(self, node: Node) -> bool:
        """Whether `node` vanishes identically, decided by polynomials in its atoms."""
        if node.is_zero:
            return True
        if node.constant_value is not None or not is_small(node):
            return False
        try:
            return not self.normal(self.polynomial(node))
        except TooLargeError:
            return False


def accumulate(polynomial: Polynomial, monomial: Monomial, coefficient: float) -> None:
    """Add one term in place, dropping it if it cancels."""
    total = polynomial.get(monomial, 0.0) + coefficient
    if total == 0.0:
        polynomial.pop(monomial, None)
    else:
        polynomial[monomial] = total


def plus(a: Polynomial, b: Polynomial, factor: float = 1.0) -> Polynomial:
    """Return ``a + factor b``."""
    result = dict(a)
    for monomial, coefficient in b.items():
        accumulate(result, monomial, factor * coefficient)
    return _bounded(result)


def scaled(a: Polynomial, factor: float) -> Polynomial:
    """Return ``factor a``."""
    return {monomial: factor * coefficient for monomial, coefficient in a.items()}


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """Return ``a b``."""
    if len(a) * len(b) > 4 * LARGEST:
        raise TooLargeError
    result: Polynomial = {}
    for left, p in a.items():
        for right, q in b.items():
            accumulate(result, product(left, right), p * q)
    return _bounded(result)


def inverse(a: Polynomial) -> Polynomial:
    """Return the reciprocal of a polynomial of one term."""
    ((monomial, coefficient),) = a.items()
    return _bounded({tuple((atom, -exponent) for atom, exponent in monomial): 1.0 / coefficient})


def product(a: Monomial, b: Monomial) -> Monomial:
    """Return the product of two monomials."""
    if not a:
        return b
    exponents = dict(a)
    for atom, exponent in b:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted((atom, exponent) for atom, exponent in exponents.items() if exponent))


def shifted(monomial: Monomial, atom: int, by: int) -> Monomial:
    """Return the monomial times a power of one atom."""
    return product(monomial, ((atom, by),))


def _bounded(polynomial: Polynomial) -> Polynomial:
    if len(polynomial) > LARGEST or not all(map(math.isfinite, polynomial.values())):
        raise TooLargeError
    return polynomial


def _frequent(polynomial: Polynomial) -> tuple[int, int] | None:
    """Return (atom, sign of exponent) shared by most terms, if at least two share one."""
    counts: dict[tuple[int, int], int] = {}
    for monomial in polynomial:
        for atom, exponent in monomial:
            key = (atom, 1 if exponent > 0 else -1)
            counts[key] = counts.get(key, 0) + 1
    if not counts:
        return None
    best = max(counts, key=lambda key: (counts[key], -key[1], -key[0]))
    return best if counts[best] > 1 else None


# -- Fewer operations for several expressions together, shared ones counted once -----------------------------

LARGEST_TOTAL = 6000  # weighted operations; beyond, looking at them again and again takes too long
DEEPEST_SHARED = 300


def condense(outputs: Iterable[Node], reducer: Reducer) -> dict[Node, Node]:
    """Choose a form for each expression, for fewer operations of all together.

    The reduction of a single expression ignores operations shared with others; here each is replaced only if the sum
    over all, shared parts counted once, becomes smaller. Returns for every output an equal node.
    """
    chosen = {node: node for node in outputs}
    least = cost(chosen.values())
    if least > LARGEST_TOTAL:
        return chosen
    for node in chosen:
        if not node.operands or not is_small(node, DEEPEST_SHARED):
            continue
        for candidate in reducer.forms(node):
            before = chosen[node]
            chosen[node] = candidate
            total = cost(chosen.values())
            if total + OPERATION <= least:
                least = total
            else:
                chosen[node] = before
    return chosen
