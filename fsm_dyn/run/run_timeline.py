"""A run as a timeline, and the placement of its scene over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.core.errors import InputError
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.run_diagrams import Strip, Timeline
from fsm_dyn.run.record import RunModel, RunRecord
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import NEWTONIAN, ORIGIN, Scene, SceneShape

if TYPE_CHECKING:
    from fsm_dyn.run.visits import RunReading

# -- A run as a timeline: its modes, transitions and columns, dense enough for smooth lines ------------------

_POINTS = 600  # over a run, if steps are longer


def timeline_of(
    model: RunModel, record: RunRecord, rows: Samples | None = None, groups: Iterable[tuple[str, Sequence[str]]] = ()
) -> Timeline:
    """Return a run as a timeline.

    Parameters
    ----------
    model : RunModel
    record : RunRecord
        Of the run.
    rows : Samples, optional
        Rows to read the columns from.
    groups : iterable of (str, sequence of str)
        The columns: a unit and their names, for each strip.
    """
    labels, mode = np.array(model.labels), np.asarray(record.mode)
    edges = [0, *(np.flatnonzero(labels[mode[1:]] != labels[mode[:-1]]) + 1).tolist()]
    times = [float(record.t[k]) for k in edges] + [float(record.t[-1])]
    bands = tuple((times[i], times[i + 1], str(labels[mode[k]])) for i, k in enumerate(edges))
    transitions = tuple(item.time for item in record.transitions)
    t = record.t if rows is None else rows.t
    return Timeline(model.name, bands, palette.mode_colours(model.labels), transitions, t, _strips(rows, groups))


def visits_timeline(
    reading: RunReading, rows: Samples | None = None, groups: Iterable[tuple[str, Sequence[str]]] = ()
) -> Timeline:
    """Return a run as a timeline whose bands are its visits: phases, or modes by their short names.

    Parameters
    ----------
    reading : RunReading
    rows, groups
        See :func:`timeline_of`.
    """
    if reading.model.automaton is None:  # no contacts to name modes after
        return timeline_of(reading.model, reading.record, rows, groups)
    visits = reading.visits
    return Timeline(
        reading.model.name,
        tuple((visit.begin, visit.end, visit.name) for visit in visits),
        {name: fill.colour for name, fill in visits.fills.items()},
        tuple(item.time for item in reading.transitions),
        reading.rows.t if rows is None else rows.t,
        _strips(rows, groups),
    )


def _strips(rows: Samples | None, groups: Iterable[tuple[str, Sequence[str]]]) -> tuple[Strip, ...]:
    if rows is None:
        return ()
    return tuple(Strip(unit, tuple(names), np.array([rows[name] for name in names])) for unit, names in groups)


def columns_by_unit(model: RunModel, kinds: Iterable[Sequence[str]]) -> list[tuple[str, list[str]]]:
    """Return columns of one unit together, in the order of the kinds, which stay apart."""
    groups: dict[tuple[int, str], list[str]] = {}
    for number, names in enumerate(kinds):
        for name in names:
            groups.setdefault((number, model.units.get(name, "")), []).append(name)
    return [(unit, names) for (_, unit), names in groups.items()]


def dense_rows(rows: Samples, sample: Callable[[FloatArray], Samples]) -> Samples:
    """Return the rows of a run with points of the dense output between them; ``sample`` returns states between rows."""
    t = rows.t
    pieces = np.minimum(np.ceil(np.diff(t) / max((t[-1] - t[0]) / _POINTS, 1e-300)).astype(int), _POINTS)
    long = np.flatnonzero(pieces > 1)
    if not len(long):
        return rows
    return merged_samples(
        rows, sample(np.concatenate([np.linspace(t[i], t[i + 1], pieces[i] + 1)[1:-1] for i in long]))
    )


def merged_samples(rows: Samples, extra: Samples) -> Samples:
    """Return two sets of samples of a run as one, in order of time."""
    order = np.argsort(np.concatenate([rows.t, extra.t]), kind="stable")

    def merged(one: Any, other: Any) -> Any:
        return np.concatenate([one, other])[order]

    return Samples(
        rows.model,
        merged(rows.t, extra.t),
        merged(rows.x, extra.x),
        merged(rows.mode, extra.mode),
        merged(rows.context, extra.context),
    )


# -- Placement of a scene at the times of a run --------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """A scene at n instants: ``positions`` (n, n_points, 3), m, and ``rotations`` (n, n_frames, 3, 3)."""

    scene: Scene
    positions: FloatArray
    rotations: FloatArray

    def point(self, name: str) -> FloatArray:
        """Return the path of a point, shape (n, 3); the Newtonian origin rests."""
        if name == ORIGIN:
            return np.zeros((len(self.positions), 3))
        path: FloatArray = self.positions[:, self.scene.points.index(name)]
        return path

    def outline(self, shape: SceneShape) -> FloatArray:
        """Return a shape's points in the Newtonian frame, shape (n, k, 3)."""
        origin = self.point(shape.origin)[:, None, :]
        count, dimensions = shape.points.shape
        solid = np.hstack([shape.points, np.zeros((count, 3 - dimensions))])
        if shape.frame == NEWTONIAN:
            return np.asarray(origin + solid)
        rotation = self.rotations[:, self.scene.frames.index(shape.frame)]
        placed: FloatArray = origin + np.einsum("nij,kj->nki", rotation, solid)
        return placed

    def anchors(self) -> FloatArray:
        """Return the anchors of the scene in the Newtonian frame, m, shape (n, n_anchors, 3)."""
        scene, count = self.scene, len(self.positions)
        if not scene.anchors:
            return np.zeros((count, 0, 3))
        points = np.concatenate([self.positions, np.zeros((count, 1, 3))], axis=1)
        frames = np.concatenate([self.rotations, np.broadcast_to(np.eye(3), (count, 1, 3, 3))], axis=1)
        point = [-1 if item.origin == ORIGIN else scene.points.index(item.origin) for item in scene.anchors]
        frame = [-1 if item.frame == NEWTONIAN else scene.frames.index(item.frame) for item in scene.anchors]
        offsets = np.array([item.offset for item in scene.anchors])
        return np.asarray(points[:, point] + np.einsum("naij,aj->nai", frames[:, frame], offsets))

    def is_planar(self) -> bool:
        """Return whether everything moves in planes across N.z."""
        level = np.ptp(self.positions[..., 2]) if self.positions.size else 0.0
        turned = np.abs(self.rotations[..., 2, 2] - 1.0).max(initial=0.0)
        return bool(level < 1e-9 and turned < 1e-9)


def place_scene(scene: Scene, samples: Samples) -> Placed:
    """Return the positions of all parts of ``scene`` at the times of ``samples``.

    Raises
    ------
    InputError
        Something is nowhere: its position is not finite.
    """
    out = scene.geometry.evaluate(samples.t, samples.x, samples.context)
    if not all(np.isfinite(out[name]).all() for name in ("points", "frames")):
        raise InputError(
            "the model cannot be drawn", found="positions that are infinite or not a number",
            remedy="look for a division by zero in the positions of points",
        )  # fmt: skip
    n, n_points, n_frames = len(samples), len(scene.points), len(scene.frames)
    return Placed(
        scene,
        positions=np.broadcast_to(out["points"], (n, n_points, 3)),
        rotations=np.broadcast_to(out["frames"], (n, n_frames, 3, 3)),
    )
