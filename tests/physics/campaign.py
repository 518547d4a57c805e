"""Random starts of the models with contacts, and what must hold of every run, checked from its record alone.

Everything is evaluated with NumPy over whole runs at once: gaps in 200 places of every step, forces in 8.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

import fsm_dyn
from fsm_dyn.programs.program import Program
from fsm_dyn.run.extremes import quartic

PLACES = 200  # of a step, where gaps are looked at
FORCE_PLACES = 8
GAP = 1e-9  # m
ROUNDINGS = 2.0  # of the state, by which forces may be off: the one of the record, and those of their evaluation
ENERGY = 1e-8  # of the energy that passes through a run
IMPACT = 1e-12  # of the kinetic energy before, or of what impulses exchange if that is more: what rounding may add
AT_ONCE = 20_000  # samples evaluated together

ADAPTIVE = {"rtol": 1e-10, "atol": 1e-12}
# a fixed step leaves less than the energy tolerance: fast cams and stiff springs ask for a shorter one
FIXED_STEP = {"cam_flat_follower": 1e-4, "ratchet": 2e-4, "latch": 2e-4, "double_pendulum_with_stop": 4e-4}


def options(model, rng):
    """A method of integration: two in three times the adaptive one."""
    return ADAPTIVE if rng.integers(3) else {"method": "rk4", "step": FIXED_STEP.get(model, 1e-3)}


ORDERS = {"euler": 1, "heun": 2, "rk4": 4}

THETA = np.linspace(0.0, 1.0, PLACES)


def _basis():
    """A step's quartic at all places at once: weights of x0, h x0', x_mid, x1, h x1'."""
    one, h = np.eye(5), np.ones(PLACES)
    parts = [np.tile(one[k], (PLACES, 1)) for k in range(5)]
    return quartic(THETA, h, *parts)


BASIS = _basis()


def coulomb_motion(problem, closed, choices, mu):
    """Accelerations (n_u,) with contacts (normal, tangent row) open (2), sticking (0) or sliding (its sign), or None.

    ``mu``: coefficient of friction of all contacts, or of each.
    None where Coulomb's laws forbid the combination, or its equations are singular.
    """
    M, f, A, gamma, u = problem
    mu = np.broadcast_to(mu, len(closed))
    slip = [A[t] @ u for _, t in closed]
    rows, forces = [], []  # accelerations that vanish, directions of the unknown forces
    for (n, t), choice, speed, m in zip(closed, choices, slip, mu, strict=True):
        at_rest = abs(speed) <= 1e-9
        if choice in (-1, 1):
            if not at_rest and choice != np.sign(speed):
                return None
            rows.append(n)
            forces.append(A[n] - choice * m * A[t])
        elif choice == 0:
            if not at_rest:
                return None
            rows += [n, t]
            forces += [A[n], A[t]]
    B = np.array(forces).reshape(len(forces), len(f)).T
    response = A[rows] @ np.linalg.solve(M, B)
    if rows and np.linalg.cond(response) > 1e12:
        return None
    shares = np.linalg.solve(response, -(A[rows] @ np.linalg.solve(M, f) + gamma[rows]))
    motion = np.linalg.solve(M, f + B @ shares)
    shares = iter(shares)
    for (n, t), choice, speed, m in zip(closed, choices, slip, mu, strict=True):
        if choice == 2:
            kept = A[n] @ motion + gamma[n] >= 0.0
        else:
            pressure = next(shares)
            kept = pressure >= 0.0
            if choice == 0:
                kept &= abs(next(shares)) <= m * pressure
            elif abs(speed) <= 1e-9:
                kept &= choice * (A[t] @ motion + gamma[t]) >= 0.0
        if not kept:
            return None
    return motion


@dataclass(frozen=True)
class Start:
    """One run to be made: what ``simulate`` is given."""

    model: str
    seed: int
    until: float
    initial: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    inputs: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"model {self.model}, seed {self.seed}: simulate(until={self.until!r}, initial={self.initial!r}, "
            f"parameters={self.parameters!r}, inputs={self.inputs!r}, **{self.options!r})"
        )


class Checked:
    """A compiled model with the programs that the checks evaluate."""

    def __init__(self, model):
        self.graph = fsm_dyn.compile(model)
        automaton = self.graph.automaton
        terms = automaton.terms
        nodes = terms.graph()[2]
        self.gaps = Program.from_nodes(terms.layout, {name: nodes[name] for name in ("residual", "closes_if")})
        self.contacts = automaton.contacts
        self.normal = [c.normal_row for c in automaton.contacts if c.kind == "gap"]
        self.number = [i for i, c in enumerate(automaton.contacts) if c.kind == "gap"]

    def run(self, start):
        """Make the run; a named failure is returned like any other end."""
        return fsm_dyn.simulate(
            self.graph, start.until, initial=start.initial, parameters=start.parameters, inputs=start.inputs,
            on_failure="return", max_steps=20_000, **start.options,
        )  # fmt: skip

    def complaints(self, run, start=None):
        """Return in words what of a run breaks the laws, nothing if it keeps them.

        With its ``start`` the energy balance may be off by what the method's error makes it.
        """
        energy = [] if start is not None and self.errs_by_its_method(run, start) else self.energy(run)
        found = [*self.open_gaps(run), *self.forces(run), *energy, *impacts(self, run)]
        if not (np.isfinite(run.q).all() and np.isfinite(run.u).all()):
            found.append("a state is not finite")
        return found

    def excluded_modes(self, run, start):
        """Return which modes that a run met are impossible by the geometry.

        Starts with other parameters of gaps are passed over: the proofs are for the parameters of the model.
        """
        layout = self.graph.automaton.terms.layout
        used = {i for _, operands in self.gaps.instructions for i in operands}
        used |= {i for output in self.gaps.results for i in output.indices}
        if used & {layout.arguments.index(name) for name in start.parameters if name in layout.arguments}:
            return []
        found, names = self.graph.assess_geometry(), [contact.name for contact in self.contacts]
        modes = {run.model.modes[k]: run.model.charts[k].states for k in set(run.record.mode.tolist())}
        verdicts = {mode: found.excluded(dict(zip(names, states, strict=True))) for mode, states in modes.items()}
        return [f"met {mode}, which the geometry excludes: {reason}" for mode, reason in verdicts.items() if reason]

    def cannot_go_on(self, run):
        """Whether a run that ended inconsistent did so where the laws leave it nothing to do.

        A contact that never slides may need more friction as its pressure falls to zero.  It can neither hold on, as it
        would have to pull, nor let go, as the friction alone kept it from sinking.
        """
        if self.gate_opened_late(run):
            return True
        sample = run.sample([run.t[-1]])
        states = run.model.charts[sample.mode[0]].states
        closed = [c for i, c in enumerate(self.contacts) if states[i] > 0]
        if run.outcome.name != "inconsistent contact state" or len(closed) != 1 or not closed[0].sticks_always:
            return False
        rows, n_u = [closed[0].normal_row, closed[0].tangent_row], sample.u.shape[1]
        terms = self.graph.automaton.terms.evaluate(sample.t, sample.x, sample.context)
        A = terms["A"].reshape(-1, terms["A"].shape[-1])[rows][:, :n_u]
        M = terms["M"].reshape(-1, terms["M"].shape[-1])[:n_u, :n_u]
        free = A @ np.linalg.solve(M, terms["f"].reshape(-1)[:n_u]) + terms["gamma"].reshape(-1)[rows]
        pressure, friction = np.linalg.solve(A @ np.linalg.solve(M, A.T), -free)
        return bool(abs(pressure) <= 1e-7 * abs(friction) and free[0] < 0.0)

    def has_several_motions(self, run):
        """Whether a run that ended non-unique did so where several motions satisfy the contact laws.

        All combinations of open, sticking and sliding contacts are tried here, with NumPy alone.
        """
        return run.outcome.name == "non-unique contact state" and len(self.motions(run)) > 1

    def motions(self, run, mu=None, time=None, closed=None):
        """Accelerations (n_u,) each that satisfy Coulomb's laws at the end of a run, or at ``time``.

        ``mu``: instead of the run's coefficient, of all contacts or of each.  ``closed``: rows (normal, tangent) of the
        contacts that may press, those that are closed in the mode there where not given.
        """
        sample = run.sample([run.t[-1] if time is None else time])
        n_u = sample.u.shape[1]
        terms = self.graph.automaton.terms.evaluate(sample.t, sample.x, sample.context)
        A, M = terms["A"].reshape(-1, terms["A"].shape[-1])[:, :n_u], terms["M"].reshape(-1, terms["M"].shape[-1])
        closed = self.pressing(run, sample.mode[0]) if closed is None else closed
        problem = (M[:n_u, :n_u], terms["f"].reshape(-1)[:n_u], A, terms["gamma"].reshape(-1), sample.u[0])
        mu = dict(zip(run.model.layout.p, sample.context[0], strict=False))["mu"] if mu is None else mu
        motions = []
        for choices in itertools.product(range(-1, 3), repeat=len(closed)):
            motion = coulomb_motion(problem, closed, choices, mu)
            if motion is not None and not any(np.allclose(motion, other, rtol=1e-6) for other in motions):
                motions.append(motion)
        return motions

    def pressing(self, run, mode):
        """Rows (normal, tangent) of the contacts that are closed in a mode."""
        states = run.model.charts[mode].states
        return [(c.normal_row, c.tangent_row) for i, c in enumerate(self.contacts) if states[i] > 0]

    def gate_opened_late(self, run):
        """Whether a run ended by name as a ``closes_if`` came true behind a face, of which the model knows no more."""
        if run.outcome.name != "penetration during the run" or not self.normal:
            return False
        values = self.gaps.evaluate(run.t[-2:], run.record.x[-2:], run.rows.context[-2:])
        gap, may = values["residual"][-1, self.normal], values["closes_if"][..., self.number]
        gated = np.array([self.contacts[k].gated for k in self.number])
        may = np.broadcast_to(may, (2, len(gated))) != 0.0
        return bool((gated & (gap < -GAP) & may[1] & ~may[0]).any())

    def errs_by_its_method(self, run, start):
        """Whether what the energy balance leaves falls with the step as the order of the method has it."""
        if run.energy.relative_residual <= ENERGY or start.options.get("method") not in ORDERS:
            return False
        finer = self.run(replace(start, options=start.options | {"step": 0.5 * start.options["step"]}))
        return (
            finer.energy.relative_residual
            <= 2.0 ** (0.5 - ORDERS[start.options["method"]]) * run.energy.relative_residual
        )

    def open_gaps(self, run):
        """No gap below -1e-9 m among contacts that may close."""
        if not self.normal:
            return
        record = run.record
        begin = np.flatnonzero(~record.starts) - 1
        if self.gate_opened_late(run):
            begin = begin[:-1]  # the run ended there by that name
        for first in range(0, len(begin), AT_ONCE // PLACES):
            rows = begin[first : first + AT_ONCE // PLACES]
            h = (run.t[rows + 1] - run.t[rows])[:, None]
            x = np.einsum("pk,krj->rpj", BASIS, np.stack([
                record.x[rows], h * record.x_dot[rows], record.x_mid[rows + 1], record.x[rows + 1],
                h * record.x_dot[rows + 1],
            ]))  # fmt: skip
            t = run.t[rows, None] + THETA * h
            # no gap of these models depends on an input, so the context may be that of the step's beginning
            values = self.gaps.evaluate(t, x, run.rows.context[rows, None, :])
            gap = np.broadcast_to(values["residual"], (*t.shape, values["residual"].shape[-1]))[..., self.normal]
            may = np.broadcast_to(values["closes_if"], (*t.shape, values["closes_if"].shape[-1]))[..., self.number]
            low = np.where(may != 0.0, gap, np.inf)
            if low.min(initial=np.inf) < -2.5 * GAP:
                i, p, k = np.unravel_index(np.argmin(low), low.shape)
                name = self.contacts[self.number[k]].name
                yield f"gap of {name} is {low[i, p, k]:.3g} m at t = {t[i, p]:.12g} s in mode {run.modes[rows[i]]}"
                return

    def forces(self, run):
        """No pulling, and no friction outside its cone: within 1e-7 of the largest force at play."""
        for samples in places(run, FORCE_PLACES):
            found = self.judge(samples)
            if found:
                yield from found
                return

    def judge(self, samples):
        """Return the first complaint about the forces at some states."""
        model = samples.model
        n = len(samples)
        states = np.array([chart.states for chart in model.charts])[samples.mode]
        force = samples.multiplier_table
        rows = [contact.tangent_row for i, contact in enumerate(self.contacts) if (states[:, i] == 2).any()]
        bounds = model.terms.evaluate(
            samples.t, samples.x, samples.context, {"static": None, "kinetic": None, "A": rows, "b": rows}
        )
        speed = np.zeros((n, len(model.rows)))
        speed[:, rows] = np.einsum("...rk,...k->...r", bounds["A"][..., : samples.u.shape[1]], samples.u) + bounds["b"]
        sigma = samples.context[:, model.layout.sigma_slice]
        if not samples.admissible.all():
            k = int(np.argmin(samples.admissible))
            return [f"no shares of contacts are admissible at t = {samples.t[k]:.12g} s in {samples.modes[k]}"]
        small = 1e-7 * np.abs(force).max(initial=0.0) + 1e-9
        for i, contact in enumerate(self.contacts):
            closed = states[:, i] > 0
            if not closed.any() or contact.kind == "lock":
                continue
            press = 1.0
            if contact.kind == "gap":
                press = force[:, contact.normal_row]
                k = pulls(samples, np.where(closed, press, 0.0), contact.normal_row, small)
                if k is not None:
                    return [f"{contact.name} pulls with {press[k]:.3g} N at t = {samples.t[k]:.12g} s in "
                            f"{samples.modes[k]}"]  # fmt: skip
            if contact.tangent_row < 0 or contact.sticks_always:
                continue
            friction = force[:, contact.tangent_row]
            stuck, slides = closed & (states[:, i] == 1), closed & (states[:, i] == 2)
            excess = np.where(stuck, np.abs(friction) - bounds["static"][:, i] * press, -1.0)
            if excess.max() > small:
                k = int(np.argmax(excess))
                return [f"{contact.name} sticks with {excess[k]:.3g} N too much at t = {samples.t[k]:.12g} s in "
                        f"{samples.modes[k]}"]  # fmt: skip
            off = np.where(slides, np.abs(friction + sigma[:, i] * bounds["kinetic"][:, i] * press), 0.0)
            if off.max() > small:
                k = int(np.argmax(off))
                return [f"friction of {contact.name} is off its cone by {off[k]:.3g} N at t = {samples.t[k]:.12g} s"]
            back = np.where(slides, -sigma[:, i] * speed[:, contact.tangent_row], 0.0)
            if back.max() > 1e-8 * (1.0 + np.abs(samples.u).max()):
                k = int(np.argmax(back))
                return [f"{contact.name} slides backwards by {back[k]:.3g} m/s at t = {samples.t[k]:.12g} s"]
        return []

    def energy(self, run):
        """The energy balance closes on the flows."""
        if run.energy.relative_residual > ENERGY and np.abs(run.energy.residual).max() > 1e-13:
            at = int(np.argmax(np.abs(np.diff(run.energy.residual))))
            yield (
                f"energy account leaves {run.energy.relative_residual:.3g}; "
                f"the largest part arises at t = {run.t[at]:.12g} s in {run.modes[at]}"
            )


def pulls(samples, press, row, small):
    """Return the first sample with a pull above ``small`` (N) that is no rounding of its state, None if there is none.

    Two contacts of one face that slides off another at v share a moment at a distance d of each other, which falls to
    zero.  A rounding of the angle between the faces makes forces like v²/d³ of it.
    """
    for k in np.flatnonzero(press < -small):
        if press[k] < -small - ROUNDINGS * rounding(samples, k)[row]:
            return int(k)
    return None


def rounding(samples, k):
    """Return by how much the force on each row (N) changes at most where the state of sample ``k`` is rounded up."""
    x = samples.x[k]
    same = np.full(1 + len(x), k)
    around = replace(
        samples, t=samples.t[same], x=np.vstack([x, x + np.diag(np.spacing(np.abs(x)))]), mode=samples.mode[same],
        context=samples.context[same],
    ).multiplier_table  # fmt: skip
    return np.abs(around[1:] - around[0]).sum(axis=0)


def places(run, count):
    """Sample ``count`` places inside every step (its ends included), in portions."""
    begin = np.flatnonzero(~run.record.starts) - 1
    theta = np.linspace(0.0, 1.0, count)
    for first in range(0, len(begin), max(1, AT_ONCE // count)):
        rows = begin[first : first + max(1, AT_ONCE // count)]
        times = run.t[rows, None] + theta * (run.t[rows + 1] - run.t[rows])[:, None]
        times[:, -1] = run.t[rows + 1]
        yield run.run.between(times.ravel(), np.repeat(rows, count))


def impacts(checked, run):
    """No impact gains energy, seen from constraints that move: ``½ Σ Λ (v⁺ + v⁻)`` over all rows."""
    automaton = checked.graph.automaton
    owners = [row.name for row in automaton.rows]
    for transition in run.transitions:
        if not transition.impulse:
            continue
        if "Zeno time" in transition.cause:
            continue  # its record spans the strokes left out, and loads and motors work between them
        now = run.sample([transition.time])
        terms = automaton.terms.evaluate(now.t, now.x, now.context)
        n_u = len(transition.u_before)
        A = terms["A"].reshape(-1, len(owners), terms["A"].shape[-1])[0][:, :n_u]
        b = terms["b"].reshape(-1, len(owners))[0]
        impulse = np.zeros(len(owners))
        for name, values in transition.impulse.items():
            impulse[[i for i, owner in enumerate(owners) if owner == name]] = values
        gained = 0.5 * impulse @ (A @ (transition.u_before + transition.u_after) + 2.0 * b)
        M = terms["M"].reshape(-1, *terms["M"].shape[-2:])[0][:n_u, :n_u]
        before = 0.5 * transition.u_before @ M @ transition.u_before
        exchanged = 0.5 * abs(impulse) @ (abs(A) @ (abs(transition.u_before) + abs(transition.u_after)) + 2.0 * abs(b))
        if gained > IMPACT * max(before, exchanged) + 1e-15:
            yield f"impact at t = {transition.time:.12g} s gains {gained:.3g} J of {before:.3g} J: {transition}"
            return
