"""The derivation: from a mechanism to its terms, and the programs and tables common to all modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.constraint_rows import ConstraintRowBuilder, CurveParameterRate, follow
from fsm_dyn.derive.contact_geometry import ContactGeometry
from fsm_dyn.derive.elimination import solve_symmetric
from fsm_dyn.derive.features import Shapes
from fsm_dyn.derive.kane import InertiaShare, Kane, Loads
from fsm_dyn.derive.kinematics import NEWTONIAN, Matrix
from fsm_dyn.derive.reduction import condense
from fsm_dyn.derive.solid_pairs import SolidPairs, solids_and_others
from fsm_dyn.derive.speeds import Speeds, solve_speeds
from fsm_dyn.derive.symbols import MechanismSymbols, NodeAlgebra, build_system
from fsm_dyn.derive.terms import ContactTerms, Terms, TransitionTerms, TreeTerms
from fsm_dyn.derive.tree_kane import TreeKane, along_tree, is_long, tree_motion
from fsm_dyn.derive.unconstrained_system import ContactInfo, RowInfo, Tree, TreePattern, UserTransitionInfo
from fsm_dyn.derive.velocities import Motion
from fsm_dyn.language import expression_tree, expressions
from fsm_dyn.language.contacts import Contact, FeatureContact, SurfaceContact
from fsm_dyn.language.expression_tree import Boolean, Compare, Text
from fsm_dyn.language.interfaces import Controller
from fsm_dyn.language.memory import (
    count_name,
    is_condition,
    is_steady,
    later_values,
    next_name,
    parts_of,
    without_negations,
)
from fsm_dyn.language.model import Mechanism, TransitionSpec
from fsm_dyn.language.shapes import Feature, PolygonShape, SolidShape
from fsm_dyn.programs import functions
from fsm_dyn.programs.functions import maximum, minimum
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import TIME, Program
from fsm_dyn.runtime.abi import ConditionKind

# -- Programs and tables common to all modes, from the derived terms; corners of planar shapes ---------------

# -- Corners of planar shapes: indices of their contacts, and contacts with a common guard -------------------

_POINTED = ("corner", "point", "vertex")  # parts with a place and without a face


def ends_of_faces(terms: Terms) -> list[tuple[int, int, int]]:
    """Return :attr:`fsm_dyn.derive.unconstrained_system.ContactInfo.ends` of all contacts.

    Corners are numbered in order of appearance; an end in a concave corner, never touched alone, has a separate number
    for each face.
    """
    numbers: dict[tuple[str, bool, int, int, int], int] = {}

    def number(feature: Feature, index: int) -> int:
        shape = terms.mechanism.shapes[feature.shape] if feature.part == "face" else None
        concave = isinstance(shape, PolygonShape) and index in shape.concave
        own = feature.index if concave else -1
        return numbers.setdefault((feature.shape, feature.part == "point", index, own, feature.copy), len(numbers))

    found = []
    for contact in terms.contacts:
        pair = _corner_and_face(contact.spec)
        if contact.crossing:
            numbers[contact.name, False, -1, -1, -1] = len(numbers)
            found.append((len(numbers) - 1, -1, -1))
            continue
        if pair is None:
            found.append((-1, -1, -1))
            continue
        corner, face = pair
        one = number(corner, corner.index)
        if contact.margin_slope is None:
            found.append((one, -1, -1))
            continue
        start, end = face.index, (face.index + 1) % max(terms.mechanism.shapes[face.shape].straight_faces, 2)
        ahead, behind = (start, end) if contact.starts_ahead else (end, start)
        found.append((one, number(face, ahead), number(face, behind)))
    return found


def outlines(terms: Terms) -> list[int]:
    """Return :attr:`fsm_dyn.derive.unconstrained_system.ContactInfo.outline` of all contacts."""
    first: dict[tuple[str, Feature, str, int], int] = {}
    found = []
    for index, contact in enumerate(terms.contacts):
        pair = _corner_and_face(contact.spec)
        shape = None if pair is None else terms.mechanism.shapes[pair[1].shape]
        convex = isinstance(shape, PolygonShape) and not shape.inside and not shape.concave
        convex = convex or isinstance(shape, SolidShape)
        if pair is None or not convex:
            found.append(-1)
            continue
        corner, face = pair
        found.append(first.setdefault((contact.spec.entry, corner, face.shape, face.copy), index))
    return found


def _corner_and_face(contact: Contact) -> tuple[Feature, Feature] | None:
    """Return the two features of a contact between a corner, or a point, and a straight face; None for others."""
    if not isinstance(contact, FeatureContact):
        return None
    first, second = contact.features
    if second.part == "face" and first.part in _POINTED:
        return first, second
    if first.part == "face" and second.part in _POINTED:
        return second, first
    return None


# -- Programs and tables -------------------------------------------------------------------------------------
#
# Common to all modes, made from the derived terms.


@dataclass(frozen=True)
class SharedPrograms:
    """The common data of all modes of a model."""

    rows: tuple[RowInfo, ...]
    contacts: tuple[ContactInfo, ...]
    user_transitions: tuple[UserTransitionInfo, ...]
    terms: Program
    report: Program
    geometry: Program
    resets: tuple[Program | None, ...]
    pattern: TreePattern | None
    sample: Program | None


def build_shared_programs(terms: Terms) -> SharedPrograms:
    """Turn the derived terms into programs."""
    pattern, entries = (None, []) if terms.tree is None else _sparse(terms.tree).taken_apart()
    return SharedPrograms(
        rows=tuple(RowInfo(row.name, row.role, row.contact, row.residual is not None) for row in terms.rows),
        contacts=tuple(
            _contact(contact, ends, outline)
            for contact, ends, outline in zip(terms.contacts, ends_of_faces(terms), outlines(terms), strict=True)
        ),
        user_transitions=tuple(
            UserTransitionInfo(
                describe(item.spec, item.condition), index, item.crossing, item.guard is not None, item.condition
            )
            for index, item in enumerate(terms.transitions)
        ),
        terms=_terms_program(terms, entries),
        report=terms.program(
            {
                "kinetic_energy": terms.kinetic_energy,
                "potential_energy": terms.potential_energy,
                "load_powers": _array(terms.load_powers.values(), (len(terms.load_powers),)),
                "outputs": _array(terms.outputs.values(), (len(terms.outputs),)),
                "restoring": _array(
                    [terms.graph.zero if c.restoring is None else c.restoring for c in terms.contacts],
                    (len(terms.contacts),),
                ),
                "stored": _array(
                    [terms.graph.zero if c.stored is None else c.stored for c in terms.contacts],
                    (len(terms.contacts),),
                ),
            }
        ),
        geometry=terms.program(
            {
                "points": _array([x for p in terms.points.values() for x in p], (len(terms.points), 3)),
                "frames": _array(
                    [x for f in terms.frames.values() for row in f for x in row], (len(terms.frames), 3, 3)
                ),
                "measure": _array([f.measure for f in terms.followings], (len(terms.followings),)),
                "slope": _array([f.slope for f in terms.followings], (len(terms.followings),)),
                "bend": _array([f.bend for f in terms.followings], (len(terms.followings),)),
            }
        ),
        resets=tuple(_reset_program(terms, item) for item in terms.transitions),
        pattern=pattern,
        sample=None if terms.sample is None else _sample_program(terms, terms.sample),
    )


def _sparse(terms: TreeTerms) -> Tree:
    return Tree(terms.n, terms.definitions, terms.quadratic, tuple((row.form, row.gamma) for row in terms.rows))


def describe(transition: TransitionSpec, condition: ConditionKind) -> str:
    """The condition of a user-defined transition as text."""
    if transition.on is not None:
        return f"{transition.on[0]} {transition.on[1]}"
    text = transition.when.text if transition.when is not None else transition.name
    return f"{text} {transition.crossing}" if condition is ConditionKind.CROSSES else text


def _contact(contact: ContactTerms, ends: tuple[int, int, int], outline: int) -> ContactInfo:
    return ContactInfo(
        contact.name,
        contact.spec.kind,
        contact.normal_row,
        contact.tangent_row,
        contact.states,
        gated=contact.closes_if is not None,
        sticks_always=contact.infinite_friction,
        bounded_face=contact.reach is not None,
        bilateral=contact.spec.bilateral,
        poisson=isinstance(contact.spec, SurfaceContact) and contact.spec.restitution_law == "poisson",
        in_space=contact.in_space,
        lossy=contact.firm is not None and not contact.crossing,
        ends=ends,
        outline=outline,
        load_rows=contact.load_rows,
        whole_circle=contact.whole_circle,
        crossing=contact.crossing,
    )


def _terms_program(terms: Terms, entries: Sequence[Node]) -> Program:
    n, n_rows, count = terms.n, len(terms.rows), len(terms.contacts)
    one, zero = terms.graph.one, terms.graph.zero
    contacts, rows = terms.contacts, terms.rows
    tree = {"tree": _array(entries, (len(entries),))} if entries else {}
    return terms.program(
        {
            "q_dot": _array(terms.q_dot, (terms.n_q,)),
            "W": _array([x for row in terms.W for x in row], (terms.n_q, n)),
            "M": _array([x for row in terms.M for x in row], (n, n)),
            "f": _array(terms.f, (n,)),
            "A": _array([x for row in rows for x in row.A], (n_rows, n)),
            "b": _array([row.b for row in rows], (n_rows,)),
            "gamma": _array([row.gamma for row in rows], (n_rows,)),
            "residual": _array([zero if row.residual is None else row.residual for row in rows], (n_rows,)),
            "static": _array([contact.static for contact in contacts], (count,)),
            "kinetic": _array([contact.kinetic for contact in contacts], (count,)),
            "restitution": _array([contact.restitution for contact in contacts], (count,)),
            "tangential_restitution": _array([contact.tangential_restitution for contact in contacts], (count,)),
            "closes_if": _array([one if c.closes_if is None else c.closes_if for c in contacts], (count,)),
            "elastic": _array([zero if c.elastic is None else c.elastic for c in contacts], (count,)),
            "energies": _array([terms.kinetic_energy, terms.potential_energy], (2,)),
            "reach": _array([one if c.reach is None else c.reach for c in contacts], (count,)),
            "reach_rate": _array([zero if c.reach_rate is None else c.reach_rate for c in contacts], (count,)),
            "margin_slope": _array([zero if c.margin_slope is None else c.margin_slope for c in contacts], (count,)),
            "aspect": _array([one if c.aspect is None else c.aspect for c in contacts], (count,)),
            "firm": _array([one if c.firm is None else c.firm for c in contacts], (count,)),
            "when": _array(
                [zero if t.guard is None else t.guard for t in terms.transitions], (len(terms.transitions),)
            ),
        }
        | tree
    )


def _reset_program(terms: Terms, item: TransitionTerms) -> Program | None:
    """All of q, u and memory after a user-defined transition; values without an assignment are copied.

    Impulses change the speeds as without constraints; the plastic impact after a reset restores the constraints and
    contacts.
    """
    if not item.reset and not item.set and not item.impulse:
        return None
    names = (*terms.layout.q, *terms.layout.u, *terms.layout.memory)
    new = {**item.reset, **item.set}
    if item.impulse:
        n = terms.n_u
        change, _ = solve_symmetric([list(row[:n]) for row in terms.M[:n]], item.impulse[:n])
        new |= {u: terms.graph.symbol(u) + more for u, more in zip(terms.layout.u, change, strict=True)}
    return terms.program({"after": _array([new.get(name, terms.graph.symbol(name)) for name in names], (len(names),))})


def _sample_program(terms: Terms, sample: Mapping[str, Node]) -> Program:
    """All memory after a sample of controllers; other values are copied."""
    names = terms.layout.memory
    return terms.program(
        {"after": _array([sample.get(name, terms.graph.symbol(name)) for name in names], (len(names),))}
    )


def _array(entries: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    flat: list[Node] = list(entries)
    array = np.empty(len(flat), dtype=object)
    array[:] = flat
    return array.reshape(shape)


# -- The derivation: from a mechanism to its terms, with transitions and sampled controllers -----------------

# -- User-defined transitions: conditions as scalars with zero crossings, resets as new values ---------------


_DECIDED: Final = (
    1e9  # margin of a part of a condition with jumps only: it decides, or leaves the decision to the others
)
_WIDE: Final = 4e-12  # shift of <= and >= joined with < and >, above the error of a guard


def transition_terms(
    transition: TransitionSpec, mechanism: Mechanism, algebra: NodeAlgebra, impulse: Sequence[Node]
) -> TransitionTerms:
    """Return a transition's guard and resets as nodes, with its generalized impulses, shape (n,).

    ``transition``: the entry of the model; ``algebra``: nodes of names; ``impulse``: generalized impulses, one for each
    speed.
    """
    guard, crossing, condition = None, transition.crossing, ConditionKind.CROSSES
    if transition.when is not None:
        tree = expressions.parse(transition.when)
        if is_condition(tree, mechanism):
            guard, condition = _ConditionMargin(tree, transition.when, mechanism, algebra).guard()
            crossing = "rising"
        else:
            guard = algebra.scalar(transition.when)
    return TransitionTerms(
        spec=transition,
        guard=guard,
        crossing=crossing,
        condition=condition,
        reset={name: algebra.scalar(text) for name, text in transition.reset.items()},
        set={name: algebra.scalar(text) for name, text in transition.set.items()},
        impulse=tuple(impulse),
    )


class _ConditionMargin:
    """A condition as a scalar, positive while it holds: the margin of a comparison, the extreme one of several.

    ``algebra``: nodes of names.
    """

    def __init__(self, tree: expression_tree.Node, text: Text, mechanism: Mechanism, algebra: NodeAlgebra) -> None:
        self._tree = without_negations(tree)
        self._text, self._mechanism, self._algebra = text, mechanism, algebra
        parts = parts_of(self._tree)
        self._alone = len(parts) == 1 and isinstance(parts[0], Compare) and parts[0].op not in ("==", "!=")
        self._moving = [part for part in parts if self._alone or not is_steady(part, mechanism)]
        self._wide = bool(self._moving) and all(_is_wide(part) for part in self._moving)

    def guard(self) -> tuple[Node, ConditionKind]:
        """Return the scalar, and whether zero meets the condition."""
        return self._margin(self._tree), ConditionKind.WIDE if self._wide else ConditionKind.STRICT

    def _margin(self, tree: expression_tree.Node) -> Node:
        match tree:
            case Boolean(op=op, operands=operands):
                margins = [self._margin(operand) for operand in operands]
                result = margins[0]
                for margin in margins[1:]:
                    result = minimum(result, margin) if op == "and" else maximum(result, margin)
                return result
            case Compare(op="==" | "!=") if tree in self._moving:
                raise ModelError(
                    "this condition does not begin to hold at a definite instant",
                    self._text.where,
                    found=f"'{self._text.text}'",
                    allowed="a scalar that crosses zero, or < <= > >= joined by and, or, not",
                )
            case Compare(op=op, left=left, right=right) if tree in self._moving:
                sides = [self._algebra.tree(side, self._text) for side in (left, right)]
                margin = sides[0] - sides[1] if op in (">", ">=") else sides[1] - sides[0]
                return margin + _WIDE if _is_wide(tree) and not self._wide else margin
        return functions.where(self._algebra.tree(tree, self._text), _DECIDED, -_DECIDED)


def _is_wide(part: expression_tree.Node) -> bool:
    return isinstance(part, Compare) and part.op in ("<=", ">=")


# -- Sampled controllers: their memory after a sample, as nodes ----------------------------------------------


def sample_terms(system: MechanismSymbols, motion: Motion, names: Mapping[str, Node]) -> dict[str, Node]:
    """Return the new memory of controllers at an instant, by name.

    A controller changes if its next sample is not later than the time. All controllers due in one instant see the
    values before; `names` contains speeds and memory. ``names``: nodes of further names.
    """
    graph, algebra = system.graph, system.algebra(motion, names)
    found: dict[str, Node] = {}
    for controller in system.mechanism.controllers.values():
        sampled = {item.name: _rounded(algebra, item.value, item.quantum) for item in controller.inputs}
        inner = system.algebra(motion, {**names, **sampled})
        new = {
            **sampled,
            **{item.name: inner.scalar(item.value) for item in controller.memory},
            **_outputs(graph, controller, inner),
            **_clock(graph, controller, algebra.scalar(controller.period)),
        }
        due = functions.compare("<=", graph.symbol(next_name(controller)), graph.symbol(TIME))
        found |= {str(name): functions.where(due, value, graph.symbol(name)) for name, value in new.items()}
    return found


def _rounded(algebra: NodeAlgebra, value: Text, quantum: Text | None) -> Node:
    """Return a value, rounded to the nearest multiple of a quantum if there is one, halves upwards."""
    exact = algebra.scalar(value)
    if quantum is None:
        return exact
    step = algebra.scalar(quantum)
    return functions.floor(exact / step + 0.5) * step


def _outputs(graph: ExpressionGraph, controller: Controller, algebra: NodeAlgebra) -> dict[str, Node]:
    """Return the outputs, each with its delayed values, moved up by one sample."""
    found: dict[str, Node] = {}
    for item in controller.outputs:
        places = [item.name, *later_values(controller, item.name)]
        values = [*map(graph.symbol, places[1:]), _rounded(algebra, item.value, item.quantum)]
        found |= dict(zip(places, values, strict=True))
    return found


def _clock(graph: ExpressionGraph, controller: Controller, period: Node) -> dict[str, Node]:
    """Return number and instant of the samples: a product, as a sum of periods would gather rounding."""
    count = graph.symbol(count_name(controller)) + 1.0
    return {count_name(controller): count, next_name(controller): period * count}


# -- The derivation: from a mechanism to its terms -----------------------------------------------------------


def derive(mechanism: Mechanism) -> Terms:
    """Derive Kane's unconstrained terms of a mechanism (Gillespie 2003, (1)-(2), (13)-(15), (32)-(34)).

    ``mechanism``: as `fsm_dyn.language.loader.load` returns it. Result: nodes of one graph: ``q̇ = W u + X``, ``M u̇ =
    f + A^T lambda``, rows, energies, guards. Raises ModelError: the definitions of speeds do not determine the rates of
    the coordinates, a row is not linear in the speeds or constrains nothing, a name has no meaning in its place.
    """
    system = build_system(mechanism)
    speeds = solve_speeds(system)
    long = is_long(system)
    free: Motion = tree_motion(system, speeds) if long else system.motion(speeds.rates)
    zero = system.graph.zero
    held = free.at([zero if symbol in speeds.kinematic else symbol for symbol in free.speeds])
    shapes = Shapes(system, system.algebra(free, {}))
    solids, others = solids_and_others(system.mechanism)
    meetings = ContactGeometry(system, shapes, free).all(others)
    followers = [follow(free, meeting.following, speeds) for meeting in meetings.values() if meeting.following]
    flow = flow_of(system, speeds, followers)
    names = {name: system.graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}

    kane = (TreeKane if long else Kane)(system, held, flow)
    algebra = system.algebra(held, names)
    loads = Loads(kane, algebra).gather(mechanism.loads)
    inertia = InertiaShare([], [zero] * free.n) if long else kane.equations(loads.gravity)
    pairs = SolidPairs(system, shapes, free, held, flow).pairs(solids)
    rows = ConstraintRowBuilder(system, speeds, free, system.algebra(free, names), flow, meetings, pairs)
    constraints = rows.constraints()
    contact_rows, contacts = rows.contacts(len(constraints))
    potential = sum((*loads.potential, *(item.stored for item in contacts if item.stored is not None)), start=zero)
    f = [a + b for a, b in zip(loads.f, inertia.f, strict=True)]
    every_row = (*constraints, *contact_rows)
    q_dot = (*speeds.q_dot, *(follower.rate for follower in followers))
    shown = [*q_dot, *f, *chain(*inertia.M), *chain(*(row.nodes for row in every_row))]
    best = dict(zip(shown, shown, strict=True)) if long else condense(shown, system.reducer)
    terms = Terms(
        mechanism=mechanism,
        layout=system.layout,
        graph=system.graph,
        n_k=len(speeds.kinematic),
        W=(*(speeds.rates.columns[q] for q in system.coordinates), *(follower.columns for follower in followers)),
        X=(*(speeds.rates.rest[q] for q in system.coordinates), *(follower.rest for follower in followers)),
        q_dot=tuple(best[node] for node in q_dot),
        M=tuple(tuple(best[node] for node in row) for row in inertia.M),
        f=tuple(best[node] for node in f),
        rows=tuple(row.replaced(best) for row in every_row),
        contacts=tuple(contacts),
        quaternions=tuple(system.coordinates.index(group[0]) for group in system.euler),
        kinetic_energy=kane.kinetic_energy(),
        potential_energy=potential,
        load_powers=loads.powers,
        outputs={name: algebra.scalar(text) for name, text in mechanism.outputs.items()},
        transitions=tuple(
            transition_terms(item, mechanism, algebra, _impulse(item, system, speeds, flow))
            for item in mechanism.transitions
        ),
        points={name: system.space.resolve(free.position(name), NEWTONIAN) for name in system.points.names},
        frames={name: _matrix(system, name) for name in system.frames.names},
        followings=tuple(meeting.following for meeting in meetings.values() if meeting.following),
        sample=sample_terms(system, held, names) if mechanism.controllers else None,
    )
    return along_tree(terms, kane, loads.gravity, speeds.kinematic) if isinstance(kane, TreeKane) else terms


def _impulse(
    item: TransitionSpec, system: MechanismSymbols, speeds: Speeds, flow: Mapping[Node, Node]
) -> Sequence[Node]:
    """Return the generalized impulses of a transition, without auxiliary speeds; nothing without impulses.

    An impulse enters the equations of impulse and momentum as a load enters those of motion (Kane and Levinson 1985,
    7.8): by its scalar products with the partial velocities of its point of action.
    """
    if not item.impulses:
        return ()
    zero, kinematic = system.graph.zero, frozenset(speeds.kinematic)
    free = system.motion(speeds.rates)
    held = free.at([zero if symbol in kinematic else symbol for symbol in free.speeds])
    names = {name: system.graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}
    return Loads(Kane(system, held, flow), system.algebra(held, names)).gather(item.impulses).f


def flow_of(system: MechanismSymbols, speeds: Speeds, followers: Sequence[CurveParameterRate] = ()) -> dict[Node, Node]:
    """Return the direction of time derivatives at u̇ = 0: rates of coordinates, of time and of inputs."""
    graph = system.graph
    flow: dict[Node, Node] = dict(zip(system.coordinates, speeds.q_dot, strict=True))
    flow |= {follower.parameter: follower.rate for follower in followers}
    flow[graph.symbol(TIME)] = graph.one
    for w in system.inputs:
        flow[w] = graph.symbol(f"{w.name}.rate")
        flow[flow[w]] = graph.symbol(f"{w.name}.rate2")
    return flow


def _matrix(system: MechanismSymbols, frame: str) -> Matrix:
    return system.frames.rotation(NEWTONIAN, frame)
