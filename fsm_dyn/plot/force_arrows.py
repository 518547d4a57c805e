"""Contact forces as arrows, with one scale for all instants of a drawing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fsm_dyn.contact_forces.forces import WIDTH, Forces
from fsm_dyn.contact_forces.kinematics import Kinematics
from fsm_dyn.plot.scene_projection import View
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.result_builder import scene_of
from fsm_dyn.results.trajectory import Trajectory

LONGEST: Final = 0.18  # of the larger side of the drawing
FULL: Final = 90.0  # percent of the instants with contact forces
_SHORTEST: Final = 0.03  # of the longest: shorter arrows are left out


def with_force_arrows(trajectory: Trajectory, view: View) -> View:
    """Return a view of a run with the contact forces as arrows.

    Their length is proportional to the force, up to :data:`LONGEST` of the larger side of the drawing.  In
    :data:`FULL` percent of the instants with contact forces, at least, none is longer; greater forces are shortened.
    """
    places, forces = contact_forces(trajectory, view)
    norms = np.linalg.norm(forces, axis=-1)
    largest = norms.max(axis=1, initial=0.0)
    if not largest.any():
        return view
    low, high = view.limits()
    share = np.minimum(norms / np.percentile(largest[largest > 0.0], FULL, method="higher"), 1.0)
    share[share < _SHORTEST] = np.nan
    along = forces * (LONGEST * (high - low).max() * share / np.where(norms > 0.0, norms, 1.0))[..., None]
    return replace(view, arrows=np.stack([places, places + along], axis=2))


def contact_forces(trajectory: Trajectory, view: View) -> tuple[FloatArray, FloatArray]:
    """Return contact points, m, and the forces there on the first body, N, in the plane of a view, each (n, k, 2).

    Of the k contacts whose force acts at a known point.  The force is zero where a contact is open, and where it is not
    finite.
    """
    model, rows = trajectory.model, trajectory.rows
    if model.automaton is None or not model.contacts:
        return np.zeros((len(view.times), 0, 2)), np.zeros((len(view.times), 0, 2))
    kinematics = Kinematics(model.automaton)
    scene = scene_of(model.automaton, model.parameters, model.values, solids=False)
    forces = Forces(kinematics, scene, view.flat, rows.x[0], rows.context[0])
    samples = trajectory.sample(view.times)
    drawn = [
        forces.drawn(x, c, model.charts[mode].states, multipliers)
        for x, c, mode, multipliers in zip(
            samples.x, samples.context, samples.mode, samples.multiplier_table, strict=True
        )
    ]
    acting = [location.kind == "force" for location in forces.locations]
    table = np.reshape(drawn, (len(drawn), len(acting), WIDTH))[:, acting]
    table[~np.isfinite(table).all(axis=2)] = 0.0
    return table[..., 1:3], table[..., 3:5] + table[..., 5:7]
