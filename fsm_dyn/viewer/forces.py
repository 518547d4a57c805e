"""Forces of contacts as arrows, and the cones or limits that they stay in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.viewer.contact_locations import ContactLocation, contact_point, direction, partial_of
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import Picture

WIDTH: Final = 9  # of a place in a frame: active, place (2), normal (2), tangent (2), limit (2)


class Forces:
    """The forces of the contacts that have a place.

    Parameters
    ----------
    instants : Instants
    picture : Picture
    places : tuple of Place
    """

    def __init__(self, evaluator: RowEvaluator, picture: Picture, locations: tuple[ContactLocation, ...]) -> None:
        self._evaluator, self._picture, self.locations = evaluator, picture, locations

    def payload(self) -> list[dict[str, Any]]:
        """Return which contact each place belongs to and what acts there, for the page."""
        contacts = self._evaluator.automaton.contacts
        return [{"contact": contacts[location.contact].name, "kind": location.kind} for location in self.locations]

    def drawn(
        self, x: Floats, c: Floats, states: Sequence[int], multipliers: Floats, points: Floats, frames: Floats
    ) -> Floats:
        """Return the forces at an instant, flat on the picture.

        Of a force: the place, its normal and tangential parts (N), and half the width of the cone there, which is the
        limit of friction along the tangent (N).  Of a torque: the place, the torque (N m) and its limit, in the first
        number of each pair.
        """
        out = np.zeros(WIDTH * len(self.locations))
        if not any(states[location.contact] > 0 for location in self.locations):
            return out
        linear, angular = self._evaluator.partial_velocities(x, c)
        terms = self._evaluator.terms.outputs(0.0, x, c)
        rows = terms["A"][:, : len(self._evaluator.layout.u)]
        for k, location in enumerate(self.locations):
            code = int(states[location.contact])
            if code <= 0:
                continue
            contact = self._evaluator.automaton.contacts[location.contact]
            bound = float(terms["static" if code == 1 else "kinetic"][location.contact])
            entry = out[WIDTH * k : WIDTH * (k + 1)]
            entry[0] = 1.0
            if location.kind == "torque":
                self._torque(entry, contact, location, multipliers, bound, points)
            else:
                self._force(
                    entry, contact, location, multipliers, bound, rows, partial_of(location, linear, angular), points
                )
        return out

    def _force(
        self,
        entry: Floats,
        contact: ContactInfo,
        location: ContactLocation,
        multipliers: Floats,
        bound: float,
        rows: Floats,
        partial: Floats,
        points: Floats,
    ) -> None:
        flat = self._picture.flat
        acting = [row for row in (contact.normal_row, *contact.tangent_rows) if row >= 0]
        wrenches = np.array([direction(partial, rows[row]) for row in acting])
        at = points[location.one] if location.spins is None else contact_point(location, wrenches, points)
        directions = wrenches[:, :3]
        normal = 0.0
        if contact.normal_row >= 0:
            normal = float(multipliers[contact.normal_row])
            entry[3:5] = flat @ directions[0] * normal
            if location.spins is None or not contact.tangent_rows:
                at = at - location.back * directions[0] / max(float(np.linalg.norm(directions[0])), 1e-12)
        entry[1:3] = flat @ at
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
        entry: Floats,
        contact: ContactInfo,
        location: ContactLocation,
        multipliers: Floats,
        bound: float,
        points: Floats,
    ) -> None:
        row = contact.tangent_row if contact.tangent_row >= 0 else contact.normal_row
        entry[1:3] = self._picture.flat @ (points[location.at] if location.at >= 0 else np.zeros(3))
        entry[3] = multipliers[row]
        entry[7] = bound if contact.contact_law.friction_only else 0.0
