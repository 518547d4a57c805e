"""Forces set by inputs, at the places where a drawing has arrows for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import FloatArray
from fsm_dyn.language import expressions
from fsm_dyn.language.elements import ForceLoad, LawLoad
from fsm_dyn.language.evaluate import ParameterValue
from fsm_dyn.language.expression_tree import Text, free_names
from fsm_dyn.language.model import Mechanism
from fsm_dyn.run.scene import NEWTONIAN, Scene, Symbol, vector_of

SHORTEST, LONGER = 5.0, 8.0  # units of a scene: the shortest arrow, and the rest of the longest
LEAST: Final = 0.02  # of the largest force: smaller ones have no arrow


class InputPushes:
    """The forces of inputs at the symbols of a scene.

    Parameters
    ----------
    scene : Scene
        With symbols; those of kind ``input`` are the places.
    mechanism : Mechanism
    inputs : tuple of str
        In the order of their values.
    values : mapping of str to float or tuple
        Parameters by name, SI.
    """

    def __init__(
        self, scene: Scene, mechanism: Mechanism, inputs: tuple[str, ...], values: Mapping[str, ParameterValue]
    ) -> None:
        self.symbols: tuple[Symbol, ...] = tuple(symbol for symbol in scene.symbols if symbol.kind == "input")
        self._frames, self._inputs, self._values = scene.frames, inputs, values
        loads = {load.name: load for load in mechanism.loads if isinstance(load, ForceLoad | LawLoad)}
        known = {*values, *inputs, "t", NEWTONIAN, *scene.frames}
        self._texts: list[tuple[Text | None, bool]] = []
        for symbol in self.symbols:
            load = loads[symbol.name]
            depends = not free_names(expressions.parse(load.value)) <= known
            self._texts.append((None if depends else load.value, isinstance(load, ForceLoad)))

    def forces(self, t: float, inputs: FloatArray, rotations: FloatArray) -> list[FloatArray]:
        """Return the force of each place: (3,), N, resolved in N; of a law its value (1,). Zero if the state sets it.

        Parameters
        ----------
        t : float
            s
        inputs : ndarray, shape (n_inputs,)
            SI.
        rotations : ndarray, shape (n_frames, 3, 3)
            Of the frames of the scene.
        """
        values = {**self._values, **dict(zip(self._inputs, inputs.tolist(), strict=True)), "t": t}
        turns = dict(zip(self._frames, rotations, strict=True))
        return [
            np.zeros(3 if is_force else 1) if text is None else np.atleast_1d(vector_of(text, values, turns))
            for text, is_force in self._texts
        ]

    def arrows(self, forces: list[FloatArray], anchors: FloatArray, flat: FloatArray) -> FloatArray:
        """Return the head of each arrow, m, and its direction times the force, N, in a picture, shape (k, 4).

        Parameters
        ----------
        forces : list of ndarray
            Of :meth:`forces`.
        anchors : ndarray, shape (n_anchors, 2)
            Of the scene, in the picture, m.
        flat : ndarray, shape (2, 3)
            The projection.
        """
        found = np.zeros((len(self.symbols), 4))
        for row, symbol, force in zip(found, self.symbols, forces, strict=True):
            ends = anchors[list(symbol.anchors)]
            along = flat @ force if len(force) == 3 else force * (ends[-1] - ends[0])
            size = float(np.linalg.norm(along))
            row[:2] = ends[-1] if force[0] < 0.0 else ends[0]
            row[2:] = along * (float(np.linalg.norm(force)) / size if size > 0.0 else 0.0)
        return found
