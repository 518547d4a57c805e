"""Where contact forces act, recovered from the constraint rows, and the planes at rest that bodies touch.

A row ``A`` is the power of a unit force per unit speed.  If ``A = d · J_P`` at several states of a run, ``J_P`` the
partial velocities of a point P, the force acts at P along d.  If ``A = d · J_P + m · Ω_F``, P the origin of a body's
outline and Ω_F the partial angular velocities of its frame, it acts at C with ``(C - P) × d = m``.  Between two bodies
the partial velocities are relative.  A contact has no arrow without a fit, nor where forces at several points fit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.results.arrays import FloatArray
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.scene import NEWTONIAN, Scene
from fsm_dyn.results.scene_placement import Placed, place_scene

_FIT = 1e-5  # of a row, against differences of 1e-10
_PROBES = 12  # states at which a location must fit
_MOST_PAIRS = 400
_SAME = 1e-6  # of a normal, and m of a height: a plane at rest


@dataclass(frozen=True)
class ContactForce:
    """Force of one contact at n states: ``points`` (n, 3), m; ``forces`` (n, 3), N, on the first body, in N.

    ``normals`` (n, 3) has unit length.  ``grounded``: the other side is at rest.
    """

    points: FloatArray
    forces: FloatArray
    normals: FloatArray
    grounded: bool

    def ground(self) -> tuple[FloatArray, FloatArray] | None:
        """Return a point (3,), m, and the normal (3,) of the plane at rest that is touched, None if there is none."""
        touching = np.linalg.norm(self.forces, axis=1) > 0.0
        if not self.grounded or not touching.any():
            return None
        normals = self.normals[touching]
        heights = np.einsum("ij,ij->i", normals, self.points[touching])
        flat = np.ptp(normals, axis=0).max() <= _SAME and np.ptp(heights) <= _SAME
        return (heights[0] * normals[0], normals[0]) if flat else None


@dataclass(frozen=True)
class _Partials:
    """Partial velocities of points (n, p, 3, n_u) and frames (n, f, 3, n_u), and the rows (n, n_rows, n_u)."""

    linear: FloatArray
    angular: FloatArray
    rows: FloatArray


_Place = tuple[int, int | None]  # a point, and the frame with which it turns


def contact_forces(scene: Scene, samples: Samples) -> tuple[ContactForce, ...]:
    """Return the forces of the contacts that carry one in these samples and whose location is found."""
    placed, partials = place_scene(scene, samples), _partials(scene, samples)
    found = []
    for contact in samples.model.contacts:
        acting = [row for row in (contact.normal_row, *contact.tangent_rows) if row >= 0]
        if contact.normal_row >= 0 and np.any(samples.multiplier_table[:, acting] != 0.0):
            force = _force(contact, acting, scene, samples.multiplier_table, placed, partials)
            if force is not None:
                found.append(force)
    return tuple(found)


def _force(
    contact: ContactInfo, acting: list[int], scene: Scene, multipliers: FloatArray, placed: Placed, partials: _Partials
) -> ContactForce | None:
    probes = np.unique(np.linspace(0, len(multipliers) - 1, _PROBES).astype(int))
    for one, other in _candidates(scene):
        basis = _basis(partials, one, other)
        if not (
            _determines(basis[probes], other is not None) and _fits(basis[probes], partials.rows[probes][:, acting])
        ):
            continue
        wrenches = partials.rows[:, acting] @ np.linalg.pinv(basis, rcond=1e-7)  # n, acting, 3 or more
        directions = wrenches[..., :3]
        normals = directions[:, 0] / np.maximum(np.linalg.norm(directions[:, :1, :], axis=2), 1e-12)
        points = placed.positions[:, one[0]]
        if _turns(partials, one):
            points = points + _lever(directions, wrenches[..., 3:6])
        elif other is not None and _turns(partials, other):
            points = placed.positions[:, other[0]] - _lever(directions, wrenches[..., -3:])
        else:
            points = points - _depth(placed, scene.points[one[0]], normals)[:, None] * normals
        forces = np.einsum("nr,nrk->nk", multipliers[:, acting], directions)
        return ContactForce(points, forces, normals, other is None)
    return None


def _candidates(scene: Scene) -> Iterator[tuple[_Place, _Place | None]]:
    points: list[_Place] = [(i, None) for i in range(len(scene.points))]
    bodies: list[_Place] = list(dict.fromkeys(
        (scene.points.index(shape.origin), None if shape.frame == NEWTONIAN else scene.frames.index(shape.frame))
        for shape in scene.shapes
        if shape.origin in scene.points
    ))  # fmt: skip
    for group in (points, bodies):
        yield from ((one, None) for one in group)
        yield from itertools.islice(itertools.permutations(group, 2), _MOST_PAIRS)


def _basis(partials: _Partials, one: _Place, other: _Place | None) -> FloatArray:
    """Return relative partial velocities, and with frames the partial angular velocities, (n, 3, 6 or 9, n_u)."""
    parts = [partials.linear[:, one[0]] - (0.0 if other is None else partials.linear[:, other[0]])]
    parts += [partials.angular[:, place[1]] for place in (one, other) if place is not None and place[1] is not None]
    return np.concatenate(parts, axis=1)


def _turns(partials: _Partials, place: _Place) -> bool:
    return place[1] is not None and bool(partials.angular[:, place[1]].any())


def _determines(basis: FloatArray, pair: bool) -> bool:
    """Whether a row follows from one force alone: with few freedoms forces at many points have the same power.

    Between two bodies a fit is a test only if there are more speeds than unknowns.  Where the first three rows, those of
    the force, vanish, moments alone would fit.
    """
    moving = np.abs(basis).max(axis=2) > 1e-12 * max(float(np.abs(basis).max()), 1e-300)
    count = moving.sum(axis=1)
    enough = moving[:, :3].any(axis=1) & ((basis.shape[2] > count) | (not pair))
    return bool(np.any(enough & (np.linalg.matrix_rank(basis, rtol=1e-7) == count)))


def _fits(basis: FloatArray, rows: FloatArray) -> bool:
    apart = rows @ np.linalg.pinv(basis, rcond=1e-7) @ basis - rows
    sizes = np.maximum(np.linalg.norm(rows, axis=2), 1e-12)
    return bool(np.all(np.linalg.norm(apart, axis=2) <= _FIT * sizes))


def _lever(directions: FloatArray, moments: FloatArray) -> FloatArray:
    """Return the shortest C - P, m, (n, 3), with ``(C - P) × d = m`` for all rows, (n, rows, 3) each."""
    across = np.cross(np.eye(3)[None, None], directions[:, :, None, :])  # n, rows, 3 (of C - P), 3
    across = np.swapaxes(across, 2, 3).reshape(len(directions), -1, 3)
    levers: FloatArray = (np.linalg.pinv(across, rcond=1e-7) @ moments.reshape(len(moments), -1, 1))[..., 0]
    return levers


def _depth(placed: Placed, point: str, normals: FloatArray) -> FloatArray:
    """Return how far the outlines drawn around a point reach against the normal, m, (n,)."""
    depth = np.zeros(len(normals))
    for shape in placed.scene.shapes:
        if shape.origin == point and not shape.endless:
            arms = placed.outline(shape) - placed.point(point)[:, None, :]
            depth = np.maximum(depth, -np.einsum("nki,ni->nk", arms, normals).min(axis=1))
    return depth


def _partials(scene: Scene, samples: Samples) -> _Partials:
    layout = samples.model.layout
    n_q, n_u = len(layout.q), len(layout.u)
    by_q, turn = [], []
    frames = place_scene(scene, samples).rotations
    for j in range(n_q):
        h = 1e-6 * (1.0 + np.abs(samples.x[:, j]))
        ahead, behind = samples.x.copy(), samples.x.copy()
        ahead[:, j] += h
        behind[:, j] -= h
        one, two = (
            place_scene(scene, Samples(samples.model, samples.t, x, samples.mode, samples.context))
            for x in (ahead, behind)
        )
        by_q.append((one.positions - two.positions) / (2.0 * h[:, None, None]))
        spin = np.einsum("nfij,nfkj->nfik", (one.rotations - two.rotations) / (2.0 * h[:, None, None, None]), frames)
        turn.append(np.stack([spin[..., 2, 1], spin[..., 0, 2], spin[..., 1, 0]], axis=-1))
    terms = samples.model.terms.evaluate(samples.t, samples.x, samples.context)
    n = len(samples)
    speeds = np.broadcast_to(terms["W"], (n, *terms["W"].shape[-2:]))[:, None, :n_q, :n_u]
    rows = np.broadcast_to(terms["A"], (n, *terms["A"].shape[-2:]))[..., :n_u]
    return _Partials(np.stack(by_q, axis=-1) @ speeds, np.stack(turn, axis=-1) @ speeds, rows)
