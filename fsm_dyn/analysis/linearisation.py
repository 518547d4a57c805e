"""A mode linearised about a state: its matrices in independent coordinates and speeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fsm_dyn.analysis.jacobians import Array, mode_derivatives
from fsm_dyn.automaton.initial_state import find_initial_state
from fsm_dyn.automaton.initial_values import initial_values, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.graphics.text_table import table
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.modes.least_squares import dependent_columns
from fsm_dyn.run_inputs import InputValue, resolve_inputs
from fsm_dyn.spec.values import Parameters, parameter_values


@dataclass(frozen=True, repr=False)
class Linearisation:
    """``δẋ = A δx + B δw`` about a state.

    Attributes
    ----------
    states : tuple of str
        The independent coordinates and speeds; all others follow them in the mode.
    inputs : tuple of str
    A, B : ndarray, shapes (n, n), (n, n_w)
    eigenvalues : ndarray of complex, shape (n,)
        Of ``A``, 1/s, the one with the largest real part first.  A coordinate on which nothing depends gives 0.
    rates : ndarray, shape (n,)
        The rates of the states at the point itself; zero at an equilibrium.
    """

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    A: Array
    B: Array
    eigenvalues: npt.NDArray[np.complex128]
    rates: Array

    def __repr__(self) -> str:
        rows = [
            (name, *(f"{value:.6g}" for value in (*a, *b)))
            for name, a, b in zip(self.states, self.A, self.B, strict=True)
        ]
        own = ", ".join(f"{value:.6g}" for value in self.eigenvalues)
        return table(("rate of", *self.states, *self.inputs), rows) + f"\neigenvalues, 1/s: {own}"


def linearise(
    graph: ModeGraph,
    mode: str,
    *,
    at: Mapping[str, float | str] | None = None,
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
) -> Linearisation:
    """Linearise a mode about a state (docs/theory.md, "Derivatives of a mode").

    Rows on speeds and on coordinates, nonholonomic ones among them, are kept to first order: the dependent speeds and
    coordinates follow the independent ones.

    Parameters
    ----------
    graph : ModeGraph
    mode : str
        A mode of the graph.
    at : mapping, optional
        Coordinates and speeds that replace the model's own start; what is not given follows.
    parameters, inputs : mapping, optional
        As for :func:`fsm_dyn.simulate`; inputs are taken at time 0.

    Returns
    -------
    Linearisation
        Its matrices, eigenvalues and independent states, in SI units.

    Raises
    ------
    InputError
        The mode or a name is unknown.
    ModelError
        The values contradict the mode.
    """
    automaton = graph.automaton
    layout = automaton.terms.layout
    found = next((known for known in automaton.modes if known.name == mode), None)
    if found is None:
        names = [known.name for known in automaton.modes]
        raise InputError(
            f"no mode '{mode}' in '{graph.name}'", allowed=", ".join(names), remedy=did_you_mean(str(mode), names)
        )
    numbers = parameter_values(automaton.mechanism, parameters) if parameters else graph.values
    drive = resolve_inputs(automaton, numbers, inputs or {}, (0.0, 1.0))
    begin = initial_values(automaton, numbers, parameter_vector(numbers), at, drive)
    here = find_initial_state(automaton, begin.values, mode, 0.0, begin.context)
    programs = automaton.derive(found.states, 0.0, here.x, here.context).programs
    values = mode_derivatives(programs, layout.w).flow.evaluate(0.0, here.x, here.context)
    n_q = len(layout.q)
    free, T, _ = independent_coordinates(graph, found.states, here.x, here.context)
    kept = [*free, *(n_q + i for i in programs.independent)]
    basis = np.zeros((layout.n_x, len(kept)))
    basis[:n_q, : len(free)] = T
    basis[kept[len(free) :], range(len(free), len(kept))] = 1.0
    A = values["by_state"][kept] @ basis
    eigenvalues = np.linalg.eigvals(A).astype(np.complex128)
    return Linearisation(
        tuple(layout.x[i] for i in kept),
        layout.w,
        A,
        values["by_parameters"][kept],
        eigenvalues[np.argsort(-eigenvalues.real, kind="stable")],
        values["x_dot"][kept],
    )


def independent_coordinates(
    graph: ModeGraph, states: Sequence[int], x: Array, context: Array, by_inputs: Array | None = None
) -> tuple[list[int], Array, Array]:
    """Return the independent coordinates of a mode, and all coordinates as linear functions of them and the inputs.

    Parameters
    ----------
    states : sequence of int
        Contact states of the mode.
    by_inputs : ndarray, shape (rows of the system, n_w), optional
        Derivatives of the rows on coordinates by the inputs; none where no input moves a row.

    Returns
    -------
    list of int, ndarrays of shapes (n_q, n_free) and (n_q, n_w)
    """
    system = graph.automaton.system
    n_q, n_w = len(system.layout.q), len(system.layout.w)
    rows = [r for r in ActiveSet.of(system, states).rows if system.rows[r].positional]
    slopes = system.configuration.evaluate(0.0, x, context)["jacobian"][rows]
    moved = np.zeros((len(rows), n_w)) if by_inputs is None else by_inputs[rows]
    for first in system.quaternions:
        norm = np.zeros((1, n_q))
        norm[0, first : first + 4] = x[first : first + 4]
        slopes, moved = np.vstack([slopes, norm]), np.vstack([moved, np.zeros((1, n_w))])
    dependent = dependent_columns(slopes, range(n_q))
    free = [i for i in range(n_q) if i not in dependent]
    T, P = np.zeros((n_q, len(free))), np.zeros((n_q, n_w))
    T[free, range(len(free))] = 1.0
    if dependent:
        follow = -np.linalg.lstsq(slopes[:, dependent], np.hstack([slopes[:, free], moved]), rcond=None)[0]
        T[dependent], P[dependent] = follow[:, : len(free)], follow[:, len(free) :]
    return free, T, P
