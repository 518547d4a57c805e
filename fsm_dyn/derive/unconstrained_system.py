"""The unconstrained system as expression nodes, rebuilt from its saved program; sparse equations of trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import QuadraticForm, back_substitute, leaves_first
from fsm_dyn.language.laws import Law, law_of
from fsm_dyn.language.scales import Units
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.programs.traversal import gradient
from fsm_dyn.runtime.abi import ConditionKind

# -- Sparse equations of a tree of bodies, and a mode's motion from them by leaf-to-root elimination ---------
#
# The terms program of a mechanism with many bodies has one output more, ``tree``: the nonzero entries of the equations
# in speeds and auxiliary speeds, with their meaning in :class:`TreePattern`. A mode adds a multiplier for every active
# row and eliminates all variables one by one (docs/theory.md, "Long chains and trees"); M is never formed.


@dataclass(frozen=True)
class TreePattern:
    """Entries of the sparse equations, in the order of the output ``tree``."""

    n: int  # number of speeds, kinematic ones included; they come first, then the auxiliary speeds
    # for each auxiliary speed the variables in it; the entries are its coefficients, then its rest
    definitions: tuple[tuple[int, ...], ...]
    quadratic: tuple[tuple[int, int], ...]  # upper triangle of Q
    forces: tuple[int, ...]
    # for each row the variables in it; the entries are its coefficients, then its gamma
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
    """Return u̇ (n_u,) and the multipliers of the independent ``rows``, with ``G = Aᵀ``.

    ``tree``: the sparse equations of the bodies; ``n_u``: speeds from this number on are kinematic: they stay zero;
    ``pushes``, sequence of (row, force): known forces along rows: friction of sliding contacts, compliant contacts.
    None if a speed has no inertia at its elimination.
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
    while left:  # multipliers last: their divisor is then -A M⁻¹ Aᵀ, nonzero in every configuration
        k = min(left, key=lambda i: (whole.degree(i), i))
        left.remove(k)
        if k not in whole.entries.get(k, ()):
            return None
        steps.append(whole.minimise(k))
    values = back_substitute(steps)
    return [values[i] for i in range(n_u)], [values[first + k] for k in range(len(rows))]


def _without(form: Mapping[int, Node], start: int, stop: int) -> dict[int, Node]:
    return {j: node for j, node in form.items() if not start <= j < stop}


# -- Unconstrained system as expression nodes, rebuilt from its saved program; source of all modes -----------
#
# No sympy here: a mode or a chart can be derived from a saved automaton, long after the model was compiled.

Role = Literal["kinematic", "velocity", "position", "normal", "tangent", "tangent2", "friction", "lock"]

#: slip speed from which on the direction of friction in space is that of the slip, in the mechanism's own units
FOLLOWS = 1e-6


class RowInfo(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One constraint row ``A u + b``: its owner (a constraint's or contact's name), role and contact index."""

    name: str
    role: Role
    contact: int = -1
    positional: bool = False  # has a residual on the level of coordinates


class ContactInfo(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A contact: its rows and the names of its states (codes 0 free, 1 held, 2 and 3 sliding)."""

    name: str
    kind: str  # name of its law
    normal_row: int
    tangent_row: int
    states: tuple[str, ...]
    # a corner on a face with ends: numbers of the corner, of the end at which a slip along +t enters the face, and of
    # the end at which it leaves the face; -1 for other contacts
    ends: tuple[int, int, int] = (-1, -1, -1)
    # of the contacts of one corner with all faces of one convex polygon the first; -1 for other contacts
    outline: int = -1
    gated: bool = False
    sticks_always: bool = False
    poisson: bool = False
    bounded_face: bool = False  # a face of it ends
    bilateral: bool = False  # a slot: always closed; code 3 slides pressed on its other face
    in_space: bool = False  # slips in two directions: the row after its tangent row is the second
    lossy: bool = False  # compliant with a loss: its force may vanish before the gap opens
    load_rows: tuple[int, ...] = ()  # rows whose forces load a bearing, one or two
    whole_circle: bool = False  # of a circle touched from outside, on a face with ends or at a corner
    crossing: bool = False  # of two edges of polyhedra

    @property
    def contact_law(self) -> Law:
        """Its law, with states, guards and events."""
        return law_of(self.kind, self.bilateral)

    @property
    def frictional(self) -> bool:
        """Whether it has a friction force."""
        return self.tangent_row >= 0

    @property
    def outlined(self) -> bool:
        """Whether it shares a guard for closing with the other faces of a convex polygon."""
        return self.outline >= 0

    @property
    def tangent_rows(self) -> tuple[int, ...]:
        """Rows of its slip: none, one, or in space two."""
        if self.tangent_row < 0:
            return ()
        return (self.tangent_row, self.tangent_row + 1) if self.in_space else (self.tangent_row,)

    @property
    def codes(self) -> tuple[int, ...]:
        """The state codes this contact can be in."""
        return tuple(code for code, name in enumerate(self.states) if name)


def corners_of(contacts: Sequence[ContactInfo]) -> dict[int, list[int]]:
    """Return the contacts of each corner with all faces of one convex polygon, by the first of them."""
    corners: dict[int, list[int]] = {}
    for number, contact in enumerate(contacts):
        if contact.outlined:
            corners.setdefault(contact.outline, []).append(number)
    return corners


def of_one_corner(contacts: Sequence[ContactInfo], index: int) -> list[int]:
    """Return the contacts of the same corner with all faces of the same convex polygon; else only ``index``.

    The distance of an outside corner is the largest of these gaps: they have one guard for closing.
    """
    outline = contacts[index].outline
    if outline < 0 or not contacts[index].contact_law.rigid:
        return [index]
    return [i for i, contact in enumerate(contacts) if contact.outline == outline]


def shared_name(contacts: Sequence[ContactInfo], index: int) -> str:
    """Return the common part of the names of the contacts of one corner: ``box_2_face`` of ``box_2_face1``."""
    return name_in_common([contacts[i].name for i in of_one_corner(contacts, index)])


def name_in_common(names: Sequence[str]) -> str:
    """Return the common part of names, word by word, with ``face`` for different words."""
    words = [name.split("_") for name in names]
    return "_".join(parts[0] if len(set(parts)) == 1 else "face" for parts in zip(*words, strict=False))


class UserTransitionInfo(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A user-defined transition's guard: direction of its zero crossing, kind of its condition, its text."""

    name: str
    index: int
    crossing: Literal["rising", "falling", "both"]
    has_guard: bool
    condition: ConditionKind


@dataclass(frozen=True)
class UnconstrainedSystem:
    """Kane's unconstrained terms (14)-(15) and all rows, as nodes of one graph.

    ``M`` (n, n) and ``f`` (n,) with n = declared speeds + kinematic rows; ``A`` (n_rows, n), ``b``, ``gamma``,
    ``residual`` (n_rows,); ``static kinetic restitution`` (n_contacts,); ``when`` (n_transitions,).  With many
    bodies there are the sparse equations of their tree as well.
    """

    layout: Layout
    program: Program
    rows: tuple[RowInfo, ...]
    contacts: tuple[ContactInfo, ...]
    user_transitions: tuple[UserTransitionInfo, ...]
    quaternions: tuple[int, ...]
    n_kinematic: int
    graph: ExpressionGraph
    symbols: dict[str, Node]
    nodes: dict[str, npt.NDArray[Any]]
    tree: Tree | None = None
    units: Units | None = None
    curve_parameters: tuple[int, ...] = ()

    @classmethod
    def build(
        cls,
        program: Program,
        rows: Sequence[RowInfo],
        contacts: Sequence[ContactInfo],
        whens: Sequence[UserTransitionInfo],
        quaternions: Sequence[int],
        n_kinematic: int,
        pattern: TreePattern | None = None,
        units: Units | None = None,
        curve_parameters: tuple[int, ...] = (),
    ) -> UnconstrainedSystem:
        """Rebuild the nodes of ``program``, the terms program of a model.

        ``rows``, ``contacts``, ``whens``: data of the rows, the contacts and the user-defined transitions, in order;
        ``quaternions``: first indices in q of the Euler parameters; ``n_kinematic``: number of kinematic rows;
        ``units``: the mechanism's own; ``curve_parameters``: indices in q of the curve parameters.
        """
        graph, symbols, nodes = program.graph()
        return cls(
            program.layout, program, tuple(rows), tuple(contacts), tuple(whens), tuple(quaternions), n_kinematic,
            graph, symbols, nodes, None if pattern is None else Tree.put_together(pattern, nodes["tree"]), units,
            curve_parameters,
        )  # fmt: skip

    @cached_property
    def configuration(self) -> Program:
        """Residuals of all rows and their derivatives with respect to the coordinates."""
        _, symbols, nodes = self.program.graph()  # a graph of its own: the order of operations follows from the program
        residual = nodes["residual"]
        jacobian = np.empty((len(residual), len(self.layout.q)), dtype=object)
        for i, slopes in enumerate(gradient(list(residual), [symbols[name] for name in self.layout.q])):
            jacobian[i] = slopes
        return Program.from_nodes(self.layout, {"residual": residual, "jacobian": jacobian})

    @cached_property
    def corners(self) -> dict[int, list[int]]:
        """The contacts of each corner with all faces of one convex polygon, by the first of them."""
        return corners_of(self.contacts)

    def of_one_corner(self, contact: int) -> list[int]:
        """Return the result of :func:`of_one_corner`, without a search of all contacts."""
        info = self.contacts[contact]
        return self.corners[info.outline] if info.outlined and info.contact_law.rigid else [contact]

    @property
    def n_speeds(self) -> int:
        """Number of declared speeds."""
        return len(self.layout.u)

    def sigma(self, contact: int) -> Node:
        """The slip direction of a contact, a constant of the mode's discrete state: a sign, or in space an angle."""
        return self.symbols[f"{self.contacts[contact].name}.sigma"]

    def slip(self, row: int) -> Node:
        """The speed ``A u + b`` of a row."""
        total: Node = self.nodes["b"][row]
        for name, entry in zip(self.layout.u, self.nodes["A"][row, : self.n_speeds], strict=True):
            if not entry.is_zero:  # as nearly all are of a model of many bodies
                total = total + entry * self.symbols[name]
        return total

    def gap(self, contact: int) -> Node:
        """The gap of a contact (m)."""
        node: Node = self.nodes["residual"][self.contacts[contact].normal_row]
        return node

    def ahead(self, contact: int) -> Node:
        """The slip along the direction kept in the discrete state: it falls to zero together with the slip."""
        return _ahead(self.sigma(contact), [self.slip(row) for row in self.contacts[contact].tangent_rows])

    def slip_directions(self, contact: int) -> list[tuple[int, Node]]:
        """Tangent rows of a sliding contact, each with the component of the unit vector opposed by friction.

        In space this vector follows the slip; with hardly any slip, or a reversed one, it leans towards the one kept in
        the discrete state (docs/theory.md, "Friction in space").
        """
        rows, sigma = self.contacts[contact].tangent_rows, self.sigma(contact)
        if len(rows) == 1:
            return [(rows[0], sigma)]
        kept = (functions.cos(sigma), functions.sin(sigma))
        slips = [self.slip(row) for row in rows]
        slow, ahead = FOLLOWS * (self.units.speed if self.units else 1.0), _ahead(sigma, slips)
        rest = 1.0 - ahead / slow
        lead = functions.where(functions.compare(">", ahead, 0.0), slow * rest * rest, slow - 2.0 * ahead)
        lead = functions.where(functions.compare(">", ahead, slow), 0.0, lead)
        slips = [slip + lead * old for slip, old in zip(slips, kept, strict=True)]
        speed = functions.sqrt(slips[0] * slips[0] + slips[1] * slips[1])
        return [(row, slip / speed) for row, slip in zip(rows, slips, strict=True)]

    def friction_bound(self, which: Literal["static", "kinetic"], contact: int) -> Node:
        """Bound of a friction force: of dry friction, ``μ F`` of a compliant contact, or of a bearing by its load."""
        bound: Node = self.nodes[which][contact]
        if self.contacts[contact].contact_law.loaded:
            return bound * self.load(contact)
        return bound * self.nodes["elastic"][contact] if self.contacts[contact].contact_law.compliant else bound

    def load(self, contact: int) -> Node:
        """The load of a bearing, a symbol expressed in the reactions by the embedding."""
        return self.graph.symbol(f"{self.contacts[contact].name}.load")

    def evaluate(self, t: float, x: Floats, c: Floats) -> dict[str, Floats]:
        """Evaluate the terms with NumPy; leading axes of x and c broadcast."""
        return self.program.evaluate(t, x, c)


def _ahead(sigma: Node, slips: Sequence[Node]) -> Node:
    if len(slips) == 1:
        return sigma * slips[0]
    return functions.cos(sigma) * slips[0] + functions.sin(sigma) * slips[1]
