"""Aimed throws, judged by the true distance of the shapes on their motion in closed form, never by a guard of a run.

Every flight of a run, from its start or from a rebound to the next event, is held against the first touch of the free
motion from the row where it begins: whether there is one, and when.  No two shapes may
be within each other between its rows.
"""

from functools import cache

import numpy as np

import fsm_dyn
from tests.campaigns.space_scenes import space_scenes
from tests.campaigns.throw_scenes import Motion, driven, planar_scenes
from tests.campaigns.throw_truth import LEVEL, first_touch

LATE = 1e-7  # s
DEEP = 1e-5  # m
ON = 3e-9  # m: within the tolerance of a gap is a touch at any time
BATCH = 100
FLIGHTS = 6  # of a run that are judged
STEPS = 5_000  # of a run: long after its judged flights some slide, rattle, or are struck by a light plane
CREEPING = 500  # steps, more than a compression takes
APART = "all_free"  # the mode in which no contact is closed
SCENES = planar_scenes() + space_scenes()
WAYS = {
    "dopri5": {},
    "loose": {"rtol": 1e-3},
    "tight": {"rtol": 1e-12},
    "online": {"strategy": "online"},
    "rk4": {"method": "rk4"},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "resumed": {},
}
RECORDED = ("radau", "bdf")  # methods that are not exact on a free flight: what they recorded is judged
RK4_STEPS = 7  # of a run
FOLLOWED = {"radau": 1e-6, "bdf": 1e-6}  # m: error of the point of a curve that a run follows


@cache
def simulator(scene):
    """The compiled scene, once a process."""
    return fsm_dyn.Simulator(fsm_dyn.compile(scene.model()))


def columns(scene, one, rows):
    """The coordinates of the thing and the angle of the target, and the rates of those that are coordinates."""
    if scene.turns:
        return rows.q[:, : scene.moving + 1], rows.u[:, : scene.moving + 1]
    return np.column_stack([rows.q[:, : scene.moving], driven(one.numbers, rows.t)]), rows.u[:, : scene.moving]


def apart(run):
    """Of each row, whether no contact of the shapes is closed."""
    return np.array(run.modes) == APART


def flights(run):
    """First and last row of each interval without a contact, and whether an event ends it."""
    free = apart(run)
    times = [item.time for item in run.transitions if item.impulse or not item.is_handover]
    begins = [0, *(np.searchsorted(run.t, times, "right") - 1)]
    ends = [*np.searchsorted(run.t, times, "left"), len(run.t) - 1]
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if run.t[end] > run.t[begin] and free[begin]:
            yield begin, end, number < len(times)


def misdeeds(scene, one, run, way="dopri5"):
    """How many touches were true, and the first thing that is wrong with a run as a kind and words, or None.

    By some methods what was recorded of a flight is judged, to its end, in place of the free motion from its first row.
    """
    recorded, on = way in RECORDED, FOLLOWED.get(way, ON) if scene.target == "curve" else ON
    q, u = columns(scene, one, run.rows)
    met = 0
    for number, (begin, end, event) in enumerate(flights(run)):
        if number >= FLIGHTS:
            break
        motion = Motion(scene, one.numbers, run.t[begin], q[begin], u[begin])
        rate, last = scene.rate(motion, one.until), one.until
        if recorded:
            rate, last = 2.0 * rate, max(run.t[end] - (LATE if event else 0.0), run.t[begin])

        def distance(t, motion=motion):
            q = columns(scene, one, run.sample(t))[0] if recorded else motion(t)
            return scene.distance(q, one.numbers)

        t0 = departed(distance, run.t[begin], last if recorded else run.t[end]) if number else run.t[begin]
        if t0 is None:
            continue
        time, _ = first_touch(distance, t0, last, rate, scene.size(one.numbers))
        if time < np.inf and not scene.counts(motion(np.array([time])), one.numbers):
            return met, ("unjudged", "it comes from behind")
        met += event
        left = float(scene.distance(q[[end]], one.numbers)[0])
        if wrong := verdict(time, run.t[end], event, left, recorded, on):
            return met, (wrong[0], f"flight {number} from {run.t[begin]:.9g} s {wrong[1]}")
    return met, None


def verdict(time, end, event, left, recorded, on):
    """What is wrong with the end of a flight that truly touches at a time, where ``left`` (m) is left at its end."""
    if not event:
        return ("missed", f"touches at {time:.10g} s and goes on to the end") if time < end - LATE else None
    if time < end - LATE and abs(left) > on:
        return "late", f"touches at {time:.10g} s, and the event is at {end:.10g} s"
    if abs(left) > on and (recorded or time > end + LATE):
        return "false", f"ends at {end:.10g} s, {left:.3g} m apart"
    return None


def departed(distance, begin, end):
    """The first of a geometric row of instants at which the shapes are clear of each other; None if they never are."""
    t = np.minimum(begin + (end - begin) * 2.0 ** -np.arange(30.0)[::-1], end)
    d = distance(t)
    clear = np.flatnonzero(d > 100.0 * LEVEL)
    return float(t[clear[0]]) if clear.size else None


def deepest(scene, one, run, looks):
    """How deep, m, the shapes are within each other at most, at instants of the dense output without a contact."""
    t = np.linspace(0.0, run.t[-1], looks)
    q, _ = columns(scene, one, run.sample(t))
    judged = apart(run)[np.searchsorted(run.t, t, "right") - 1] | (scene.law != "compliant")
    return float(-scene.distance(q[judged], one.numbers).min(initial=np.inf))


def breaks_off(run, met):
    """Whether a run ends where it should not, after so many touches.

    Not with its last step of many, unless it creeps: CREEPING steps without an event that take next to no time.
    Nor with the compressions of a light plane, ever shorter the farther out it strikes, if all judged flights are over.
    """
    if run.outcome.name == "too many steps":
        begin = max((item.time for item in run.transitions), default=0.0)
        last = run.t[run.t > begin][-CREEPING:]
        return len(last) == CREEPING and last[-1] - last[0] < 1e-7 * run.t[-1]
    return run.outcome.failed and met < FLIGHTS


def carried_out(scene, one, way="dopri5"):
    """The run of a throw, in one of the ways."""
    given = {"parameters": one.numbers, "initial": one.started(scene), "max_steps": STEPS, "on_failure": "return"}
    if way == "rk4":
        given["step"] = one.until / RK4_STEPS
    if way != "resumed":
        return simulator(scene).run(one.until, **given, **WAYS[way])
    first = simulator(scene).run(0.3 * one.until, **given)
    return first if first.outcome.failed else first.resume(one.until, on_failure="return")


def trial(scene, seed, looks=0, way="dopri5"):
    """Carry out one throw: how many touches there were, what is wrong, or None, and the run."""
    one = scene.throw(seed)
    run = carried_out(scene, one, way)
    met, wrong = misdeeds(scene, one, run, way)
    if wrong is None and breaks_off(run, met):
        wrong = "fails", f"{run.outcome.name} at {run.t[-1]:.10g} s"
    if wrong is None and looks and (depth := deepest(scene, one, run, looks)) > DEEP:
        wrong = "deep", f"the shapes are {depth:.3g} m within each other"
    return met, wrong, run


def ways(scene):
    """In which ways a scene is run: steps with large errors lose the point of a curve, or a stiff contact."""
    left_out = {"rk4", "loose"} if scene.target == "curve" else {"rk4"} if scene.law == "compliant" else set()
    return [way for way in WAYS if way not in left_out]


def case(seed, count=BATCH):
    """A batch of throws of one scene in one way."""
    scene = SCENES[seed % len(SCENES)]
    among = ways(scene)
    way = among[(seed // len(SCENES)) % len(among)]
    kinds, found, touches = {}, [], 0
    for number in range(seed * BATCH, seed * BATCH + count):
        met, wrong, _ = trial(scene, number, looks=100_000 if number % 10 == 0 else 0, way=way)
        touches += met
        kind = wrong[0] if wrong else "as in closed form"
        kinds[kind] = kinds.get(kind, 0) + 1
        if wrong and kind != "unjudged":
            found.append(f"{kind}: {wrong[1]} [{scene.name}, {way}, throw {number}]")
    return {
        "ok": not found, "reason": "; ".join(found[:3]) or "as in closed form", "model": scene.name, "way": way,
        "tried": count, "wrong": len(found), "answers": kinds, "transitions": touches,
    }  # fmt: skip
