"""Guards whose zeros lie close together against the run: narrow conditions of turns, washboards, bumps of load.

All of these have closed forms, or a distance that is searched along the motion in closed form; the run is held against
the times that follow from them.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

import fsm_dyn
from tests.campaigns.throw_truth import first_touch

LATE = 1e-7  # s, or relative to the run
BATCH = 50
MOST = 1000  # turns of a run that are counted


class Narrow(NamedTuple):
    """A model and its random cases: arguments of a run, and the times at which it must have its transitions."""

    model: dict
    draw: object


def _wheel(**more):
    return {
        "fsm_dyn": 1, "name": "narrow", "parameters": {"c": 0.0, "n": 1.0},
        "coordinates": ["q"], "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
        "bodies": {"wheel": {"frame": "B", "center": "O", "mass": 1.0, "inertia": {"zz": 1.0}}},
        "memory": {"count": 0}, "initial": {"q": 0.01}, **more,
    }  # fmt: skip


def counting(when, crossing=""):
    entry = {"from": "*", "when": when, "set": {"count": "count + 1"}, "because": "a turn"}
    return _wheel(transitions=[entry | ({"crossing": crossing} if crossing else {})])


def _turning(rng):
    """Start, rate over four decades and end of a wheel, with at most so many turns."""
    rate = rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-1.0, 3.0)
    until = min(10 ** rng.uniform(-1.0, 2.0), MOST * 2.0 * np.pi / abs(rate))
    return rng.uniform(0.0, 2.0 * np.pi), rate, until


def _turned(start, rate, until, angles):
    """The times at which an angle passes any of some angles and whole turns from them, in order."""
    found = []
    for angle in angles:
        whole = np.arange(-MOST - 3, MOST + 4)
        times = (angle + 2.0 * np.pi * whole - start) / rate
        found.append(times[(times > 0.0) & (times < until)])
    return np.sort(np.concatenate(found))


def rotor(rng):
    """A wheel that turns evenly, and a condition that is true in a narrow part of each turn."""
    start, rate, until = _turning(rng)
    c = 1.0 - 10 ** rng.uniform(-6.0, -0.5)
    start = 0.5 * np.pi + rng.uniform(1.05, 1.95) * np.pi if np.sin(start) > c - 0.1 else start
    entered = np.arcsin(c) if rate > 0.0 else np.pi - np.arcsin(c)
    return (
        {"parameters": {"c": c}, "initial": {"q": start, "q_dot": rate}},
        until,
        _turned(start, rate, until, [entered]),
    )


def encoder(rng):
    """A wheel that turns evenly, and rising zeros of a sine of n turns."""
    start, rate, until = _turning(rng)
    n = int(rng.integers(1, 12))
    until = until / n
    rising = (np.arange(n) if rate > 0.0 else np.arange(n) + 0.5) * 2.0 * np.pi / n
    times = _turned(start, rate, until, rising)
    return {"parameters": {"n": float(n)}, "initial": {"q": start, "q_dot": rate}}, until, times


def _particle(**more):
    return {
        "fsm_dyn": 1, "name": "narrow",
        "parameters": {"A": 0.01, "k": 10.0, "g": 10.0, "mu": 0.3, "F": 1.0, "at": 0.5, "wide": 0.01, "m": 2.0},
        "coordinates": ["x", "y"], "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": "m"}}, **more,
    }  # fmt: skip


WASHBOARD = _particle(
    contacts={"hit": {"gap": "y - A*sin(k*x)", "restitution": 0.3}},
    loads=[{"gravity": "-g*N.y"}],
    initial={"y": 1.0},
    transitions=[{"from": "*", "on": "hit closes", "stop": True, "because": "it touches a crest"}],
)


def washboard(rng):
    """A particle that is thrown along waves, and touches a crest."""
    numbers = {"A": 10 ** rng.uniform(-3.0, -1.0), "k": 10 ** rng.uniform(0.0, 3.0), "g": 10.0}
    falls = 10 ** rng.uniform(-1.5, 0.5)
    A, k, g = (numbers[name] for name in "Akg")
    rise = rng.uniform(-1.0, 1.0) * g * falls
    high = A * rng.uniform(0.9, 1.2) - rise * falls + 0.5 * g * falls**2
    if high < 1.05 * A:  # from above, and towards the crests
        rise, high = 0.0, A + 0.5 * g * falls**2
    speed = min(10 ** rng.uniform(-1.0, 3.0), 2.0 * np.pi * MOST / (k * falls))
    until = falls * 10 ** rng.uniform(0.05, 1.0)

    def gap(t):
        return high + rise * t - 0.5 * g * t**2 - A * np.sin(k * speed * t)

    rate = abs(rise) + g * until + A * k * speed
    time, _ = first_touch(gap, 0.0, until, rate, min(A, 1.0 / k))
    initial = {"y": high, "x_dot": speed, "y_dot": rise}
    return {"parameters": numbers, "initial": initial}, until, np.array([time] if time < np.inf else [])


# the load reaches the limit at |x - at| = wide*sqrt(log(F/limit))
LIFTED = _particle(
    contacts={"table": {"gap": "y"}},
    loads=[{"gravity": "-g*N.y"}, {"force": "F*exp(-((x - at)/wide)**2)*N.y", "at": "P"}],
    transitions=[{"from": "*", "on": "table opens", "stop": True, "because": "it lifts off"}],
)
PUSHED = _particle(
    contacts={"table": {"gap": "y", "slip": "dot(vel(P), N.x)", "friction": "mu"}},
    loads=[{"gravity": "-g*N.y"}, {"force": "F*exp(-((t - at)/wide)**2)*N.x", "at": "P"}],
    transitions=[{"from": "*", "on": "table slides", "stop": True, "because": "it slides"}],
)


DRAGGED = _particle(
    contacts={"table": {"gap": "y", "slip": "dot(vel(P), N.x)", "friction": "mu"}},
    loads=[{"gravity": "-g*N.y"}, {"force": "F*exp(-((t - at)/wide)**2)*N.y", "at": "P"}],
    transitions=[{"from": "*", "on": "table opens", "stop": True, "because": "it lifts off"}],
)


# Forces that are chosen (redundant rows), that follow the slip (in space) or that friction follows (bearings). A cart
# that runs freely carries the load, so that nothing else shortens the steps.
def _carted(force, more, contacts, limit_event, initial, **others):
    model = {
        "fsm_dyn": 1, "name": "narrow", "parameters": {"F": 1.0, "at": 0.5, "wide": 0.01, "g": 10.0},
        "coordinates": [*more, "c"],
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "C": {"from": "O", "at": "c*N.x"}},
        "bodies": {"ball": {"center": "P", "mass": 2.0}, "cart": {"center": "C", "mass": 1.0}},
        "contacts": contacts, "modes": {"first": initial.pop("states")}, "initial": {"mode": "first", **initial},
        "loads": [{"gravity": "-g*N.y"}, {"force": f"F*exp(-((c - at)/wide)**2)*{force}", "at": "P"}],
        "transitions": [{"from": "*", "on": limit_event, "stop": True, "because": "it has reached its limit"}],
    }  # fmt: skip
    for name, part in others.items():
        model[name] = {**model.get(name, {}), **part} if isinstance(part, dict) else part
    return model


FEET = {
    "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
    "points": {name: {"from": "P", "at": f"{place}*B.x"} for name, place in (("L", -1.0), ("R", 1.0), ("Z", 0.0))},
    "bodies": {"ball": {"frame": "B", "center": "P", "mass": 2.0, "inertia": {"zz": 1.0}}},
}


def _foot(name):
    return {"gap": f"dot(pos({name}), N.y)", "slip": f"dot(vel({name}), N.x)", "friction": 0.3}


STEPPED = _carted(
    "N.y", ["x", "y", "q"], {f"at_{name}": {"gap": f"dot(pos({name}), N.y)"} for name in "LRZ"}, "at_Z opens",
    {"states": {f"at_{name}": "closed" for name in "LRZ"}}, **FEET,
)  # fmt: skip
SHOVED = _carted(
    "N.x", ["x", "y", "q"], {f"at_{name}": _foot(name) for name in "LR"}, "at_L slides",
    {"states": {f"at_{name}": "stick" for name in "LR"}}, **FEET,
)  # fmt: skip
SKATED = _carted(
    "N.y", ["x", "y", "z"], {"table": {"gap": "y", "slip": ["rate(x)", "rate(z)"], "friction": 0.1}}, "table opens",
    {"states": {"table": "slide"}, "x_dot": 60.0, "z_dot": 80.0},
    points={"P": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
)  # fmt: skip
JOINTED = {
    "joints": {"pin": {"revolute": {"child": "W", "at": "O", "axis": "N.z", "friction": 0.2, "radius": 0.01}}},
    "bodies": {"wheel": {"frame": "W", "center": "W_origin", "mass": 1.0, "inertia": {"zz": 1.0}}},
}
BORNE = _carted(
    "N.y", ["x", "y"], {"table": {"gap": "y"}}, "table opens",
    {"states": {"table": "closed", "pin_friction": "slide"}, "pin_dot": 1000.0}, **JOINTED,
)  # fmt: skip
GUIDED = _carted(
    "N.x", ["y"], {}, "guide_friction slides", {"states": {"guide_friction": "stick"}},
    joints={"guide": {"prismatic": {"child": "W", "at": "O", "axis": "N.x", "friction": 0.3}}},
    points={"P": {"from": "O", "at": "y*N.y"}},
    bodies={"ball": {"center": "P", "mass": 1.0}, "slide": {"frame": "W", "center": "W_origin", "mass": 2.0}},
    loads=[{"gravity": "-g*N.y"}, {"force": "F*exp(-((c - at)/wide)**2)*N.x", "at": "W_origin"}],
)  # fmt: skip


def _bump(rng, limit):
    """End of a run, height, place and width of a bump of load, and the times at which it first reaches a limit."""
    until = 10 ** rng.uniform(-1.0, 1.5)
    high = limit * rng.choice([rng.uniform(0.5, 0.99), 1.0 + 10 ** rng.uniform(-3.0, 0.5), rng.uniform(1.1, 3.0)])
    at, wide = until * rng.uniform(0.15, 0.9), until * 10 ** rng.uniform(-3.5, -1.3)
    first = at - wide * np.sqrt(np.log(high / limit)) if high > limit else np.inf
    return until, high, at, wide, np.array([first] if 0.0 < first < until else [])


def lifted(rng):
    """A block that slides over a short bump of upward load; it lifts off where that is its weight."""
    until, high, at, wide, times = _bump(rng, 20.0)
    speed = 10 ** rng.uniform(-1.0, 1.0)
    numbers = {"F": high, "at": at * speed, "wide": wide * speed}
    return {"parameters": numbers, "initial": {"x_dot": speed}}, until, times


def pushed(rng):
    """A block at rest that a short push sets sliding, where that is its friction limit."""
    until, high, at, wide, times = _bump(rng, 6.0)
    return {"parameters": {"F": high, "at": at, "wide": wide}}, until, times


def dragged(rng):
    """A block that slides with friction until a short pull lifts it off, where that is its weight."""
    until, high, at, wide, times = _bump(rng, 20.0)
    initial = {"x_dot": rng.choice([-1.0, 1.0]) * (1.0 + 3.0 * until)}  # it does not come to rest before
    return {"parameters": {"F": high, "at": at, "wide": wide}, "initial": initial}, until, times


def _carried(limit):
    """A bump of load over which a cart runs."""

    def draw(rng):
        until, high, at, wide, times = _bump(rng, limit)
        speed = 10 ** rng.uniform(-1.0, 1.0)
        numbers = {"F": high, "at": at * speed, "wide": wide * speed}
        return {"parameters": numbers, "initial": {"c_dot": speed}}, until, times

    return draw


KINDS = {
    "rotor": Narrow(counting("sin(q) > c"), rotor),
    "encoder": Narrow(counting("sin(n*q)", "rising"), encoder),
    "washboard": Narrow(WASHBOARD, washboard),
    "lifted": Narrow(LIFTED, lifted),
    "pushed": Narrow(PUSHED, pushed),
    "dragged": Narrow(DRAGGED, dragged),
    "stepped": Narrow(STEPPED, _carried(20.0)),
    "shoved": Narrow(SHOVED, _carried(6.0)),
    "skated": Narrow(SKATED, _carried(20.0)),
    "borne": Narrow(BORNE, _carried(20.0)),
    "guided": Narrow(GUIDED, _carried(6.0)),
}
SOLVED = tuple(KINDS)[6:]  # whose forces are solved for in modes embedded online
FIRST = tuple(KINDS)[2:]  # of which one event is judged
WAYS = {
    "dopri5": {}, "tight": {"rtol": 1e-12}, "loose": {"rtol": 1e-3}, "online": {"strategy": "online"},
    "radau": {"method": "radau"}, "bdf": {"method": "bdf"}, "rk4": {"method": "rk4"},
}  # fmt: skip


@cache
def simulator(kind):
    """The compiled model, once a process."""
    return fsm_dyn.Simulator(fsm_dyn.compile(KINDS[kind].model))


def near(times, until):
    """Whether a time lies so near to the end of the run that either answer is right."""
    return len(times) and abs(times[-1] - until) < LATE * max(1.0, until)


def trial(kind, seed, way="dopri5"):
    """Carry out one case: how many events it truly has, and what is wrong, or None."""
    rng = np.random.default_rng([seed, len(kind), ord(kind[0])])
    given, until, times = KINDS[kind].draw(rng)
    more = {"step": until / 7.0} if way == "rk4" else {}
    given = {name: {key: float(value) for key, value in part.items()} for name, part in given.items()}
    run = simulator(kind).run(until, **given, **more, **WAYS[way], on_failure="return")
    if run.outcome.failed:
        return len(times), ("fails", f"{run.outcome.name} at {run.t[-1]:.10g} s")
    found = np.array([item.time for item in run.transitions])
    if kind in FIRST:
        found = found[:1]
    if near(times, until) or near(found, until):
        return len(times), None
    if len(found) != len(times):
        return len(times), ("missed" if len(found) < len(times) else "false", f"{len(found)} of {len(times)} events")
    off = np.abs(found - times).max(initial=0.0)
    # what falls is not followed exactly by these methods
    allowed = 1e-3 * until if kind == "washboard" and way in ("bdf", "radau") else LATE * max(1.0, until)
    if off > allowed:
        k = int(np.argmax(np.abs(found - times)))
        return len(times), ("late", f"event {k} of {len(times)} at {found[k]:.10g} s in place of {times[k]:.10g} s")
    return len(times), None


def case(seed, count=BATCH):
    """A batch of cases of one kind in one way."""
    kind, way = list(KINDS)[seed % len(KINDS)], list(WAYS)[seed // len(KINDS) % len(WAYS)]
    kinds, found, events = {}, [], 0
    for number in range(seed * BATCH, seed * BATCH + count):
        true, wrong = trial(kind, number, way)
        events += true
        answer = wrong[0] if wrong else "as in closed form"
        kinds[answer] = kinds.get(answer, 0) + 1
        if wrong:
            found.append(f"{answer}: {wrong[1]} [{kind}, {way}, case {number}]")
    return {
        "ok": not found, "reason": "; ".join(found[:3]) or "as in closed form", "model": kind, "way": way,
        "tried": count, "wrong": len(found), "answers": kinds, "transitions": events,
    }  # fmt: skip
