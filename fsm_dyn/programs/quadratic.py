"""Sparse quadratic forms on nodes, and their leaf-to-root elimination.

Gauss's principle: of all accelerations x allowed by the mechanism, those of the motion minimise ``1/2 xᵀ Q x - Fᵀ x``.
A variable defined by others is *substituted*; a free one is *minimised* away and found afterwards from the others.
Doing so from the leaves of a tree of bodies to its root is the articulated-body recursion, and needs no mass matrix
(docs/theory.md, "Long chains and trees").
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fsm_dyn.programs.graph import ExpressionGraph, Node

Form = Mapping[int, Node]


@dataclass(frozen=True)
class Step:
    """An eliminated variable as a function of the remaining ones: ``x = sum form[j] x_j + rest``."""

    variable: int
    form: Form
    rest: Node


class QuadraticForm:
    """``1/2 xᵀ Q x - Fᵀ x`` with the nonzero entries of Q and F.

    Attributes
    ----------
    entries : dict of int to dict of int to Node
        The rows of Q; both triangles are kept.
    forces : dict of int to Node
    """

    def __init__(self, graph: ExpressionGraph) -> None:
        self.graph = graph
        self.entries: dict[int, dict[int, Node]] = {}
        self.forces: dict[int, Node] = {}

    def copy(self) -> QuadraticForm:
        """Return an independent copy."""
        other = QuadraticForm(self.graph)
        other.entries = {i: dict(row) for i, row in self.entries.items()}
        other.forces = dict(self.forces)
        return other

    def add(self, i: int, j: int, amount: Node) -> None:
        """Add to Q_ij and Q_ji."""
        if amount.is_zero:
            return
        row = self.entries.setdefault(i, {})
        total = row[j] + amount if j in row else amount
        if total.is_zero:
            del row[j]
            if i != j:
                del self.entries[j][i]
            return
        row[j] = total
        self.entries.setdefault(j, {})[i] = total

    def add_square(self, form: Form, weight: Node) -> None:
        """Add ``1/2 weight (form . x)²``."""
        known = list(form.items())
        for position, (i, a) in enumerate(known):
            for j, b in known[position:]:
                self.add(i, j, weight * (a * b))

    def add_product(self, left: Form, right: Form, weight: Node) -> None:
        """Add ``weight (left . x) (right . x)``."""
        for i, a in left.items():
            for j, b in right.items():
                amount = weight * (a * b)
                self.add(i, j, 2.0 * amount if i == j else amount)

    def add_force(self, i: int, force: Node) -> None:
        """Add to F_i."""
        self.forces[i] = self.forces[i] + force if i in self.forces else force

    def push_along(self, form: Form, force: Node) -> None:
        """Add a force along ``form . x``."""
        if not force.is_zero:
            for i, a in form.items():
                self.add_force(i, a * force)

    def degree(self, i: int) -> int:
        """Return the number of variables coupled with one."""
        return len(self.entries.get(i, ()))

    def _take(self, k: int) -> tuple[Node, dict[int, Node], Node]:
        """Remove a variable; return its diagonal entry, its coupling with others, and its force."""
        row = self.entries.pop(k, {})
        diagonal = row.pop(k, self.graph.zero)
        for j in row:
            del self.entries[j][k]
        return diagonal, row, self.forces.pop(k, self.graph.zero)

    def discard(self, k: int) -> None:
        """Put ``x_k = 0``."""
        self._take(k)

    def substitute(self, k: int, form: Form, rest: Node) -> Step:
        """Put ``x_k = form . x + rest``."""
        diagonal, coupling, force = self._take(k)
        zero = self.graph.zero
        known = list(form.items())
        for position, (i, a) in enumerate(known):
            own, met = a * diagonal, coupling.get(i, zero)
            self.add(i, i, a * (own + 2.0 * met))
            for j, b in known[position + 1 :]:
                self.add(i, j, b * (own + met) + a * coupling.get(j, zero))
            for j, entry in coupling.items():
                if j not in form:
                    self.add(i, j, a * entry)
        self.push_along(form, force - diagonal * rest)
        for j, entry in coupling.items():
            if not rest.is_zero:
                self.add_force(j, -(entry * rest))
        return Step(k, form, rest)

    def minimise(self, k: int) -> Step:
        """Take the variable at which the form is stationary, given all others; its diagonal entry is divided by."""
        diagonal, coupling, force = self._take(k)
        inverse = 1.0 / diagonal
        known = sorted(coupling.items())
        factors = {j: entry * inverse for j, entry in known}
        for position, (i, entry) in enumerate(known):
            for j, _ in known[position:]:
                self.add(i, j, -(factors[j] * entry))
            if not force.is_zero:
                self.add_force(i, -(factors[i] * force))
        return Step(k, {j: -factor for j, factor in factors.items()}, force * inverse)


def back_substitute(steps: Sequence[Step]) -> dict[int, Node]:
    """Return all eliminated variables, from the last one to the first."""
    values: dict[int, Node] = {}
    for step in reversed(steps):
        total = step.rest
        for j, factor in step.form.items():
            total = total + factor * values[j]
        values[step.variable] = total
    return values


def leaves_first(defined: Mapping[int, Form], free: Iterable[int]) -> list[int]:
    """Return an elimination order of ``defined`` and ``free`` variables: from the end of the longest chain on.

    A variable can be eliminated when no remaining definition mentions it. Definitions mention earlier ones only.
    """
    depth = dict.fromkeys(free, 0)
    uses = dict.fromkeys((*depth, *defined), 0)
    for k, form in sorted(defined.items()):
        depth[k] = 1 + max((depth[j] for j in form if j in defined), default=0)
        for j in form:
            uses[j] += 1
            if j not in defined:
                depth[j] = max(depth[j], depth[k])
    waiting = [(-depth[i], i in defined, -i) for i, count in uses.items() if count == 0]
    heapq.heapify(waiting)
    order: list[int] = []
    while waiting:
        k = -heapq.heappop(waiting)[2]
        order.append(k)
        for j in defined.get(k, ()):
            uses[j] -= 1
            if uses[j] == 0:
                heapq.heappush(waiting, (-depth[j], j in defined, -j))
    return order
