"""Kane's equations in speeds and auxiliary speeds: sparse, and from them the terms in the speeds alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fsm_dyn.programs import Node, QuadraticForm, leaves_first, tangent
from fsm_dyn.symbolic.auxiliary_speeds import REST, Form, Forms, TreeMotion, Values
from fsm_dyn.symbolic.frames import NEWTONIAN, Triple, apply
from fsm_dyn.symbolic.inertia import Inertia
from fsm_dyn.symbolic.kane import Kane
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols
from fsm_dyn.symbolic.speeds import Speeds
from fsm_dyn.symbolic.terms import ConstraintRow, SparseRow, Terms, TreeTerms
from fsm_dyn.symbolic.vectors import Vector, cross

MANY_BODIES = 8


def is_long(system: MechanismSymbols) -> bool:
    """Whether auxiliary speeds reduce the operations of a mechanism, by its number of bodies."""
    return len(system.mechanism.bodies) >= MANY_BODIES and not any(
        contact.parameter for contact in system.mechanism.contacts.values()
    )


def tree_motion(system: MechanismSymbols, speeds: Speeds) -> TreeMotion:
    """Return the motion with auxiliary speeds; where all turns are about one axis, velocities are resolved in N."""
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
        if home != NEWTONIAN:  # components in a frame that turns
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
        """Return the rates of three components while no speed changes."""
        x, y, z = tangent([self.motion.sum_of(form) for form in forms], self.accelerations.flow)
        return (x, y, z)


def speeds_of(form: Form) -> Form:
    """Return a sum over speeds without what no speed has a share in."""
    return {r: node for r, node in form.items() if r != REST}


def definitions_of(motion: TreeMotion, flow: Mapping[Node, Node]) -> tuple[tuple[Mapping[int, Node], Node], ...]:
    """Return how accelerations of auxiliary speeds follow from those of others."""
    sums = [motion.sum_of({**definition.form, REST: definition.rest}) for definition in motion.definitions]
    return tuple(
        (definition.form, rest) for definition, rest in zip(motion.definitions, tangent(sums, flow), strict=True)
    )


def along_tree(terms: Terms, kane: TreeKane, gravity: Vector, kinematic: Sequence[Node]) -> Terms:
    """Complete terms in which auxiliary speeds stand: the sparse equations, and those in the speeds alone.

    Parameters
    ----------
    terms : Terms
        Rows and forces of the loads in all speeds, the auxiliary ones included; no inertia yet.
    kinematic : symbols of the kinematic speeds
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
    """Return the forces on all variables with those on auxiliary speeds handed on to the others.

    Outwards what accelerates while no speed changes, inwards the forces that this leaves: linear in the bodies.
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
