"""A run as a recording for the viewer Rerun, .rrd: outlines in moving frames, loads, columns, transitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.core.errors import optional_library
from fsm_dyn.core.files import whole_file
from fsm_dyn.draw.svg import INPUT
from fsm_dyn.run.run_mcap import MovingScene, frame_name, moving_scene
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.scene import SceneShape
from fsm_dyn.run.transitions import Transition

EXTRA: Final = "rerun"
TIMELINE: Final = "time"  # s of the model


def write_rrd(
    rows: Samples, transitions: Sequence[Transition], sample: Callable[[FloatArray], Samples], path: Path
) -> Path:
    """Write a run; see :meth:`Trajectory.to_rerun`.

    Parameters
    ----------
    rows : Samples
    transitions : sequence of Transition
    sample : callable
        Gives rows at other times, shape (n,), s.
    path : Path
        File to write.

    Returns
    -------
    Path
        The same.
    """
    log = _Log(optional_library("rerun", EXTRA), rows.model.name)
    log.rows(rows)
    log.transitions(transitions)
    moving = moving_scene(rows, sample)
    if moving is not None:
        log.scene(moving)
    with whole_file(path) as temporary:
        log.recording.save(temporary)
        log.recording.disconnect()
    return path


class _Log:
    """Entities of a recording."""

    def __init__(self, library: Any, name: str) -> None:
        self.library = library
        # a fixed id: two recordings of a run differ in times of writing alone
        self.recording = library.RecordingStream(f"fsm_dyn {name}", recording_id=name)

    def columns(self, entity: Sequence[str], times: FloatArray, columns: Any) -> None:
        """Send values of an entity at times (n,), s."""
        path = self.library.new_entity_path(entity)
        index = [self.library.TimeColumn(TIMELINE, duration=times)]
        self.library.send_columns(path, indexes=index, columns=columns, recording=self.recording)

    def rows(self, rows: Samples) -> None:
        """Log every column of the rows, and the mode where it changes."""
        for name, column in rows.columns():
            entity = ("run", *name.split(".", 1))
            self.columns(entity, rows.t, self.library.Scalars.columns(scalars=np.asarray(column, float)))
        begins = [k for k, mode in enumerate(rows.modes) if k == 0 or mode != rows.modes[k - 1]]
        if begins:
            texts = self.library.TextLog.columns(text=[rows.modes[k] for k in begins])
            self.columns(("run", "mode"), rows.t[begins], texts)

    def transitions(self, transitions: Sequence[Transition]) -> None:
        """Log transitions as lines of text."""
        if transitions:
            times = np.array([one.time for one in transitions])
            self.columns(("transitions",), times, self.library.TextLog.columns(text=[str(one) for one in transitions]))

    def scene(self, moving: MovingScene) -> None:
        """Log outlines in their frames, the frames' motion, and loads as arrows."""
        times, entities = moving.samples.t, dict[tuple[str, str], tuple[str, str]]()
        for frame, origin in moving.frames:
            entities[frame, origin] = ("scene", frame_name(frame, origin))
            motion = self.library.Transform3D.columns(
                translation=moving.placed.point(origin), quaternion=moving.turns(frame)
            )
            self.columns(entities[frame, origin], times, motion)
        for k, shape in enumerate(moving.scene.shapes):
            entity = (*entities[shape.frame, shape.origin], f"{shape.body} {k}")
            self.recording.log(self.library.new_entity_path(entity), self._shape(moving, shape), static=True)
        for name, (place, force) in moving.loads().items():
            arrows = self.library.Arrows3D.columns(
                origins=place, vectors=np.nan_to_num(force) * moving.per_newton, colors=[_colour(INPUT)] * len(times)
            )
            self.columns(("scene", "loads", name), times, arrows)

    def _shape(self, moving: MovingScene, shape: SceneShape) -> Any:
        """Return an outline: a closed line, or a ball for a silhouette or a dot."""
        points, (fill, edge) = moving.outline(shape), moving.colours_of(shape.owner)
        if shape.facing or len(points) == 1:
            radius = float(np.linalg.norm(points, axis=1).max()) if shape.facing else 0.01 * moving.size
            place = np.zeros(3) if shape.facing else points[0]
            return self.library.Ellipsoids3D(centers=[place], half_sizes=[[radius] * 3], colors=[_colour(fill)])
        closed = np.vstack([points, points[:1]]) if shape.closed or shape.plane else points
        return self.library.LineStrips3D([closed], colors=[_colour(edge)])


def _colour(text: str) -> tuple[int, ...]:
    return tuple(int(text[k : k + 2], 16) for k in (1, 3, 5))
