"""Energy of a run: its balance, periods of compressed contacts, wear (docs/theory.md, "The energy balance")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from fsm_dyn.core.arrays import Booleans, Codes, Floats, Integers
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw.svg import html_table
from fsm_dyn.draw.svg import table as text_table
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.programs.program import Only
from fsm_dyn.run.extremes import largest
from fsm_dyn.run.loop_state import Rows
from fsm_dyn.run.record import RunModel
from fsm_dyn.run.run import Run
from fsm_dyn.run.samples import SampleBetween, Samples
from fsm_dyn.runtime.abi import RowsVerdict
from fsm_dyn.runtime.library import judge_rows

if TYPE_CHECKING:
    from fsm_dyn.language.interfaces import PinEntry
    from fsm_dyn.run.samples import SampleBetween, Samples


# -- Energy balance of a run (docs/theory.md, "The energy balance") ------------------------------------------

# Of Gauss and Legendre.  Five are exact to degree nine: a power is a product of two quartics in time, so the error of
# the quadrature is below the error of the quartics.
POINTS: Final = 5
_STEPS_AT_ONCE = 4096
_DISSIPATIVE = frozenset({"tangent", "tangent2", "friction"})


@dataclass(frozen=True)
class EnergyBalance:
    """Energies at every row of a run and the energy exchanged up to there; all arrays of shape (n,), J.

    Attributes
    ----------
    kinetic, potential : ndarray
    work : mapping of str to ndarray
        Work done on the motion by every load without a potential.
    friction : mapping of str to ndarray
        Heat made by every contact with friction or a loss of its own; it never decreases.
    constraints : mapping of str to ndarray
        Work done by every other constraint or contact: zero unless it is moved by an input or by time.
    transitions : ndarray
        Sum of the energy changes at transitions: impacts (negative) and user-defined resets (either sign).
    drive : ndarray
        Work of the drives of points and frames by time or inputs; zero if all rest while all speeds are zero.
    """

    kinetic: Floats
    potential: Floats
    work: Mapping[str, Floats]
    friction: Mapping[str, Floats]
    constraints: Mapping[str, Floats]
    transitions: Floats
    drive: Floats

    @property
    def total(self) -> Floats:
        """Kinetic and potential energy together."""
        return self.kinetic + self.potential

    @property
    def residual(self) -> Floats:
        """Residual of the energy balance: the error of the integration."""
        total = self.total
        explained = total[0] + self.transitions + self.drive
        for table, sign in ((self.work, 1.0), (self.friction, -1.0), (self.constraints, 1.0)):
            for values in table.values():
                explained = explained + sign * values
        residual: Floats = total - explained
        return residual

    def _repr_html_(self) -> str:
        # for notebooks only
        entries = [("kinetic energy", self.kinetic), ("potential energy", self.potential), ("total", self.total)]
        for what, table in (("work of", self.work), ("heat of", self.friction), ("work of", self.constraints)):
            entries += [(f"{what} {name}", values) for name, values in table.items()]
        entries += [("transitions", self.transitions), ("drives", self.drive), ("residual", self.residual)]
        rows = [(name, f"{values[0]:.4g}", f"{values[-1]:.4g}") for name, values in entries if len(values)]
        return html_table(("J", "start", "end"), rows)

    @property
    def exchanged(self) -> float:
        """Largest entry of the energy balance, the scale of its residual, J."""
        tables = (self.work, self.friction, self.constraints)
        entries = [self.kinetic, self.potential - self.potential[0], self.transitions, self.drive]
        entries += [values for table in tables for values in table.values()]
        return max(float(np.max(np.abs(values), initial=0.0)) for values in entries)

    @property
    def relative_residual(self) -> float:
        """Largest residual relative to the energy exchanged."""
        scale = self.exchanged
        return float(np.max(np.abs(self.residual))) / scale if scale > 0.0 else 0.0


def energy_balance(
    rows: Samples,
    starts: np.ndarray,
    between: SampleBetween,
    points: int = POINTS,
    middles: Floats | None = None,
) -> EnergyBalance:
    """Draw up the energy balance of a run.

    ``starts``, shape (n,): which rows begin an interval of the run; no step leads to them. ``points``: at which powers
    are evaluated in each step. ``middles``, shape (n, n_q + n_u): of time stepping: states in the middle of the step
    before a row. A step before a transition has the speeds without the impulses of contacts, at coordinates with them.
    Returns energies and work, J.
    """
    steps = np.flatnonzero(~starts)
    loads = np.zeros((len(rows), len(rows.model.loads)))
    forces = np.zeros((len(rows), len(rows.model.rows)))
    losses = np.zeros((len(rows), len(rows.model.compliant)))
    drive = np.zeros(len(rows))
    for begin in range(0, len(steps), _STEPS_AT_ONCE):
        chunk = steps[begin : begin + _STEPS_AT_ONCE]
        loads[chunk], forces[chunk], losses[chunk], drive[chunk] = _work_in_steps(rows, chunk, between, points)
    total = rows.kinetic_energy + rows.potential_energy
    jumps = np.zeros(len(rows))
    jumps[1:] = np.where(starts[1:], np.diff(total), 0.0)
    if middles is not None:
        free = np.flatnonzero(~starts[:-1] & starts[1:])
        forces[free] = _work_without_contacts(rows, free, between)
        losses[free] = 0.0
        jumps[free] = _potential_by_impulses(rows, free, middles[free])
    loads, forces, losses, drive = (np.cumsum(table, axis=0) for table in (loads, forces, losses, drive))
    friction, constraints = _by_owner(rows.model, forces, losses)
    return EnergyBalance(
        kinetic=rows.kinetic_energy,
        potential=rows.potential_energy,
        work={name: loads[:, i] for i, name in enumerate(rows.model.loads)},
        friction=friction,
        constraints=constraints,
        transitions=np.cumsum(jumps),
        drive=drive,
    )


@cache
def gauss_points(points: int) -> tuple[Floats, Floats]:
    """Return points and weights of Gauss' quadrature on (-1, 1)."""
    places, weights = np.polynomial.legendre.leggauss(points)
    return places, weights


def _work_in_steps(
    rows: Samples, ends: Integers, between: SampleBetween, points: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the work of every load and row, the heat of compliant contacts, and the work of drives.

    In the steps ending at the rows ``ends``.
    """
    h = rows.t[ends] - rows.t[ends - 1]
    places, parts = gauss_points(points)
    times = rows.t[ends - 1, None] + h[:, None] * (0.5 * (places + 1.0))
    inner = between(times.ravel(), np.repeat(ends - 1, points))
    weights = h[:, None] * (0.5 * parts)

    def integrate(power: Floats) -> Floats:
        work: Floats = np.einsum("sk,skj->sj", weights, power.reshape(*times.shape, -1))
        return work

    n_loads = len(rows.model.loads)
    powers = inner.report["load_powers"] if n_loads else np.zeros((times.size, 0))
    losses = integrate(inner.losses)
    for i, (contact, r) in enumerate(rows.model.compliant):
        # A lagging surface returns no stored energy.  It may arrive within a step, at no event: the
        # difference is exact, while a quadrature would step over the kink.
        idle = ~inner.multiplier_table[:, r].reshape(times.shape).any(axis=1)
        stored = rows.report["stored"][:, contact]
        losses[idle, i] = (stored[ends - 1] - stored[ends])[idle]
    return integrate(powers), integrate(inner.row_powers), losses, integrate(inner.drive_powers)[:, 0]


def _work_without_contacts(rows: Samples, ends: Integers, between: SampleBetween) -> Floats:
    """Return the work of constraints in the steps ending at ``ends`` if no contact had a force, (m, n_rows), J."""
    work, model = np.zeros((len(ends), len(rows.model.rows))), rows.model
    contacts = {row for contact in model.contacts for row in (contact.normal_row, *contact.tangent_rows)}
    held = sorted(set(range(len(model.rows))) - contacts)
    if not held or not len(ends):
        return work
    h = rows.t[ends] - rows.t[ends - 1]
    inner = between(rows.t[ends] - 0.5 * h, ends - 1)
    only: Only = {"M": None, "f": None, "A": held, "gamma": held}
    terms = model.terms.evaluate(inner.t, inner.x, inner.context, only)
    M, f, A, gamma = (np.broadcast_to(terms[name], (len(ends), *np.shape(terms[name])[1:])) for name in only)
    matrix = np.block([[M, -np.swapaxes(A, 1, 2)], [A, np.zeros((len(ends), len(held), len(held)))]])
    right = np.concatenate([f, -gamma], axis=1)
    multipliers = np.einsum("nij,nj->ni", np.linalg.pinv(matrix), right)[:, M.shape[1] :]
    velocity = np.einsum("nrk,nk->nr", A[..., : len(model.layout.u)], inner.u)
    work[:, held] = h[:, None] * multipliers * velocity
    return work


def _potential_by_impulses(rows: Samples, free: Integers, middles: Floats) -> Floats:
    """Return the potential energy added by the impulses of contacts in the steps ending at ``free``.

    They move the coordinates for half of the step; compliant contacts store by their impulses alone. ``free``, shape
    (m,): rows with the speeds without impulses; the next ones have the speeds with them. ``middles``, shape (m, n_q +
    n_u): states in the middle of the steps ending there. Result: J; shape (m,).
    """
    before, layout = rows.only(free), rows.model.layout
    half = 0.5 * (before.t - rows.t[free - 1])
    rates = []
    for ends in (free, free + 1):
        x = np.hstack([middles[:, layout.q_slice], rows.u[ends]])
        rates.append(rows.model.terms.evaluate(before.t - half, x, before.context, {"q_dot": None})["q_dot"])
    x = before.x.copy()
    x[:, layout.q_slice] -= half[:, None] * (rates[1] - rates[0])
    alone = Samples(rows.model, before.t, x, before.mode, before.context)
    stored = rows.report["stored"].sum(axis=1)
    found: Floats = (
        before.potential_energy - alone.potential_energy + alone.report["stored"].sum(axis=1) - stored[free - 1]
    )
    return found


def _by_owner(model: RunModel, forces: Floats, losses: Floats) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Split the work of the rows into dissipation by contact and work of driven constraints by owner."""
    friction: dict[str, Floats] = {}
    constraints: dict[str, Floats] = {}
    for i, row in enumerate(model.rows):
        table, sign = (friction, -1.0) if row.role in _DISSIPATIVE else (constraints, 1.0)
        table[row.owner] = table.get(row.owner, np.zeros(len(forces))) + sign * forces[:, i]
    for i, (_, r) in enumerate(model.compliant):
        owner = model.rows[r].owner
        friction[owner] = friction.get(owner, np.zeros(len(forces))) + losses[:, i]
    return friction, constraints


# -- Warning of an open energy balance -----------------------------------------------------------------------
#
# Whether the energy balance of a run closes: a warning if it does not (docs/theory.md, "The energy balance").

LIMIT: Final = 0.01  # largest unexplained share of the energy exchanged
_LIMIT_AT_CHANGE_POINTS: Final = 1e-4  # of a run past a change point: its own error estimate says little there
_WEIGHT_OF_ONE_POINT: Final = 2.0  # of a residual with one point per step: its quadrature decides nothing
_ROUNDING: Final = 1e-10  # part of the energies for the sum of their rounding
_TINIEST: Final = 1e-30  # J


def energy_warnings(run: Run, fixed_steps: bool) -> tuple[str, ...]:
    """Return a sentence if the energy balance of a run does not close, none if it does.

    The balance itself takes longer than most runs.  It can be open only if the states of a step contradict their rates,
    which the recorded rows show, a change point was passed, or the potential energy jumps. It is drawn up with one
    point per step first. ``fixed_steps``: whether the run had no error control.
    """
    record, n_q = run.record, len(run.model.layout.q)
    if len(record.t) < 2:
        return ()
    (verdict,) = rows_verdicts(record, n_q, fixed_steps).tolist()
    passed = bool(record.change_points)
    jumps = run.model.potential_jumps
    known = verdict == RowsVerdict.EXPLAINED and not passed and not record.time_stepping and not jumps
    if known or verdict == RowsVerdict.NOT_FINITE:
        return ()
    rows = run.all

    def without_shares(times: Floats, first: Integers) -> Samples:
        found = run.between(times, first)  # how redundant forces are shared changes no work
        return replace(found, model=replace(found.model, indeterminate=()))

    with np.errstate(all="ignore"):  # energies may overflow for finite states: such a balance is not open
        middles = record.x_mid if record.time_stepping else None
        balance = energy_balance(rows, record.starts, without_shares, 1, middles)
        stored = float(rows.report["stored"].sum(axis=1).max(initial=0.0))
        limit = _LIMIT_AT_CHANGE_POINTS if passed else LIMIT
        if is_open(_WEIGHT_OF_ONE_POINT * balance.residual, balance, stored, limit):
            balance = energy_balance(rows, record.starts, without_shares, middles=middles)
        return (_sentence(balance, rows.t, passed, jumps),) if is_open(balance.residual, balance, stored, limit) else ()


def is_open(residual: Floats, balance: EnergyBalance, stored: float, limit: float = LIMIT) -> bool:
    """Whether more is unexplained than the limit, and than the rounding of the energies.

    A mechanism at rest on compliant contacts exchanges nothing, and the scale is the energy ``stored`` there, J.
    """
    least = limit * max(balance.exchanged, stored) + _ROUNDING * float(np.abs(balance.total).max()) + _TINIEST
    return float(np.abs(residual).max()) > least


def _sentence(balance: EnergyBalance, t: Floats, passed: bool, jumps: bool) -> str:
    step = int(np.argmax(np.abs(np.diff(balance.residual))))
    share = (
        f"{balance.relative_residual:.1%}"
        if balance.relative_residual > LIMIT
        else (f"{balance.relative_residual:.1g}")
    )
    remedy = "shorten the steps or reduce the tolerances until it closes"
    if jumps:
        remedy = "if the potential energy of a spring jumps there with a choice of coordinates, no force does its work"
    elif passed:
        remedy = "reduce the tolerances, or compare with strategy='online', which takes other independent speeds"
    return (
        f"the energy balance does not close: {share} of the energy exchanged is unexplained, "
        f"most of it between t = {t[step]:.6g} s and {t[step + 1]:.6g} s; {remedy}"
    )


def rows_verdicts(rows: Rows, n_q: int, fixed_steps: bool) -> Codes:
    """Return a :class:`~fsm_dyn.runtime.abi.RowsVerdict` of each run, shape (runs,): whether states follow from rates.

    ``n_q``: number of coordinates; ``fixed_steps``: whether nothing controlled the error of the steps: then their ends
    are judged in the place of their middles.
    """
    return judge_rows(rows.t, (rows.x, rows.x_dot, rows.x_mid), rows.begin, n_q, fixed_steps)


# -- Wear of connections, by Archard's law ---------------------------------------------------------------------


@dataclass(frozen=True)
class PinWear:
    """Wear of a connection up to every row of a run, arrays of shape (n,).

    Attributes
    ----------
    sliding : ndarray
        Distance slid, m.
    work : ndarray
        Integral of the force across the sliding over that distance, N m.
    depth : ndarray
        Depth worn off, m.
    """

    sliding: Floats
    work: Floats
    depth: Floats


def wear_of(rows: Samples, starts: Booleans, between: SampleBetween) -> Mapping[str, PinWear]:
    """Return the wear of the connections with the key ``wear``, by name.

    Archard (1953): the volume worn off is proportional to force and distance, ``depth = rate * work / area``. Forces
    are integrated by Gauss and Legendre within the steps; rigid impacts do not slide. ``starts``, shape (n,): which
    rows begin an interval of the run; no step leads to them. Raises InputError: the run was read from a file without
    its model.
    """
    automaton = rows.model.automaton
    if automaton is None:
        raise InputError("wear needs the model of the run", found="a run without its model")
    entries = [entry for entry in automaton.mechanism.pins.values() if entry.wear is not None]
    if not entries:
        return {}
    ends = np.flatnonzero(~starts)
    h = rows.t[ends] - rows.t[ends - 1]
    places, parts = gauss_points(POINTS)
    times = rows.t[ends - 1, None] + h[:, None] * (0.5 * (places + 1.0))
    inner = between(times.ravel(), np.repeat(ends - 1, POINTS))
    return {str(entry.name): _wear(entry, rows, inner, ends, h[:, None] * (0.5 * parts)) for entry in entries}


def _wear(entry: PinEntry, rows: Samples, inner: Samples, ends: Integers, weights: Floats) -> PinWear:
    assert entry.wear is not None
    rate, area, radius = (
        0.0 if text is None else float(evaluate_expression(text, rows.model.values))
        for text in (entry.wear.rate, entry.wear.area, entry.wear.radius)
    )

    def integral(rates: Floats) -> Floats:
        added = np.zeros(len(rows))
        added[ends] = np.einsum("sk,sk->s", weights, rates.reshape(weights.shape))
        return np.cumsum(added)

    sliding, work = map(integral, inner.pins[entry.name].rubbing(radius))
    return PinWear(sliding, work, rate / area * work)


# -- Periods in which compliant contacts are compressed --------------------------------------------------------


_HEADINGS: Final = ("contact", "from, s", "time, s", "impulse", "peak", "at, s", "peak/mean")


@dataclass(frozen=True)
class ContactPeriod:
    """One compression of a compliant contact, from its closing to its opening.

    Attributes
    ----------
    name : str
        Of the contact.
    begin, end : float
        Closing and opening, s; the ends of the run, where it is compressed there.
    whole : bool
        Whether the run has both.
    impulse : float
        Integral of the normal force, N·s.
    peak, peak_time : float
        Largest normal force, N, between the rows too, and its time, s.
    unit : str
        Of the force, N, or N*m along an angle; the impulse is in this times s.
    """

    name: str
    begin: float
    end: float
    whole: bool
    impulse: float
    peak: float
    peak_time: float
    unit: str = "N"

    @property
    def duration(self) -> float:
        """Contact time, s."""
        return self.end - self.begin

    @property
    def mean(self) -> float:
        """Mean normal force, N."""
        return self.impulse / self.duration

    @property
    def peak_over_mean(self) -> float:
        """Ratio of largest and mean force; not a number without a force."""
        return self.peak / self.mean if self.mean else float("nan")


def contact_periods(rows: Samples, starts: Booleans, between: SampleBetween) -> tuple[ContactPeriod, ...]:
    """Return the compressions of all compliant contacts of a run, in order of time.

    Forces are integrated by Gauss and Legendre within the steps. Rigid contacts have impulses in their place.
    ``starts``, shape (n,): which rows begin an interval of the run; no step leads to them.
    """
    found = [period for k, row in rows.model.compliant for period in _of_contact(rows, starts, between, k, row)]
    return tuple(sorted(found, key=lambda period: (period.begin, period.name)))


def _of_contact(
    rows: Samples, starts: Booleans, between: SampleBetween, contact: int, row: int
) -> Iterator[ContactPeriod]:
    t, model = rows.t, rows.model
    closed = np.array([chart.states[contact] != 0 for chart in model.charts])[rows.mode]
    # a step belongs to the mode of its first row
    steps = np.flatnonzero(closed[:-1] & ~starts[1:] & (np.diff(t) > 0.0))
    places, parts = gauss_points(POINTS)
    for part in np.split(steps, np.flatnonzero(t[steps[1:]] > t[steps[:-1] + 1]) + 1):
        if not len(part):
            continue
        h = t[part + 1] - t[part]
        times = t[part, None] + h[:, None] * (0.5 * (places + 1.0))
        inner = between(times.ravel(), np.repeat(part, POINTS)).multiplier_table[:, row]
        peak, when = largest(
            t, rows.multiplier_table[:, row], part, float(t[-1]),
            lambda at, first: between(at, first).multiplier_table[:, row],
        )  # fmt: skip
        begin, end = float(t[part[0]]), float(t[part[-1] + 1])
        impulse = float((0.5 * h[:, None] * parts * inner.reshape(len(part), POINTS)).sum())
        yield ContactPeriod(
            model.contacts[contact].name,
            begin,
            end,
            bool(begin > t[0] and end < t[-1]),
            impulse,
            peak,
            when,
            model.force_units[row] or "N",
        )


def periods_table(periods: Sequence[ContactPeriod]) -> str:
    """Return periods of contact as text, a line for each."""
    rows = [
        (p.name, f"{p.begin:.6f}", f"{p.duration:.6g}", f"{p.impulse:.6g} {p.unit}*s", f"{p.peak:.6g} {p.unit}",
         f"{p.peak_time:.6f}",
         f"{p.peak_over_mean:.4g}")
        for p in periods
    ]  # fmt: skip
    return text_table(_HEADINGS, rows)
