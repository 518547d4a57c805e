"""Unknowns and operations of one mode by several methods, and its state variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.automaton.mode_view import ModeView
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.draw.svg import table
from fsm_dyn.language.model import Mechanism

SEED: Final = 20030818


def dense_solution(unknowns: int) -> int:
    """Return the operations by which a dense symmetric system is solved, by L D Lᵀ.

    Elimination below a pivot with m rows takes m quotients, m (m + 1) for the matrix and 2 m for the right side, back
    substitution 2 m and a quotient.
    """
    return sum(m * m + 6 * m + 1 for m in range(unknowns))


@dataclass(frozen=True)
class MethodCount:
    """One method.

    Attributes
    ----------
    method : str
    unknowns : int
        Accelerations and forces solved for at every evaluation; 0 if the solution is written out.
    form, solve, together : int or None
        Operations to form the equations, to solve them as a dense symmetric system (zeros are not used), and both;
        None if they are not counted.
    """

    method: str
    unknowns: int
    form: int | None
    solve: int | None
    together: int | None


@dataclass(frozen=True)
class MethodTable:
    """Methods for one mode of a model; printed as a table."""

    model: str
    mode: str
    methods: tuple[MethodCount, ...]

    def __str__(self) -> str:
        rows = [
            (m.method, str(m.unknowns), *("" if n is None else str(n) for n in (m.form, m.solve, m.together)))
            for m in self.methods
        ]
        return f"{self.model}, mode '{self.mode}'\n" + table(("method", "unknowns", "form", "solve", "together"), rows)


def count_methods(model: str | Mechanism | ModeGraph, mode: str | None = None) -> MethodTable:
    """Count unknowns and operations of a mode by Newton and Euler, Lagrange, and Kane.

    Newton's and Euler's equations have the coordinates of every body and a force for each that the others determine;
    Lagrange's the rates of the coordinates and multipliers; Kane's the speeds and multipliers, or with the rows
    embedded the independent speeds alone, whose solution is written out.

    Parameters
    ----------
    model : str, Mechanism or ModeGraph
    mode : str, optional
        By default the one runs start in.

    Returns
    -------
    MethodTable

    Raises
    ------
    InputError
        There is no such mode.
    """
    graph = model if isinstance(model, ModeGraph) else compile_model(model)
    name = graph.initial if mode is None else mode
    if name not in graph.modes:
        raise InputError(f"no mode '{name}'", allowed=", ".join(graph.modes), remedy=did_you_mean(name, graph.modes))
    view = graph.modes[name]
    kane = view.kane_equations
    bodies, p = body_coordinates(graph, view), len(kane.independent)
    found = [_with_solution("Newton and Euler, bodies and reactions", 2 * bodies - p, None)]
    mechanism = graph.automaton.mechanism
    if not any(frame.euler_names for frame in mechanism.frames.values()):
        lagrange = kane.lagrange()
        unknowns = len(lagrange.coordinates) + len(lagrange.rows)
        found.append(_with_solution("Lagrange, rates and multipliers", unknowns, lagrange.counts.total))
    form = kane.part("M", "f", "A", "gamma").counts().total
    found.append(_with_solution("Kane, speeds and multipliers", len(kane.speeds) + len(kane.rows), form))
    found.append(MethodCount("Kane, embedded", p, None, None, kane.counts.together.total))
    found.append(MethodCount("Kane, embedded, compact", p, None, None, kane.compact_program().counts().total))
    return MethodTable(graph.name, name, tuple(found))


def _with_solution(method: str, unknowns: int, form: int | None) -> MethodCount:
    solve = dense_solution(unknowns)
    return MethodCount(method, unknowns, form, solve, None if form is None else form + solve)


def body_coordinates(graph: ModeGraph, view: ModeView) -> int:
    """Return the number of coordinates of the bodies without joints: 6 each, in the plane 3.

    A particle counts as a body, since rows and loads may refer to a frame that turns with it.
    """
    generator = np.random.default_rng(SEED)
    q = generator.uniform(0.3, 1.3, len(graph.automaton.terms.layout.q))
    moved, turned = np.asarray(view.partial_velocities(q)), np.asarray(view.partial_angular_velocities(q))
    planar = not np.abs(moved[..., 2]).any() and not np.abs(turned[..., :2]).any()
    return (3 if planar else 6) * len(graph.automaton.mechanism.bodies)


# -- State variables -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateVariables:
    """Numbers of Gillespie (2003), Table 1, for one mode.

    Attributes
    ----------
    mode : str
    bodies : int
    M : int
        Configuration constraints, embedded by the choice of coordinates.
    n : int
        Coordinates.
    m : int
        Motion constraints, embedded by the choice of speeds or by the rows of the mode.
    p : int
        Independent speeds, ``n - m``; n + p state variables against 2 n with Lagrange's method.
    """

    mode: str
    bodies: int
    M: int
    n: int
    m: int
    p: int


def state_variables(model: str | Mechanism | ModeGraph) -> tuple[StateVariables, ...]:
    """Return the numbers of bodies, constraints, coordinates and speeds of each mode, as Gillespie's Table 1 has them.

    Parameters
    ----------
    model : str, Mechanism or ModeGraph
    """
    graph = model if isinstance(model, ModeGraph) else compile_model(model)
    bodies = len(graph.automaton.mechanism.bodies)
    n = len(graph.automaton.terms.layout.q) - len(graph.automaton.quaternions)
    found = []
    for name, view in graph.modes.items():
        p = view.degrees_of_freedom
        found.append(StateVariables(name, bodies, body_coordinates(graph, view) - n, n, n - p, p))
    return tuple(found)
