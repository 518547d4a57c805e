"""Contact forces as arrows with their friction cones, friction torques with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fsm_dyn.contact_forces.kinematics import Configuration, Kinematics
from fsm_dyn.contact_forces.locations import ContactLocation, contact_at, locate_contacts
from fsm_dyn.contact_forces.surface_offsets import with_surface_offsets
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.scene import Scene

WIDTH: Final = 9  # numbers per contact in a display frame: active, location (2), normal (2), tangent (2), limit (2)


class Forces:
    """Forces of the contacts that have a location.

    Parameters
    ----------
    kinematics : Kinematics
    scene : Scene
        Whose outlines the contacts are on.
    flat : ndarray, shape (2, 3)
        Projection from N to the plane of the drawing; read at each call, so that the view can turn.
    x, c : ndarrays, shapes (n_x,) and (n_c,)
        State and context near which the contacts are located, SI.
    """

    def __init__(self, kinematics: Kinematics, scene: Scene, flat: FloatArray, x: FloatArray, c: FloatArray) -> None:
        self._kinematics, self._flat = kinematics, flat
        self.locations = with_surface_offsets(kinematics, scene, locate_contacts(kinematics, x, c), x, c)

    def drawn(self, x: FloatArray, c: FloatArray, states: Sequence[int], multipliers: FloatArray) -> FloatArray:
        """Return the forces at a state, projected on the plane of the drawing, shape (WIDTH * locations,).

        Of a force: location, normal and tangential parts, N, and the friction limit along the tangent, N.  Of a torque:
        location, torque and limit, N m, each in the first number of its pair.
        """
        out = np.zeros(WIDTH * len(self.locations))
        if not any(states[location.contact] > 0 for location in self.locations):
            return out
        at = self._kinematics.configuration(x, c)
        if not at.finite:
            return out
        for k, location in enumerate(self.locations):
            code = int(states[location.contact])
            if code <= 0:
                continue
            contact = self._kinematics.automaton.contacts[location.contact]
            bound = float(at.terms["static" if code == 1 else "kinetic"][location.contact])
            if contact.contact_law.loaded:
                bound *= float(np.linalg.norm(multipliers[list(contact.load_rows)]))
            entry = out[WIDTH * k : WIDTH * (k + 1)]
            entry[0] = 1.0
            draw = self._torque if location.kind == "torque" else self._force
            draw(entry, contact, location, multipliers, bound, at)
        return out

    def _force(
        self,
        entry: FloatArray,
        contact: ContactInfo,
        location: ContactLocation,
        multipliers: FloatArray,
        bound: float,
        at: Configuration,
    ) -> None:
        flat = self._flat
        acting = [row for row in (contact.normal_row, *contact.tangent_rows) if row >= 0]
        point, directions = contact_at(location, at, acting)
        normal = 0.0
        if contact.normal_row >= 0:
            normal = float(multipliers[contact.normal_row])
            entry[3:5] = flat @ directions[0] * normal
            if location.spins is None or not contact.tangent_rows:
                point = point - location.back * directions[0] / max(float(np.linalg.norm(directions[0])), 1e-12)
        entry[1:3] = flat @ point
        if contact.tangent_rows:
            alongs = directions[-len(contact.tangent_rows) :]
            along, friction = alongs[0], multipliers[list(contact.tangent_rows)] @ alongs
            size = float(np.linalg.norm(friction))
            if contact.in_space and size > 0.0:  # of the cone the section that the force is in
                along = friction / size
            limit = bound * (abs(normal) if contact.normal_row >= 0 else 1.0)
            entry[5:7] = flat @ friction
            if np.isfinite(limit):
                entry[7:9] = flat @ along * limit

    def _torque(
        self,
        entry: FloatArray,
        contact: ContactInfo,
        location: ContactLocation,
        multipliers: FloatArray,
        bound: float,
        at: Configuration,
    ) -> None:
        row = contact.tangent_row if contact.tangent_row >= 0 else contact.normal_row
        entry[1:3] = self._flat @ (at.points[location.at] if location.at >= 0 else np.zeros(3))
        entry[3] = multipliers[row]
        entry[7] = bound if contact.contact_law.friction_only else 0.0
