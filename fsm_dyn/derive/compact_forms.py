"""Compact forms of the equations of one mode, by cancelled fractions of polynomials in symbols, sines and cosines."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import solve_symmetric
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import CONSTANT, OPERATIONS, ExpressionGraph, Node
from fsm_dyn.programs.program import Program
from fsm_dyn.programs.traversal import reachable, rebuild, substitute

# -- Cancelled fractions of polynomials, and these as nodes by Horner's rule -----------------------------------


MOST_TERMS: Final = 600  # of a polynomial during the conversion; beyond it a quantity keeps its form
MOST_WRITTEN: Final = 150  # of a polynomial written out
MOST_FACTORED: Final = 120
MOST_SPLIT: Final = 12  # terms of a polynomial factored completely
MOST_PRODUCTS: Final = 20_000  # products of terms in one multiplication
LARGEST_DENOMINATOR: Final = 1000  # of a constant treated as a fraction; others are atoms

_ARITHMETIC: Final = frozenset({"neg", "add", "sub", "mul", "div"})


class TooManyTermsError(Exception):
    """A polynomial exceeds the bounds of this module."""


# -- Cost ----------------------------------------------------------------------------------------------------


class Cost:
    """Number of operations of nodes, shared ones once.

    ``parameters``: names of the parameters; ``once``: whether operations on parameters alone are left out, as they are
    computed once per run.
    """

    def __init__(self, parameters: Iterable[str], once: bool = False) -> None:
        self._parameters, self._once = frozenset(parameters), once
        self._constant: dict[Node, bool] = {}

    def is_constant(self, node: Node) -> bool:
        """Whether a node depends on parameters alone."""
        known = self._constant.get(node)
        if known is None:
            if node.operands:
                known = all(self.is_constant(operand) for operand in node.operands)
            else:
                known = node.op == CONSTANT or node.name in self._parameters
            self._constant[node] = known
        return known

    def __call__(self, nodes: Iterable[Node]) -> float:
        """Return the number of operations below nodes."""
        total, seen, stack = 0.0, set[Node](), list(nodes)
        while stack:
            node = stack.pop()
            if node in seen or not node.operands:
                continue
            seen.add(node)
            if OPERATIONS[node.op].kind != "free":
                # of two forms with the same work in a run the one with less work before it
                total += 1e-3 if self._once and self.is_constant(node) else 1.0
            stack.extend(node.operands)
        return total


# -- Fractions of polynomials --------------------------------------------------------------------------------

Polynomial = Any  # sympy.polys.rings.PolyElement, without types
Ratio = tuple[Polynomial, Polynomial]


def _atoms(nodes: Sequence[Node]) -> list[Node]:
    """Return the symbols, functions and constants other than simple fractions below nodes, in order of making."""
    found, seen, stack = set[Node](), set[Node](), list(nodes)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op in _ARITHMETIC:
            stack.extend(node.operands)
        elif _fraction(node) is None:
            found.add(node)
            if node.op in ("sin", "cos"):  # the partner may take its place
                found.add((cos if node.op == "sin" else sin)(node.operands[0]))
    return sorted(found, key=lambda node: node.index)


def _fraction(node: Node) -> Fraction | None:
    """Return a constant as a simple fraction, None for others."""
    value = node.constant_value
    if value is None:
        return None
    fraction = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    return fraction if float(fraction) == value else None


class Fractions:
    """Nodes of one graph as cancelled fractions of polynomials in their atoms. ``nodes``: all nodes to be converted."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        from sympy.polys.domains import QQ  # half a second to import: only for reading
        from sympy.polys.rings import ring

        self.atoms = _atoms(nodes)
        self._place = {atom: k for k, atom in enumerate(self.atoms)}
        self._domain, self._make = QQ, ring
        made = ring([f"a{k}" for k in range(len(self.atoms))], QQ)
        self.ring, self._variables = made[0], made[1:]
        self._angles = [
            (k, self._place[cos(atom.operands[0])])
            for k, atom in enumerate(self.atoms)
            if atom.op == "sin" and cos(atom.operands[0]) in self._place
        ]
        self._known: dict[Node, Ratio] = {}
        self._rings: dict[tuple[int, ...], Any] = {}

    def ratio(self, node: Node) -> Ratio:
        """Return a node as numerator and denominator.

        Raises TooManyTermsError: a polynomial on the way to it has more than ``MOST_TERMS`` terms.
        """
        stack = [node]
        while stack:  # without recursion: expressions may be deep
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            left = [x for x in top.operands if x not in self._known] if top.op in _ARITHMETIC else []
            if left:
                stack.extend(left)
            else:
                self._known[top] = self._converted(top)
        return self._known[node]

    def _converted(self, node: Node) -> Ratio:
        one = self.ring.one
        if node in self._place:
            return self._variables[self._place[node]], one
        if (fraction := _fraction(node)) is not None:
            return self.ring.ground_new(self._domain(*fraction.as_integer_ratio())), one
        parts = [self._known[operand] for operand in node.operands]
        match node.op:
            case "neg":
                return -parts[0][0], parts[0][1]
            case "add":
                return self._sum(parts[0], parts[1], 1)
            case "sub":
                return self._sum(parts[0], parts[1], -1)
            case "mul":
                return self._product(parts[0], parts[1])
        return self.quotient(parts[0], parts[1])  # a division by zero keeps its form

    def _sum(self, left: Ratio, right: Ratio, sign: int) -> Ratio:
        (a, b), (c, d) = left, right
        if b == d:
            return self.cancelled(a + sign * c, b)
        common, below, above = self._cofactors(b, d)
        del common
        return self.cancelled(self._times(a, above) + sign * self._times(c, below), self._times(b, above))

    def _product(self, left: Ratio, right: Ratio) -> Ratio:
        (a, b), (c, d) = left, right
        _, a, d = self._cofactors(a, d)
        _, c, b = self._cofactors(c, b)
        return self.cancelled(self._times(a, c), self._times(b, d))

    def _times(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if len(a) * len(b) > MOST_PRODUCTS:
            raise TooManyTermsError
        return a * b

    def quotient(self, left: Ratio, right: Ratio) -> Ratio:
        """Return the quotient of two fractions."""
        if not right[0]:
            raise TooManyTermsError
        return self._product(left, right[::-1])

    def cancelled(self, above: Polynomial, below: Polynomial) -> Ratio:
        """Return a fraction without common divisors, squares of sines and cosines joined where terms vanish."""
        if not above:
            return self.ring.zero, self.ring.one
        above, below = self.joined(above), self.joined(below)
        if not above:
            return self.ring.zero, self.ring.one
        _, above, below = self._cofactors(above, below)
        if max(len(above), len(below)) > MOST_TERMS:
            raise TooManyTermsError
        content = below.content()
        content = -content if below.LC < 0 else content
        return above.quo_ground(content), below.quo_ground(content)

    def joined(self, polynomial: Polynomial) -> Polynomial:
        """Return the polynomial with squares of sines or cosines replaced wherever it then has fewer terms."""
        for pair in self._angles:
            for this, other in (pair, pair[::-1]):
                candidate = self._without_square(polynomial, this, other)
                if candidate is not None and len(candidate) < len(polynomial):
                    polynomial = candidate
        return polynomial

    def variants(self, above: Polynomial, below: Polynomial) -> Ratio:
        """Return the shortest of the forms of a fraction by ``sin² + cos² = 1``, angle by angle."""
        best = above, below
        for pair in self._angles:
            for this, other in (pair, pair[::-1]):
                changed = [self._without_square(part, this, other) for part in best]
                if changed == [None, None]:
                    continue
                new = [old if part is None else part for part, old in zip(changed, best, strict=True)]
                if max(map(len, new)) > MOST_TERMS or not new[1]:
                    continue
                try:
                    candidate = self.cancelled(*new)
                except TooManyTermsError:
                    continue
                if _size(candidate) < _size(best):
                    best = candidate
        return best

    def _without_square(self, polynomial: Polynomial, this: int, other: int) -> Polynomial | None:
        """Replace squares of one atom by ``1 - other²``; None without such squares."""
        if not any(monomial[this] >= 2 for monomial in polynomial):
            return None
        result, one = self.ring.zero, self.ring.one
        square = one - self._variables[other] ** 2
        powers: dict[int, dict[Any, Any]] = {}
        for monomial, coefficient in polynomial.items():
            half, rest = divmod(monomial[this], 2)
            reduced = (*monomial[:this], rest, *monomial[this + 1 :])
            powers.setdefault(half, {})[reduced] = coefficient
        for half, terms in powers.items():
            if len(terms) * (half + 1) > MOST_PRODUCTS:
                return None
            result = result + self.ring.from_dict(terms) * square**half
        return result

    def _cofactors(self, a: Polynomial, b: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
        """Return the greatest common divisor of two polynomials, and both without it."""
        if not a or not b:
            return self.ring.one, a, b
        if a.is_ground or b.is_ground:
            return self.ring.one, a, b
        if max(len(a), len(b)) > MOST_TERMS:
            raise TooManyTermsError
        if len(a) == 1 or len(b) == 1:
            found = a.cofactors(b)
            return found[0], found[1], found[2]
        used = [k for k in range(len(self.atoms)) if any(m[k] for m in a) or any(m[k] for m in b)]
        small = self._ring_of(tuple(used))
        # neither can share what only one of them has, so that the ring has few variables
        from sympy.polys.polyerrors import HeuristicGCDFailed

        try:
            found = self._down(a, used, small).cofactors(self._down(b, used, small))
        except HeuristicGCDFailed:
            return self.ring.one, a, b
        common, left, right = (self._up(part, used) for part in found)
        return common, left, right

    def _ring_of(self, used: tuple[int, ...]) -> Any:
        if used not in self._rings:
            self._rings[used] = self._make([f"a{k}" for k in used], self._domain)[0]
        return self._rings[used]

    def _down(self, polynomial: Polynomial, used: Sequence[int], small: Any) -> Polynomial:
        return small.from_dict({tuple(m[k] for k in used): c for m, c in polynomial.items()})

    def _up(self, polynomial: Polynomial, used: Sequence[int]) -> Polynomial:
        terms = {}
        for monomial, coefficient in polynomial.items():
            full = [0] * len(self.atoms)
            for k, exponent in zip(used, monomial, strict=True):
                full[k] = exponent
            terms[tuple(full)] = coefficient
        return self.ring.from_dict(terms)

    def factors(self, polynomial: Polynomial) -> list[tuple[Polynomial, int]]:
        """Return factors of a polynomial with their powers: monomials, contents by variables, repeated factors.

        Short polynomials are factored completely; long ones, in reasonable time, only by common divisors.
        """
        if len(polynomial) <= 1:
            return [(polynomial, 1)]
        lowest = [min(m[k] for m in polynomial) for k in range(len(self.atoms))]
        rest = self.ring.from_dict(
            {tuple(e - low for e, low in zip(m, lowest, strict=True)): c for m, c in polynomial.items()}
        )
        found: dict[Polynomial, int] = {}
        for variable, low in zip(self._variables, lowest, strict=True):
            if low:
                found[variable] = low
        open_parts = [rest]
        while open_parts:
            part = open_parts.pop()
            divisor = self._divisor(part) if len(part) > 1 else None
            if divisor is not None:
                open_parts += [part.exquo(divisor), divisor]
            else:
                for factor, power in self._irreducible(part):
                    found[factor] = found.get(factor, 0) + power
        return sorted(found.items(), key=lambda item: str(item[0]))

    def _divisor(self, polynomial: Polynomial) -> Polynomial | None:
        """Return a proper divisor: a content by one variable, or a repeated factor; None if there is none such."""
        if len(polynomial) > MOST_FACTORED:
            return None
        for k in range(len(self.atoms)):
            by_power: dict[int, dict[Any, Any]] = {}
            for monomial, c in polynomial.items():
                by_power.setdefault(monomial[k], {})[(*monomial[:k], 0, *monomial[k + 1 :])] = c
            if len(by_power) == 1:
                continue
            common = self.ring.zero
            for terms in sorted(by_power.values(), key=len):
                part = self.ring.from_dict(terms)
                common = part if not common else self._cofactors(common, part)[0]
                if common.is_ground:
                    break
            if not common.is_ground:
                return common
            if max(by_power) > 1:
                common = self._cofactors(polynomial, polynomial.diff(self._variables[k]))[0]
                if not common.is_ground:
                    return common
        return None

    def _irreducible(self, polynomial: Polynomial) -> list[tuple[Polynomial, int]]:
        used = [k for k in range(len(self.atoms)) if any(m[k] for m in polynomial)]
        if not used or not 1 < len(polynomial) <= MOST_SPLIT:
            return [(polynomial, 1)]
        content, parts = self._down(polynomial, used, self._ring_of(tuple(used))).factor_list()
        factors = [(self._up(part, used), power) for part, power in parts]
        return factors if content == 1 else [(self.ring.ground_new(content), 1), *factors]


def _size(ratio: Ratio) -> float:
    """Return about the number of operations of a fraction."""
    return sum(len(part) + 0.3 * sum(sum(map(bool, monomial)) for monomial in part) for part in ratio)


# -- Horner's rule -------------------------------------------------------------------------------------------


class Writer:
    """Writes polynomials as nodes by Horner's rule, the most frequent variable first.

    ``graph``: shared parts are one node of it; ``weights``: of the atoms: frequencies are multiplied by them;
    ``factors``: known factors of polynomials, extended here; ``constants``, collection of int: atoms whose polynomials
    are computed once per run: coefficients of the other atoms' monomials are kept whole.
    """

    def __init__(
        self,
        fractions: Fractions,
        graph: ExpressionGraph,
        weights: Sequence[float],
        factors: dict[Any, list[tuple[Polynomial, int]]],
        constants: frozenset[int] | None = None,
    ) -> None:
        self._fractions, self._graph, self._weights, self._factors = fractions, graph, weights, factors
        self._constants = constants
        self._written: dict[Any, Node] = {}

    def ratio(self, above: Polynomial, below: Polynomial) -> Node:
        """Return a fraction as a node."""
        if self._constants is not None and self._is_constant(below) and not self._is_constant(above):
            return self._by_coefficients(above, below)
        numerator = self._product(above)
        return numerator if below == self._fractions.ring.one else numerator / self._product(below)

    def _is_constant(self, polynomial: Polynomial) -> bool:
        assert self._constants is not None  # asked for then alone
        return all(k in self._constants for m in polynomial for k, e in enumerate(m) if e)

    def _product(self, polynomial: Polynomial) -> Node:
        if self._constants is not None and not self._is_constant(polynomial):
            return self._by_coefficients(polynomial, None)
        if polynomial not in self._factors:
            self._factors[polynomial] = self._fractions.factors(polynomial)
        total = self._graph.one
        for factor, power in self._factors[polynomial]:
            total = total * self._sum(dict(factor)) ** power
        return total

    def _by_coefficients(self, polynomial: Polynomial, below: Polynomial | None) -> Node:
        """Write a polynomial in the atoms that change during a run, its coefficients whole."""
        assert self._constants is not None  # asked for then alone
        divisor = None if below is None or below == self._fractions.ring.one else self._sum(dict(below))
        groups: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {}
        for monomial, coefficient in polynomial.items():
            outer = tuple(0 if k in self._constants else e for k, e in enumerate(monomial))
            inner = tuple(e if k in self._constants else 0 for k, e in enumerate(monomial))
            groups.setdefault(outer, {})[inner] = coefficient
        written = {}
        for outer, terms in groups.items():
            node = self._sum(terms)
            written[outer] = node if divisor is None else node / divisor
        return self._horner(written)

    def _sum(self, terms: Mapping[tuple[int, ...], Any]) -> Node:
        key = frozenset(terms.items())
        if key not in self._written:
            self._written[key] = self._horner(
                {m: Fraction(int(c.numerator), int(c.denominator)) for m, c in terms.items()}
            )
        return self._written[key]

    def _horner(self, terms: Mapping[tuple[int, ...], Fraction | Node]) -> Node:
        """Write ``Σ coefficient · monomial``, the variable shared by most terms taken out first."""
        numbers = [value for value in terms.values() if isinstance(value, Fraction)]
        content = _content(numbers) if len(numbers) == len(terms) else Fraction(1)
        if content != 1:
            whole = {m: value / content for m, value in terms.items() if isinstance(value, Fraction)}
            return self._graph.constant(float(content)) * self._horner(whole)
        counts: dict[int, int] = {}
        for monomial in terms:
            for k, exponent in enumerate(monomial):
                if exponent:
                    counts[k] = counts.get(k, 0) + 1
        shared = [k for k, count in counts.items() if count > 1]
        if not shared:
            total = self._graph.zero
            for monomial, value in sorted(terms.items(), key=lambda item: item[0], reverse=True):
                factor = self._graph.constant(float(value)) if isinstance(value, Fraction) else value
                total = total + self._monomial(monomial) * factor
            return total
        best = max(shared, key=lambda k: (counts[k] * self._weights[k], -k))
        lowest = min(monomial[best] for monomial in terms if monomial[best])
        inside = {(*m[:best], m[best] - lowest, *m[best + 1 :]): value for m, value in terms.items() if m[best]}
        outside = {monomial: value for monomial, value in terms.items() if not monomial[best]}
        product = self._horner(inside) * self._fractions.atoms[best] ** lowest
        return product + self._horner(outside) if outside else product

    def _monomial(self, monomial: Sequence[int]) -> Node:
        total = self._graph.one
        for k in sorted((k for k, e in enumerate(monomial) if e), key=lambda k: (-self._weights[k], k)):
            total = total * self._fractions.atoms[k] ** monomial[k]
        return total


def _content(values: Sequence[Fraction]) -> Fraction:
    """Return the greatest common divisor of fractions, positive."""
    above = math.gcd(*(abs(value.numerator) for value in values))
    return Fraction(above or 1, math.lcm(*(value.denominator for value in values)))


def shortened(nodes: Sequence[Node]) -> list[Node]:
    """Return equal nodes of the same graph, each alone as a cancelled fraction if that has fewer operations."""
    cost = Cost(())
    fractions = Fractions([node for node in nodes if node.operands])
    writer, found = Writer(fractions, nodes[0].graph, [1.0] * len(fractions.atoms), {}) if nodes else None, []
    for node in nodes:
        best = node
        if writer is not None and node.operands:
            with contextlib.suppress(TooManyTermsError):
                ratio = fractions.variants(*fractions.ratio(node))
                if max(map(len, ratio)) <= MOST_WRITTEN:
                    best = min((node, writer.ratio(*ratio)), key=lambda form: cost([form]))
        found.append(best)
    return found


# -- Compact forms ---------------------------------------------------------------------------------------------


SEED: Final = 20030818
TRIES: Final = 200  # orders of variables in Horner's rule
PREFERENCE: Final = 5.0  # logarithm of the weight of parameters, or of all others, in two thirds of the tries
LONGEST_OF_ONE_FREEDOM: Final = 120  # operations; longer modes of one freedom gained nothing by other forms
LONGEST: Final = 260  # operations of a mode of more freedoms
SWEEPS: Final = 2
CHECKED_STATES: Final = 64
LARGEST_DIFFERENCE: Final = 1e-9  # of the largest value of a state

# -- Quantities of a mode ------------------------------------------------------------------------------------

Key = tuple[Any, ...]
Forms = dict[Key, Node]


@dataclass(frozen=True)
class ModeQuantities:
    """The quantities by which the outputs of a mode are computed, at one level of substitution."""

    graph: ExpressionGraph
    nodes: Forms  # nodes of ``("M", a, b)``, ``("r", a)``, ``("D", j, a)``, ``("c", j)``, ``("q_dot", i)`` on the rows
    others: Forms  # nodes of further outputs by ``(name, place)``, in which no speed is substituted
    # symbols kept instead of a dependent speed or an entry of D, E and c, with their definitions, in order
    kept: dict[Node, tuple[Key, Node]] = field(default_factory=dict)
    # independent, dependent: places of speeds; both empty if no accelerations are asked for
    independent: tuple[int, ...] = ()
    dependent: tuple[int, ...] = ()
    symmetric: bool = True  # whether M̃ is: no contact slides with friction

    @property
    def defined(self) -> Forms:
        """All quantities, definitions of kept symbols included."""
        return self.nodes | self.others | dict(self.kept.values())

    def solved(self, chosen: Mapping[Key, Node]) -> Forms:
        """Return the outputs for chosen forms of the quantities.

        ``chosen``: forms that differ from :attr:`defined`; ``("x", 0)`` is the acceleration of a single freedom.
        """
        forms = {**self.defined, **chosen}
        outputs = {key: forms[key] for key in self.nodes if key[0] == "q_dot"}
        rates = self._accelerations(forms) if self.independent else []
        outputs |= {("u_dot", i): rates[a] for a, i in enumerate(self.independent)}
        for j in self.dependent:
            shares = (forms["D", j, a] * rate for a, rate in enumerate(rates))
            outputs["u_dot", j] = _total([forms["c", j], *shares], self.graph)
        if self.kept and outputs:
            done: dict[Node, Node] = {}
            for symbol, (key, _) in self.kept.items():
                done[symbol] = substitute([forms[key]], done)[0] if done else forms[key]
            outputs = dict(zip(outputs, substitute(list(outputs.values()), done), strict=True))
        return outputs | {key: forms[key] for key in self.others}

    def _accelerations(self, forms: Mapping[Key, Node]) -> list[Node]:
        p = range(len(self.independent))
        if ("x", 0) in forms:
            return [forms["x", 0]]
        r = [forms["r", a] for a in p]
        if self.symmetric and len(p) > 1:
            return solve_symmetric([[forms["M", min(a, b), max(a, b)] for b in p] for a in p], r)[0]
        M = [[forms["M", a, b] for b in p] for a in p]
        match len(p):
            case 1:
                return [r[0] / M[0][0]]
            case 2:
                below = M[0][0] * M[1][1] - M[0][1] * M[1][0]
                return [(r[0] * M[1][1] - r[1] * M[0][1]) / below, (r[1] * M[0][0] - r[0] * M[1][0]) / below]
        raise TooManyTermsError


def quantities(matrices: Program, independent: Sequence[int], others: Mapping[Key, Node], level: int) -> ModeQuantities:
    """Return the quantities of the accelerations of a mode, and of its further outputs.

    ``matrices``: :func:`fsm_dyn.derive.mode_programs.mode_matrices`. ``independent``: places of the independent speeds.
    ``others``: further outputs as nodes of any graph, by ``(name, place)``. ``level``: 0: dependent speeds are
    substituted by ``D u_I + E``; 1: they stay symbols; 2: the entries of D, E and c too.
    """
    graph, symbols, known = matrices.graph()
    u = [symbols[name] for name in matrices.layout.u]
    n, free = len(u), tuple(independent)
    dependent = tuple(j for j in range(n) if j not in free)
    T, S, M = known["T"], known["S"], known["M"]
    symmetric = all(a is b for a, b in zip(T.ravel(), S.ravel(), strict=True))
    kept: dict[Node, tuple[Key, Node]] = {}
    names: dict[Node, Node] = {}

    def keep(name: str, place: tuple[int, ...], node: Node) -> Node:
        if level < 2 or not node.operands or node.op == "neg":
            return node
        if node not in names:
            names[node] = graph.symbol("_".join(["kept", name, *map(str, place)]))
            kept[names[node]] = ((f"kept {name}", *place), node)
        return names[node]

    D = {(j, a): keep("D", (j, a), T[j, a]) for j in dependent for a in range(len(free))}
    E = {j: keep("E", (j,), known["e"][j]) for j in dependent}
    speeds = {u[j]: _total([E[j], *(D[j, a] * u[i] for a, i in enumerate(free))], graph) for j in dependent}
    if level:
        kept |= {symbol: (("kept u", j), value) for j, (symbol, value) in zip(dependent, speeds.items(), strict=True)}
    c = {j: keep("c", (j,), known["c"][j]) for j in dependent}
    complement = [[D[i, a] if i in dependent else T[i, a] for a in range(len(free))] for i in range(n)]
    test = complement if symmetric else [list(row) for row in S]
    force = [known["f"][i] - _total([M[i, j] * c[j] for j in dependent], graph) for i in range(n)]
    nodes: Forms = {("q_dot", i): node for i, node in enumerate(known["q_dot"])}
    for a in range(len(free)):
        pushed = [_total([test[i][a] * M[i, j] for i in range(n)], graph) for j in range(n)]
        for b in range(a if symmetric else 0, len(free)):
            nodes["M", a, b] = _total([pushed[j] * complement[j][b] for j in range(n)], graph)
        nodes["r", a] = _total([test[i][a] * force[i] for i in range(n)], graph)
    nodes |= {("D", *place): node for place, node in D.items()} | {("c", j): node for j, node in c.items()}
    if not level:
        nodes = dict(zip(nodes, substitute(list(nodes.values()), speeds), strict=True))
    return ModeQuantities(graph, nodes, _copied(others, graph), kept, free, dependent, symmetric)


def _copied(nodes: Mapping[Key, Node], graph: ExpressionGraph) -> Forms:
    """Return nodes rebuilt in a graph."""
    zero = graph.zero
    return dict(zip(nodes, substitute(list(nodes.values()), {zero: zero}), strict=True))


def _total(nodes: Iterable[Node], graph: ExpressionGraph) -> Node:
    total = graph.zero
    for node in nodes:
        total = total + node
    return total


# -- The choice of forms -------------------------------------------------------------------------------------


class FormChoice:
    """Forms of quantities, chosen one by one for fewest operations of all outputs.

    ``whole``: whether coefficients of parameters alone are kept whole, to be computed once per run.
    """

    def __init__(self, quantities: ModeQuantities, cost: Cost, whole: bool = False) -> None:
        self.quantities, self.cost = quantities, cost
        nodes = quantities.defined
        self._fractions = Fractions([node for node in nodes.values() if node.operands])
        self._ratios = self._converted(nodes)
        self._constants = (
            frozenset(k for k, atom in enumerate(self._fractions.atoms) if cost.is_constant(atom)) if whole else None
        )
        self._factors: dict[Any, list[tuple[Polynomial, int]]] = {}
        self.weights = [1.0] * len(self._fractions.atoms)
        self.forms = self._written(self.weights, list(self._ratios))
        self.used: frozenset[Key] = frozenset()

    def _converted(self, nodes: Forms) -> dict[Key, Ratio]:
        found: dict[Key, Ratio] = {}
        for key, node in nodes.items():
            if not node.operands:
                continue
            try:
                found[key] = self._fractions.ratio(node)
            except TooManyTermsError:
                continue
        whole = dict(found)
        if len(self.quantities.independent) == 1 and ("r", 0) in found and ("M", 0, 0) in found:
            (a, b), (c, d) = found["r", 0], found["M", 0, 0]
            with contextlib.suppress(TooManyTermsError):
                whole["x", 0] = self._fractions.quotient((a, b), (c, d))
        whole = {key: self._fractions.variants(*ratio) for key, ratio in whole.items()}
        return {key: ratio for key, ratio in whole.items() if max(map(len, ratio)) <= MOST_WRITTEN}

    def _written(self, weights: Sequence[float], keys: Iterable[Key]) -> Forms:
        writer = Writer(self._fractions, self.quantities.graph, weights, self._factors, self._constants)
        return {key: writer.ratio(*self._ratios[key]) for key in keys}

    def _total(self, used: Iterable[Key], forms: Forms) -> float:
        return self.cost(self.quantities.solved({key: forms[key] for key in used}).values())

    def descend(self) -> None:
        """Exchange the form of one quantity after the other wherever the whole becomes shorter."""
        best = math.inf, self.used
        for start in (self.used, frozenset(self.forms)):
            used, least = start, self._total(start, self.forms)
            for _ in range(SWEEPS):
                before = used
                for key in self.forms:
                    other = used ^ {key}
                    total = self._total(other, self.forms)
                    if total < least - 1e-9:
                        used, least = other, total
                if used == before:
                    break
            if least < best[0] - 1e-9:
                best = least, used
        self.used = best[1]

    def vary(self, tries: int) -> None:
        """Write the used forms with other orders of the variables, and keep the shortest."""
        if not self.used:
            return
        generator = random.Random(SEED)
        keys = [key for key in self.forms if key in self.used]
        least, best = self._total(keys, self.forms), self.weights
        constant = [self.cost.is_constant(atom) for atom in self._fractions.atoms]
        for k in range(tries):
            first = (None, True, False)[k % 3]  # in no order, parameters first, parameters last
            weights = [
                math.exp(generator.gauss(0.0, 0.7) + (first is not None) * PREFERENCE * (of_run == first))
                for of_run in constant
            ]
            total = self._total(keys, self._written(weights, keys))
            if total < least - 1e-9:
                least, best = total, weights
        self.weights = best
        self.forms = self._written(best, self.forms)

    def outputs(self) -> Forms:
        """Return the outputs of the forms chosen."""
        return with_quotients(self.quantities.solved({key: self.forms[key] for key in self.used}))


def with_quotients(outputs: Forms) -> Forms:
    """Return outputs with ``a / b`` instead of ``a (1 / b)`` wherever the reciprocal has no other use."""
    nodes = list(outputs.values())
    order = reachable(nodes)
    uses = Counter(operand for node in order for operand in node.operands) + Counter(set(nodes))
    new: dict[Node, Node] = {}
    for node in order:
        operands = [new[operand] for operand in node.operands]
        new[node] = node if operands == list(node.operands) else rebuild(node.graph, node.op, operands)
        for a, b in (node.operands, node.operands[::-1]) if node.op == "mul" else ():
            if b.op == "div" and b.operands[0].is_one and uses[b] == 1:
                new[node] = new[a] / new[b.operands[1]]
                break
    return {key: new[node] for key, node in outputs.items()}


def compact_program(today: Program, matrices: Program, independent: Sequence[int], *, once: bool = False) -> Program:
    """Return a program with the outputs of another one and no more operations.

    ``today``: its output ``u_dot``, if there is one, holds the accelerations of the mode; ``q_dot`` with it is on the
    rows. ``matrices``: :func:`fsm_dyn.derive.mode_programs.mode_matrices` of the mode. ``independent``: places of the
    independent speeds. ``once``: whether operations on parameters alone count nothing, as they are computed once per
    run.
    """
    nodes = today.graph()[2]
    present = {(name, place): node for name, array in nodes.items() for place, node in enumerate(array.ravel())}
    best = Cost(today.layout.p, once)(present.values()), today
    for total, outputs in _candidates(today, matrices, independent, present, once):
        if total < best[0] - 1e-9:
            candidate = _program(today, outputs)
            if _agree(today, candidate):
                best = total, candidate
    return best[1]


def _candidates(
    today: Program, matrices: Program, independent: Sequence[int], present: Forms, once: bool
) -> Iterator[tuple[float, Forms]]:
    """Yield other forms of outputs with their cost."""
    parameters = today.layout.p
    quotients = with_quotients(present)
    yield Cost(parameters, once)(quotients.values()), quotients
    rates = "u_dot" in today.outputs
    if today.counts().total > (LONGEST_OF_ONE_FREEDOM if rates and len(independent) == 1 else LONGEST):
        return
    others = {key: node for key, node in present.items() if not rates or key[0] not in ("q_dot", "u_dot")}
    levels = (0, 1, 2) if rates and len(independent) < len(matrices.layout.u) else (0,)
    costs = [Cost(parameters, early) for early in ((False, True) if once else (False,))]
    for level, whole, cost in itertools.product(levels, (False, True), costs):
        found = quantities(matrices, independent, others, level) if rates else _alone(others)
        with contextlib.suppress(TooManyTermsError):
            outputs = _chosen(found, cost, whole)
            yield costs[-1](outputs.values()), outputs


def _alone(others: Forms) -> ModeQuantities:
    graph = ExpressionGraph()
    return ModeQuantities(graph, {}, _copied(others, graph))


def _chosen(found: ModeQuantities, cost: Cost, whole: bool) -> Forms:
    choice = FormChoice(found, cost, whole)
    choice.descend()
    choice.vary(TRIES)
    choice.descend()
    return choice.outputs()


def _program(today: Program, outputs: Forms) -> Program:
    """Return the program of outputs by name and place, in the shapes of another one."""
    arrays = {}
    for name, shape in today.outputs.items():
        array = np.empty(math.prod(shape), dtype=object)
        array[:] = [outputs[name, place] for place in range(len(array))]
        arrays[name] = array.reshape(shape)
    return Program.from_nodes(today.layout, arrays)


def _agree(today: Program, candidate: Program) -> bool:
    """Whether two programs have the same values at seeded states; states without a finite value are left out."""
    generator, layout = np.random.default_rng(SEED), today.layout
    x = generator.uniform(-2.0, 2.0, (CHECKED_STATES, layout.n_x))
    c = generator.uniform(0.3, 1.3, (CHECKED_STATES, layout.n_c))
    right, found = today.evaluate(0.3, x, c), candidate.evaluate(0.3, x, c)
    a, b = (
        np.concatenate([np.reshape(values[name], (CHECKED_STATES, -1)) for name in today.outputs], axis=1)
        for values in (right, found)
    )
    finite = np.isfinite(a).all(axis=1)
    if not finite.any() or not np.isfinite(b[finite]).all():
        return False
    size = np.abs(a[finite]).max(axis=1, keepdims=True) + 1e-300
    return bool((np.abs(a - b)[finite] <= LARGEST_DIFFERENCE * size).all())
