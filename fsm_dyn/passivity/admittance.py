"""Stability of a device that measures the force of the hand and follows the model (docs/theory.md, "Admittance").

A hand of stiffness ``K`` and damping ``B`` holds the device; its force moves an inertia ``M`` in the model, and the
device follows a time ``d`` later.  The loop oscillates at the boundary where

    M w^2 = |K + j w B|,    arctan(w B / K) = w d:

a lighter inertia is unstable.  A hand without damping, or with ``B < K d``, is unstable with any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fsm_dyn.automaton.initial_state import find_initial_state
from fsm_dyn.automaton.initial_values import initial_values
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.live.axis_alignment import port_of

_SMALL = 1e-6  # of the phase's range, at its ends


def least_inertia(stiffness: float, damping: float, delay: float) -> float:
    """Return the inertia below which the loop is unstable.

    Parameters
    ----------
    stiffness, damping : float
        Of the hand, N/m and N s/m.
    delay : float
        From the force of the hand to the motion that answers it, s, the tick included.

    Returns
    -------
    float
        kg; infinite where no inertia is stable, 0 without a delay.
    """
    if min(stiffness, damping, delay) < 0.0 or stiffness == 0.0:
        raise InputError(
            "hand and delay", found=f"{stiffness:g} N/m, {damping:g} N s/m, {delay:g} s", allowed="above 0"
        )
    if delay == 0.0:
        return 0.0
    if damping <= stiffness * delay:
        return math.inf
    ends = _SMALL / delay, 0.5 * math.pi / delay
    w = float(brentq(lambda w: math.atan2(w * damping, stiffness) - w * delay, *ends))
    return math.hypot(stiffness, w * damping) / w**2


@dataclass(frozen=True)
class AdmittanceCondition:
    """Verdict for an axis of the port in one mode.

    Attributes
    ----------
    axis, mode : str
    inertia : float
        That the hand moves, at the device, kg or kg m^2; infinite where the mode keeps the port in its place.
    required : float
        The least that is stable, in the same unit.
    """

    axis: str
    mode: str
    inertia: float
    required: float

    @property
    def stable(self) -> bool:
        """Whether the loop is stable."""
        return self.inertia > self.required


def assess_admittance(
    graph: ModeGraph,
    mode: str,
    *,
    stiffness: float,
    damping: float,
    delay: float,
    port: str = "",
    scale: float = 1.0,
    period: float = 1e-3,
) -> tuple[AdmittanceCondition, ...]:
    """Assess a model with a device that follows it, for each axis of a port.

    Parameters
    ----------
    graph : ModeGraph
        Coupled for such a device: ``coupled_graph(graph, admittance=True)``.
    mode : str
        In which the inertia is taken, at the model's initial state.
    stiffness, damping : float
        Of the hand, N/m and N s/m.
    delay : float
        Of the device, s: from a command to the motion and from a force to its sample; a tick is added.
    port : str
        Empty: the first.
    scale : float
        Of the device map.
    period : float
        Of the tick, s.

    Raises
    ------
    InputError
        Port or mode are unknown, or the graph is coupled for devices that measure motions.
    """
    required = least_inertia(stiffness, damping, delay + period)
    seen = inertia_seen(graph, mode, port)
    return tuple(AdmittanceCondition(axis, mode, scale**2 * value, required) for axis, value in seen.items())


def inertia_seen(graph: ModeGraph, mode: str, port: str = "") -> dict[str, float]:
    """Return the inertia that a force along each axis of a port moves in a mode, at the initial state, kg or kg m^2.

    Raises
    ------
    InputError
        Port or mode are unknown, or the graph is coupled for devices that measure motions.
    """
    coupled, automaton = port_of(graph, port), graph.automaton
    if not coupled.axes[0].is_applied_force:
        raise InputError(f"'{graph.name}' is coupled for impedance", remedy="coupled_graph(graph, admittance=True)")
    known = {found.name: found for found in automaton.modes}
    if mode not in known:
        raise InputError(f"no mode '{mode}'", allowed=", ".join(known), remedy=did_you_mean(mode, list(known)))
    layout = automaton.terms.layout
    begin = initial_values(automaton, graph.values, graph.parameters, {"settle": False})
    at_rest = {name: value for name, value in begin.values.items() if name in layout.q}
    here = find_initial_state(automaton, at_rest, mode, 0.0, begin.context)
    program = automaton.derive(known[mode].states, 0.0, here.x, here.context).programs.rhs
    n_q = len(layout.q)

    def rates(context: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(program.evaluate(0.0, here.x, context)["x_dot"])[n_q:]

    def speeds_at_port(u: NDArray[np.float64]) -> NDArray[np.float64]:
        x = here.x.copy()
        x[n_q:] = u
        return np.asarray(automaton.report.evaluate(0.0, x, here.context)["outputs"])

    names = list(automaton.mechanism.outputs)
    found = {}
    for axis in coupled.axes:
        pushed = here.context.copy()
        pushed[layout.w_slice.start + layout.w.index(axis.applied_force)] += 1.0
        response = rates(pushed) - rates(here.context)
        moved = (speeds_at_port(response) - speeds_at_port(np.zeros_like(response)))[names.index(axis.outputs[2])]
        found[axis.name] = 1.0 / float(moved) if moved > 0.0 else math.inf
    return found
