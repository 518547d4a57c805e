"""The result of the derivation: Kane's unconstrained terms and all other parts of modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.contact_geometry import CurveParameter
from fsm_dyn.derive.elimination import QuadraticForm
from fsm_dyn.language.contacts import Contact
from fsm_dyn.language.model import Mechanism, TransitionSpec
from fsm_dyn.programs.graph import ExpressionGraph, Node
from fsm_dyn.programs.program import Layout, Program
from fsm_dyn.runtime.abi import ConditionKind

NodeRow: TypeAlias = tuple[Node, ...]
NodeMatrix: TypeAlias = tuple[NodeRow, ...]

Role: TypeAlias = Literal["kinematic", "velocity", "position", "normal", "tangent", "tangent2", "friction", "lock"]


@dataclass(frozen=True)
class ConstraintRow:
    """A row ``A y + b``, held at zero by a constraint or a contact."""

    name: str  # of the constraint or contact; equal for normal and tangent of a contact
    owner: Literal["constraint", "contact"]
    # ``kinematic velocity position`` (constraints), ``normal tangent tangent2 friction lock`` (contacts; the second
    # tangent follows the first)
    role: Role
    A: NodeRow  # length n: coefficients of all speeds, kinematic ones last
    b: Node  # the part at zero speeds: moving surfaces, prescribed inputs
    gamma: Node  # d/dt(A u + b) at u̇ = 0, rates of inputs included; ``A u̇ + gamma = 0`` holds the row
    # the function of the configuration with this row as its rate (positions, gaps, locks on positions)
    residual: Node | None = None
    contact: int = -1  # index of the contact, -1 for constraints

    @property
    def nodes(self) -> NodeRow:
        """Coefficients, remainder and rate."""
        return (*self.A, self.b, self.gamma)

    def replaced(self, forms: Mapping[Node, Node]) -> ConstraintRow:
        """Return the row with its expressions in other forms."""
        return replace(self, A=tuple(forms[node] for node in self.A), b=forms[self.b], gamma=forms[self.gamma])


@dataclass(frozen=True)
class SparseRow:
    """A row ``A x + gamma`` in accelerations of speeds and auxiliary speeds."""

    form: Mapping[int, Node]
    gamma: Node


@dataclass(frozen=True)
class TreeTerms:
    """The equations before auxiliary speeds are eliminated (docs/theory.md, "Long chains and trees").

    Numbers of variables: the n speeds first, kinematic ones included, then the auxiliary ones.
    """

    n: int
    # tuple of (form, rest): accelerations of the auxiliary speeds, in order; each by variables with smaller numbers
    definitions: tuple[tuple[Mapping[int, Node], Node], ...]
    quadratic: QuadraticForm  # ``1/2 xᵀ Q x - Fᵀ x`` over all accelerations
    rows: tuple[SparseRow, ...]  # in the order of :attr:`Terms.rows`


@dataclass(frozen=True)
class ContactTerms:
    """Terms of a contact in addition to its rows."""

    spec: Contact  # the contact of the model file
    # normal_row, tangent_row: indices into :attr:`Terms.rows`, -1 for none. The one row of a lock is its `normal_row`,
    # of a dry friction its `tangent_row`.
    normal_row: int
    tangent_row: int
    # static, kinetic: coefficients of friction, or for dry friction the bounds of the force (N or N m); 0 by default.
    # Of a lock with a limit `static` is its largest force.
    static: Node
    kinetic: Node
    restitution: Node
    tangential_restitution: Node
    load_rows: tuple[int, ...] = ()  # of a bearing the rows with its load forces
    closes_if: Node | None = None  # 1 if the contact may close, else 0
    in_space: bool = False  # whether it slips in two directions: the row after the tangent row is its second one
    elastic: Node | None = None  # force of a compliant contact under compression (N); None for others
    # its factor ``1 + loss δ'``, if a loss is given: negative if the surface cannot follow the leaving body. Of two
    # edges how far their gap is valid, see :attr:`~fsm_dyn.derive.contact_geometry.ContactKinematics.valid`.
    firm: Node | None = None
    # restoring, stored: the part of its force with a potential (N), and the potential (J)
    restoring: Node | None = None
    stored: Node | None = None
    # reach, reach_rate: boundary margin of the contact point inside the ends of a face (m), negative beyond them, and
    # its rate (m/s); None for faces without ends
    reach: Node | None = None
    reach_rate: Node | None = None
    margin_slope: Node | None = None
    starts_ahead: bool = True
    aspect: Node | None = None
    whole_circle: bool = False
    # see :class:`~fsm_dyn.derive.contact_geometry.ContactKinematics`; a compliant contact has no aspect, as neighbours
    # sink in too
    crossing: bool = False

    @property
    def name(self) -> str:
        """Name of the contact."""
        return self.spec.name

    @property
    def states(self) -> tuple[str, ...]:
        """Names of its states in the order of their codes."""
        return self.spec.states

    @property
    def infinite_friction(self) -> bool:
        """Whether it sticks whenever closed."""
        return self.spec.infinite_friction


@dataclass(frozen=True)
class TransitionTerms:
    """A user-defined transition."""

    spec: TransitionSpec
    # fires at a zero crossing in the sense of `crossing`; a comparison ``a > b`` is read as ``a - b`` rising
    guard: Node | None
    crossing: Literal["rising", "falling", "both"]
    condition: ConditionKind  # whether the guard is an expression or a condition, and if so whether it is met at zero
    reset: Mapping[str, Node]  # new values of coordinates and speeds, from the values before
    set: Mapping[str, Node]  # new values of memory
    impulse: NodeRow = ()  # n nodes: generalized impulses; none without


@dataclass(frozen=True)
class Terms:
    """Kane's terms of a mechanism with no constraint imposed but the kinematic rows (docs/theory.md).

    With ``n_u`` declared and ``n_k`` kinematic speeds, ``n = n_u + n_k``: ``M ẏ = f + sum_rows A^T lambda`` (Gillespie
    2003, (32)-(34)), with columns and rows of the kinematic speeds, whose value is 0.
    """

    mechanism: Mechanism
    layout: Layout
    graph: ExpressionGraph
    n_k: int
    W: NodeMatrix  # n_q rows of n nodes
    X: NodeRow  # n_q nodes: ``q̇ = W y + X`` (2)
    q_dot: NodeRow  # n_q nodes: ``q̇`` with kinematic speeds at zero, in fewer operations
    M: NodeMatrix  # n rows of n nodes
    f: NodeRow  # n nodes
    # kinematic constraints, other constraints, then each contact's normal before its tangent
    rows: tuple[ConstraintRow, ...]
    contacts: tuple[ContactTerms, ...]
    quaternions: tuple[int, ...]  # index in q of the first of each four Euler parameters
    # kinetic_energy, potential_energy: J; potential of gravity and springs
    kinetic_energy: Node
    potential_energy: Node
    load_powers: Mapping[str, Node]  # W; power of the loads without a potential, dampers of springs included
    outputs: Mapping[str, Node]
    transitions: tuple[TransitionTerms, ...]
    points: Mapping[str, NodeRow]  # dict of str to three nodes: positions in N, from O
    # dict of str to 3 x 3 nodes: the columns are the frame's unit vectors resolved in N
    frames: Mapping[str, NodeMatrix]
    # of the contacts on curves, in the order of their parameters, the last ones in q
    followings: tuple[CurveParameter, ...] = ()
    # of mechanisms with many bodies: the equations before auxiliary speeds are eliminated
    tree: TreeTerms | None = None
    sample: Mapping[str, Node] | None = None  # memory of controllers after a sample, by name; None without controllers

    @property
    def n_q(self) -> int:
        """Number of coordinates."""
        return len(self.layout.q)

    @property
    def n_u(self) -> int:
        """Number of declared speeds."""
        return len(self.layout.u)

    @property
    def n(self) -> int:
        """Number of speeds, kinematic ones included."""
        return self.n_u + self.n_k

    @property
    def u(self) -> NodeRow:
        """Symbols of the declared speeds."""
        return tuple(self.graph.symbol(name) for name in self.layout.u)

    def program(self, outputs: Mapping[str, Any] | Sequence[str]) -> Program:
        """Return a program over this model's arguments.

        ``outputs``, mapping of str to nodes: names to (nested sequences of) nodes; or names of this class's own terms,
        as ``["M", "f", "A"]``, with ``A b gamma residual`` gathered from all rows.
        """
        if not isinstance(outputs, Mapping):
            outputs = {name: self._term(name) for name in outputs}
        return Program.from_nodes(self.layout, outputs)

    def _term(self, name: str) -> Any:
        if name in ("A", "b", "gamma"):
            return [getattr(row, name) for row in self.rows]
        if name == "residual":
            return [self.graph.zero if row.residual is None else row.residual for row in self.rows]
        return getattr(self, name)
