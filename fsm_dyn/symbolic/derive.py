"""The derivation: from a mechanism to its terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsm_dyn.programs import Node
from fsm_dyn.spec.model import Mechanism, TransitionSpec
from fsm_dyn.symbolic.constraint_rows import ConstraintRowBuilder
from fsm_dyn.symbolic.contact_geometry import ContactGeometry
from fsm_dyn.symbolic.controllers import sample_terms
from fsm_dyn.symbolic.curve_rate import CurveParameterRate, follow
from fsm_dyn.symbolic.frames import NEWTONIAN, Matrix
from fsm_dyn.symbolic.kane import InertiaShare, Kane
from fsm_dyn.symbolic.loads import Loads
from fsm_dyn.symbolic.mechanism_symbols import TIME, MechanismSymbols, build_system
from fsm_dyn.symbolic.operation_reduction import condense
from fsm_dyn.symbolic.partial_velocities import Motion
from fsm_dyn.symbolic.shapes import Shapes
from fsm_dyn.symbolic.speeds import Speeds, solve_speeds
from fsm_dyn.symbolic.terms import Terms
from fsm_dyn.symbolic.transitions import transition_terms
from fsm_dyn.symbolic.tree_kane import TreeKane, along_tree, is_long, tree_motion


def derive(mechanism: Mechanism) -> Terms:
    """Derive Kane's unconstrained terms of a mechanism (Gillespie 2003, (1)-(2), (13)-(15), (32)-(34)).

    Parameters
    ----------
    mechanism : Mechanism
        As `fsm_dyn.spec.load` returns it.

    Returns
    -------
    Terms
        Nodes of one graph: ``q̇ = W u + X``, ``M u̇ = f + A^T lambda``, rows, energies, guards.

    Raises
    ------
    ModelError
        The definitions of speeds do not determine the rates of the coordinates, a row is not linear in the
        speeds or constrains nothing, a name means nothing where it stands.
    """
    system = build_system(mechanism)
    speeds = solve_speeds(system)
    long = is_long(system)
    free: Motion = tree_motion(system, speeds) if long else system.motion(speeds.rates)
    zero = system.graph.zero
    kinematic = frozenset(speeds.kinematic)
    held = free.at([zero if symbol in kinematic else symbol for symbol in free.speeds])
    algebra = system.algebra(free, {})
    meetings = ContactGeometry(system, Shapes(system, algebra), free).all()
    followers = [follow(free, meeting.following, speeds) for meeting in meetings.values() if meeting.following]
    flow = flow_of(system, speeds, followers)
    names = {name: system.graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}

    kane = (TreeKane if long else Kane)(system, held, flow)
    algebra = system.algebra(held, names)
    loads = Loads(kane, algebra).gather(mechanism.loads)
    inertia = InertiaShare([], [zero] * free.n) if long else kane.equations(loads.gravity)
    rows = ConstraintRowBuilder(system, speeds, free, system.algebra(free, names), flow, meetings)
    constraints = rows.constraints()
    contact_rows, contacts = rows.contacts(len(constraints))
    potential = zero
    for part in (*loads.potential, *(contact.stored for contact in contacts if contact.stored is not None)):
        potential = potential + part
    f = [a + b for a, b in zip(loads.f, inertia.f, strict=True)]
    every_row = (*constraints, *contact_rows)
    q_dot = (*speeds.q_dot, *(follower.rate for follower in followers))
    shown = [
        *q_dot,
        *f,
        *(node for row in inertia.M for node in row),
        *(node for row in every_row for node in row.nodes),
    ]
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
    """Return the generalized impulses of a transition, without auxiliary speeds; nothing where it has none.

    An impulse enters the equations of impulse and momentum as a load enters those of motion (Kane and Levinson 1985,
    7.8): its scalar products with the partial velocities of where it acts.
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
