"""Masses and inertias of the bodies."""

from __future__ import annotations

from dataclasses import dataclass

from fsm_dyn.programs import Node
from fsm_dyn.spec.model import Body
from fsm_dyn.symbolic.frames import Matrix
from fsm_dyn.symbolic.mechanism_symbols import MechanismSymbols


@dataclass(frozen=True)
class Inertia:
    """A body's mass (kg) and its inertia about the centre (kg m²), resolved in its frame.

    A particle has no frame; ``tensor`` is None where all entries are zero.
    """

    name: str
    center: str
    mass: Node
    frame: str | None = None
    tensor: Matrix | None = None


def inertias(system: MechanismSymbols) -> list[Inertia]:
    """Return the inertias of all bodies in file order.

    Parameters
    ----------
    system : MechanismSymbols
        The symbols of the mechanism.
    """
    return [_inertia(system, name, body) for name, body in system.mechanism.bodies.items()]


def _inertia(system: MechanismSymbols, name: str, body: Body) -> Inertia:
    """Return a body's inertia, moved from ``about`` to the centre by the parallel axes."""
    algebra = system.algebra(None, {})
    mass = algebra.scalar(body.mass)
    if body.frame is None or not body.inertia:
        return Inertia(name, body.center, mass, body.frame)
    zero = system.graph.zero
    entry = {key: algebra.scalar(text) for key, text in body.inertia.items()}
    xx, yy, zz, xy, yz, xz = (entry.get(key, zero) for key in ("xx", "yy", "zz", "xy", "yz", "xz"))
    if body.about is not None and body.about != body.center:
        arm = system.space.resolve(system.points.position(body.center, body.about, body.where), body.frame)
        x, y, z = (system.reducer.reduce(node) for node in arm)
        xx, yy, zz = xx - mass * (y * y + z * z), yy - mass * (z * z + x * x), zz - mass * (x * x + y * y)
        xy, yz, xz = xy + mass * (x * y), yz + mass * (y * z), xz + mass * (x * z)
    tensor = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    if all(node.is_zero for row in tensor for node in row):
        return Inertia(name, body.center, mass, body.frame)
    return Inertia(name, body.center, mass, body.frame, tensor)
