"""Where between two points of two bodies these touch: on the outline that is drawn, if one agrees with the gap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.results.scene import NEWTONIAN
from fsm_dyn.viewer.contact_locations import ContactLocation, direction, partial_of
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import Picture

AGREE: Final = 0.05  # of a distance


def with_surface_offsets(
    instants: RowEvaluator, picture: Picture, places: Iterable[ContactLocation], x: Floats, c: Floats
) -> tuple[ContactLocation, ...]:
    """Return the places with ``back``: how far behind their first point the bodies touch.

    The gap of two points is their distance along the normal less what the bodies reach towards each other; whose reach
    that is, the outlines tell.
    """
    points, frames = instants.points(x, c)
    linear, angular = instants.partial_velocities(x, c)
    terms = instants.terms.outputs(0.0, x, c)
    n_u = len(instants.layout.u)
    found = []
    for place in places:
        row = instants.automaton.contacts[place.contact].normal_row
        back = 0.0
        if place.kind == "force" and row >= 0 and (place.other is not None or place.spins is not None):
            across = direction(partial_of(place, linear, angular), terms["A"][row, :n_u])[:3]
            length = max(float(np.linalg.norm(across)), 1e-12)
            normal = across / length
            mine = _reach(picture, points, frames, place.one, -normal)
            if place.other is None:
                back = mine
            else:
                apart = float(normal @ (points[place.one] - points[place.other]))
                theirs = _reach(picture, points, frames, place.other, normal)
                back = _share(apart - float(terms["residual"][row]) / length, mine, theirs)
        found.append(replace(place, back=back))
    return tuple(found)


def _share(taken: float, mine: float, theirs: float) -> float:
    """Return the first body's part of what two bodies take of the distance between them."""
    for total, part in ((mine, mine), (theirs, 0.0), (mine + theirs, mine)):
        if total > 0.0 and abs(taken - total) < AGREE * total:
            return part
    return taken if theirs == 0.0 else 0.5 * taken


def _reach(picture: Picture, points: Floats, frames: Floats, point: int, way: Floats) -> float:
    """Return how far the outlines that a point is the origin of reach from it in a direction, m."""
    name = picture.scene.points[point]
    reach = 0.0
    for shape in picture.scene.shapes:
        if shape.origin == name and not shape.endless:
            turn = np.eye(3) if shape.frame == NEWTONIAN else frames[picture.scene.frames.index(shape.frame)]
            reach = max(reach, float((shape.points @ (turn[:, :2].T @ way)).max()))
    return reach
