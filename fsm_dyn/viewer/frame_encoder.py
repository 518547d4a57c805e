"""Frame encoder: drawing, handles, forces, guards and quantities of one row, live or recorded, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.successor_graph import Outgoing
from fsm_dyn.contact_forces.forces import Forces
from fsm_dyn.live.tick_columns import TickColumns
from fsm_dyn.results.scene import NEWTONIAN
from fsm_dyn.spec.contact import SurfaceContact
from fsm_dyn.spec.values import evaluate
from fsm_dyn.viewer.ground_planes import find_grounds
from fsm_dyn.viewer.mode_graph_payload import guard_texts, mode_map
from fsm_dyn.viewer.port_handles import PortHandles
from fsm_dyn.viewer.quantities import Quantities
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator
from fsm_dyn.viewer.scene_drawing import Picture
from fsm_dyn.viewer.solids import find_solids

HEAD: Final = 10  # numbers at the head of a frame


class FrameEncoder:
    """Encoder of the display frames of runs of one graph.

    Parameters
    ----------
    graph : ModeGraph
        With the parameters of the run.
    columns : TickColumns
        Of the run's rows.
    x, c : ndarrays
        Initial state and context.
    coupled : bool
        Whether the model has couplers, whose port handles are drawn.
    """

    def __init__(self, graph: ModeGraph, columns: TickColumns, x: Floats, c: Floats, *, coupled: bool = True) -> None:
        self.graph = graph
        self._outgoing: Outgoing = {}
        self.evaluator = RowEvaluator(graph, columns)
        self.picture = Picture.of(graph, self.evaluator, x, c)
        self.forces = Forces(self.evaluator, self.picture.scene, self.picture.flat, x, c)
        self.grounds = find_grounds(self.evaluator, self.picture, self.forces.locations, x, c)
        self.port_handles = PortHandles(graph, self.evaluator, self.picture, columns, x, c) if coupled else None
        self.quantities = Quantities(graph, self.evaluator, self.forces.locations)
        self.solids = () if self.picture.planar else find_solids(graph, self.evaluator, x, c)
        points = self.evaluator.points(x, c)[0]
        self._size = max([float(np.ptp(points, axis=0).max(initial=0.0)), *(solid.radius for solid in self.solids)])

    def payload(self) -> dict[str, Any]:
        """Return the payload that does not change from frame to frame."""
        mechanism = self.graph.automaton.mechanism
        return {
            "name": mechanism.name,
            "summary": mechanism.summary,
            "picture": {
                **self.picture.payload(),
                "grounds": [ground.payload() for ground in self.grounds],
                "solids": [solid.payload() for solid in self.solids],
                "size": self._size,
            },
            "pitches": self._pitches(),
            "ports": self.port_handles.payload() if self.port_handles is not None else [],
            "forces": self._forces(),
            "quantities": [vars(q) for q in self.quantities.all],
            "graph": self.mode_map(),
            "guards": self.guards(),
        }

    def _forces(self) -> list[dict[str, Any]]:
        """Return contact and kind of each location."""
        contacts = self.graph.automaton.contacts
        return [{"contact": contacts[one.contact].name, "kind": one.kind} for one in self.forces.locations]

    def _pitches(self) -> dict[str, float]:
        """Return the sound frequency of contacts that have one, Hz."""
        contacts = self.graph.automaton.mechanism.contacts.values()
        return {
            contact.name: evaluate(contact.sound_frequency, self.graph.values)
            for contact in contacts
            if isinstance(contact, SurfaceContact) and contact.sound_frequency is not None
        }

    def mode_map(self) -> dict[str, Any]:
        """Return the payload of the mode graph, as far as it is derived."""
        return mode_map(self.evaluator.automaton, self.graph.initial, self._outgoing)

    def guards(self) -> list[list[dict[str, str]]]:
        """Return the lists of guards that frames refer to by their numbers."""
        return [guard_texts(self.evaluator.automaton, reader.mode.guards) for reader in self.evaluator.readers]

    def frame(
        self,
        head: Sequence[float],
        states: Sequence[int],
        x: Floats,
        c: Floats,
        row: Floats | None = None,
        samples: Sequence[Floats] = (),
    ) -> Floats:
        """Encode one row as numbers.

        Parameters
        ----------
        head : sequence of float
            Number of the run, tick, time (s), phase, fault, transitions so far.
        states : sequence of int
            Contact states of the mode.
        x, c : ndarrays
        row : ndarray, optional
            Row of the live run, for the port handles.
        samples : sequence of ndarray
            For the strip charts: time, mode, all quantities.

        Returns
        -------
        ndarray
            Head: number of the run, tick, time, mode, phase, fault, transitions, samples, the number of the guards'
            list, guards.  Then the picture, the handles, the forces, (value, slope) of each guard, the placements of
            outlines and solids of a spatial mechanism, and the samples.
        """
        with np.errstate(all="ignore"):  # of a state that is far off, what cannot be drawn is NaN on the page
            return self._numbers(head, states, x, c, row, samples)

    def _numbers(
        self,
        head: Sequence[float],
        states: Sequence[int],
        x: Floats,
        c: Floats,
        row: Floats | None,
        samples: Sequence[Floats],
    ) -> Floats:
        """Return the numbers of :meth:`frame`."""
        evaluator, handles = self.evaluator, self.port_handles
        reader, full = evaluator.full(states, x, c)
        points, frames = evaluator.points(x, c)
        number, tick, t, *rest = head
        parts = [
            np.array(
                [
                    number, tick, t, evaluator.number(states), *rest, len(samples), reader.number,
                    len(reader.mode.guards),
                ],
                dtype=np.float64,
            ),
            self.picture.placed(points, frames),
            np.zeros(0) if handles is None or row is None else handles.drawn(row, x, c, points, frames),
            self.forces.drawn(x, c, states, full["multipliers"]),
            np.stack([full["guards"], full["slopes"]], axis=-1).ravel(),
            self._in_space(points, frames),
            *samples,
        ]  # fmt: skip
        return np.concatenate(parts)

    def _in_space(self, points: Floats, frames: Floats) -> Floats:
        """Return view directions, then axes and origin of every outline and solid; empty for a planar model."""
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
        """Return the values of all quantities at one state."""
        with np.errstate(all="ignore"):
            _, full = self.evaluator.full(states, x, c)
            return self.quantities.values(x, c, full["multipliers"])
