"""Offsets of contact locations from body points to the drawn outline that agrees with the gap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.contact_forces.kinematics import Configuration, Kinematics
from fsm_dyn.contact_forces.locations import ContactLocation, direction, partial_of
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.scene import NEWTONIAN, Scene

AGREE: Final = 0.05  # of a distance


def with_surface_offsets(
    kinematics: Kinematics, scene: Scene, locations: Iterable[ContactLocation], x: FloatArray, c: FloatArray
) -> tuple[ContactLocation, ...]:
    """Return the locations with ``back``, m: distance of the contact point behind their first point.

    The gap of two points is their distance along the normal less the extents of the bodies towards each other; the
    outlines determine the share of each body.

    Parameters
    ----------
    kinematics : Kinematics
        Evaluates rows of the model.
    scene : Scene
        The outlines.
    locations : Iterable[ContactLocation]
        Where contacts act.
    x : ndarray, shape (n_x,)
        A state, SI.
    c : ndarray, shape (n_c,)
        Its context, SI.
    """
    at = kinematics.configuration(x, c)
    found = []
    for location in locations:
        row = kinematics.automaton.contacts[location.contact].normal_row
        back = 0.0
        two = location.other is not None or location.spins is not None
        if location.kind == "force" and location.features is None and row >= 0 and two:
            across = direction(partial_of(location, at), at.rows[row])[:3]
            length = max(float(np.linalg.norm(across)), 1e-12)
            normal = across / length
            mine = _reach(scene, at, location.one, -normal)
            if location.other is None:
                back = mine
            else:
                apart = float(normal @ (at.points[location.one] - at.points[location.other]))
                theirs = _reach(scene, at, location.other, normal)
                back = _share(apart - float(at.terms["residual"][row]) / length, mine, theirs)
        found.append(replace(location, back=back))
    return tuple(found)


def _share(taken: float, mine: float, theirs: float) -> float:
    """Return the first body's share of the extents between two bodies, m."""
    for total, part in ((mine, mine), (theirs, 0.0), (mine + theirs, mine)):
        if total > 0.0 and abs(taken - total) < AGREE * total:
            return part
    return taken if theirs == 0.0 else 0.5 * taken


def _reach(scene: Scene, at: Configuration, point: int, toward: FloatArray) -> float:
    """Return the extent, m, of the outlines with this origin in a direction."""
    name = scene.points[point]
    reach = 0.0
    for shape in scene.shapes:
        if shape.origin == name and not shape.endless:
            turn = np.eye(3) if shape.frame == NEWTONIAN else at.frames[scene.frames.index(shape.frame)]
            reach = max(reach, float((shape.points @ (turn[:, :2].T @ toward)).max()))
    return reach
