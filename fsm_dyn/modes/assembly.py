"""Assembly: find coordinates and speeds that satisfy the rows of a mode, from the values given.

Values given are held.  What is not given is 0 as far as the rows leave it free (what is declared first stays
0 first); the rest is solved: coordinates by Newton's method, speeds by one linear solution
(docs/language.md, ``initial``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsm_dyn.errors import ModelError
from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.modes.system import System
from fsm_dyn.programs import Program, gradient

NEWTON_STEPS = 60
SOLVED = 1e-13
CONFLICT = 1e-9
DEPENDENT = 1e-9


@dataclass(frozen=True)
class Given:
    """Values a start is to have: coordinates and speeds by name, and the time and context (inputs included)."""

    coordinates: Mapping[str, float]
    speeds: Mapping[str, float]
    t: float
    context: Array


def assemble(system: System, states: Sequence[int], given: Given) -> Array:
    """Return the state ``x = [q, u]`` of a start in the mode with these contact states.

    Raises
    ------
    ModelError
        The values given contradict the rows, or the configuration cannot be assembled.
    """
    active = ActiveSet.of(system, states)
    q = _coordinates(system, active, given)
    u = _speeds(system, active, given, q)
    return np.concatenate([q, u])


def _coordinates(system: System, active: ActiveSet, given: Given) -> Array:
    layout = system.layout
    q = np.array([given.coordinates.get(name, 0.0) for name in layout.q])
    for first in system.quaternions:
        names = layout.q[first : first + 4]
        if names[0] not in given.coordinates:  # the turn is no turn, or what the others leave of a unit norm
            q[first] = np.sqrt(max(0.0, 1.0 - float(q[first + 1 : first + 4] @ q[first + 1 : first + 4])))
        norm = float(np.linalg.norm(q[first : first + 4]))
        if norm == 0.0:
            raise ModelError("Euler parameters cannot all be zero", found=", ".join(names))
        q[first : first + 4] /= norm
    rows = [r for r in active.rows if system.rows[r].positional]
    if not rows:
        return q
    return _newton(system, configuration_program(system), rows, q, given)


def configuration_program(system: System) -> Program:
    """Residuals of all rows and their derivatives with respect to the coordinates."""
    residual = list(system.nodes["residual"])
    q = [system.symbols[name] for name in system.layout.q]
    columns = gradient(residual, q)
    jacobian = np.empty((len(residual), len(q)), dtype=object)
    for i in range(len(residual)):
        for j in range(len(q)):
            jacobian[i, j] = columns[i][j]
    return Program.from_nodes(system.layout, {"residual": np.array(residual, dtype=object), "jacobian": jacobian})


def free_directions(system: System, q: Array, given: Collection[str]) -> Array:
    """Ways in which the coordinates not given may change, shape (n_q, n_ways), in declared order.

    A coordinate changes by itself; Euler parameters, none of which is given, by turns about the body's three axes.
    """
    quaternion = {first + k: first for first in system.quaternions for k in range(4)}
    ways = []
    for i, name in enumerate(system.layout.q):
        if i not in quaternion and name not in given:
            ways.append(np.eye(len(q))[i])
        elif i in system.quaternions and not any(other in given for other in system.layout.q[i : i + 4]):
            e0, e1, e2, e3 = q[i : i + 4]
            for turn in ((-e1, e0, e3, -e2), (-e2, -e3, e0, e1), (-e3, e2, -e1, e0)):
                way = np.zeros(len(q))
                way[i : i + 4] = 0.5 * np.array(turn)
                ways.append(way)
    return np.array(ways).reshape(len(ways), len(q)).T


def _newton(system: System, program: Program, rows: Sequence[int], q: Array, given: Given) -> Array:
    u = np.zeros(len(system.layout.u))

    def terms(at: Array) -> tuple[Array, Array]:
        values = program.evaluate(given.t, np.concatenate([at, u]), given.context)
        return values["residual"][list(rows)], values["jacobian"][list(rows)]

    residual, jacobian = terms(q)
    for _ in range(NEWTON_STEPS):
        size = float(np.abs(residual).max())
        if size <= SOLVED:
            break
        ways = free_directions(system, q, given.coordinates)
        slopes = jacobian @ ways
        dependent = dependent_columns(slopes, range(ways.shape[1]))
        if not dependent:
            break
        step = ways[:, dependent] @ np.linalg.lstsq(slopes[:, dependent], -residual, rcond=DEPENDENT)[0]
        factor = 1.0
        while True:
            trial = q + factor * step
            for first in system.quaternions:
                trial[first : first + 4] /= np.linalg.norm(trial[first : first + 4])
            new_residual, new_jacobian = terms(trial)
            if factor < 1e-4 or np.abs(new_residual).max() < size or np.abs(new_residual).max() <= SOLVED:
                break
            factor *= 0.5
        q, residual, jacobian = trial, new_residual, new_jacobian
    if not np.abs(residual).max() <= CONFLICT:
        worst = int(np.argmax(np.abs(residual)))
        name = system.rows[rows[worst]].name
        raise ModelError(
            f"the start cannot be assembled: '{name}' is not satisfied",
            found=f"a residual of {residual[worst]:.6g} at " + _listing(system.layout.q, q),
            remedy="give fewer coordinates under initial, or values nearer to a configuration that closes",
        )
    return q


def dependent_columns(matrix: Array, free: Sequence[int]) -> list[int]:
    """Choose, from the columns ``free``, as few as give the rows their rank; later ones are preferred."""
    scale = float(np.abs(matrix).max()) if matrix.size else 0.0
    chosen: list[int] = []
    basis = np.zeros((matrix.shape[0], 0))
    for column in reversed(free):
        vector = matrix[:, column].copy()
        for _ in range(2):
            vector = vector - basis @ (basis.T @ vector)
        norm = float(np.linalg.norm(vector))
        if norm > DEPENDENT * max(scale, 1e-300):
            basis = np.column_stack([basis, vector / norm])
            chosen.append(column)
    return sorted(chosen)


def _speeds(system: System, active: ActiveSet, given: Given, q: Array) -> Array:
    layout = system.layout
    n_u = len(layout.u)
    u = np.array([given.speeds.get(name, 0.0) for name in layout.u])
    rows = list(active.rows)
    if not rows:
        return u
    values = system.evaluate(given.t, np.concatenate([q, u]), given.context)
    A, b = values["A"][rows][:, :n_u], values["b"][rows]
    free = [i for i, name in enumerate(layout.u) if name not in given.speeds]
    dependent = dependent_columns(A, free)
    if dependent:
        u[dependent] += np.linalg.lstsq(A[:, dependent], -(A @ u + b), rcond=DEPENDENT)[0]
    residual = A @ u + b
    worst = int(np.argmax(np.abs(residual)))
    if not abs(residual[worst]) <= CONFLICT * (1.0 + float(np.abs(u).max())):
        raise ModelError(
            f"the speeds given at the start contradict '{system.rows[rows[worst]].name}'",
            found=f"{residual[worst]:.6g} instead of 0 at " + _listing(layout.u, u),
            remedy="give fewer speeds under initial, or another mode",
        )
    return u


def _listing(names: Collection[str], values: Array) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values, strict=True))
