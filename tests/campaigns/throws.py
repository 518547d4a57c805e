"""Aimed throws, judged by the true distance of the shapes on their motion in closed form, never by a guard of a run.

Every flight of a run, from its start or from a rebound to the next event, is held against the first touch of the free
motion from the row where it begins: whether there is one, and when.  Whatever the run does otherwise, no two shapes may
be within each other between its rows.
"""

from functools import cache

import numpy as np

import fsm_dyn
from tests.campaigns.throw_scenes import THROWN, Motion, driven, scenes, throw
from tests.campaigns.throw_truth import LEVEL, first_touch

LATE = 1e-7  # s
DEEP = 1e-5  # m
ON = 3e-9  # m: within the tolerance of a gap is within it, whatever the time
BATCH = 100
FLIGHTS = 6  # of a run that are judged
APART = "all_free"  # the mode in which no contact is closed
SCENES = scenes()


@cache
def simulator(scene):
    """The compiled scene, once a process."""
    return fsm_dyn.Simulator(fsm_dyn.compile(scene.model()))


def columns(scene, one, rows):
    """Columns x, y, p and the angle of the target, and their rates as far as they are speeds, of rows of a run."""
    if scene.moves == "turning":
        return rows.q[:, :4], rows.u[:, :4]
    return np.column_stack([rows.q[:, :3], driven(one.numbers, rows.t)]), rows.u[:, :3]


def size(scene, numbers):
    """The smallest size of a scene, m."""
    return min(numbers["R"], numbers["r"] if scene.thrown in THROWN else np.inf)


def apart(run):
    """Of each row, whether no contact of the shapes is closed."""
    return np.array(run.modes) == APART


def flights(run):
    """First and last row of each stretch without a contact, and whether an event ends it."""
    free = apart(run)
    times = [item.time for item in run.transitions if item.impulse or not item.is_handover]
    begins = [0, *(np.searchsorted(run.t, times, "right") - 1)]
    ends = [*np.searchsorted(run.t, times, "left"), len(run.t) - 1]
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if run.t[end] > run.t[begin] and free[begin]:
            yield begin, end, number < len(times)


def misdeeds(scene, one, run):
    """What is wrong with a run, each as a kind and words; and how many touches were true."""
    q, u = columns(scene, one, run.rows)
    met = 0
    for number, (begin, end, event) in enumerate(flights(run)):
        if number >= FLIGHTS:
            break
        motion = Motion(scene, one.numbers, run.t[begin], q[begin], u[begin])

        def distance(t, motion=motion):
            return scene.distance(motion(t), one.numbers)

        t0 = departed(distance, run.t[begin], run.t[end]) if number else run.t[begin]
        if t0 is None:
            continue
        time, _ = first_touch(distance, t0, one.until, motion.rate(one.until), size(scene, one.numbers))
        if time < np.inf and not scene.counts(motion(np.array([time])), one.numbers):
            return met, ("unjudged", "it comes from behind")
        met += time < np.inf
        what = f"flight {number} from {run.t[begin]:.9g} s"
        if not event and time < run.t[end] - LATE:
            return met, ("missed", f"{what} touches at {time:.10g} s and goes on to the end")
        if not event:
            continue
        if time < run.t[end] - LATE and abs(distance(run.t[[end]])[0]) > ON:
            return met, ("late", f"{what} touches at {time:.10g} s, and the event is at {run.t[end]:.10g} s")
        if time > run.t[end] + LATE and abs(distance(run.t[[end]])[0]) > ON:
            return met, ("false", f"{what} ends at {run.t[end]:.10g} s, {distance(run.t[[end]])[0]:.3g} m apart")
    return met, None


def departed(distance, begin, end):
    """The first of a geometric row of instants at which the shapes are clear of each other; None if they never are."""
    t = begin + (end - begin) * 2.0 ** -np.arange(30.0)[::-1]
    d = distance(t)
    clear = np.flatnonzero(d > 100.0 * LEVEL)
    return float(t[clear[0]]) if clear.size else None


def deepest(scene, one, run, looks):
    """How deep, m, the shapes are within each other at most, at instants of the dense output without a contact."""
    t = np.linspace(0.0, run.t[-1], looks)
    rows = run.sample(t)
    q, _ = columns(scene, one, rows)
    judged = apart(run)[np.searchsorted(run.t, t, "right") - 1] | (scene.law != "compliant")
    return float(-scene.distance(q[judged], one.numbers).min(initial=np.inf))


def trial(scene, seed, looks=0, **options):
    """Carry out one throw: what is wrong, or None, and how many touches were true."""
    one = throw(scene, seed)
    given = {"parameters": one.numbers, "initial": one.initial, "max_steps": 200_000, "on_failure": "return"}
    run = simulator(scene).run(one.until, **given, **options)
    met, wrong = misdeeds(scene, one, run)
    if wrong is None and run.outcome.failed:
        wrong = "fails", f"{run.outcome.name} at {run.t[-1]:.10g} s"
    if wrong is None and looks and (depth := deepest(scene, one, run, looks)) > DEEP:
        wrong = "deep", f"the shapes are {depth:.3g} m within each other"
    return met, wrong, run


def case(seed, count=BATCH):
    """A batch of throws of one scene."""
    scene = SCENES[seed % len(SCENES)]
    kinds, found, touches = {}, [], 0
    for number in range(count):
        met, wrong, _ = trial(scene, seed * BATCH + number, looks=100_000 if number % 10 == 0 else 0)
        touches += met
        kind = wrong[0] if wrong else "as in closed form"
        kinds[kind] = kinds.get(kind, 0) + 1
        if wrong and kind != "unjudged":
            found.append(f"{kind}: {wrong[1]} [{scene.name}, throw {seed * BATCH + number}]")
    return {
        "ok": not found, "reason": "; ".join(found[:3]) or "as in closed form", "model": scene.name, "tried": count,
        "wrong": len(found), "answers": kinds, "transitions": touches,
    }  # fmt: skip
