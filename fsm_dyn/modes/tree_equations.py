"""Sparse equations of a tree of bodies, and a mode's motion from them by leaf-to-root elimination.

The terms program of a mechanism with many bodies has one output more, ``tree``: what is not zero of the equations in
speeds and auxiliary speeds.  :class:`TreePattern` says what each entry is.  A mode adds a multiplier for every row it
holds and takes all variables away one by one (docs/theory.md, "Long chains and trees"); M is never formed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from fsm_dyn.programs import Node, QuadraticForm, back_substitute, leaves_first


@dataclass(frozen=True)
class TreePattern:
    """Which entries the sparse equations have, in the order of the output ``tree``.

    Attributes
    ----------
    n : int
        Number of speeds, kinematic ones included; they come first, then the auxiliary speeds.
    definitions : tuple of tuple of int
        For each auxiliary speed the variables in it; the entries are its coefficients, then its rest.
    quadratic : tuple of (int, int)
        Upper triangle of Q.
    forces : tuple of int
    rows : tuple of tuple of int
        For each row the variables in it; the entries are its coefficients, then its gamma.
    """

    n: int
    definitions: tuple[tuple[int, ...], ...]
    quadratic: tuple[tuple[int, int], ...]
    forces: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """Number of entries."""
        lists = sum(len(form) + 1 for form in (*self.definitions, *self.rows))
        return lists + len(self.quadratic) + len(self.forces)

    @property
    def holds_together(self) -> bool:
        """Whether all variables exist, and definitions refer to earlier ones only."""
        count = self.n + len(self.definitions)
        good = all(0 <= j < self.n + k for k, form in enumerate(self.definitions) for j in form)
        good &= all(0 <= i <= j < count for i, j in self.quadratic)
        good &= all(0 <= i < count for i in self.forces)
        return good and all(0 <= j < count for form in self.rows for j in form)


@dataclass(frozen=True)
class Tree:
    """The sparse equations as nodes: definitions (form, rest), ``1/2 xᵀ Q x - Fᵀ x``, rows (form, gamma)."""

    n: int
    definitions: tuple[tuple[Mapping[int, Node], Node], ...]
    quadratic: QuadraticForm
    rows: tuple[tuple[Mapping[int, Node], Node], ...]

    def taken_apart(self) -> tuple[TreePattern, list[Node]]:
        """Return pattern and entries."""
        pairs = [(i, j) for i, row in sorted(self.quadratic.entries.items()) for j in sorted(row) if i <= j]
        pattern = TreePattern(
            self.n,
            tuple(tuple(form) for form, _ in self.definitions),
            tuple(pairs),
            tuple(self.quadratic.forces),
            tuple(tuple(form) for form, _ in self.rows),
        )
        nodes = [node for form, rest in self.definitions for node in (*form.values(), rest)]
        nodes += [self.quadratic.entries[i][j] for i, j in pairs]
        nodes += list(self.quadratic.forces.values())
        nodes += [node for form, gamma in self.rows for node in (*form.values(), gamma)]
        return pattern, nodes

    @classmethod
    def put_together(cls, pattern: TreePattern, entries: npt.NDArray[Any]) -> Tree:
        """Return the equations from their pattern and the nodes of the output ``tree``."""
        rest = iter(entries)

        def forms(lists: Sequence[Sequence[int]]) -> tuple[tuple[Mapping[int, Node], Node], ...]:
            return tuple(({j: next(rest) for j in form}, next(rest)) for form in lists)

        definitions = forms(pattern.definitions)
        quadratic = QuadraticForm(entries[0].graph)
        for i, j in pattern.quadratic:
            quadratic.add(i, j, next(rest))
        for i in pattern.forces:
            quadratic.add_force(i, next(rest))
        return cls(pattern.n, definitions, quadratic, forms(pattern.rows))


def accelerations(
    tree: Tree, n_u: int, rows: Sequence[int], pushes: Sequence[tuple[int, Node]]
) -> tuple[list[Node], list[Node]] | None:
    """Return u̇ (n_u,) and the multipliers of ``rows``, which must be independent, with ``G = Aᵀ``.

    Parameters
    ----------
    tree : Tree
        The sparse equations of the bodies.
    n_u : int
        Speeds from there on are kinematic: they stay as they are.
    pushes : sequence of (row, force)
        Known forces along rows: friction of what slips, compliant contacts.

    Returns
    -------
    None
        Some speed has no inertia where its turn comes.
    """
    whole = tree.quadratic.copy()
    first = tree.n + len(tree.definitions)  # number of the first multiplier
    definitions = {tree.n + k: definition for k, definition in enumerate(tree.definitions)}
    for k in range(n_u, tree.n):
        whole.discard(k)
    definitions = {k: (_without(form, n_u, tree.n), rest) for k, (form, rest) in definitions.items()}
    for row, force in pushes:
        whole.push_along(_without(tree.rows[row][0], n_u, tree.n), force)
    for k, row in enumerate(rows):
        form, gamma = tree.rows[row]
        for j, coefficient in _without(form, n_u, tree.n).items():
            whole.add(first + k, j, -coefficient)
        whole.add_force(first + k, gamma)
    steps = []
    for k in leaves_first({k: form for k, (form, _) in definitions.items()}, range(n_u)):
        if k not in definitions and k not in whole.entries.get(k, ()):
            return None
        steps.append(whole.substitute(k, *definitions[k]) if k in definitions else whole.minimise(k))
    left = set(range(first, first + len(rows)))
    while left:  # multipliers come last: then -A M⁻¹ Aᵀ is what they are divided by, which no configuration makes zero
        k = min(left, key=lambda i: (whole.degree(i), i))
        left.remove(k)
        if k not in whole.entries.get(k, ()):
            return None
        steps.append(whole.minimise(k))
    values = back_substitute(steps)
    return [values[i] for i in range(n_u)], [values[first + k] for k in range(len(rows))]


def _without(form: Mapping[int, Node], start: int, stop: int) -> dict[int, Node]:
    return {j: node for j, node in form.items() if not start <= j < stop}
