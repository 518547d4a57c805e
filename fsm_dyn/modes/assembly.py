"""Assembly: solve for coordinates and speeds that satisfy the rows of a mode, from prescribed values.

Values given are held.  What is not given is 0 as far as the rows leave it free (what is declared first stays
0 first); the rest is solved: coordinates by Newton's method, speeds by one linear solution
(docs/language.md, ``initial``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fsm_dyn.errors import NOWHERE, Location, ModelError
from fsm_dyn.modes.change_point_assembly import StartRows, motions_from
from fsm_dyn.modes.curve_parameters import Follow
from fsm_dyn.modes.elimination import Array
from fsm_dyn.modes.embedding import ActiveSet
from fsm_dyn.modes.least_squares import DEPENDENT, dependent_columns, least_squares, norm, product
from fsm_dyn.modes.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs import Program

NEWTON_STEPS = 100
NUDGES = (
    0.2,
    0.4,
    0.8,
    1.6,
    3.2,
    6.4,
)  # in the mechanism's own units: how far beside, where the start given leads nowhere
SOLVED = 1e-13
CONFLICT = 1e-9


@dataclass(frozen=True)
class PrescribedValues:
    """Values a start is to have: coordinates and speeds by name, and the time and context (inputs included).

    ``guess`` is where coordinates that are not given begin; what the rows leave free stays there.  ``places`` are
    those of the values that a model file gives.
    """

    coordinates: Mapping[str, float]
    speeds: Mapping[str, float]
    t: float
    context: Array
    guess: Mapping[str, float] = field(default_factory=dict)
    places: Mapping[str, Location] = field(default_factory=dict)


def assemble(
    system: UnconstrainedSystem, states: Sequence[int], given: PrescribedValues, follow: Follow = np.copy
) -> Array:
    """Return the state ``x = [q, u]`` of a start in the mode with these contact states.

    Parameters
    ----------
    follow : callable
        Puts the parameters of contacts on curves where they belong
        (:func:`fsm_dyn.modes.curve_parameters.curve_parameter_solver`).

    Raises
    ------
    ModelError
        The values given contradict the rows, or the configuration cannot be assembled.
    """
    active = ActiveSet.of(system, states)
    q = _coordinates(system, active, given, follow)
    if active.rows and any(given.speeds.values()):
        return _moving(system, active, given, follow, q)
    return np.concatenate([q, _speeds(system, active, given, q)[0]])


def _moving(system: UnconstrainedSystem, active: ActiveSet, given: PrescribedValues, follow: Follow, q: Array) -> Array:
    """Return the state of a start with speeds, which rows may determine badly near a change point."""
    u, contradiction = _speeds(system, active, given, q, raises=False)
    unit = np.ones(len(u)) if system.units is None else system.units.u
    motions = motions_from(_rows_about(system, active, given, follow), q, u / unit)
    if len(motions) > 1:
        raise ModelError(
            "the run starts in a change point, and several motions have the speeds given",
            found=" or ".join(_listing(system.layout.u, speeds * unit) for _, speeds in motions),
            remedy="give more of the speeds under initial, or a configuration farther from the change point",
        )
    if motions:
        return np.concatenate([follow(motions[0][0]), motions[0][1] * unit])
    if contradiction is not None:
        raise contradiction
    return np.concatenate([q, u])


def _rows_about(system: UnconstrainedSystem, active: ActiveSet, given: PrescribedValues, follow: Follow) -> StartRows:
    """Return the rows of a mode as functions of configuration and speeds."""
    layout, rows = system.layout, list(active.rows)
    n_u = len(layout.u)
    q_unit, u_unit, lengths, speeds, time = (
        np.ones(len(layout.q)),
        np.ones(n_u),
        np.ones(len(rows)),
        np.ones(len(rows)),
        1.0,
    )
    if system.units is not None:
        q_unit, u_unit, time = system.units.q, system.units.u, system.units.scales.time
        lengths = system.units.scales.length * system.units.rows[rows]
        speeds = lengths / time
    closed = [k for k, row in enumerate(rows) if system.rows[row].positional]

    def ways(q: Array) -> Array:
        return free_directions(system, q, ())

    def closure(q: Array) -> tuple[Array, Array]:
        values = system.configuration.evaluate(given.t, np.concatenate([follow(q), np.zeros(n_u)]), given.context)
        chosen, size = [rows[k] for k in closed], lengths[closed]
        slopes = product(values["jacobian"][chosen], ways(q))
        return values["residual"][chosen] / size, slopes / size[:, None]

    def motion(q: Array, u: Array) -> tuple[Array, Array, Array]:
        values = system.evaluate(given.t, np.concatenate([follow(q), u * u_unit]), given.context)
        A = values["A"][rows][:, :n_u] * u_unit / speeds[:, None]
        return A, values["b"][rows] / speeds, values["q_dot"] * time

    def curvature(q: Array, several: Array) -> Array:
        x = np.concatenate([np.tile(follow(q), (len(several), 1)), several * u_unit], axis=1)
        values = system.evaluate(given.t, x, np.tile(given.context, (len(several), 1)))
        return np.asarray(values["gamma"][:, rows] / speeds * time)

    held = [i for i, name in enumerate(layout.q) if name in given.coordinates]
    directions = ways(np.array([given.coordinates.get(name, given.guess.get(name, 0.0)) for name in layout.q]))
    first = [i for i in range(directions.shape[1]) if directions[held, i].any()]
    moving = [i for i, name in enumerate(layout.u) if name in given.speeds]
    return StartRows(
        closure, motion, curvature, ways, lambda q, change: _moved(system, q, change),
        [*first, *(i for i in range(directions.shape[1]) if i not in first)],
        [*moving, *(i for i in range(n_u) if i not in moving)], held, moving, q_unit,
    )  # fmt: skip


def _coordinates(system: UnconstrainedSystem, active: ActiveSet, given: PrescribedValues, follow: Follow) -> Array:
    layout = system.layout
    q = np.array([given.coordinates.get(name, given.guess.get(name, 0.0)) for name in layout.q])
    for first in system.quaternions:
        names = layout.q[first : first + 4]
        # the turn is no turn, or what the others leave of a unit norm
        if names[0] not in given.coordinates and names[0] not in given.guess:
            q[first] = np.sqrt(max(0.0, 1.0 - norm(q[first + 1 : first + 4]) ** 2))
        size = norm(q[first : first + 4])
        if size == 0.0:
            raise ModelError("Euler parameters cannot all be zero", found=", ".join(names))
        q[first : first + 4] /= size
    rows = [r for r in active.rows if system.rows[r].positional]
    if not rows:
        return follow(q)
    return follow(_close(system, system.configuration, rows, q, given, follow))


def free_directions(system: UnconstrainedSystem, q: Array, given: Collection[str]) -> Array:
    """Ways in which the coordinates not given may change, each by its unit, shape (n_q, n_ways), in declared order.

    A coordinate changes by itself; Euler parameters, none of which is given, by turns about the body's three axes.
    """
    quaternion = {first + k: first for first in system.quaternions for k in range(4)}
    ways = []
    for i, name in enumerate(system.layout.q):
        if i not in quaternion and name not in given and i not in system.curve_parameters:
            ways.append(np.eye(len(q))[i])
        elif i in system.quaternions and not any(other in given for other in system.layout.q[i : i + 4]):
            e0, e1, e2, e3 = q[i : i + 4]
            for turn in ((-e1, e0, e3, -e2), (-e2, -e3, e0, e1), (-e3, e2, -e1, e0)):
                way = np.zeros(len(q))
                way[i : i + 4] = 0.5 * np.array(turn)
                ways.append(way)
    return (np.array(ways).reshape(len(ways), len(q)) * (1.0 if system.units is None else system.units.q)).T


def _close(
    system: UnconstrainedSystem,
    program: Program,
    rows: Sequence[int],
    q: Array,
    given: PrescribedValues,
    follow: Follow,
) -> Array:
    """Solve the rows' residuals from ``q``; where nothing leads on (links in one line), from beside it."""
    u = np.zeros(len(system.layout.u))
    sizes = np.ones(len(rows)) if system.units is None else system.units.scales.length * system.units.rows[list(rows)]

    def terms(at: Array) -> tuple[Array, Array]:
        values = program.evaluate(given.t, np.concatenate([follow(at), u]), given.context)
        return values["residual"][list(rows)] / sizes, values["jacobian"][list(rows)] / sizes[:, None]

    found, residual = _newton(system, terms, q, given)
    random = np.random.default_rng(20030818)
    for size in NUDGES:
        if np.abs(residual).max() <= CONFLICT:
            return found
        ways = free_directions(system, q, given.coordinates)
        nudge = size * random.uniform(-1.0, 1.0, (ways.shape[1],))
        # only what would be solved for is nudged: what is free stays where it is
        dependent = dependent_columns(
            product(terms(_moved(system, q, product(ways, nudge)))[1], ways), range(ways.shape[1])
        )
        start = _moved(system, q, product(ways[:, dependent], nudge[dependent]))
        other, other_residual = _newton(system, terms, start, given)
        if np.abs(other_residual).max() < np.abs(residual).max() or not np.isfinite(residual).all():
            found, residual = other, other_residual
    if np.abs(residual).max() <= CONFLICT:
        return found
    worst = int(np.argmax(np.abs(residual)))
    held = _conflicting(system.layout.q, given.coordinates, terms(found)[1][worst])
    raise ModelError(
        f"the start cannot be assembled: '{system.rows[rows[worst]].name}' is not satisfied"
        + (f" with {_listing(held, [given.coordinates[name] for name in held])}" if held else ""),
        _place(held, given),
        found=f"a residual of {residual[worst] * sizes[worst]:.6g} in what comes nearest, "
        + _listing(system.layout.q, found),
        remedy=(f"leave out {' or '.join(held)}, or begin in another mode; " if held else "")
        + "put values nearer to a configuration that closes under `initial: {guess: ...}`; if there is none, the "
        "lengths do not fit",
    )


def _conflicting(names: Sequence[str], given: Mapping[str, float], slopes: Array) -> list[str]:
    """Return the values given on which a row depends, of which ``slopes`` are the derivatives by all of them."""
    return [name for name, slope in zip(names, slopes, strict=True) if name in given and slope]


def _place(names: Sequence[str], given: PrescribedValues) -> Location:
    """Return where a file gives the last of these values."""
    return max((given.places[name] for name in names if name in given.places), default=NOWHERE)


def _moved(system: UnconstrainedSystem, q: Array, step: Array) -> Array:
    moved = q + step
    for first in system.quaternions:
        moved[first : first + 4] /= norm(moved[first : first + 4])
    return moved


def _newton(
    system: UnconstrainedSystem, terms: Callable[[Array], tuple[Array, Array]], q: Array, given: PrescribedValues
) -> tuple[Array, Array]:
    """Newton's method, damped after Levenberg and Marquardt; returns the coordinates and what residual is left.

    Undamped it would leap by thousands of turns out of configurations that are nearly in one line; the damping
    therefore only goes as the residual does.
    """
    residual, jacobian = terms(q)
    first, damping = max(norm(residual) ** 2, 1e-300), 1.0
    for _ in range(NEWTON_STEPS):
        solved = bool(np.abs(residual).max() <= SOLVED)
        ways = free_directions(system, q, given.coordinates)
        slopes = product(jacobian, ways)
        dependent = dependent_columns(slopes, range(ways.shape[1])) if np.isfinite(slopes).all() else []
        if not dependent or not residual.any():
            break
        slopes = slopes[:, dependent]
        strength = 0.0 if solved else max(damping, 0.3 * min(1.0, norm(residual) ** 2 / first))
        brake = np.sqrt(strength) * np.diag(np.sqrt((slopes**2).sum(axis=0)))
        right = np.concatenate([-residual, np.zeros(len(dependent))])
        step = least_squares(np.vstack([slopes, brake]), right, DEPENDENT)
        trial = _moved(system, q, product(ways[:, dependent], step))
        new_residual, new_jacobian = terms(trial)
        if solved:  # one step more, undamped, for the last digits
            return (trial, new_residual) if np.abs(new_residual).max() <= np.abs(residual).max() else (q, residual)
        before, expected = norm(residual) ** 2, norm(residual + product(slopes, step)) ** 2
        gain = (before - norm(new_residual) ** 2) / max(before - expected, 1e-300)
        if np.isfinite(new_jacobian).all() and gain > 0.1:
            q, residual, jacobian = trial, new_residual, new_jacobian
            damping *= 0.1 if gain > 0.75 else 1.0 if gain > 0.25 else 4.0
        else:
            damping = 10.0 * max(damping, 1e-6)
    return q, residual


def _speeds(
    system: UnconstrainedSystem, active: ActiveSet, given: PrescribedValues, q: Array, *, raises: bool = True
) -> tuple[Array, ModelError | None]:
    """Return the speeds as the rows give them, and how those given contradict the rows, if that is not raised."""
    layout = system.layout
    n_u = len(layout.u)
    u = np.array([given.speeds.get(name, 0.0) for name in layout.u])
    rows = list(active.rows)
    if not rows:
        return u, None
    values = system.evaluate(given.t, np.concatenate([q, u]), given.context)
    sizes, unit = np.ones(len(rows)), np.ones(n_u)
    if system.units is not None:
        sizes, unit = system.units.speed * system.units.rows[rows], system.units.u
    A, b, u = values["A"][rows][:, :n_u] * unit / sizes[:, None], values["b"][rows] / sizes, u / unit
    free = [i for i, name in enumerate(layout.u) if name not in given.speeds]
    dependent = dependent_columns(A, free)
    if dependent:
        u[dependent] += least_squares(A[:, dependent], -(product(A, u) + b), DEPENDENT)
    residual = product(A, u) + b
    worst = int(np.argmax(np.abs(residual)))
    if np.isfinite(residual).all() and abs(residual[worst]) > CONFLICT * (1.0 + float(np.abs(u).max())):
        held = _conflicting(layout.u, given.speeds, A[worst])
        contradiction = ModelError(
            f"the speeds given at the start contradict '{system.rows[rows[worst]].name}'",
            _place(held, given),
            found=f"{residual[worst] * sizes[worst]:.6g} instead of 0 at " + _listing(layout.u, u * unit),
            remedy=f"leave out {' or '.join(held)}, and it is solved for; or begin in another mode"
            if held
            else "begin in another mode",
        )
        if raises:
            raise contradiction
        return u * unit, contradiction
    return u * unit, None


def _listing(names: Collection[str], values: Iterable[float]) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, values, strict=True))
