"""Assembly: coordinates and speeds under the rows of a mode, also next to change points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import NOWHERE, Location, ModelError
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.elimination import DEPENDENT, dependent_columns, least_squares, norm, product
from fsm_dyn.derive.embedding import ActiveSet
from fsm_dyn.derive.unconstrained_system import UnconstrainedSystem
from fsm_dyn.programs.program import Program

# -- Starts in a change point or close to it -----------------------------------------------------------------
#
# Unspecified coordinates and speeds are limits along the motion. If constraint rows have nearly lost rank, the error of
# a coordinate is that of a residual divided by the remainder of the rows, and the error of a speed is divided by it
# once more. Configurations on both sides of the start, brought onto rows with larger remainders, have neither error;
# the polynomial through them gives the start (docs/theory.md, "Change points"). In the change point itself the motion
# begins along the solutions of the rows' second derivative.

WEAK: Final = 1e-3  # remainder of a row; below it the start may be close to a change point
BLURRED: Final = 1e-5  # remainder of a row; below it the rows alone do not determine the speeds
FIRM: Final = 1e-2  # least remainder of reliable rows and columns
REDUNDANT: Final = 1e-9
TURN: Final = 0.05  # step of a coordinate from one configuration to the next, relative to its size
WEIGHTS: Final = (8.0 / 5.0, -4.0 / 5.0, 8.0 / 35.0, -1.0 / 35.0)  # of each pair, see runtime/change_point_start.c
LANDED: Final = 1e-12
MOVES: Final = 20  # of Newton's method
REFINED: Final = 3  # number of limits, each along the speeds of the previous one
SAME: Final = 1e-6  # relative difference of equal speeds
EXACT: Final = 1e-9  # the same of solutions of equations
NEAREST: Final = 1e-8  # in own units: accuracy of coordinates in a change point
FARTHEST: Final = 1.5  # power of ten of the largest start of this search, in given speeds
LOOKS: Final = 4  # next to the start, whether more rows are independent there
STARTS: Final = 4  # of the search for the solutions of the second derivative, and as many for each vanishing row

Motion = tuple[Floats, Floats]  # coordinates (n_q,) and speeds (n_u,)


@dataclass(frozen=True)
class StartRows:
    """The rows of a mode about a start.

    Residuals, ``A``, ``b`` and speeds are in the mechanism's own units, coordinates in SI units.
    """

    # from a configuration (n_q,): residuals (m,), and their derivatives along its free directions (m, n_ways)
    closure: Callable[[Floats], tuple[Floats, Floats]]
    # ``A`` (m, n_u), ``b`` (m,) and the rates of the coordinates (n_q,) of a configuration and speeds
    motion: Callable[[Floats, Floats], tuple[Floats, Floats, Floats]]
    curvature: Callable[[Floats, Floats], Floats]  # ``gamma`` (k, m) of a configuration and several speeds (k, n_u)
    ways: Callable[[Floats], Floats]  # the free directions of a configuration (n_q, n_ways)
    move: Callable[[Floats, Floats], Floats]  # the configuration changed by (n_q,)
    # order_of_ways, order_of_speeds: columns in the order of choice as independent ones: given quantities come first
    order_of_ways: Sequence[int]
    order_of_speeds: Sequence[int]
    given_coordinates: Sequence[int]
    given_speeds: Sequence[int]
    q_unit: Floats  # shape (n_q,)

    def matrix(self, q: Floats) -> Floats:
        """Return the matrix of the rows at a configuration."""
        return self.motion(q, np.zeros(len(self.order_of_speeds)))[0]


def motions_from(rows: StartRows, q: Floats, u: Floats) -> list[Motion]:
    """Return the starts of motions near ``q`` with the given speeds of ``u``.

    None if the start is not near a change point, or no branch has these speeds. ``q``, shape (n_q,): the configuration
    solved from the rows; ``u``, shape (n_u,): the speeds solved from the rows there.
    """
    A, b, _ = rows.motion(q, u)
    left, combinations = remainders(A)
    weak = left < WEAK * left[0]
    if not weak.any() or not u.any() or np.abs(b).max() > EXACT:  # moving rows change with time
        return []
    if not _rank_grows(rows, q, u, int((~weak).sum())):
        return []
    candidates = [u]
    if left[weak].min() < BLURRED * left[0]:
        candidates = _solutions(rows, q, u, combinations[~weak], combinations[weak])
    found: list[Motion] = []
    for candidate in candidates:
        motion = _limit(rows, q, candidate)
        if motion is not None and not any(_same(motion[1], other[1]) for other in found):
            found.append(motion)
    return _through(rows, q, found)


def remainders(rows: Floats) -> tuple[Floats, Floats]:
    """Return the remainder of each row after the projection on previous ones, the largest first, with the projections.

    ``rows``, shape (m, n). Returns ``left``, shape (m,); ``combinations``, shape (m, m): ``combinations @ rows`` are
    the remainders, in the same order.
    """
    work, combinations = rows.copy(), np.eye(len(rows))
    order = list(range(len(rows)))
    for k in range(len(rows)):
        sizes = [norm(work[i]) for i in order[k:]]
        best = k + int(np.argmax(sizes))
        order[k], order[best] = order[best], order[k]
        row, square = order[k], sizes[best - k] ** 2
        if k and sizes[best - k] <= REDUNDANT * norm(work[order[0]]):
            break
        for i in order[k + 1 :]:
            share = float((work[i] * work[row]).sum()) / max(square, 1e-300)
            work[i] -= share * work[row]
            combinations[i] -= share * combinations[row]
    return np.array([norm(work[i]) for i in order]), combinations[order]


def _rank_grows(rows: StartRows, q: Floats, u: Floats, rank: int) -> bool:
    """Whether more rows are independent next to a start than at it; those redundant everywhere are not.

    Nearby configurations are taken along the known speeds and along others, as the known ones may lead back into the
    change point.
    """
    random = np.random.default_rng(20030818)
    for look in range(LOOKS):
        _, _, rates = rows.motion(q, u + (look > 0) * float(np.abs(u).max()) * random.uniform(-1.0, 1.0, len(u)))
        nearby = _landed(rows, rows.move(q, 2.0 * _pace(rows, q, rates) * rates), None)
        if nearby is not None:
            left, _ = remainders(rows.matrix(nearby))
            if int((left >= WEAK * left[0]).sum()) > rank:
                return True
    return False


def _pace(rows: StartRows, q: Floats, rates: Floats) -> float:
    """Return the time for a step of a coordinate by a small part of its size."""
    return TURN / max(float((np.abs(rates) / (rows.q_unit + np.abs(q))).max()), 1e-300)


def _landed(rows: StartRows, q: Floats, columns: Sequence[int] | None) -> Floats | None:
    """Return the configuration put on the rows, by all ways or by some of them; None if there is none."""
    for _ in range(MOVES):
        residual, slopes = rows.closure(q)
        if not len(residual):
            return q
        chosen = list(range(slopes.shape[1]) if columns is None else columns)
        if not np.isfinite(slopes).all() or not chosen:
            return None
        step = least_squares(slopes[:, chosen], -residual, REDUNDANT)
        q = rows.move(q, product(rows.ways(q)[:, chosen], step))
        if np.abs(step).max() <= LANDED:
            break
    return q if np.abs(rows.closure(q)[0]).max(initial=0.0) <= LANDED else None


def _dependent(matrix: Floats, order: Sequence[int]) -> list[int]:
    """Return dependent columns with the rank of a matrix, preferably the last ones of an order if firm enough."""
    everything = dependent_columns(matrix, order)
    firm = dependent_columns(matrix, order, FIRM)
    return firm if len(firm) == len(everything) else everything


def _limit(rows: StartRows, q: Floats, u: Floats) -> Motion | None:
    """Return the start of the motion along the branch of the speeds ``u`` from ``q``, if there is one."""
    found = None
    for _ in range(REFINED):
        motion = _limit_along(rows, q, u)
        if motion is None:
            return None
        converged = found is not None and np.abs(motion[1] - found[1]).max() <= LANDED * np.abs(motion[1]).max()
        found, u = motion, motion[1]
        if converged:
            break
    return found


def _limit_along(rows: StartRows, q: Floats, u: Floats) -> Motion | None:
    """Return coordinates and speeds in the middle of configurations on both sides along ``u``."""
    _, _, rates = rows.motion(q, u)
    time = _pace(rows, q, rates)
    nearby = _landed(rows, rows.move(q, 2.0 * time * rates), None)
    if nearby is None:
        return None
    ways = _dependent(rows.closure(nearby)[1], rows.order_of_ways)
    speeds = _dependent(rows.matrix(nearby), rows.order_of_speeds)
    mean_q, mean_u = np.zeros(len(q)), np.zeros(len(u))
    for k, weight in enumerate(WEIGHTS, 1):
        for side in (1.0, -1.0):
            aside = rows.move(q, side * k * time * rates)
            there = _landed(rows, aside, ways)
            if there is None or np.abs((there - aside) / (rows.q_unit + np.abs(q))).max() > 0.5 * k * TURN:
                return None
            moving = _completed(rows, there, u, speeds)
            if moving is None:
                return None
            mean_q += 0.5 * weight * there
            mean_u += 0.5 * weight * moving
    q_given, u_given = list(rows.given_coordinates), list(rows.given_speeds)
    if np.abs((mean_q - q)[q_given] / rows.q_unit[q_given]).max(initial=0.0) > NEAREST:
        return None
    if np.abs((mean_u - u)[u_given]).max(initial=0.0) > SAME * np.abs(u).max():
        return None
    mean_q[q_given], mean_u[u_given] = q[q_given], u[u_given]
    return mean_q, mean_u


def _completed(rows: StartRows, q: Floats, u: Floats, columns: Sequence[int]) -> Floats | None:
    """Return the speeds, some columns of them solved from the rows; None if they contradict the rows."""
    A, b, _ = rows.motion(q, u)
    found = u.copy()
    chosen = list(columns)
    found[chosen] += least_squares(A[:, chosen], -(product(A, u) + b), REDUNDANT)
    return found if np.abs(product(A, found) + b).max() <= EXACT * (1.0 + np.abs(found).max()) else None


def _through(rows: StartRows, q: Floats, found: list[Motion]) -> list[Motion]:
    """Return the motion with the branch through the configuration; all motions if it is unknown."""
    away = sorted(float(np.abs((other - q) / rows.q_unit).max()) for other, _ in found)
    if len(found) < 2 or away[1] < NEAREST or away[0] > 0.1 * away[1]:
        return found
    return [one for one in found if float(np.abs((one[0] - q) / rows.q_unit).max()) == away[0]]


def _same(one: Floats, other: Floats) -> bool:
    return bool(np.abs(one - other).max() <= SAME * max(np.abs(one).max(), np.abs(other).max()))


def _solutions(rows: StartRows, q: Floats, u: Floats, strong: Floats, vanishing: Floats) -> list[Floats]:
    """Return the speeds allowed by the rows in a change point, from several starts of the search.

    ``strong``, shape (r, m): combinations of independent rows. ``vanishing``, shape (k, m): combinations with small
    remainders; their second derivative has to vanish along the motion.
    """
    free = [i for i in rows.order_of_speeds if i not in rows.given_speeds]
    found = _roots(rows, q, u, strong, vanishing, free)
    for one in found:  # speeds left free by the rows stay unchanged
        _, _, rates = rows.motion(q, one)
        nearby = _landed(rows, rows.move(q, 2.0 * _pace(rows, q, rates) * rates), None)
        if nearby is not None:
            chosen = [i for i in _dependent(rows.matrix(nearby), rows.order_of_speeds) if i not in rows.given_speeds]
            return found if len(chosen) == len(free) else _roots(rows, q, u, strong, vanishing, chosen)
    return found


def _roots(
    rows: StartRows, q: Floats, u: Floats, strong: Floats, vanishing: Floats, free: Sequence[int]
) -> list[Floats]:
    """Return solutions of the rows in a change point, by Newton's method in the free speeds."""
    A, b, _ = rows.motion(q, u)
    size = float(np.abs(u).max())
    columns = list(free)

    def equations(at: Floats) -> Floats:
        (gamma,) = rows.curvature(q, at[None])
        return np.concatenate([product(strong, product(A, at) + b), product(vanishing, gamma) / size])

    def slopes(at: Floats) -> Floats:
        steps = size * np.eye(len(at))[columns]  # exact, as the equations are of the second degree
        change = (rows.curvature(q, at + steps) - rows.curvature(q, at - steps)).T / (2.0 * size)
        return np.concatenate([product(strong, A[:, columns]), product(vanishing, change) / size])

    random = np.random.default_rng(20030818)
    found: list[Floats] = []
    for start in range(STARTS + STARTS * len(vanishing)):
        at = u.copy()
        if start:
            at[columns] += size * 10.0 ** random.uniform(0.0, FARTHEST) * random.uniform(-1.0, 1.0, len(columns))
        for _ in range(MOVES):
            value = equations(at)
            if np.abs(value).max() <= EXACT * size:
                break
            at[columns] -= least_squares(slopes(at), value, REDUNDANT)
        if np.abs(equations(at)).max() <= EXACT * size and not any(_same(at, other) for other in found):
            found.append(at)
    return found


# -- Curve parameters ----------------------------------------------------------------------------------------
#
# Position of a contact on its curve as a function of the other coordinates.
#
# They are coordinates without given values: initially they are found by a search over the whole curve, in a run they
# follow (docs/theory.md, "Contact geometry").

PLACES = 256  # samples of the curve
STEPS = 60
WHOLE_TURN = 2.0 * np.pi

Follow = Callable[[Floats], Floats]


def curve_parameter_solver(geometry: Program, indices: Sequence[int], t: float, context: Floats) -> Follow:
    """Return the function that sets these parameters of a configuration ``q`` to the contact points.

    ``geometry``: gives ``measure``, least at the contact point, and its derivatives ``slope`` and ``bend``;
    ``indices``: of the curve parameters in q; ``t``: time (s); ``context``, shape (n_c,). It takes a configuration,
    shape (n_q,), in the coordinates' units, and returns another of the same shape.
    """
    layout, places = geometry.layout, list(indices)
    if not places:
        return lambda q: q

    def look(q: Floats) -> dict[str, Floats]:
        x = np.zeros((len(q), layout.n_x))
        x[:, : len(layout.q)] = q
        return geometry.evaluate(t, x, np.tile(context, (len(q), 1)))

    def solved(q: Floats) -> Floats:
        around = np.tile(q, (PLACES, 1))
        around[:, places] = np.linspace(0.0, WHOLE_TURN, PLACES, endpoint=False)[:, None]
        with np.errstate(all="ignore"):
            xi = around[np.argmin(look(around)["measure"], axis=0), places]
        found = q.copy()
        for _ in range(STEPS):
            found[places] = xi
            values = look(found[None])
            step = values["slope"][0] / np.maximum(np.abs(values["bend"][0]), 1e-300)
            step = np.clip(step, -WHOLE_TURN / PLACES, WHOLE_TURN / PLACES)
            xi = xi - step
            if np.abs(step).max() <= 1e-15:
                break
        found[places] = xi
        return beyond(found)

    def beyond(found: Floats) -> Floats:
        """Solve for contact points far from all samples: beyond the ends of a piece."""
        values = look(found[None])
        for _ in range(STEPS):
            slope = values["slope"][0]
            step = slope / np.where(values["bend"][0] == 0.0, np.inf, values["bend"][0])
            trial = found.copy()
            trial[places] -= step
            after = look(trial[None])
            better = np.abs(after["slope"][0]) < np.abs(slope)
            if not better.any():
                break
            found[np.array(places)[better]] = trial[np.array(places)[better]]
            values = look(found[None])
        return found

    return solved


# -- Assembly ------------------------------------------------------------------------------------------------
#
# Solve for coordinates and speeds under the rows of a mode, from prescribed values. Given values are kept. Others are 0
# as far as the rows leave them free (the first declared ones first); the rest is solved: coordinates by Newton's
# method, speeds by one linear solution (docs/language.md, ``initial``).

NEWTON_STEPS = 100
NUDGES = (
    0.2,
    0.4,
    0.8,
    1.6,
    3.2,
    6.4,
)  # in the mechanism's own units: displacements of a start without convergence
SOLVED = 1e-13
LANDINGS = 4  # of a start that satisfies its rows to CONFLICT
CONFLICT = 1e-9


@dataclass(frozen=True)
class PrescribedValues:
    """Values a start is to have: coordinates and speeds by name, and the time and context (inputs included).

    ``guess``: start of other coordinates; those left free by the rows keep it. ``places``: of the values in a model
    file.
    """

    coordinates: Mapping[str, float]
    speeds: Mapping[str, float]
    t: float
    context: Floats
    guess: Mapping[str, float] = field(default_factory=dict)
    places: Mapping[str, Location] = field(default_factory=dict)


def assemble(
    system: UnconstrainedSystem, states: Sequence[int], given: PrescribedValues, follow: Follow = np.copy
) -> Floats:
    """Return the state ``x = [q, u]`` of a start in the mode with these contact states.

    ``follow``: sets the curve parameters of contacts (:func:`fsm_dyn.derive.assembly.curve_parameter_solver`). Raises
    ModelError: the values given contradict the rows, or the configuration cannot be assembled.
    """
    active = ActiveSet.of(system, states)
    q = _coordinates(system, active, given, follow)
    if active.rows and any(given.speeds.values()):
        return _moving(system, active, given, follow, q)
    return np.concatenate([q, _speeds(system, active, given, q)[0]])


def has_landed(system: UnconstrainedSystem, states: Sequence[int], residual: Floats) -> bool:
    """Return whether a start with residuals (n_rows,) satisfies the rows of coordinates to the last digits."""
    rows = [r for r in ActiveSet.of(system, states).rows if system.rows[r].positional]
    return bool((np.abs(residual[rows]) <= SOLVED * _sizes(system, rows)).all())


def land(
    system: UnconstrainedSystem, states: Sequence[int], t: float, x: Floats, context: Floats, follow: Follow
) -> Floats:
    """Return a start ``x = [q, u]`` that satisfies its rows to a tolerance, moved the least onto them.

    The first step of a run would land there, and no account has the energy of such a jump.
    """
    rows = [r for r in ActiveSet.of(system, states).rows if system.rows[r].positional]
    terms = _closure(system, rows, PrescribedValues({}, {}, t, context), follow)
    q = x[: len(system.layout.q)]
    residual, jacobian = terms(q)
    for _ in range(LANDINGS):
        if np.abs(residual).max() <= SOLVED:
            break
        ways = free_directions(system, q, ())
        nearer = follow(_moved(system, q, product(ways, least_squares(product(jacobian, ways), -residual, DEPENDENT))))
        remaining, jacobian = terms(nearer)
        if not np.abs(remaining).max() < np.abs(residual).max():
            break
        q, residual = nearer, remaining
    return np.concatenate([q, x[len(q) :]])


def _moving(
    system: UnconstrainedSystem, active: ActiveSet, given: PrescribedValues, follow: Follow, q: Floats
) -> Floats:
    """Return the state of a start with speeds, badly determined by the rows near a change point."""
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

    def ways(q: Floats) -> Floats:
        return free_directions(system, q, ())

    def closure(q: Floats) -> tuple[Floats, Floats]:
        values = system.configuration.evaluate(given.t, np.concatenate([follow(q), np.zeros(n_u)]), given.context)
        chosen, size = [rows[k] for k in closed], lengths[closed]
        slopes = product(values["jacobian"][chosen], ways(q))
        return values["residual"][chosen] / size, slopes / size[:, None]

    def motion(q: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
        values = system.evaluate(given.t, np.concatenate([follow(q), u * u_unit]), given.context)
        A = values["A"][rows][:, :n_u] * u_unit / speeds[:, None]
        return A, values["b"][rows] / speeds, values["q_dot"] * time

    def curvature(q: Floats, several: Floats) -> Floats:
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


def _coordinates(system: UnconstrainedSystem, active: ActiveSet, given: PrescribedValues, follow: Follow) -> Floats:
    layout = system.layout
    q = np.array([given.coordinates.get(name, given.guess.get(name, 0.0)) for name in layout.q])
    for first in system.quaternions:
        names = layout.q[first : first + 4]
        # by default no turn, or the remainder of the others to a unit norm
        if names[0] not in given.coordinates and names[0] not in given.guess:
            q[first] = np.sqrt(max(0.0, 1.0 - norm(q[first + 1 : first + 4]) ** 2))
        size = norm(q[first : first + 4])
        if size == 0.0:
            raise ModelError("Euler parameters cannot all be zero", found=", ".join(names))
        q[first : first + 4] /= size
    rows = [r for r in active.rows if system.rows[r].positional]
    if not rows:
        return follow(q)
    return follow(_close(system, rows, q, given, follow))


def free_directions(system: UnconstrainedSystem, q: Floats, given: Collection[str]) -> Floats:
    """Free directions of the other coordinates, each by its unit, shape (n_q, n_ways), in declared order.

    A coordinate is a direction; Euler parameters, none of them given, have the turns about the body's three axes.
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
    system: UnconstrainedSystem, rows: Sequence[int], q: Floats, given: PrescribedValues, follow: Follow
) -> Floats:
    """Solve the rows' residuals from ``q``; without convergence (links in one line) from a displaced start."""
    terms, sizes = _closure(system, rows, given, follow), _sizes(system, rows)
    found, residual = _newton(system, terms, q, given)
    random = np.random.default_rng(20030818)
    for size in NUDGES:
        if np.abs(residual).max() <= CONFLICT:
            return found
        ways = free_directions(system, q, given.coordinates)
        nudge = size * random.uniform(-1.0, 1.0, (ways.shape[1],))
        # only dependent coordinates are nudged: free ones stay unchanged
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


def _sizes(system: UnconstrainedSystem, rows: Sequence[int]) -> Floats:
    """Return the units of the rows' residuals, shape (n,)."""
    if system.units is None:
        return np.ones(len(rows))
    return np.asarray(system.units.scales.length * system.units.rows[list(rows)])


def _closure(
    system: UnconstrainedSystem, rows: Sequence[int], given: PrescribedValues, follow: Follow
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return the function of the rows' residuals (n,) and Jacobian (n, n_q), by the rows' units, of coordinates."""
    u, sizes = np.zeros(len(system.layout.u)), _sizes(system, rows)

    def terms(at: Floats) -> tuple[Floats, Floats]:
        values = system.configuration.evaluate(given.t, np.concatenate([follow(at), u]), given.context)
        return values["residual"][list(rows)] / sizes, values["jacobian"][list(rows)] / sizes[:, None]

    return terms


def _conflicting(names: Sequence[str], given: Mapping[str, float], slopes: Floats) -> list[str]:
    """Return the given values in a row, from its derivatives ``slopes`` by all of them."""
    return [name for name, slope in zip(names, slopes, strict=True) if name in given and slope]


def _place(names: Sequence[str], given: PrescribedValues) -> Location:
    """Return the place of the last of these values in a file."""
    return max((given.places[name] for name in names if name in given.places), default=NOWHERE)


def _moved(system: UnconstrainedSystem, q: Floats, step: Floats) -> Floats:
    moved = q + step
    for first in system.quaternions:
        moved[first : first + 4] /= norm(moved[first : first + 4])
    return moved


def _newton(
    system: UnconstrainedSystem, terms: Callable[[Floats], tuple[Floats, Floats]], q: Floats, given: PrescribedValues
) -> tuple[Floats, Floats]:
    """Newton's method, damped after Levenberg and Marquardt; returns the coordinates and the remaining residual.

    Undamped, it would leap by thousands of turns from configurations nearly in one line; the damping therefore
    decreases only with the residual.
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
    system: UnconstrainedSystem, active: ActiveSet, given: PrescribedValues, q: Floats, *, raises: bool = True
) -> tuple[Floats, ModelError | None]:
    """Return the speeds solved from the rows, and a contradiction between given speeds and rows, if not raised."""
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
