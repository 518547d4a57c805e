"""What a jump makes true happens in its instant: every kind of transition, every cause of a jump, every method.

The quantity ``Z`` is -6 until 0.2 s and 3 from there on, for every cause; the truth of a condition on both sides
decides when it acts.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import fsm_dyn

T = 0.2
RUNS = {
    "dopri5": {},
    "online": {"strategy": "online"},
    "rk4": {"method": "rk4", "step": 0.03},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
}
BALL = {
    "fsm_dyn": 1,
    "coordinates": ["y"],
    "points": {"P": {"from": "O", "at": "y*N.y"}},
    "bodies": {"ball": {"center": "P", "mass": 1}},
    "initial": {"y": 1.2, "y_dot": -6},
}
AT_T = {"from": "*", "when": f"t - {T}", "because": "the jump"}

#: what makes Z jump, and which expression Z is
CAUSES = {
    "impact": {"Z": "y_dot", "contacts": {"g": {"gap": "y", "restitution": 0.5}}},
    "reset": {"Z": "y_dot", "jump": {"reset": {"y_dot": "3"}}},
    "impulse": {"Z": "y_dot", "jump": {"impulse": [{"linear": "9*N.y", "at": "P"}]}},
    "set": {"Z": "n", "memory": {"n": -6}, "jump": {"set": {"n": "3"}}},
    "input": {"Z": "F", "inputs": ["F"], "schedule": {"F": {"steps": [[0, -6], [T, 3]]}}},
    "switch in time": {"Z": f"where(t >= {T}, 3, -6)"},
    "sample": {
        "Z": "s",
        "controllers": {"c": {"period": T, "outputs": {"s": {"value": f"where(t > {T / 2}, 3, -6)", "start": -6}}}},
    },
    "delayed sample": {
        "Z": "s",
        "controllers": {"c": {"period": T, "delay": 1, "outputs": {"s": {"value": "3", "start": -6}}}},
    },
}

#: conditions of Z, and whether they hold for a number
CONDITIONS = {
    "Z > 2": lambda z: z > 2,
    "Z >= 3": lambda z: z >= 3,
    "Z > 3": lambda z: z > 3,
    "3 <= Z": lambda z: z >= 3,
    "Z < -6": lambda z: z < -6,
    "Z <= -6": lambda z: z <= -6,
    "Z < 4": lambda z: z < 4,
    "not Z < 3": lambda z: z >= 3,
    "not Z <= 3": lambda z: z > 3,
    "Z >= 3 and 1 < 2": lambda z: z >= 3,
    "Z > 3 and 1 < 2": lambda z: z > 3,
    "Z >= 3 and Z < 4": lambda z: 3 <= z < 4,
    "2 < Z <= 3": lambda z: 2 < z <= 3,
    "Z > 5 or Z >= 3": lambda z: z >= 3,
    "not (Z <= 2 or Z > 3)": lambda z: 2 < z <= 3,
    "on and Z > 2": lambda z: z > 2,
    "not on and Z > 2": lambda z: False,
    "on": lambda z: True,
    "level == 2 and Z > 2": lambda z: z > 2,
    "level != 2 or Z > 3": lambda z: z > 3,
}

#: expressions and directions of crossing, and whether a jump from one number to another crosses
CROSSINGS = {
    ("Z", "rising"): True,
    ("Z", "falling"): False,
    ("Z", "both"): True,
    ("Z - 3", "rising"): True,
    ("Z - 4", "rising"): False,
    ("-Z", "falling"): True,
    ("Z + abs(Z) - 1", "both"): True,
}


def model_of(cause, transitions):
    """Return the model in which `cause` makes Z jump, with these transitions behind it."""
    keys = (CAUSES | PASSED)[cause]
    found = {key: value for key, value in keys.items() if key not in ("Z", "jump", "after")}
    jump = [AT_T | keys["jump"]] if "jump" in keys else []
    if "on" in keys.get("jump", {}):
        del jump[0]["when"]
    memory = {"on": True, "level": 2, "k": 0} | found.pop("memory", {})
    texts = [item | {"when": item["when"].replace("Z", f"({keys['Z']})")} for item in transitions]
    return BALL | found | {"name": "jump", "memory": memory, "transitions": [*jump, *texts]}


def all_of_them():
    """Return a transition for every condition and crossing; each is its own reason."""
    count = {"from": "*", "set": {"k": "k + 1"}}
    conditions = [count | {"when": text, "because": text} for text in CONDITIONS]
    crossings = [count | {"when": text, "crossing": way, "because": f"{text} {way}"} for text, way in CROSSINGS]
    return [*conditions, *crossings]


def log(run, known):
    """Return when which of the known reasons acted, in the order of the log."""
    reasons = [(item.time, item.cause.split(", ")[-1].split("; ")[0]) for item in run.transitions]
    return [(pytest.approx(time, abs=1e-9), reason) for time, reason in reasons if reason in known]


@pytest.fixture(scope="module", params=CAUSES)
def jump(request):
    return fsm_dyn.compile(model_of(request.param, all_of_them()))


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_every_kind_by_every_cause(jump, options):
    """Each acts once, where it becomes true; several in one instant in the order of the file, each in the log."""
    expected = [(0.0, text) for text, holds in CONDITIONS.items() if holds(-6)]
    expected += [(T, text) for text, holds in CONDITIONS.items() if holds(3) and not holds(-6)]
    expected += [(T, f"{text} {way}") for (text, way), crosses in CROSSINGS.items() if crosses]
    run = fsm_dyn.simulate(jump, until=0.5, **options)
    assert log(run, {reason for _, reason in expected} | {*CONDITIONS}) == expected
    assert run["k"][-1] == len(expected)


#: how Z, which is -6, is 3 between two jumps of one instant, and its number after the second
PASSED = {
    "impact, reset": CAUSES["impact"] | {"after": 1, "jump": {"on": "g closes", "reset": {"y_dot": "1"}}},
    "impact, impulse": CAUSES["impact"]
    | {"after": 1, "jump": {"on": "g closes", "impulse": [{"linear": "-2*N.y", "at": "P"}]}},
    "impact, set": {
        "after": -6,
        "Z": "y_dot + n", "memory": {"n": 0}, "contacts": {"g": {"gap": "y", "restitution": 0.5}},
        "jump": {"on": "g closes", "set": {"n": "-9"}},
    },
    "reset, impact": {
        "after": -1,
        "Z": "y_dot", "contacts": {"g": {"gap": "2 - y", "restitution": 1 / 3}},
        "jump": {"reset": {"y": "2", "y_dot": "3"}},
    },
    "input, impact": {
        "after": -6,
        "Z": "F - y_dot - 12", "inputs": ["F"], "schedule": {"F": {"steps": [[0, 0], [T, 9]]}},
        "contacts": {"g": {"lock": {"velocity": "y_dot - F + 6"}}}, "modes": {"held": {"g": "engaged"}},
        "initial": BALL["initial"] | {"mode": "held"},
    },
}  # fmt: skip


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("cause", PASSED)
def test_what_holds_between_two_jumps_of_one_instant(cause, options):
    """What the first makes true acts though the second ends it; what it ends acts again if the second makes it true."""
    path = [-6, 3, PASSED[cause]["after"]]
    expected = [(0.0, text) for text, holds in CONDITIONS.items() if holds(-6)]
    expected += [(T, text) for text, holds in CONDITIONS.items() if becomes(path, holds)]
    crossed = {"Z": 0, "Z - 3": 3, "Z - 4": 4, "-Z": 0, "Z + abs(Z) - 1": 0.5}
    for text, way in CROSSINGS:
        sign = -1 if (text == "-Z") != (way == "falling") else 1
        ways = (1, -1) if way == "both" else (sign,)
        if any(becomes(path, lambda z, s=s, text=text: s * (z - crossed[text]) >= 0) for s in ways):
            expected.append((T, f"{text} {way}"))
    run = fsm_dyn.simulate(fsm_dyn.compile(model_of(cause, all_of_them())), until=0.25, **options)
    assert log(run, {reason for _, reason in expected} | {*CONDITIONS}) == expected
    assert run["k"][-1] == len(expected)


def becomes(path, holds):
    """Whether a condition becomes true along some values."""
    return any(holds(after) and not holds(before) for before, after in pairwise(path))


BLOCK = {
    "fsm_dyn": 1,
    "name": "block",
    "coordinates": ["x", "y"],
    "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"block": {"center": "P", "mass": 1}},
    "contacts": {"c": {"gap": "y", "slip": "x_dot", "friction": {"static": 0.5, "kinetic": 0.4}}},
    "loads": [{"gravity": "-10*N.y"}],
}
STRIKER = {"coordinates": ["x", "y", "b"], "bodies": {**BLOCK["bodies"], "striker": {"center": "B", "mass": 1}}}


def pushed(force):
    """Return how a force on the block may begin to act at T."""
    step = f"where(t > {T / 2}, 1, 0)"
    load = {"loads": [*BLOCK["loads"], {"force": f"level*({force})", "at": "P"}]}
    switched = {"force": f"where(t >= {T}, 1, 0)*({force})", "at": "P"}

    def sampled(delay, value):
        return load | {"controllers": {"c1": {"period": T, "delay": delay, "outputs": {"level": {"value": value}}}}}

    return {
        "input": load | {"inputs": ["level"], "schedule": {"level": {"steps": [[0, 0], [T, 1]]}}},
        "switch in time": {"loads": [*BLOCK["loads"], switched]},
        "sample": sampled(0, step),
        "delayed sample": sampled(1, "1"),
        "set": load | {"memory": {"level": 0}, "jump": {"set": {"level": "1"}}},
    }


def struck(along, start):
    """Return a striker that comes along a direction and reaches the block at T."""
    gap = {"N.x": "x - b", "N.y": "y - b"}[along]
    points = BLOCK["points"] | {"B": {"from": "O", "at": f"b*{along}"}}
    contacts = BLOCK["contacts"] | {"hit": {"gap": gap, "restitution": 1}}
    gravity = [{"force": "-10*N.y", "at": "P"}]
    return STRIKER | {"points": points, "contacts": contacts, "loads": gravity, "initial": start}


RESTING = {"x": 0, "y": 0}
SLIDING = RESTING | {"x_dot": 4}  # 3.2 at T
WALL = BLOCK["contacts"] | {"wall": {"gap": "0.72 - x"}}
BELT = {"c": BLOCK["contacts"]["c"] | {"slip": "x_dot - w"}}
LOCKED = {"contacts": {"c": {"lock": {"position": "x", "holds_to": 5}}}, "modes": {"held": {"c": "engaged"}}}
HELD = LOCKED | {"initial": {"mode": "held"}}
WHEEL = {"contacts": {"c": {"one_way": {"coordinate": "x"}}}, "initial": {"x_dot": 0}}
BACK = {"force": "-2*N.x", "at": "P"}  # without a force what touches may be open as well
TURNING = WHEEL | {"initial": {"x_dot": 1}, "loads": [BACK]}


def struck_too(keys, start):
    """Return a model of a contact whose body a striker reaches at T, by its wall to the other side of the body."""
    contacts = keys["contacts"] | {"hit": {"gap": "x - b" if start["b_dot"] > 0 else "b - x", "restitution": 0.5}}
    points = BLOCK["points"] | {"B": {"from": "O", "at": "b*N.x"}}
    return STRIKER | keys | {"points": points, "contacts": contacts, "initial": keys.get("initial", {}) | start}


FACE = {"contacts": {"c": {"point": "P", "on": "shelf"}}, "initial": RESTING | {"x_dot": 1}}
SHELF = FACE | {"shapes": {"shelf": {"segment": {"points": [[-1, 0], [1, 0]]}, "side": "N.y"}}}

#: event and cause: what a model has for it
EVENTS = {
    **{("slides", cause): keys for cause, keys in pushed("8*N.x").items()},
    ("slides", "impulse"): {"jump": {"impulse": [{"linear": "2*N.x", "at": "P"}]}},
    ("slides", "reset"): {"jump": {"reset": {"x_dot": "2"}}},
    ("slides", "impact"): struck("N.x", RESTING | {"b": -0.4, "b_dot": 2}),
    **{("opens", cause): keys for cause, keys in pushed("20*N.y").items()},
    ("opens", "impulse"): {"jump": {"impulse": [{"linear": "2*N.y", "at": "P"}]}},
    ("opens", "reset"): {"jump": {"reset": {"y_dot": "2"}}},
    ("opens", "impact"): struck("N.y", RESTING | {"b": -0.4, "b_dot": 2}),
    ("opens", "set of a gap"): {
        "contacts": {"c": {"gap": "y + n"}}, "memory": {"n": 0}, "jump": {"set": {"n": "1"}},
    },
    ("sticks", "impulse"): {"initial": SLIDING, "jump": {"impulse": [{"linear": "-3.2*N.x", "at": "P"}]}},
    ("sticks", "reset"): {"initial": SLIDING, "jump": {"reset": {"x_dot": "0"}}},
    ("sticks", "impact"): {"initial": SLIDING, "contacts": WALL},
    ("sticks", "input"): {
        "initial": SLIDING, "contacts": BELT, "inputs": ["w"], "schedule": {"w": {"steps": [[0, 0], [T, 3.2]]}},
    },
    ("closes", "reset"): {"initial": {"y": 9}, "jump": {"reset": {"y": "0", "y_dot": "0"}}},
    ("closes", "set of a gap"): {
        "contacts": {"c": {"gap": "y + n"}}, "memory": {"n": 0}, "initial": {"y": 1, "y_dot": -1},
        "jump": {"set": {"n": f"-1 + {T} + 5*{T}**2"}},
    },
    ("closes", "reset with a blow"): {"initial": {"y": 9}, "jump": {"reset": {"y": "0", "y_dot": "-1"}}},
    **{("lets go", cause): HELD | keys for cause, keys in pushed("8*N.x").items()},
    ("lets go", "impulse"): HELD | {"jump": {"impulse": [{"linear": "2*N.x", "at": "P"}]}},
    ("lets go", "impact"): struck_too(HELD, {"b": -0.4, "b_dot": 2}),
    ("frees", "reset"): WHEEL | {"jump": {"reset": {"x_dot": "2"}}},
    ("frees", "impact"): struck_too(WHEEL | {"loads": [BACK]}, {"b": -0.4, "b_dot": 2}),
    ("locks", "reset"): TURNING | {"jump": {"reset": {"x_dot": "0"}}},
    ("locks", "impulse"): TURNING | {"jump": {"impulse": [{"linear": "-2*N.x", "at": "P"}]}},
    ("locks", "impact"): struck_too(TURNING, {"b": 0.56, "b_dot": -2}),
    **{("frees", cause): WHEEL | keys | {"loads": [BACK, *keys["loads"]]} for cause, keys in pushed("8*N.x").items()},
    ("frees", "impulse"): WHEEL | {"jump": {"impulse": [{"linear": "2*N.x", "at": "P"}]}},
    ("leaves_face", "reset"): SHELF | {"jump": {"reset": {"x": "3"}}},
}  # fmt: skip


#: causes that need no transition, which Moreau-Jean does not have
STEPPED = [(event, cause) for event, cause in EVENTS if "jump" not in EVENTS[event, cause]]


@cache
def compiled(event, cause, observed=True):
    """Return the simulator of the model of an event; its transitions see the event twice."""
    keys = {key: value for key, value in EVENTS[event, cause].items() if key != "jump"}
    jump = [AT_T | EVENTS[event, cause]["jump"]] if "jump" in EVENTS[event, cause] else []
    memory = {"seen": 0} | keys.pop("memory", {})
    twice = [{"from": "*", "on": f"c {event}", "set": {"seen": "seen + 1"}, "because": why} for why in ("one", "two")]
    model = BLOCK | keys | {"requirements": {"counted": f"eventually c {event}"}}
    return fsm_dyn.Simulator(
        fsm_dyn.compile(model | ({"memory": memory, "transitions": [*jump, *twice]} if observed else {}))
    )


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(("event", "cause"), EVENTS)
def test_what_a_contact_does_by_a_jump(event, cause, options):
    """A transition waits for it, and requirements count it, for every cause."""
    run = compiled(event, cause).run(until=T + 0.01, **options)
    assert log(run, {"one", "two"}) == [(T, "one"), (T, "two")]
    assert run["seen"][-1] == 2
    assert run.judge()["counted"].verdict == "met"


@pytest.mark.filterwarnings("ignore:.*energy balance")
@pytest.mark.parametrize(("event", "cause"), STEPPED)
def test_what_a_contact_does_by_a_jump_in_steps(event, cause):
    """Moreau-Jean does it within a step of the jump."""
    run = compiled(event, cause, observed=False).run(until=T + 0.01, method="moreau_jean", step=1e-3)
    assert run.judge()["counted"].verdict == "met"
    assert [item.time for item in run.transitions if f"c {event}" in item.cause] == [pytest.approx(T, abs=1.1e-3)]


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "step": 0.03}], ids=["dopri5", "rk4"])
def test_resumed_and_repeated_runs_are_one_run(jump, options):
    """Cut before the jump, in its instant, and behind it."""
    simulator = fsm_dyn.Simulator(jump)
    one, again = (simulator.run(until=0.5, **options) for _ in range(2))
    assert repr(again.transitions) == repr(one.transitions)
    for cut in (0.05, T, 0.33):
        two = simulator.run(until=cut, **options).resume(0.5)
        assert repr(two.transitions) == repr(one.transitions)
        assert two.q.tobytes() == one.q[-len(two.q) :].tobytes()
        assert two["k"][-1] == one["k"][-1]


WALLED = {
    "fsm_dyn": 1,
    "name": "walled",
    "coordinates": ["x"],
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"b": {"center": "P", "mass": 2}},
    "memory": {"hits": 0},
    "contacts": {"wall": {"gap": "0.5 - x", "restitution": 0.5}},
    "transitions": [{"from": "*", "on": "wall closes", "set": {"hits": "hits + 1"}}],
    "initial": {"x_dot": 1},
    "requirements": {"spared": "never wall closes", "counted": "count(wall closes) >= 1"},
}
AT_THE_WALL = {
    "sample": {"controllers": {"c": {"period": 0.25, "inputs": {"v": "x_dot"}, "outputs": {"s": {"value": "v"}}}}},
    "breakpoint": {"inputs": ["s"], "schedule": {"s": {"steps": [[0, 0], [0.5, 1]]}}},
    "switch": {"outputs": {"s": "where(t < 0.5, 1, 2)"}},
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("early", [0.0, 5e-12, -5e-12, 2e-10])
@pytest.mark.parametrize("cause", AT_THE_WALL)
def test_a_contact_that_closes_in_the_instant_of_another_jump(cause, early, options):
    """It is one event with its impact, counted once; a sample sees the speed after it, unless it comes before."""
    model = WALLED | AT_THE_WALL[cause] | {"contacts": {"wall": {"gap": f"0.5 - {early} - x", "restitution": 0.5}}}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.7, **options)
    (struck,) = run.transitions
    assert struck.time == pytest.approx(0.5 - early, abs=1e-9)
    assert struck.cause.startswith("wall impacts and rebounds")
    assert struck.impulse["wall"] == pytest.approx(-3.0) or struck.impulse["wall"] == pytest.approx(3.0)
    assert run["hits"][-1] == 1
    verdicts = {name: found.verdict for name, found in run.judge().items()}
    assert verdicts == {"spared": "violated", "counted": "met"}
    if cause == "sample":
        assert run["s"][-1] == pytest.approx(-0.5)


STARTED = RUNS | {"moreau_jean": {"method": "moreau_jean", "step": 1e-3}}


@pytest.mark.parametrize("options", STARTED.values(), ids=STARTED)
@pytest.mark.parametrize("gap", [0.0, 1e-10, -1e-10])
def test_a_contact_at_a_gap_of_zero_where_a_run_starts(options, gap):
    """One that approaches has an impact at once, which counts; one that leaves does nothing."""
    stepping = options.get("method") == "moreau_jean"  # its impacts are at the ends of steps
    model = WALLED | ({"transitions": []} if stepping else {})
    for speed, restitution, words in ((1, 0.5, "rebounds"), (1, 0, "stays closed"), (-1, 0.5, None)):
        wall = {"wall": {"gap": "0.5 - x", "restitution": restitution}}
        model |= {"contacts": wall, "initial": {"x": 0.5 - gap, "x_dot": speed}}
        run = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.25, **options)
        causes = [item.cause for item in run.transitions]
        if words is None:
            assert not causes
        else:  # by time stepping one that nothing presses opens in the step after
            assert causes[0] == f"{'' if stepping else 'start, '}wall impacts and {words}"
            assert stepping or causes[1:] == ["wall closes"]  # the transition that counts
            assert run.transitions[0].time == pytest.approx(1e-3 if stepping else 0.0)
            assert abs(run.transitions[0].impulse["wall"][0]) == pytest.approx(2.0 * (1.0 + restitution))
        assert run.q[-1, 0] == pytest.approx(0.5 - gap - 0.25 * restitution * speed**2 - 0.125 * (speed < 0), abs=2e-3)
        assert run.judge()["counted"].verdict == ("met" if words else "violated")
        if not stepping:
            assert run["hits"][-1] == (words is not None)


@pytest.mark.parametrize("options", STARTED.values(), ids=STARTED)
@pytest.mark.parametrize("gap", [0.0, 1e-10, -1e-10])
@pytest.mark.parametrize("dissipation", [0, 0.5])
def test_a_contact_that_yields_is_pressed_in_from_a_gap_of_zero(options, gap, dissipation):
    """Half a period of a spring later it opens, once: nothing opens before."""
    cushion = {"wall": {"gap": "0.5 - x", "compliant": {"stiffness": 2e4, "dissipation": dissipation}}}
    model = WALLED | {
        "transitions": [],
        "contacts": cushion,
        "initial": {"x": 0.5 - gap, "x_dot": 1},
        "requirements": {},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.05, **options)
    (opens,) = run.transitions
    assert opens.cause.startswith("wall opens")
    assert opens.time == pytest.approx(np.pi / 100.0, abs=0.02 * dissipation + (1e-3 if "step" in options else 1e-7))


def test_of_several_contacts_those_strike_at_the_start_that_approach():
    """A ball falls onto another on the floor: the floor has an impulse, but no impact."""
    model = {
        "fsm_dyn": 1, "coordinates": ["y", "z"],
        "points": {"P": {"from": "O", "at": "y*N.y"}, "Q": {"from": "O", "at": "z*N.y"}},
        "bodies": {"lower": {"center": "P", "mass": 1}, "upper": {"center": "Q", "mass": 1}},
        "loads": [{"gravity": "-9.81*N.y"}],
        "contacts": {"ground": {"gap": "y"}, "between": {"gap": "z - y", "restitution": 0.5}},
        "initial": {"y": 0, "z": 0, "z_dot": -1},
        "requirements": {"lies": "never ground closes", "strikes": "count(between closes) >= 1"},
    }  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.05)
    assert run.transitions[0].cause == "start, between impacts and rebounds"
    assert run.transitions[0].impulse["ground"] != 0.0
    assert {found.verdict for found in run.judge().values()} == {"met"}


def reasons(model, until=1.0, **options):
    run = fsm_dyn.simulate(fsm_dyn.compile(BALL | {"name": "once"} | model), until=until, **options)
    return [(pytest.approx(item.time, abs=1e-9), item.cause.split(", ")[-1]) for item in run.transitions]


def test_a_condition_that_stays_true_acts_once():
    """A transition from everywhere leaves its condition watched, whether it changes memory, speeds or the mode."""
    loads = {"y": 0, "y_dot": 1}
    for effect in ({"set": {"k": "k + 1"}}, {"reset": {"y": "y + 1"}}, {"reset": {"y_dot": "2"}}):
        model = {"memory": {"k": 0}, "initial": loads}
        always = {"from": "*", "when": "y >= 0", "because": "once", **effect}
        assert reasons(model | {"transitions": [always]}) == [(0.0, "once")]


def test_a_condition_acts_again_after_it_was_false():
    forth = {"from": "*", "when": "y > 1", "reset": {"y": "0"}, "because": "back"}
    assert reasons({"initial": {"y": 0, "y_dot": 4}, "transitions": [forth]}, until=1.1) == [
        (0.25 * k, "back") for k in range(1, 5)
    ]


MODES = {
    "contacts": {"c": {"lock": {"velocity": "y_dot"}}},
    "modes": {"on": {"c": "engaged"}, "off": {"c": "released"}},
    "initial": {"mode": "off", "y": 0, "y_dot": 1},
}


def test_what_is_true_where_a_mode_begins_acts_there():
    """In every instant in which it begins, but not twice in one."""
    on = {"from": "off", "to": "on", "when": "t > 0.2", "because": "caught"}
    off = {"from": "on", "to": "off", "when": "t > 0.5", "because": "freed"}
    early = {"from": "on", "when": "y > 0.1", "because": "seen", "set": {"k": "k + 1"}}
    model = MODES | {"memory": {"k": 0}, "transitions": [on, off, early]}
    assert [(time, why.split("; ")[0]) for time, why in reasons(model)] == [
        (0.2, "caught"), (0.2, "seen"), (0.5, "freed"), (0.5, "caught"),
    ]  # fmt: skip


def test_transitions_that_make_each_other_true_are_chattering():
    up = {"from": "*", "when": "k <= 0", "set": {"k": "k + 1"}}
    down = {"from": "*", "when": "k >= 1", "set": {"k": "k - 1"}}
    with pytest.raises(fsm_dyn.RunError, match="chattering"):
        fsm_dyn.simulate(
            fsm_dyn.compile(BALL | {"name": "k", "memory": {"k": 0}, "transitions": [up, down]}), until=1.0
        )


def test_what_is_counted_does_not_change_the_motion():
    """A block on a rough floor under a growing push, with and without an observer of all it does."""
    push = {"inputs": ["p"], "schedule": {"p": {"expression": "8*sin(7*t)"}}}
    model = BLOCK | push | {"loads": [*BLOCK["loads"], {"force": "p*N.x", "at": "P"}]}
    seen = [{"from": "*", "on": f"c {word}", "set": {"k": "k + 1"}} for word in ("slides", "sticks")]
    alone, observed = (
        fsm_dyn.simulate(fsm_dyn.compile(model | more), until=3.0)
        for more in ({}, {"memory": {"k": 0}, "transitions": seen})
    )
    assert observed.q[-1].tobytes() == alone.q[-1].tobytes()
    assert observed["k"][-1] == len(alone.transitions) > 3


#: of y from 0.02 at 1 m/s: instants until 0.5 s at which a condition becomes true, in the place of a crossing
CHOICES = {
    "mod(y, 0.1) < 0.05": [0.0, 0.08, 0.18, 0.28, 0.38, 0.48],
    "mod(y, 0.1) < 0.01*sin(10*t)": [0.08, 0.18, 0.28],
    "floor(10*y) > 1.5": [0.18],
    "sign(y - 0.13) >= 0": [0.11],
    "where(y > 0.3, y, 0) > 0.2": [0.28],
    "where(y > 0.3, y, t) > 0.25": [0.25],
    "floor(10*y) >= k + 1 and y > 0.05": [0.08, 0.18, 0.28, 0.38, 0.48],
    "mod(y, 0.1) < 0.05 or mod(y, 0.1) > 0.07": [0.0, 0.05, 0.15, 0.25, 0.35, 0.45],
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("when", CHOICES)
def test_a_condition_that_jumps_with_a_coordinate_acts_behind_the_jump(when, options):
    """Once at each, alone and with another one that jumps there."""
    count = {"from": "*", "when": when, "set": {"k": "k + 1"}, "because": "counted"}
    twin = {"from": "*", "when": when, "set": {"n": "n + 1"}, "because": "twin"}
    both = [count] if "k" in when else [count, twin]
    memory = {"k": 0} if "k" in when else {"k": 0, "n": 0}
    model = BALL | {"memory": memory, "transitions": both, "initial": {"y": 0.02, "y_dot": 1}}
    assert reasons({"name": "choice"} | model, until=0.5, **options) == [
        (time, item["because"]) for time in CHOICES[when] for item in both
    ]


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_a_condition_that_is_met_falls_by_a_jump_and_is_met_again(strategy, options):
    """A ball is put back as often as it has fallen from 0.618 past a jump to 0.361; each length has other steps."""
    model = BALL | {
        "name": "comb",
        "memory": {"k": 0},
        "loads": [{"gravity": "-10*N.y"}],
        "contacts": {"ground": {"gap": "y", "restitution": 0.5}, "roof": {"gap": "2 - y"}},
        "transitions": [
            {"from": "*", "when": "mod(y + 0.05, 0.617) < 0.411", "reset": {"y": "0.618"}, "set": {"k": "k + 1"}}
        ],
    }
    graph = fsm_dyn.compile(model)
    for until in (0.8, 0.9, 1.2, 1.3):
        run = fsm_dyn.simulate(
            graph, until, initial={"y": 1.192, "y_dot": -1.818}, **({"strategy": strategy} | options)
        )
        fallen = 1.818 * until + 5 * until**2
        laps = int(fallen // 0.257)
        assert run["k"][-1] == laps + 1
        assert run["y"][-1] == pytest.approx(0.618 - (fallen - 0.257 * laps), abs=1e-7)


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_late_events_are_as_exact_as_the_clock(options):
    """After 1e6 s a ball is let fall on a floor; then a condition jumps with its height."""
    ball = BALL | {
        "name": "late",
        "loads": [{"gravity": "-10*N.y"}],
        "contacts": {"g": {"gap": "y", "restitution": 0.5}},
    }
    fall = {"from": "*", "when": "t > 1e6", "reset": {"y": "1", "y_dot": "0"}, "because": "let go"}
    jump = {"from": "*", "when": "t > 1e6 and floor(10*y) < 4.5", "because": "jump", "set": {"k": "k + 1"}}
    model = ball | {"memory": {"k": 0}, "transitions": [fall, jump], "initial": {"y": 0.3}}
    run = fsm_dyn.simulate(
        fsm_dyn.compile(model), until=1e6 + 0.6, **options | ({"step": 999.9} if "step" in options else {})
    )
    late = [item for item in run.transitions if item.time > 1e6 + 0.01]
    assert [item.time - 1e6 for item in late] == pytest.approx([0.1**0.5, 0.2**0.5], abs=1e-8)
    rest = 0.6 - 0.2**0.5
    assert run["y"][-1] == pytest.approx(20**0.5 / 2 * rest - 5 * rest**2, abs=1e-7)


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize(("y", "speed"), [(1.9, 4), (2, 4), (2, -4), (2, None), (1, None), (1, -3)])
def test_a_reset_in_the_instant_of_an_impact_moves_the_body(y, speed, e, options):
    """A ball that strikes the floor at 4 m/s is set elsewhere: the floor is open, the roof at 2 strikes."""
    floor, roof = {"gap": "y", "restitution": e}, {"gap": "2 - y", "restitution": 0.5}
    place = {"y": str(y)} | ({} if speed is None else {"y_dot": str(speed)})
    after = 4 * e if speed is None else speed
    strikes = y == 2 and after > 0
    after = -0.5 * after if strikes else after
    model = {
        "name": "placed",
        "memory": {"k": 0},
        "loads": [{"gravity": "-10*N.y"}],
        "contacts": {"floor": floor, "roof": roof},
        "transitions": [
            {"from": "*", "on": "floor closes", "reset": place},
            {"from": "*", "on": "roof closes", "set": {"k": "k + 1"}},
        ],
        "initial": {"y": 0.8},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(BALL | model), until=0.41, **options)
    assert run["y"][-1] == pytest.approx(y + 0.01 * after - 5e-4, abs=1e-9)
    assert run["y_dot"][-1] == pytest.approx(after - 0.1, abs=1e-9)
    assert run["k"][-1] == strikes


#: a ball strikes the floor at 4 m/s and a transition waits for it: what it does to a speed after the impact
ON_CLOSING = {
    "set": ({"set": {"k": "k + 1"}}, lambda v: v),
    "reset": ({"reset": {"y_dot": "1"}}, lambda v: 1.0),
    "impulse away": ({"impulse": [{"linear": "1*N.y", "at": "P"}]}, lambda v: v + 1.0),
    "impulse towards": ({"impulse": [{"linear": "-1*N.y", "at": "P"}]}, lambda v: max(v - 1.0, 0.0)),
    "because": ({"because": "it closes"}, lambda v: v),
}


@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("to", [None, "free", "rest"])
@pytest.mark.parametrize("does", ON_CLOSING)
def test_a_transition_that_waits_for_a_closing_contact_keeps_its_impact(does, to, e):
    """The floor takes its impulse in each case, and holds a ball that does not rebound."""
    keys, effect = ON_CLOSING[does]
    if does == "because" and to is None:
        keys = {"set": {"k": "k + 1"}} | keys
    model = BALL | {
        "name": "onto",
        "memory": {"k": 0},
        "loads": [{"gravity": "-10*N.y"}],
        "contacts": {"floor": {"gap": "y", "restitution": e}, "roof": {"gap": "9 - y"}},
        "modes": {"free": {"floor": "open"}, "rest": {"floor": "closed"}},
        "transitions": [{"from": "*", "on": "floor closes"} | ({} if to is None else {"to": to}) | keys],
        "initial": {"y": 0.8},
    }
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(model))
    speed = effect(4.0 * e)
    for options in RUNS.values():
        run = simulator.run(until=0.41, **options)
        (struck,) = run.transitions
        answer = max(1.0 - 4.0 * e, 0.0) if does == "impulse towards" else 0.0
        assert struck.impulse["floor"] == pytest.approx(4.0 * (1.0 + e) + answer)
        assert run["y"][-1] == pytest.approx(0.01 * speed - 5e-4 if speed > 0.0 else 0.0, abs=1e-9)
        assert run["y_dot"][-1] == pytest.approx(speed - 0.1 if speed > 0.0 else 0.0, abs=1e-9)
        assert run["k"][-1] == ("set" in keys)


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_what_holds_before_an_impact_at_the_start(options):
    """A ball begins on the floor at -6 m/s and rebounds: it was faster than 5 m/s, at the start of the run."""
    keys = {"contacts": {"g": {"gap": "y", "restitution": 0.5}}, "initial": {"y": 0, "y_dot": -6}}
    seen = [{"from": "*", "when": when, "stop": False, "set": {"k": "k + 1"}} for when in ("y_dot < -5", "y_dot > 2")]
    late = [{"from": "*", "when": "y_dot < -7", "set": {"k": "9"}}]
    model = BALL | {"name": "begun", "memory": {"k": 0}, "transitions": [*seen, *late]} | keys
    run = fsm_dyn.simulate(fsm_dyn.compile(model), until=0.1, **options)
    assert [item.cause for item in run.transitions] == ["start, g impacts and rebounds", "y_dot < -5", "y_dot > 2"]
    assert run["k"][-1] == 2
