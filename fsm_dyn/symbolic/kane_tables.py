"""Partial velocities, generalized active and inertia forces of a mechanism, as in the tables of Gillespie (2003).

The derivation proper (:mod:`fsm_dyn.symbolic.derive`) adds all forces up as it goes; here they stay apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fsm_dyn.programs import Program
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.symbolic.derive import flow_of
from fsm_dyn.symbolic.kane import Kane, partials, spin_partials
from fsm_dyn.symbolic.loads import Loads
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols, build_system
from fsm_dyn.symbolic.operation_reduction import condense
from fsm_dyn.symbolic.speeds import solve_speeds
from fsm_dyn.symbolic.vectors import Vector


@dataclass(frozen=True)
class KaneTables:
    """What each speed adds to velocities and forces; n_u declared speeds.

    Attributes
    ----------
    velocities : mapping of str to n_u vectors
        Partial velocities (13)-(15) of the centres of bodies and of the points where forces act.
    angular_velocities : mapping of str to n_u vectors
        Partial angular velocities of the frames of bodies.
    forces : Program
        ``F`` (n_u,): generalized active forces (32) of the loads; ``F_star_0`` (n_u,): generalized inertia forces
        (33) at u̇ = 0.
    """

    velocities: Mapping[str, tuple[Vector, ...]]
    angular_velocities: Mapping[str, tuple[Vector, ...]]
    forces: Program


def kane_tables(mechanism: Mechanism) -> KaneTables:
    """Derive the tables of a mechanism; arguments and errors as of :func:`fsm_dyn.symbolic.derive.derive`.

    Returns
    -------
    KaneTables
    """
    system = build_system(mechanism)
    speeds = solve_speeds(system)
    motion = system.motion(speeds.rates)
    zero, kinematic = system.graph.zero, frozenset(speeds.kinematic)
    held = motion.at([zero if symbol in kinematic else symbol for symbol in motion.speeds])
    n_u = len(system.layout.u)
    kane = Kane(system, held, flow_of(system, speeds))
    names = {name: system.graph.symbol(name) for name in (*system.layout.u, *system.layout.memory)}
    loads = Loads(kane, system.algebra(held, names)).gather(mechanism.loads)
    active = loads.f[:n_u]
    for body in kane.bodies:
        moved = partials(held.velocity(body.center), n_u)
        active = [a + body.mass * system.space.dot(v, loads.gravity) for a, v in zip(active, moved, strict=True)]
    inertia = kane.equations(Vector()).f[:n_u]
    best = condense([*active, *inertia], system.reducer)
    return KaneTables(
        velocities={point: tuple(partials(motion.velocity(point), n_u)) for point in _points(system)},
        angular_velocities={
            frame: tuple(spin_partials(frame, motion.spin(frame), n_u))
            for frame in dict.fromkeys(system.body_frames.values())
        },
        forces=Program.from_nodes(
            system.layout, {"F": [best[node] for node in active], "F_star_0": [best[node] for node in inertia]}
        ),
    )


def _points(system: MechanismSymbols) -> list[str]:
    """Return the points where forces act, then the centres of bodies, each once."""
    mechanism = system.mechanism
    acted = [point for load in mechanism.loads for point in load.points]
    centers = [body.center for body in mechanism.bodies.values()]
    return [point for point in dict.fromkeys((*acted, *centers)) if point != "O"]
