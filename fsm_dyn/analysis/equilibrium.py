"""Static equilibria of mechanisms with contacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fsm_dyn.automaton.initial_values import initial_values, parameter_vector
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.static_equilibrium import equilibrium_initial_state
from fsm_dyn.modes.elimination import Array
from fsm_dyn.run_inputs import InputValue, resolve_inputs
from fsm_dyn.spec.values import Parameters, parameter_values


@dataclass(frozen=True)
class Equilibrium:
    """A static equilibrium.

    Attributes
    ----------
    q : ndarray, shape (n_q,)
        Coordinates, SI.
    mode : str
        The mode it rests in.
    states : mapping of str to str
        Contact states by name.
    forces : mapping of str to ndarray
        Forces of constraints and contacts by name, normal before tangent, in the sense of ``f + Σ Aᵀ λ = 0`` (N, N·m).
    indeterminate : bool
        Whether redundant rows leave the forces undetermined: those given are then one admissible choice.
    initial : dict
        The rest as ``initial`` values for ``fsm_dyn.simulate``.
    """

    q: Array
    mode: str
    states: Mapping[str, str]
    forces: Mapping[str, Array]
    indeterminate: bool
    initial: dict[str, float | str]


def static_equilibrium(
    graph: ModeGraph,
    *,
    initial: Mapping[str, float | str] | None = None,
    parameters: Parameters | None = None,
    inputs: Mapping[str, InputValue] | None = None,
) -> Equilibrium:
    """Find a static equilibrium of a mechanism with its contacts.

    The mechanism is relaxed from the initial values by pseudo-transient continuation, then by Newton's method to full
    accuracy.  With friction, up to the static coefficients, the equilibrium found depends on the initial values.

    Parameters
    ----------
    graph : ModeGraph
    initial : mapping, optional
        Where the search begins: coordinates, and a ``mode`` it must come to rest in; the others are the model's own.
    parameters, inputs
        As for ``fsm_dyn.simulate``; inputs are taken at time 0.

    Returns
    -------
    Equilibrium
        The state at rest with its contact forces, in SI units.

    Raises
    ------
    InputError
        A name is unknown.
    ModelError
        None was found; the message names the unbalanced speeds.
    """
    automaton = graph.automaton
    layout = automaton.terms.layout
    numbers = parameter_values(automaton.mechanism, parameters) if parameters else graph.values
    drive = resolve_inputs(automaton, numbers, inputs or {}, (0.0, 1.0))
    begin = initial_values(automaton, numbers, parameter_vector(numbers), initial, drive)
    coordinates = {name: value for name, value in begin.values.items() if name not in layout.u}
    insists = "mode" in (initial or {})
    found, rest = equilibrium_initial_state(automaton, coordinates, begin.mode, 0.0, begin.context, insists=insists)
    names = [row.name for row in automaton.rows]
    mode = automaton.name_of(rest.states)
    terms = automaton.terms.evaluate(0.0, found.x, found.context)
    # rows that hold; more of them than they have directions leave their forces open
    held = [i for i, row in enumerate(automaton.rows) if row.role in ("velocity", "position")]
    for contact, code in zip(automaton.contacts, rest.states, strict=True):
        rows = [contact.normal_row] if code and not contact.contact_law.compliant else []
        rows += [contact.tangent_row] if code == 1 else []
        held += [r for r in rows if r >= 0]
    A = terms["A"][held, : len(layout.u)]
    return Equilibrium(
        rest.q,
        mode.name,
        {c.name: c.states[code] for c, code in zip(automaton.contacts, rest.states, strict=True)},
        {
            name: rest.multipliers[[i for i, other in enumerate(names) if other == name]]
            for name in dict.fromkeys(names)
        },
        bool(len(held) > np.linalg.matrix_rank(A, tol=1e-9 * float(np.abs(A).max(initial=1.0)))) if held else False,
        {**dict(zip(layout.q, map(float, rest.q), strict=True)), **dict.fromkeys(layout.u, 0.0), "mode": mode.name},
    )
