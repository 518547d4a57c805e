"""Kane's equations of a body tree in speeds and auxiliary speeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from fsm_dyn.core.errors import NOWHERE, Location
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import QuadraticForm, leaves_first
from fsm_dyn.derive.kane import Kane
from fsm_dyn.derive.kinematics import NEWTONIAN, ORIGIN, Points, Space, Triple, Turn, Vector, apply, cross, transpose
from fsm_dyn.derive.speeds import Speeds
from fsm_dyn.derive.symbols import Inertia, MechanismSymbols
from fsm_dyn.derive.terms import ConstraintRow, ContactTerms, SparseRow, Terms, TransitionTerms, TreeTerms
from fsm_dyn.derive.velocities import Columns, Motion, Parts, Rates
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import substitute, support, tangent

# -- Recursive velocities of a body tree ---------------------------------------------------------------------
#
# In a chain of n bodies the partial velocities of the last one are n sums of up to n parts. Here every sum in a
# component of an angular velocity, or of the velocity of a point, becomes an *auxiliary speed* z, defined by the
# previous one and by the speeds of one joint: ``z = C z + D u + rest``, with a few entries in each row. All terms are
# then written in u and z, as sparse as the mechanism, and z is eliminated leaf to root (docs/theory.md, "Long chains
# and trees").

Form = dict[int, Node]  # a sum over speeds by their numbers; under REST the part without speeds
Forms = tuple[Form, Form, Form]

REST = -1


@dataclass(frozen=True)
class AuxiliarySpeedDefinition:
    """An auxiliary speed: its symbol, and the parts of its sum."""

    symbol: Node
    form: Mapping[int, Node]
    rest: Node


class TreeMotion(Motion):
    """The motion of a mechanism with auxiliary speeds, after the others in every list of columns.

    ``inertial``: whether velocities of points are resolved in N (right for planar chains), or in the frames they are
    given in; ``space``, ``points``, ``rates``, ``carried``: as for :class:`~fsm_dyn.derive.velocities.Motion`.
    """

    def __init__(
        self, space: Space, points: Points, rates: Rates, carried: Mapping[str, str], *, inertial: bool
    ) -> None:
        super().__init__(space, points, rates, carried)
        self.n_own = len(rates.speeds)
        self.definitions: list[AuxiliarySpeedDefinition] = []
        self._inertial = inertial
        self._symbols: list[Node] = list(rates.speeds)
        self._coefficients = {
            q: {r: node for r, node in enumerate(row) if not node.is_zero} for q, row in rates.columns.items()
        }
        still: Forms = ({}, {}, {})
        self._spin_forms: dict[str, Forms] = {NEWTONIAN: still}
        self._point_forms: dict[str, tuple[str, Forms]] = {ORIGIN: (NEWTONIAN, still)}
        self._places: dict[str, Triple] = {ORIGIN: (self.graph.zero,) * 3}
        for frame in space.frames.names:
            self._add_frame(frame)
        for point in points.names:
            for name in points.chain(point):
                self._add_point(name)
        self.n = len(self._symbols)
        self.values = self.speeds

    @property
    def speeds(self) -> tuple[Node, ...]:
        """Symbols of the speeds, kinematic and auxiliary ones included."""
        return tuple(self._symbols)

    # -- definitions ---------------------------------------------------------------------------------------

    def _define(self, form: Form) -> Form:
        """Return the sum as one auxiliary speed; unchanged if it is one speed already or none at all."""
        form = {r: node for r, node in form.items() if not node.is_zero}
        parts = {r: node for r, node in form.items() if r != REST}
        if not parts or (len(parts) == 1 and REST not in form):
            return form
        symbol = self.graph.symbol(f"auxiliary({len(self.definitions)})")
        self.definitions.append(AuxiliarySpeedDefinition(symbol, parts, form.get(REST, self.graph.zero)))
        self._symbols.append(symbol)
        return {len(self._symbols) - 1: self.graph.one}

    def _defined(self, forms: Forms) -> Forms:
        x, y, z = (self._define(form) for form in forms)
        return (x, y, z)

    def _add_frame(self, frame: str) -> None:
        if frame in self._spin_forms:
            return
        forms = self._spin_forms[self.space.frames.parents[frame]]
        for turn in self.space.frames.turns(frame):
            forms = self._turned_forms(turn, forms)
        self._spin_forms[frame] = self._defined(forms)

    def _turned_forms(self, turn: Turn, forms: Forms) -> Forms:
        forms = self._applied(transpose(self.space.frames.elementary(turn)), forms)
        if turn.euler is not None:
            rows, rest = self.rates.spins[turn.euler[0]]
            x, y, z = (_plus(form, {**dict(enumerate(rows[i])), REST: rest[i]}) for i, form in enumerate(forms))
            return (x, y, z)
        if turn.angle is None:
            return forms
        rate = self.form(turn.angle)
        x, y, z = (_plus(form, rate) if i == turn.axis else form for i, form in enumerate(forms))
        return (x, y, z)

    def _add_point(self, point: str) -> None:
        if point in self._point_forms:
            return
        origin = self.points.origin(point)
        frame, forms = self._point_forms[origin]
        place = self._places[origin]
        home = NEWTONIAN if self._inertial else self.home(point)
        forms = self._resolved_forms(forms, frame, home)
        for part, arm in self.points.offset(point):
            added = self._moved(part, arm)
            x, y, z = (_plus(a, b) for a, b in zip(forms, self._resolved_forms(added, part, home), strict=True))
            forms = (x, y, z)
            dx, dy, dz = self.space.frames.resolve(arm, part, NEWTONIAN)
            place = (place[0] + dx, place[1] + dy, place[2] + dz)
        self._places[point] = place
        self._point_forms[point] = (home, self._defined(forms))

    def _moved(self, frame: str, arm: Triple) -> Forms:
        """Return d/dt of a vector given in a frame, components in it: rates of the components and omega × arm."""
        wx, wy, wz = self._spin_forms[frame]
        x, y, z = arm
        dx, dy, dz = (self.form(component) for component in arm)
        return (
            _plus(_plus(dx, _scaled(wy, z)), _scaled(wz, -y)),
            _plus(_plus(dy, _scaled(wz, x)), _scaled(wx, -z)),
            _plus(_plus(dz, _scaled(wx, y)), _scaled(wy, -x)),
        )

    def _resolved_forms(self, forms: Forms, source: str, target: str) -> Forms:
        if source == target or not any(forms):
            return forms
        return self._applied(self.space.frames.rotation(target, source), forms)

    def _applied(self, matrix: Sequence[Triple], forms: Forms) -> Forms:
        x, y, z = (
            _plus(_plus(_scaled(forms[0], row[0]), _scaled(forms[1], row[1])), _scaled(forms[2], row[2]))
            for row in matrix
        )
        return (x, y, z)

    def form(self, node: Node) -> Form:
        """Return the rate of a function of coordinates, time and inputs as a sum over speeds."""
        form: Form = {}
        for symbol in sorted(support([node]) & self._seeded, key=lambda symbol: symbol.index):
            (slope,) = tangent([node], {symbol: self.graph.one})
            own = _scaled(self._coefficients.get(symbol, {}), slope)
            form = _plus(_plus(form, own), {REST: slope * self.rates.rest.get(symbol, self.graph.zero)})
        return form

    # -- as columns ----------------------------------------------------------------------------------------

    def forms_of(self, point: str) -> tuple[str, Forms]:
        """Return the velocity of a point: the frame it is resolved in and its three components."""
        return self._point_forms[point]

    def spin_forms(self, frame: str) -> Forms:
        """Return the components of a frame's angular velocity in the frame itself."""
        return self._spin_forms[frame]

    def _columns(self, forms: Forms) -> Columns:
        zero = self.graph.zero
        columns = [(zero, zero, zero)] * (self.n + 1)
        for r in {r for form in forms for r in form}:
            columns[r] = (forms[0].get(r, zero), forms[1].get(r, zero), forms[2].get(r, zero))
        return tuple(columns)

    def columns(self, nodes: Sequence[Node]) -> list[list[Node]]:
        """Return the n + 1 columns of the rates of `nodes` (functions of coordinates, time and inputs)."""
        zero = self.graph.zero
        forms = [self.form(node) for node in nodes]
        return [[form.get(r, zero) for form in forms] for r in (*range(self.n), REST)]

    def spin(self, frame: str) -> Columns:
        """Return the columns of the angular velocity of `frame` in N, components in `frame`."""
        return self._columns(self._spin_forms[frame])

    def velocity(self, point: str, where: Location = NOWHERE) -> Parts:
        """Return the columns of the velocity of `point` in N."""
        self.points.chain(point, where)
        home, forms = self._point_forms[point]
        return {home: self._columns(forms)} if any(forms) else {}

    def sum_of(self, form: Form) -> Node:
        """Return a sum over speeds as one node."""
        total = form.get(REST, self.graph.zero)
        for r, coefficient in form.items():
            if r != REST:
                total = total + coefficient * self.values[r]
        return total

    def value_of(self, forms: Forms) -> Triple:
        """Return three components as nodes."""
        x, y, z = (self.sum_of(form) for form in forms)
        return (x, y, z)

    def angular(self, frame: str) -> Vector:
        """Return the angular velocity of a frame in N."""
        return self.space.vector(frame, self.value_of(self._spin_forms[frame]))

    def speed_of(self, point: str, where: Location = NOWHERE) -> Vector:
        """Return the velocity of a point in N."""
        self.points.chain(point, where)
        home, forms = self._point_forms[point]
        return self.space.vector(home, self.value_of(forms))

    def rate(self, node: Node) -> Node:
        """Return d/dt of a function of coordinates, time and inputs."""
        return self.sum_of(self.form(node))

    def position(self, point: str) -> Vector:
        """Return the vector from O to a point, resolved in N."""
        return self.space.vector(NEWTONIAN, self._places[point])


class Values:
    """The auxiliary speeds as functions of the others, for their substitution."""

    def __init__(self, motion: TreeMotion, kinematic: Sequence[Node]) -> None:
        still = dict.fromkeys(kinematic, motion.graph.zero)
        symbols = motion.speeds
        self.known: dict[Node, Node] = dict(still)
        for definition in motion.definitions:
            value = definition.rest
            for r, coefficient in definition.form.items():
                value = value + coefficient * self.known.get(symbols[r], symbols[r])
            self.known[definition.symbol] = value

    def put(self, nodes: Sequence[Node]) -> list[Node]:
        """Return nodes without auxiliary and kinematic speeds."""
        return substitute(nodes, self.known)

    def everywhere(self, value: Any) -> Any:
        """Return the same data, nested as it may be, with the values put into all nodes in it."""
        nodes: list[Node] = []
        _walk(value, lambda node: nodes.append(node) or node)  # type: ignore[func-returns-value]
        new = dict(zip(nodes, self.put(nodes), strict=True))
        return _walk(value, new.__getitem__)


def _walk(value: Any, visit: Callable[[Node], Node]) -> Any:
    if isinstance(value, Node):
        return visit(value)
    if isinstance(value, tuple | list):
        return type(value)([_walk(item, visit) for item in value])
    if isinstance(value, dict):
        return {key: _walk(item, visit) for key, item in value.items()}
    if isinstance(value, ConstraintRow | ContactTerms | TransitionTerms | Terms):
        return replace(value, **{entry.name: _walk(getattr(value, entry.name), visit) for entry in fields(value)})
    return value


def _plus(a: Form, b: Form) -> Form:
    result = dict(a)
    for r, node in b.items():
        result[r] = result[r] + node if r in result else node
    return {r: node for r, node in result.items() if not node.is_zero}


def _scaled(form: Form, factor: Node) -> Form:
    return {} if factor.is_zero else {r: node * factor for r, node in form.items()}


# -- Kane's equations in speeds and auxiliary speeds ---------------------------------------------------------
#
# Sparse, and from them the terms in the speeds alone.

MANY_BODIES = 8


def is_long(system: MechanismSymbols) -> bool:
    """Whether auxiliary speeds reduce the operations of a mechanism, by its number of bodies."""
    return len(system.mechanism.bodies) >= MANY_BODIES and not any(
        contact.parameter for contact in system.mechanism.contacts.values()
    )


def tree_motion(system: MechanismSymbols, speeds: Speeds) -> TreeMotion:
    """Return the motion with auxiliary speeds; if all turns are about one axis, velocities are resolved in N."""
    turns = [turn for frame in system.frames.names for turn in system.frames.turns(frame)]
    planar = all(turn.euler is None for turn in turns) and len({turn.axis for turn in turns}) <= 1
    return TreeMotion(system.space, system.points, speeds.rates, system.carried, inertial=planar)


class TreeKane(Kane):
    """The bodies' share, in speeds and auxiliary speeds."""

    motion: TreeMotion

    def quadratic(self, gravity: Vector) -> QuadraticForm:
        """Return inertia, weight and velocity-dependent forces of all bodies."""
        result = QuadraticForm(self.system.graph)
        for body in self.bodies:
            if not body.mass.is_zero:
                self._translate(result, body, gravity)
            if body.frame is not None and body.tensor is not None:
                self._rotate(result, body.frame, body.tensor)
        return result

    def _translate(self, result: QuadraticForm, body: Inertia, gravity: Vector) -> None:
        home, forms = self.motion.forms_of(body.center)
        still = self._biases(forms)
        if home != NEWTONIAN:  # components in a turning frame
            velocity = self.motion.value_of(forms)
            added = cross(self.accelerations.spin(home), velocity)
            still = (still[0] + added[0], still[1] + added[1], still[2] + added[2])
        fall = self.system.space.resolve(gravity, home)
        for form, bias, g in zip(forms, still, fall, strict=True):
            own = speeds_of(form)
            result.add_square(own, body.mass)
            result.push_along(own, body.mass * (g - bias))

    def _rotate(self, result: QuadraticForm, frame: str, tensor: tuple[Triple, Triple, Triple]) -> None:
        forms = self.motion.spin_forms(frame)
        own = [speeds_of(form) for form in forms]
        for i in range(3):
            result.add_square(own[i], tensor[i][i])
            for j in range(i + 1, 3):
                if not tensor[i][j].is_zero:
                    result.add_product(own[i], own[j], tensor[i][j])
        spin = self.accelerations.spin(frame)
        rate = apply(tensor, self._biases(forms))
        gyro = cross(spin, apply(tensor, spin))
        for form, a, b in zip(own, rate, gyro, strict=True):
            result.push_along(form, -(a + b))

    def _biases(self, forms: Forms) -> Triple:
        """Return the rates of three components at constant speeds."""
        x, y, z = tangent([self.motion.sum_of(form) for form in forms], self.accelerations.flow)
        return (x, y, z)


def speeds_of(form: Form) -> Form:
    """Return a sum over speeds without its part independent of speeds."""
    return {r: node for r, node in form.items() if r != REST}


def definitions_of(motion: TreeMotion, flow: Mapping[Node, Node]) -> tuple[tuple[Mapping[int, Node], Node], ...]:
    """Return the accelerations of auxiliary speeds in terms of others."""
    sums = [motion.sum_of({**definition.form, REST: definition.rest}) for definition in motion.definitions]
    return tuple(
        (definition.form, rest) for definition, rest in zip(motion.definitions, tangent(sums, flow), strict=True)
    )


def along_tree(terms: Terms, kane: TreeKane, gravity: Vector, kinematic: Sequence[Node]) -> Terms:
    """Complete terms with auxiliary speeds: the sparse equations, and those in the speeds alone.

    ``terms``: rows and forces of the loads in all speeds, the auxiliary ones included; no inertia yet. ``kinematic``,
    symbols of the kinematic speeds.
    """
    motion = kane.motion
    quadratic = kane.quadratic(gravity)
    for i, force in enumerate(terms.f):
        if not force.is_zero:
            quadratic.add_force(i, force)
    values = Values(motion, kinematic)
    terms = values.everywhere(terms)
    tree = TreeTerms(
        motion.n_own,
        values.everywhere(definitions_of(motion, kane.accelerations.flow)),
        _with_values(quadratic, values),
        tuple(
            SparseRow({j: node for j, node in enumerate(row.A) if not node.is_zero}, row.gamma) for row in terms.rows
        ),
    )
    rests = values.put([definition.rest for definition in motion.definitions])
    n, zero = tree.n, motion.graph.zero
    inertia, forces = composite_inertia(tree), composite_forces(tree)
    return replace(
        terms,
        M=tuple(tuple(inertia.entries.get(i, {}).get(j, zero) for j in range(n)) for i in range(n)),
        f=tuple(forces[i] for i in range(n)),
        rows=tuple(_dense_row(tree, row, rests) for row in terms.rows),
        tree=tree,
    )


def composite_forces(tree: TreeTerms) -> list[Node]:
    """Return the forces on all variables, with those on auxiliary speeds passed to the others.

    Outwards the accelerations at constant speeds, inwards the resulting forces: linear in the number of bodies.
    """
    n, zero = tree.n, tree.quadratic.graph.zero
    motion = [zero] * n
    for form, rest in tree.definitions:
        total = rest
        for j, coefficient in form.items():
            total = total + coefficient * motion[j]
        motion.append(total)
    forces = []
    for i in range(len(motion)):
        force = tree.quadratic.forces.get(i, zero)
        for j, entry in tree.quadratic.entries.get(i, {}).items():
            force = force - entry * motion[j]
        forces.append(force)
    for k in reversed(range(len(tree.definitions))):
        for j, coefficient in tree.definitions[k][0].items():
            forces[j] = forces[j] + coefficient * forces[n + k]
    return forces[:n]


def composite_inertia(tree: TreeTerms) -> QuadraticForm:
    """Substitute all auxiliary speeds, outermost first: M, the inertia of composite bodies."""
    whole = tree.quadratic.copy()
    whole.forces.clear()
    definitions = {tree.n + k: definition for k, definition in enumerate(tree.definitions)}
    for k in leaves_first({k: form for k, (form, _) in definitions.items()}, range(tree.n)):
        if k in definitions:
            whole.substitute(k, definitions[k][0], whole.graph.zero)
    return whole


def _dense_row(tree: TreeTerms, row: ConstraintRow, rests: Sequence[Node]) -> ConstraintRow:
    A, b, gamma = dict(enumerate(row.A)), row.b, row.gamma
    for k in reversed(range(len(tree.definitions))):
        factor = A.pop(tree.n + k)
        if not factor.is_zero:
            form, bias = tree.definitions[k]
            for j, coefficient in form.items():
                A[j] = A[j] + factor * coefficient
            b, gamma = b + factor * rests[k], gamma + factor * bias
    return replace(row, A=tuple(A.values()), b=b, gamma=gamma)


def _with_values(quadratic: QuadraticForm, values: Values) -> QuadraticForm:
    result = QuadraticForm(quadratic.graph)
    result.entries = values.everywhere(quadratic.entries)
    result.forces = values.everywhere(quadratic.forces)
    return result
