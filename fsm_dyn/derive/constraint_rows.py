"""Constraint and contact rows: ``A y + b``, its rate at u̇ = 0, and the configuration it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from fsm_dyn.core.errors import ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.contact_geometry import ContactKinematics, CurveParameter
from fsm_dyn.derive.reduction import cost
from fsm_dyn.derive.solid_pairs import SolidPair
from fsm_dyn.derive.speeds import Speeds, sample
from fsm_dyn.derive.symbols import MechanismSymbols, NodeAlgebra, require_independent
from fsm_dyn.derive.terms import ConstraintRow, ContactTerms, Role
from fsm_dyn.derive.velocities import Motion
from fsm_dyn.language.contacts import BearingContact, Contact, FeatureContact, LawContact, SurfaceContact
from fsm_dyn.language.elements import Constraint, PositionConstraint
from fsm_dyn.language.expression_tree import CASE_FUNCTIONS, Text
from fsm_dyn.language.values import flat_values
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.program import TIME
from fsm_dyn.programs.traversal import evaluate, reachable, substitute, support, tangent

# -- The rate of the contact point along a curve -------------------------------------------------------------
#
# ``ξ̇ = -c_ξ⁻¹ (ċ + k c)`` (docs/theory.md), with the slope ``c`` of the measure, zero at the contact point. The term
# with ``k`` corrects the drift of the integrated ξ; it does not affect any other motion, since the gap does not depend
# on ξ to first order.

RETURN = 10.0  # 1/s


@dataclass(frozen=True)
class CurveParameterRate:
    """The rate of a parameter: ``columns`` times the speeds plus ``rest``; ``rate`` with kinematic speeds at zero."""

    parameter: Node
    columns: tuple[Node, ...]
    rest: Node
    rate: Node


def follow(motion: Motion, following: CurveParameter, speeds: Speeds) -> CurveParameterRate:
    """Return the rate of the parameter of a contact on a curve.

    ``motion``: with all speeds as symbols, kinematic ones included; ``following``: the parameter and its equation.
    """
    *columns, rest = (column[0] for column in motion.columns([following.slope]))
    factor = -1.0 / following.bend
    W = tuple(factor * column for column in columns)
    X = factor * (rest + RETURN * following.slope)
    rate = X
    for coefficient, symbol in zip(W, speeds.declared, strict=False):
        rate = rate + coefficient * symbol
    return CurveParameterRate(following.parameter, W, X, rate)


# -- Constraint and contact rows -----------------------------------------------------------------------------
#
# ``A y + b``, its rate at u̇ = 0, and the configuration it belongs to.

_WITH_CASES = CASE_FUNCTIONS | {"where", "lt", "le", "eq", "ne"}
SAMPLES = 3
NOTHING = 1e-12
BROKEN = 1e-9  # m, rad/s: a constant row farther from zero is violated


class ConstraintRowBuilder:
    """Builds rows.

    ``system``, ``speeds``: the model and its generalized speeds; ``motion``: with all speeds as symbols, kinematic ones
    included; ``algebra``: algebra over this motion; ``flow``: rates of coordinates, time and inputs with kinematic
    speeds at zero; ``kinematics``: of the contacts between shapes; ``pairs``: of two
    polyhedra.
    """

    def __init__(
        self,
        system: MechanismSymbols,
        speeds: Speeds,
        motion: Motion,
        algebra: NodeAlgebra,
        flow: Mapping[Node, Node],
        kinematics: Mapping[str, ContactKinematics],
        pairs: Mapping[str, SolidPair],
    ) -> None:
        self.system = system
        self._speeds = speeds
        self._motion = motion
        self._algebra = algebra
        self._flow = flow
        self._symbols = motion.speeds
        self._still = dict.fromkeys(self._symbols, system.graph.zero)
        self.kinematics = {**kinematics, **{name: pair.meeting for name, pair in pairs.items()}}
        self._pairs = pairs
        self._numbers: Mapping[str, int] = {}

    # -- constraints ---------------------------------------------------------------------------------------

    def constraints(self) -> list[ConstraintRow]:
        """Return the rows of the constraints, kinematic ones first."""
        zero, one = self.system.graph.zero, self.system.graph.one
        constraints = self.system.mechanism.constraints.values()
        n_u = len(self._speeds.declared)
        n = len(self._symbols)
        rows = []
        for k, constraint in enumerate(c for c in constraints if c.kinematic):
            unit = tuple(one if r == n_u + k else zero for r in range(n))
            rows.append(ConstraintRow(constraint.name, "constraint", "kinematic", unit, zero, zero))
        for constraint in constraints:
            if not constraint.kinematic and not self._idle(constraint):
                build = self.position if isinstance(constraint, PositionConstraint) else self.velocity
                rows.append(build(constraint.name, "constraint", constraint.kind, constraint.expression, -1))
        self._numbers = {row.name: number for number, row in enumerate(rows)}
        return rows

    def _idle(self, constraint: Constraint) -> bool:
        """Whether a row of a joint is trivial: no motion of the model could violate it.

        Raises ModelError: it is nevertheless violated, in every configuration.
        """
        if not constraint.joint:
            return False
        node = self._algebra.scalar(constraint.expression)
        if isinstance(constraint, PositionConstraint):
            columns = [column[0] for column in self._motion.columns([node])[:-1]]
        else:
            columns = self._slopes(node)
        if not self._vanishes(tuple(self.system.reducer.reduce(column) for column in columns)):
            return False
        if support([node]) & {self.system.graph.symbol(TIME), *self.system.inputs}:
            return False
        amount = self._amount(node)
        if not abs(amount) < BROKEN:
            raise ModelError(
                f"the joint '{constraint.joint}' cannot be closed: its row '{constraint.name}' is {amount:.6g} "
                "in every configuration",
                constraint.where,
                found=f"'{constraint.expression.text}'",
                remedy="no coordinate can change it: correct the points or axes, or give a body the freedom it needs",
            )
        return True

    def _amount(self, node: Node) -> float:
        """Return the value of a row independent of coordinates, with the parameters of the file."""
        values = {symbol.name: 0.7 for symbol in support([node])} | flat_values(self.system.mechanism)
        values |= {symbol.name: 0.0 for symbol in self._symbols}
        return float(evaluate([node], values)[0])

    # -- contacts ------------------------------------------------------------------------------------------

    def contacts(self, start: int) -> tuple[list[ConstraintRow], list[ContactTerms]]:
        """Return the contacts' rows, numbered from `start`, and their other terms."""
        rows: list[ConstraintRow] = []
        terms = []
        for index, contact in enumerate(self.system.mechanism.contacts.values()):
            normal = tangential = -1
            if isinstance(contact, FeatureContact):
                meeting = self.kinematics[contact.name]
                normal = start + len(rows)
                rows += self._met(contact, index, meeting)
                tangential = normal + 1 if contact.has_friction else -1
                found = self._contact(contact, normal, tangential, meeting.reach)
                found = replace(
                    found,
                    in_space=contact.has_friction and meeting.across is not None,
                    margin_slope=meeting.margin_slope,
                    starts_ahead=meeting.starts_ahead,
                    aspect=meeting.aspect if contact.contact_law.rigid or meeting.whole_circle else None,
                    whole_circle=meeting.whole_circle,
                    crossing=meeting.valid is not None,
                    firm=meeting.valid,
                )
                terms.append(self._pressed(found, rows, start))
                continue
            if not contact.contact_law.friction_only and (contact.gap is not None or contact.slip is not None):
                normal = start + len(rows)
                rows.append(self._normal(contact, index))
            if contact.slip is not None and (contact.contact_law.has_gap or contact.contact_law.friction_only):
                tangential = start + len(rows)
                role: Role = "friction" if contact.contact_law.friction_only else "tangent"
                rows.append(self.velocity(contact.name, "contact", role, contact.slip, index))
            if isinstance(contact, (SurfaceContact, BearingContact)) and contact.across is not None:
                rows.append(self.velocity(contact.name, "contact", "tangent2", contact.across, index))
            terms.append(self._pressed(self._contact(contact, normal, tangential), rows, start))
        return rows, self._with_loads(terms)

    def _pressed(self, terms: ContactTerms, rows: list[ConstraintRow], start: int) -> ContactTerms:
        """Add the force law of a compliant contact (docs/theory.md, "Compliant contacts")."""
        if not isinstance(terms.spec, SurfaceContact) or terms.spec.compliance is None:
            return terms
        compliance = terms.spec.compliance
        row = rows[terms.normal_row - start]
        if row.residual is None:
            raise ModelError(f"the contact '{terms.name}' has no gap", terms.spec.where)
        one = self.system.graph.one
        depth = functions.maximum(-row.residual, self.system.graph.zero)
        exponent = one if compliance.exponent is None else self._value(compliance.exponent)
        restoring = self._value(compliance.stiffness) * depth**exponent
        stored = restoring * depth / (exponent + one)
        if compliance.dissipation is None:
            return replace(terms, elastic=restoring, restoring=restoring, stored=stored)
        opening = self._speed_of(row.A, row.b)
        firm = one - self._value(compliance.dissipation) * opening
        return replace(terms, elastic=restoring * firm, firm=firm, restoring=restoring, stored=stored)

    def _met(self, contact: FeatureContact, index: int, meeting: ContactKinematics) -> list[ConstraintRow]:
        """Return the rows of a contact between shapes: normal, and with friction also tangent."""
        text = Text(" and ".join(feature.shape for feature in contact.features), contact.where)
        pair = self._pairs.get(contact.name)
        if pair is not None:
            roles: tuple[Role, ...] = ("normal", "tangent", "tangent2")
            if pair.idle >= 0:
                raise _constrains_nothing(contact.name, roles[pair.idle], text)
            return [
                ConstraintRow(contact.name, "contact", role, row.A, row.b, row.gamma, row.residual, index)
                for role, row in zip(roles, pair.rows, strict=False)
            ]
        rows = [self._position(contact.name, "contact", "normal", meeting.gap, text, index, meeting)]
        if contact.has_friction:
            rows.append(self._velocity(contact.name, "contact", "tangent", meeting.slip, text, index))
            if meeting.across is not None:
                rows.append(self._velocity(contact.name, "contact", "tangent2", meeting.across, text, index))
        return rows

    def _normal(self, contact: Contact, index: int) -> ConstraintRow:
        role: Role = "lock" if contact.contact_law.switched else "normal"
        if contact.gap is not None:
            row = self.position(contact.name, "contact", role, contact.gap, index)
            on_speeds = contact.contact_law.rigid and not contact.contact_law.has_gap
            return replace(row, residual=None) if on_speeds else row
        if contact.slip is not None and not contact.contact_law.has_gap:
            return self.velocity(contact.name, "contact", role, contact.slip, index)
        raise ModelError(f"the contact '{contact.name}' has no gap", contact.where)

    def _contact(self, contact: Contact, normal: int, tangential: int, reach: Node | None = None) -> ContactTerms:
        static = contact.static if contact.static is not None else contact.kinetic
        kinetic = contact.kinetic if contact.kinetic is not None else contact.static
        found = ContactTerms(
            spec=contact,
            normal_row=normal,
            tangent_row=tangential,
            static=self._value(static),
            kinetic=self._value(kinetic),
            restitution=self.system.graph.zero,
            tangential_restitution=self.system.graph.zero,
            reach=reach,
            reach_rate=self._reach_rate(contact.name, reach),
        )
        match contact:
            case SurfaceContact():
                return replace(
                    found,
                    restitution=self._value(contact.restitution),
                    tangential_restitution=self._value(contact.tangential_restitution),
                    in_space=contact.across is not None,
                    closes_if=None if contact.closes_if is None else self._value(contact.closes_if),
                )
            case BearingContact():
                return replace(found, in_space=contact.across is not None)
        return found

    def _reach_rate(self, name: str, reach: Node | None) -> Node | None:
        if name in self._pairs:
            return self._pairs[name].reach_rate
        return None if reach is None else tangent([reach], self._flow)[0]

    def _with_loads(self, terms: list[ContactTerms]) -> list[ContactTerms]:
        """Add the rows with the loads of bearings: of constraints, or the normal one of a contact."""
        numbers = {**self._numbers, **{item.name: item.normal_row for item in terms if item.normal_row >= 0}}
        return [
            replace(item, load_rows=tuple(numbers[row] for row in item.spec.loaded_by if row in numbers))
            if isinstance(item.spec, BearingContact) else item
            for item in terms
        ]  # fmt: skip

    def _value(self, text: Text | None) -> Node:
        """Return a scalar at kinematic speeds zero; without a text, zero."""
        if text is None:
            return self.system.graph.zero
        return self._held([self._algebra.scalar(text)])[0]

    def _held(self, nodes: list[Node]) -> list[Node]:
        """Put the kinematic speeds to zero."""
        zero = self.system.graph.zero
        return substitute(nodes, dict.fromkeys(self._speeds.kinematic, zero))

    # -- one row -------------------------------------------------------------------------------------------

    def position(
        self, name: str, owner: Literal["constraint", "contact"], role: Role, text: Text, contact: int
    ) -> ConstraintRow:
        """Return the row of a function of the configuration, kept zero (or not negative)."""
        return self._position(name, owner, role, self._algebra.scalar(text), text, contact)

    def _position(
        self, name: str, owner: Literal["constraint", "contact"], role: Role, node: Node, text: Text, contact: int,
        meeting: ContactKinematics | None = None,
    ) -> ConstraintRow:  # fmt: skip
        require_independent(node, frozenset(self._symbols), f"the {_noun(role)} of '{name}'", text)
        columns = [column[0] for column in self._motion.columns([node])]
        if meeting is not None and meeting.following is not None and meeting.gap_slope is not None:
            follower = follow(self._motion, meeting.following, self._speeds)
            shares = (*follower.columns, follower.rest)
            columns = [column + meeting.gap_slope * share for column, share in zip(columns, shares, strict=True)]
        columns = [self.system.reducer.reduce(column) for column in columns]
        return self._finish(name, owner, role, text, contact, columns, tangent([node], self._flow)[0], node)

    def velocity(
        self, name: str, owner: Literal["constraint", "contact"], role: Role, text: Text, contact: int
    ) -> ConstraintRow:
        """Return the row of an expression linear in the speeds. Raises ModelError: it is not linear in them."""
        return self._velocity(name, owner, role, self._algebra.scalar(text), text, contact)

    def _velocity(
        self, name: str, owner: Literal["constraint", "contact"], role: Role, node: Node, text: Text, contact: int
    ) -> ConstraintRow:
        reduce = self.system.reducer.reduce
        columns = [reduce(slope) for slope in self._slopes(node)]
        met = support(columns) & frozenset(self._symbols)
        if met:
            raise ModelError(
                f"the {_noun(role)} of '{name}' is not linear in the speeds",
                text.where,
                found=f"'{text.text}'; its derivative by a speed still has {', '.join(sorted(s.name for s in met))}",
                allowed="a sum of speeds, each times a function of the coordinates",
            )
        columns.append(reduce(substitute([node], self._still)[0]))
        return self._finish(name, owner, role, text, contact, columns, self._held([node])[0], None)

    def _slopes(self, node: Node) -> list[Node]:
        """Return the derivatives by all speeds."""
        graph, met = self.system.graph, support([node])
        return [tangent([node], {symbol: graph.one})[0] if symbol in met else graph.zero for symbol in self._symbols]

    def _finish(
        self,
        name: str,
        owner: Literal["constraint", "contact"],
        role: Role,
        text: Text,
        contact: int,
        columns: list[Node],
        rate: Node,
        residual: Node | None,
    ) -> ConstraintRow:
        A, b = tuple(columns[:-1]), columns[-1]
        # a row to impose that no motion could break counts as a redundant one
        if not self._is_imposed(name) and self._vanishes(A):
            raise _constrains_nothing(name, role, text)
        return ConstraintRow(name, owner, role, A, b, self._gamma(A, b, rate), residual, contact)

    def _is_imposed(self, name: str) -> bool:
        contact = self.system.mechanism.contacts.get(name)
        return isinstance(contact, LawContact) and bool(contact.imposed)

    def _vanishes(self, A: tuple[Node, ...]) -> bool:
        """Whether all coefficients are zero everywhere; expressions with cases may be zero in some of them only."""
        A = tuple(node for node in A if not node.is_zero)
        if all(self.system.reducer.is_zero(node) for node in A):
            return True
        if any(node.op in _WITH_CASES for node in reachable(A)):
            return False
        return bool(np.abs(sample(self.system, A, SAMPLES)).max(initial=0.0) < NOTHING)

    def _speed_of(self, A: tuple[Node, ...], b: Node) -> Node:
        """Return ``A u + b`` with kinematic speeds at zero."""
        value = b
        for coefficient, symbol in zip(A, self._symbols, strict=True):
            if not coefficient.is_zero and symbol not in self._speeds.kinematic:
                value = value + coefficient * symbol
        return value

    def _gamma(self, A: tuple[Node, ...], b: Node, rate: Node) -> Node:
        """Return the derivative at u̇ = 0, of ``A u + b`` or of the row as written: the one with fewer operations."""
        reduce = self.system.reducer.reduce
        value = self._speed_of(A, b)
        options = [reduce(gamma) for gamma in tangent([reduce(value), rate], self._flow)]
        return min(options, key=lambda node: cost([node]))


def _constrains_nothing(name: str, role: Role, text: Text) -> ModelError:
    return ModelError(
        f"the {_noun(role)} of '{name}' constrains nothing: no speed has a share in it",
        text.where,
        found=f"'{text.text}'",
        remedy="it can be neither held nor broken by any motion: correct it or leave it out",
    )


def _noun(role: Role) -> str:
    return {
        "kinematic": "kinematic constraint",
        "velocity": "velocity constraint",
        "position": "position constraint",
        "normal": "gap",
        "tangent": "slip speed",
        "tangent2": "second slip speed",
        "friction": "slip speed",
        "lock": "lock",
    }[role]
