"""What a page is shown of an instant, live or recorded: drawing, handles, forces, guards, quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.live.tick_columns import TickColumns
from fsm_dyn.results.scene import NEWTONIAN
from fsm_dyn.spec.values import evaluate
from fsm_dyn.viewer.contact_locations import locate_contacts
from fsm_dyn.viewer.contact_offsets import with_surface_offsets
from fsm_dyn.viewer.forces import Forces
from fsm_dyn.viewer.ground_planes import find_grounds
from fsm_dyn.viewer.mode_graph_payload import guard_texts, mode_map
from fsm_dyn.viewer.port_handles import PortHandles
from fsm_dyn.viewer.quantities import Quantities
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import Picture
from fsm_dyn.viewer.solids import find_solids

HEAD: Final = 10  # numbers at the head of a frame


class FrameEncoder:
    """Reads instants of the runs of a graph for a page.

    Parameters
    ----------
    graph : ModeGraph
        Its parameters are those of the run.
    columns : Columns
        Of the run's rows.
    x, c : ndarrays
        State and context that the run starts from.
    held : bool
        Whether the run's model is held by its ports, so that there are handles to be drawn.
    """

    def __init__(self, graph: ModeGraph, columns: TickColumns, x: Floats, c: Floats, *, held: bool = True) -> None:
        self.graph = graph
        self.instants = RowEvaluator(graph, columns)
        self.picture = Picture.of(graph, self.instants, x, c)
        self.places = with_surface_offsets(self.instants, self.picture, locate_contacts(self.instants, x, c), x, c)
        self.grounds = find_grounds(self.instants, self.picture, self.places, x, c)
        self.hands = PortHandles(graph, self.instants, self.picture, columns, x, c) if held else None
        self.forces = Forces(self.instants, self.picture, self.places)
        self.quantities = Quantities(graph, self.instants, self.places)
        self.solids = () if self.picture.planar else find_solids(graph, self.instants, x, c)
        points = self.instants.points(x, c)[0]
        self._size = max([float(np.ptp(points, axis=0).max(initial=0.0)), *(solid.radius for solid in self.solids)])

    def told(self) -> dict[str, Any]:
        """Return what does not change from frame to frame."""
        mechanism = self.graph.automaton.mechanism
        return {
            "name": mechanism.name,
            "summary": mechanism.summary,
            "picture": {
                **self.picture.told(),
                "grounds": [ground.told() for ground in self.grounds],
                "solids": [solid.told() for solid in self.solids],
                "size": self._size,
            },
            "pitches": self._pitches(),
            "ports": self.hands.told() if self.hands is not None else [],
            "forces": self.forces.told(),
            "quantities": [vars(q) for q in self.quantities.all],
            "graph": self.mode_map(),
            "guards": self.guards(),
        }

    def _pitches(self) -> dict[str, float]:
        """Return what contacts sound at when they close, Hz; those that only click are not in it."""
        contacts = self.graph.automaton.mechanism.contacts.values()
        return {
            c.name: evaluate(c.sound_frequency, self.graph.values) for c in contacts if c.sound_frequency is not None
        }

    def mode_map(self) -> dict[str, Any]:
        """Return the mode graph as far as it is known."""
        return mode_map(self.instants.automaton, self.graph.initial)

    def guards(self) -> list[list[dict[str, str]]]:
        """Return the lists of guards that frames refer to by their numbers."""
        return [guard_texts(self.instants.automaton, reader.mode.guards) for reader in self.instants.readers]

    def frame(
        self,
        head: Sequence[float],
        states: Sequence[int],
        x: Floats,
        c: Floats,
        row: Floats | None = None,
        samples: Sequence[Floats] = (),
    ) -> Floats:
        """Return an instant as numbers.

        Parameters
        ----------
        head : sequence of float
            Number of the run, tick, time (s), phase, fault, transitions so far.
        states : sequence of int
            Contact states of the mode.
        x, c : ndarrays
        row : ndarray, optional
            Of the live run, from which handles are drawn.
        samples : sequence of ndarray
            For the charts: time, mode, all quantities.

        Returns
        -------
        ndarray
            Head: number of the run, tick, time, mode, phase, fault, transitions, samples, the number of the guards'
            list, guards.  Then the picture, the handles, the forces, (value, slope) of each guard, where outlines and
            solids are in space if the mechanism leaves the plane, and the samples.
        """
        instants = self.instants
        reader, full = instants.full(states, x, c)
        points, frames = instants.points(x, c)
        number, tick, t, *rest = head
        parts = [
            np.array(
                [
                    number, tick, t, instants.number(states), *rest, len(samples), reader.number,
                    len(reader.mode.guards),
                ],
                dtype=np.float64,
            ),
            self.picture.placed(points, frames),
            self.hands.drawn(row, x, c, points, frames) if self.hands is not None and row is not None else np.zeros(0),
            self.forces.drawn(x, c, states, full["multipliers"], points, frames),
            np.stack([full["guards"], full["slopes"]], axis=-1).ravel(),
            self._in_space(points, frames),
            *samples,
        ]  # fmt: skip
        return np.concatenate(parts)

    def _in_space(self, points: Floats, frames: Floats) -> Floats:
        """Return the directions of sight, and of every outline and solid axes and origin; nothing in the plane."""
        picture = self.picture
        if picture.planar:
            return np.zeros(0)
        parts = [picture.flat.ravel()]
        outlines = [(shape.frame, shape.origin) for shape in picture.scene.shapes]
        for frame, origin in (*outlines, *((solid.frame, solid.origin) for solid in self.solids)):
            turn = np.eye(3) if frame == NEWTONIAN else frames[picture.scene.frames.index(frame)]
            parts += [turn.ravel(), picture.point(points, origin)]
        return np.concatenate(parts)

    def values(self, states: Sequence[int], x: Floats, c: Floats) -> Floats:
        """Return the values of all quantities at an instant."""
        _, full = self.instants.full(states, x, c)
        return self.quantities.values(x, c, full["multipliers"])
