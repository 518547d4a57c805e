"""Whether all methods of integration find the same motion from a random start, and why not where they do not.

The reference is ``dopri5`` at a tolerance of 1e-11. A run *agrees* if it passes through the same modes and ends in
the same state within its method's error, magnified as the motion magnifies it. Where it does not agree, ``dopri5``
starts again from starts moved by the error that the method had before the two parted: if one of those runs passes
through other modes as well, the motion is *sensitive* there. A method of fixed step that agrees with an eighth or a
32nd of its step *converges*. An impact of the reference that Coulomb's and Newton's laws leave several outcomes, by
an enumeration with NumPy alone, is *non-unique*: methods may continue by either. Else the method has *failed*.

Time stepping counts as agreeing too where its motion is never off by more than a thirtieth of its error, as it counts
modes that last a few steps.

Contacts that are closed without a force, as that of a ball falling along a wall, count as open where the modes
differ. Explicit Euler moves a body that leaves a surface along its old velocity for a whole step, so that it does not
resolve bounces shorter than that; it is compared on models that have none.

``make campaign ONLY="agreement of methods"`` makes many of them, ``make reliability`` writes the table.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

import fsm_dyn
from fsm_dyn.core.errors import FsmDynError, InputError
from fsm_dyn.run.extremes import quartic
from tests.physics.campaign import coulomb_motion
from tests.physics.more_starts import MORE_STARTS
from tests.physics.starts import STARTS
from tests.physics.variants import VARIANTS

REFERENCE = {"rtol": 1e-11, "atol": 1e-13}
MODELS = {**STARTS, **MORE_STARTS, **{name: start for name, (_, start) in VARIANTS.items()}}
STATES = ("agreed", "converges", "sensitive", "non-unique", "failed", "refused", "no reference")
EULER_MODELS = ("shopping_cart", "stick_slip_belt", "billiard_ball", "gripper", "geneva_drive", "compass_gait")


@dataclass(frozen=True)
class Method:
    """A method as it is run here.

    ``error`` is the error to be expected of it, as a fraction of the largest state; ``resolution`` the shortest time
    (s) for which it tells modes apart.
    """

    options: dict = field(default_factory=dict)
    error: float = 1e-7
    resolution: float = 1e-5


METHODS = {
    "dopri5": Method({"rtol": 1e-9, "atol": 1e-11}, 1e-7),
    "rk4": Method({"method": "rk4", "step": 1e-3}, 1e-4, 1e-4),
    "heun": Method({"method": "heun", "step": 5e-4}, 3e-3, 1e-3),
    "euler": Method({"method": "euler", "step": 2e-4}, 3e-2, 4e-3),
    "radau": Method({"method": "radau", "rtol": 1e-9, "atol": 1e-11}, 1e-6),
    "bdf": Method({"method": "bdf", "rtol": 1e-9, "atol": 1e-11}, 1e-4, 1e-4),
    "moreau_jean": Method({"method": "moreau_jean", "step": 2e-4}, 3e-2, 4e-3),
}
# where the step of a fixed-step method would not resolve the fastest motion, it is divided by this
FINER = {"cam_flat_follower": 10, "ratchet": 5, "latch": 5, "double_pendulum_with_stop": 2, "felt_drop": 4,
         "push_button": 20, "piano_action_simple": 10, "piano_action": 20, "seat_belt_reel": 40,
         "virtual_wall": 2}  # fmt: skip

TRIES = 12  # starts moved by a method's error
PLACES = 400  # times at which states are compared
CLOSED = 1e-7  # m, gap up to which a contact takes part in an impact
FINER_STEPS = (8, 32)  # parts of a step with which a method is to agree, if it does not with a whole one
MOST_STEPS = 400_000  # the eighth part of the shortest step of FINER over the longest run
MAGNIFIED = 20.0  # times the magnified error up to which states count as the same


@lru_cache(maxsize=4)
def graph_of(name):
    """The compiled model with a name of ``MODELS``."""
    return fsm_dyn.compile(VARIANTS[name][0] if name in VARIANTS else name)


def start_of(name, seed):
    """What ``simulate`` is given for this model and seed, the same on every machine."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), 7])
    given, until = MODELS[name](rng)
    return {"until": until, **given}


def go(name, given, options):
    """Make a run; named failures are returned like any other end."""
    return fsm_dyn.simulate(graph_of(name), on_failure="return", max_steps=MOST_STEPS, **{**given, **options})


def states_at(run, times):
    """States at some times, shape (n, n_x), on the dense output, or along straight lines for time stepping."""
    record = run.record
    rows = np.clip(np.searchsorted(run.t, times, side="right") - 1, 0, len(run.t) - 2)
    h = run.t[rows + 1] - run.t[rows]
    theta = np.where(h > 0.0, (times - run.t[rows]) / np.where(h > 0.0, h, 1.0), 0.0)
    d0, d1 = record.x_dot[rows], record.x_dot[rows + 1]
    return quartic(theta, h, record.x[rows], d0, record.x_mid[rows + 1], record.x[rows + 1], d1)


def visits(run, loaded=False):
    """Modes one after the other and how long each lasted, without changes that keep the mode.

    With ``loaded`` a mode is known by the contacts that carry a force in it, or had one a moment before.
    """
    mode, found = run.record.mode, []
    names = [loaded_name(run, first, last) if loaded else run.modes[first] for first, last in stays(mode)]
    for (first, last), name in zip(stays(mode), names, strict=True):
        lasted = run.t[last] - run.t[max(first - 1, 0)]
        if found and found[-1][0] == name:
            found[-1][1] += lasted
        else:
            found.append([name, lasted])
    return found


def stays(mode):
    """First and last row of every stay in a mode."""
    cuts = np.flatnonzero(np.diff(mode)) + 1
    return list(zip([0, *cuts], [*(cuts - 1), len(mode) - 1], strict=True))


def loaded_name(run, first, last):
    """States of the contacts that carry a force somewhere in a range of rows."""
    model, force = run.model, np.abs(run.rows.multiplier_table)
    states, carried = model.charts[run.record.mode[last]].states, force[first : last + 1].max(axis=0)
    small = 1e-6 * force.max()
    return "+".join(
        f"{contact.name}:{states[i]}" for i, contact in enumerate(model.contacts)
        if states[i] and (contact.normal_row < 0 or carried[contact.normal_row] > small)
    )  # fmt: skip


def recent_visits(run, shortest):
    """As :func:`visits`, of the contacts that carried a force a moment before; a body at rest has one name.

    A contact that lasts opens and closes, or rebounds, from step to step in time stepping; what contacts share at rest
    is open.
    """
    model, force = run.model, np.abs(run.rows.multiplier_table)
    small = 1e-6 * force.max(initial=0.0)
    states = np.array([chart.states for chart in model.charts])[run.record.mode]
    resting = np.abs(run.record.x[:, run.q.shape[1] :]).max(axis=1) <= 1e-6
    since = np.full(states.shape, -np.inf)
    for i, contact in enumerate(model.contacts):
        carries = states[:, i] > 0
        if contact.normal_row >= 0:
            carries &= force[:, contact.normal_row] > small
        since[:, i] = np.where(carries, run.t, -np.inf)
    number = {contact.name: i for i, contact in enumerate(model.contacts)}
    for transition in run.transitions:
        row = np.searchsorted(run.t, transition.time, side="right") - 1
        for name in transition.impulse:
            if name in number:
                since[row, number[name]] = transition.time
    since = np.maximum.accumulate(since, axis=0)
    recent = since >= run.t[:, None] - shortest
    recent[resting] = False
    found = []
    for i in range(1, len(run.t)):
        name = (bool(resting[i]), recent[i].tobytes())
        if found and found[-1][0] == name:
            found[-1][1] += run.t[i] - run.t[i - 1]
        else:
            found.append([name, run.t[i] - run.t[i - 1]])
    return found


def passes_through(all_visits, other, shortest):
    """Whether the modes that last at least four times ``shortest`` in one run are met in this order in the other."""
    wanted = [name for i, (name, lasted) in enumerate(other) if lasted >= 4.0 * shortest]
    wanted = [name for i, name in enumerate(wanted) if i == 0 or wanted[i - 1] != name]
    there = iter([name for name, lasted in all_visits if lasted >= shortest])
    return all(any(name == each for each in there) for name in wanted)


def same_modes(a, b, shortest, stepping=False):
    """Whether two runs pass through the same modes, as far as a resolution in time tells, and end alike.

    ``stepping``: one of them is by time stepping.
    """
    if a.outcome.name != b.outcome.name and abs(a.t[-1] - b.t[-1]) > 10.0 * shortest:
        return False
    ways = [lambda run: visits(run), lambda run: visits(run, loaded=True)]
    ways += [lambda run: recent_visits(run, shortest)] if stepping else []
    for way in ways:
        first, second = way(a), way(b)
        if passes_through(first, second, shortest) and passes_through(second, first, shortest):
            return True
    return False


class Comparison:
    """Two runs from one start, and where they part."""

    def __init__(self, reference, run, shortest, stepping=False):
        self.same = same_modes(reference, run, shortest, stepping)
        n_q, until = reference.q.shape[1], min(reference.t[-1], run.t[-1])
        times = np.linspace(0.0, until, PLACES + 1)
        self.scale = np.maximum(np.abs(reference.record.x).max(axis=0), 1e-3)
        off = np.abs(states_at(run, times) - states_at(reference, times)) / self.scale
        # coordinates are continuous, speeds are compared at the end if nothing strikes near it
        self.error = off[:, :n_q].max(axis=1, initial=0.0)
        events = [x.time for x in (*reference.transitions, *run.transitions)]
        calm = all(abs(until - time) > 5.0 * shortest for time in events)
        self.end = float(off[-1].max() if calm else self.error[-1])
        # how far they were apart before they were far apart
        jump = np.flatnonzero(self.error > 1e3 * np.maximum.accumulate(np.r_[1e-14, self.error[:-1]]))
        self.before = float(self.error[: jump[-1]].max()) if len(jump) and jump[-1] > 0 else float(self.error.max())


def moved(name, seed, given, values, size, k):
    """The start with its initial values, and what its inputs say, moved by up to ``size`` of their scale.

    ``values`` are those of all coordinates and speeds where the run begins.  Every other start, ``k``, keeps its
    coordinates, as contacts that are closed there would be deep or open.
    """
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), 11, k])
    layout = graph_of(name).automaton.terms.layout
    free = {*given.get("initial", {}), *graph_of(name).automaton.mechanism.initial.values}
    initial = dict(given.get("initial", {}))
    for key in (*layout.q, *layout.u):
        by = size * float(rng.uniform(-1.0, 1.0))
        if key in free and (key in layout.u or k % 2 == 0):
            initial[key] = values[key] + max(abs(values[key]), 0.1) * by
    inputs = {
        key: _scaled(value, 1.0 + size * float(rng.uniform(-1.0, 1.0)))
        for key, value in given.get("inputs", {}).items()
    }
    return {**given, "initial": initial, "inputs": inputs}


def _scaled(value, by):
    """An input with all its values multiplied."""
    if isinstance(value, int | float):
        return value * by
    if isinstance(value, dict) and "expression" in value:
        return {"expression": f"({value['expression']})*{by!r}"}
    if isinstance(value, dict):
        return {kind: _scaled(rows, by) for kind, rows in value.items()}
    return [[t, v * by] for t, v in value]


class Judge:
    """One start of a model: the reference, and what a method makes of it."""

    def __init__(self, name, seed):
        self.name, self.seed, self.given = name, seed, start_of(name, seed)
        self.reference = go(name, self.given, REFERENCE)
        layout = graph_of(name).automaton.terms.layout
        self.values = dict(zip((*layout.q, *layout.u), self.reference.record.x[0].tolist(), strict=True))
        self.neighbours = {}

    def moved_runs(self, size):
        """Runs of dopri5 from starts moved by ``size``, made when asked for."""
        key = round(float(np.log10(max(size, 1e-12))), 1)
        for k in range(TRIES):
            if (key, k) not in self.neighbours:
                self.neighbours[key, k] = self.moved_run(10.0**key, k)
            if self.neighbours[key, k] is not None:
                yield self.neighbours[key, k]

    def moved_run(self, size, k):
        """Run number ``k`` from a start moved by ``size``; None where the start moved is none."""
        try:
            run = go(self.name, moved(self.name, self.seed, self.given, self.values, size, k), REFERENCE)
        except FsmDynError:  # the loop is open there
            return None
        return None if run.outcome.name == "initial penetration" else run

    def converges(self, label, options, found, parts):
        """Whether the run agrees with a part of the step, or comes four times nearer with the same modes.

        The modes of time stepping are read from its impulses, and a body that settles by many small bounces has no
        clear ones: there the states at all times have to come four times nearer.
        """
        method, stepping = METHODS[label], label == "moreau_jean"
        step = options["step"] / parts
        if self.given["until"] / step > MOST_STEPS:
            return False
        run = go(self.name, self.given, {**options, "step": step})
        finer = Comparison(self.reference, run, method.resolution, stepping)
        if finer.same and finer.end <= max(method.error / 8, found.end / 4 if found.same else 0.0):
            return True
        return stepping and finer.error.max() <= min(found.error.max() / 4, method.error)

    def has_several_outcomes(self):
        """Whether an impact of the reference has several outcomes by Coulomb's and Newton's laws."""
        return any(
            len(self.outcomes(transition)) > 1 for transition in self.reference.transitions if transition.impulse
        )

    def outcomes(self, transition):
        """The changes of the speeds (n_u,) that the laws allow an impact of rigid contacts in the plane, else none.

        Newton's restitution and Coulomb's friction for the impulses are the laws of accelerations with what the speeds
        have to change by in the place of the accelerations' bias, and no slip.
        """
        automaton = graph_of(self.name).automaton
        sample = self.reference.sample([transition.time])
        n_q, n_u = sample.q.shape[1], sample.u.shape[1]
        x = np.concatenate([sample.x[0, :n_q], transition.u_before])[None]
        terms = automaton.terms.evaluate(sample.t, x, sample.context)
        rows = {name: np.reshape(terms[name], -1) for name in ("residual", "b", "restitution", "kinetic")}
        A, M = np.reshape(terms["A"], (-1, np.shape(terms["A"])[-1]))[:, :n_u], np.reshape(terms["M"], (n_u, n_u))
        plain = all(c.kind == "gap" and np.ndim(c.tangent_row) == 0 for c in automaton.contacts)
        if not plain or len(A) != 2 * len(automaton.contacts):  # other rows than those of contacts in the plane
            return []
        closed = [(i, c) for i, c in enumerate(automaton.contacts) if rows["residual"][c.normal_row] <= CLOSED]
        change = A @ transition.u_before + rows["b"]
        for i, contact in closed:
            change[contact.normal_row] *= 1.0 + rows["restitution"][i]
        problem = (M, np.zeros(n_u), A, change, np.zeros(n_u))
        pairs, (mu,) = [(c.normal_row, c.tangent_row) for _, c in closed], {rows["kinetic"][i] for i, _ in closed}
        found = []
        for choices in itertools.product(range(-1, 3), repeat=len(pairs)):
            motion = coulomb_motion(problem, pairs, choices, mu)
            if motion is not None and not any(np.allclose(motion, other, rtol=1e-6) for other in found):
                found.append(motion)
        return found

    def own_error(self, method, options):
        """The least error (as a fraction of the scale) that a method has after an event, though it had none before.

        Time stepping puts an impact up to a step off.
        """
        if options.get("method") != "moreau_jean":
            return 0.01 * method.error
        scale = np.maximum(np.abs(self.reference.record.x).max(axis=0), 1e-3)
        rate = (np.abs(self.reference.record.x_dot).max(axis=0) / scale)[: self.reference.q.shape[1]]
        return float(options["step"] * rate.max())

    def method(self, label):
        """Return what became of one method, one of ``STATES``, and words for it."""
        method = METHODS[label]
        options = dict(method.options)
        if "step" in options:
            options["step"] /= FINER.get(self.name, 1)
        try:
            run = go(self.name, self.given, options)
        except InputError as error:
            return "refused", str(error).splitlines()[0]
        found = Comparison(self.reference, run, method.resolution, label == "moreau_jean")
        if self.reference.outcome.failed and not found.same:
            return "no reference", f"dopri5 at a tolerance of 1e-11 ends with '{self.reference.outcome.name}'"
        size = min(max(found.before, self.own_error(method, options)), method.error)
        words = (f"modes {'as' if found.same else 'unlike'} the reference, error {found.end:.1e} at the end, "
                 f"{found.before:.1e} before, outcome {run.outcome.name}")  # fmt: skip
        close = label == "moreau_jean" and found.error.max() <= method.error / 30
        if (found.same or close) and found.end <= method.error:
            return "agreed", words
        if "step" in options and any(self.converges(label, options, found, parts) for parts in FINER_STEPS):
            return "converges", words
        if self.has_several_outcomes():
            return "non-unique", words
        grown = 0.0
        for other in self.moved_runs(size):
            beside = Comparison(self.reference, other, method.resolution)
            if not beside.same:
                return "sensitive", words
            grown = max(grown, beside.end)
            if found.same and found.end <= MAGNIFIED * grown:
                return "agreed", words
        return "failed", words


def methods_agreement(seed, models=None, methods=None):
    """Compare all methods on one random start of every model.

    Parameters
    ----------
    seed : int
    models, methods : sequences of str, optional
        Some of ``MODELS`` and ``METHODS``; all by default.

    Returns
    -------
    dict
        ``"model/method"`` to ``[state, words]`` with a state of ``STATES``; fit for JSON.
    """
    found = {}
    for name in models or MODELS:
        judge = None
        try:
            judge = Judge(name, seed)
        except FsmDynError as error:
            found[f"{name}/"] = ["no reference", str(error).splitlines()[0]]
            continue
        for label in methods or METHODS:
            if label == "euler" and name not in EULER_MODELS:
                continue
            found[f"{name}/{label}"] = list(judge.method(label))
    return found


def agreement_table(results):
    """Return the table of many results as markdown: per model and method, the number of runs in each state."""
    counts = Counter()
    for result in results:
        for key, (state, _) in result.items():
            counts[(*key.split("/"), state)] += 1
    lines = ["| model | " + " | ".join(METHODS) + " |", "|---|" + "---|" * len(METHODS)]
    total = Counter()
    for name in MODELS:
        if not any(key[0] == name for key in counts):
            continue
        cells = []
        for label in METHODS:
            number = Counter({state: counts[name, label, state] for state in STATES})
            total.update({(label, state): many for state, many in number.items()})
            cells.append(_cell(number))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    last = [_cell({state: total[label, state] for state in STATES}, whole=True) for label in METHODS]
    lines.append("| all | " + " | ".join(last) + " |")
    return "\n".join(lines) + "\n"


def _cell(number, whole=False):
    """Counts of one method as ``agreed + converges + sensitive``, failures in bold."""
    if not any(number[state] for state in STATES[:5]):
        return "refused" if number["refused"] else "–"
    parts = [str(number["agreed"]), *(f"{number[state]} {state}" for state in STATES[1:4] if number[state])]
    return ", ".join([*parts, *([f"**{number['failed']} failed**"] if number["failed"] or whole else [])])


ABOUT = """Random starts of every model with contacts, the same for every method, against `dopri5` at a relative
tolerance of 1e-11. A number counts runs through the same modes to the same end within the method's error.
*converges*: the same with an eighth or a 32nd of the step. *sensitive*: `dopri5` from a start moved by the method's
own error passes through other modes as well. *non-unique*: the laws leave an impact on the way several outcomes.
*failed*: none of these. *refused*: the method names what it does not carry out. Explicit Euler is compared on models
without bounces shorter than its step, which it does not resolve."""
