"""The derivation: from a mechanism to its terms."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_dyn.programs import Node
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.symbolic.condensing import condense
from fsm_dyn.symbolic.following import Follower, follow
from fsm_dyn.symbolic.frames import NEWTONIAN, Matrix
from fsm_dyn.symbolic.kane import Kane
from fsm_dyn.symbolic.loads import Loads
from fsm_dyn.symbolic.meeting import Meetings
from fsm_dyn.symbolic.rows import Rows
from fsm_dyn.symbolic.shapes import Shapes
from fsm_dyn.symbolic.speeds import Speeds, solve_speeds
from fsm_dyn.symbolic.system import TIME, System, build_system
from fsm_dyn.symbolic.terms import Terms
from fsm_dyn.symbolic.transitions import transition_terms


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
    free = system.motion(speeds.rates)
    zero = system.graph.zero
    held = free.at((*speeds.declared, *[zero] * len(speeds.kinematic)))
    algebra = system.algebra(free, {})
    meetings = Meetings(system, Shapes(system, algebra), free).all()
    followers = [follow(free, meeting.following, speeds) for meeting in meetings.values() if meeting.following]
    flow = _flow(system, speeds, followers)
    names = {name: system.graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}

    kane = Kane(system, held, flow)
    algebra = system.algebra(held, names)
    loads = Loads(kane, algebra).gather()
    inertia = kane.equations(loads.gravity)
    rows = Rows(system, speeds, free, system.algebra(free, names), flow, meetings)
    constraints = rows.constraints()
    contact_rows, contacts = rows.contacts(len(constraints))
    potential = zero
    for part in (*loads.potential, *(contact.stored for contact in contacts if contact.stored is not None)):
        potential = potential + part
    M = inertia.M
    f = [a + b for a, b in zip(loads.f, inertia.f, strict=True)]
    every_row = (*constraints, *contact_rows)
    shown = [
        *speeds.q_dot,
        *(follower.rate for follower in followers),
        *f,
        *(node for row in M for node in row),
        *(node for row in every_row for node in row.nodes),
    ]
    best = condense(shown, system.reducer)
    return Terms(
        mechanism=mechanism,
        layout=system.layout,
        graph=system.graph,
        n_k=len(speeds.kinematic),
        W=(*(speeds.rates.columns[q] for q in system.coordinates), *(follower.columns for follower in followers)),
        X=(*(speeds.rates.rest[q] for q in system.coordinates), *(follower.rest for follower in followers)),
        q_dot=tuple(best[node] for node in (*speeds.q_dot, *(follower.rate for follower in followers))),
        M=tuple(tuple(best[node] for node in row) for row in M),
        f=tuple(best[node] for node in f),
        rows=tuple(row.replaced(best) for row in every_row),
        contacts=tuple(contacts),
        quaternions=tuple(system.coordinates.index(group[0]) for group in system.euler),
        kinetic_energy=kane.kinetic_energy(),
        potential_energy=potential,
        load_powers=loads.powers,
        outputs={name: algebra.scalar(text) for name, text in mechanism.outputs.items()},
        transitions=tuple(transition_terms(item, algebra) for item in mechanism.transitions),
        points={name: system.space.resolve(system.points.position(name), NEWTONIAN) for name in system.points.names},
        frames={name: _matrix(system, name) for name in system.frames.names},
        followings=tuple(meeting.following for meeting in meetings.values() if meeting.following),
    )


def _flow(system: System, speeds: Speeds, followers: Sequence[Follower] = ()) -> dict[Node, Node]:
    """Return the direction of time derivatives at u̇ = 0: rates of coordinates, of time and of inputs."""
    graph = system.graph
    flow: dict[Node, Node] = dict(zip(system.coordinates, speeds.q_dot, strict=True))
    flow |= {follower.parameter: follower.rate for follower in followers}
    flow[graph.symbol(TIME)] = graph.one
    for w in system.inputs:
        flow[w] = graph.symbol(f"{w.name}.rate")
        flow[flow[w]] = graph.symbol(f"{w.name}.rate2")
    return flow


def _matrix(system: System, frame: str) -> Matrix:
    return system.frames.rotation(NEWTONIAN, frame)
