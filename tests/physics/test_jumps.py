"""What a jump makes true happens in its instant: every kind of transition, every cause of a jump, every method.

The quantity ``Z`` is -6 until 0.2 s and 3 from there on, whatever makes it jump; the truth of a condition on both sides
tells when it acts.
"""

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
    found = {key: value for key, value in CAUSES[cause].items() if key not in ("Z", "jump")}
    jump = [AT_T | CAUSES[cause]["jump"]] if "jump" in CAUSES[cause] else []
    memory = {"on": True, "level": 2, "k": 0} | found.pop("memory", {})
    z = f"({CAUSES[cause]['Z']})"
    texts = [item | {"when": item["when"].replace("Z", z)} for item in transitions]
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
