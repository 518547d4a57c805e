"""Aimed throws at shapes of components: displaced, turned, two levels deep, on bases that stand, are driven or turn.

The first touch is held against the true distance on the motion in closed form, and against the same model written flat.
"""

from functools import cache
from itertools import product

import numpy as np

import fsm_dyn
from tests.campaigns import plane_distances as plane
from tests.campaigns.exported_throws import result
from tests.campaigns.throw_scenes import MASS, PARAMETERS, TARGETS, lob, plain
from tests.campaigns.throw_truth import first_touch
from tests.campaigns.throws import LATE, ON

BATCH = 10
SHAPES = ("circle", "segment", "arc", "polygon", "curve")
BASES = ("fixed", "driven", "turning")
SCENES = tuple(product(SHAPES, BASES))
FOLLOWED = 1e-9  # m: to which the point of a curve is found
SAME = 1e-10  # of the run, between times of both models
PLACED = {"c": 0.3, "d": 0.2, "s": 0.4, "drift": 0.0}  # angle, arm and own angle of what is used; speed of the base
NUMBERS = {name: value for name, value in (PARAMETERS | PLACED).items() if name not in ("k", "mu", "sway", "v")}


def model(shape, base, flat):
    """A ball above a base that has the arm ``M``, which has the target: as components of components, or ``flat``."""
    turn = {"fixed": "h", "driven": "turn", "turning": "q"}[base]
    along = "way*N.x" if base == "driven" else "0*N.x"
    ball = {"circle": {"center": "P", "radius": "r"}}
    whole = {
        "fsm_dyn": 1, "name": "thrown", "parameters": NUMBERS,
        "coordinates": ["x", "y"] + (["q"] if base == "turning" else []),
        "frames": {"B": {"parent": "N", "rotate": {"z": turn}}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "K": {"from": "O", "at": along}},
        "bodies": {"thing": {"center": "P", "mass": MASS}},
        "shapes": {"a": ball},
        "loads": [{"gravity": "-g*N.y"}], "initial": {"x": 9.0, "y": 9.0},
        "contacts": {"hit": {"between": ["a", "b" if flat else "arm_target_b"], "restitution": "e"}},
    }  # fmt: skip
    if base == "turning":
        whole["bodies"]["wheel"] = {"frame": "B", "center": "O", "mass": 1.0, "inertia": {"zz": "R**2"}}
    if base == "driven":
        whole["inputs"] = ["turn", "way"]
        whole["schedule"] = {"turn": {"expression": "h + w*t"}, "way": {"expression": "drift*t"}}
    if flat:
        whole["frames"] |= {"M": {"parent": "B", "rotate": {"z": "c"}}, "F": {"parent": "M", "rotate": {"z": "s"}}}
        whole["points"] |= {"C": {"from": "K", "at": "d*M.x"}, "A": {"from": "C", "at": "0.4*R*F.x"}}
        whole["shapes"]["b"] = {
            kind: {key: "C" if value == "O" else value for key, value in form.items()} if kind != "side" else form
            for kind, form in TARGETS[shape].shape.items()
        }
        return whole
    inner = {
        "fsm_dyn": 1, "name": "target", "bodies": {}, "parameters": {"R": 0.1, "s": 0.4},
        "frames": {"F": {"parent": "N", "rotate": {"z": "s"}}},
        "points": {"A": {"from": "O", "at": "0.4*R*F.x"}}, "shapes": {"b": TARGETS[shape].shape},
    }  # fmt: skip
    names = {name: name for name in ("R", "s", "c", "d")}
    used = {"with": {"R": "R", "s": "s"}, "attach": {"frame": "M", "point": "D"}}
    arm = {
        "fsm_dyn": 1, "name": "arm", "bodies": {}, "parameters": {"R": 0.1, "s": 0.4, "c": 0.3, "d": 0.2},
        "frames": {"M": {"parent": "N", "rotate": {"z": "c"}}}, "points": {"D": {"from": "O", "at": "d*M.x"}},
        "use": {"target": {"model": inner, **used}},
    }  # fmt: skip
    return whole | {"use": {"arm": {"model": arm, "with": names, "attach": {"frame": "B", "point": "K"}}}}


@cache
def simulators(shape, base):
    """The model made of components, and the flat one."""
    return tuple(fsm_dyn.Simulator(fsm_dyn.compile(model(shape, base, flat))) for flat in (False, True))


def throw(shape, base, seed):
    """Numbers and start of a throw past the target where it then is, and when that is."""
    rng = np.random.default_rng([seed, 91])
    while True:
        R = 10 ** rng.uniform(-2.0, -0.3)
        r, strikes = R * 10 ** rng.uniform(-1.0, 0.3), 10 ** rng.uniform(-1.0, 0.5)
        turns = 0.0 if base == "fixed" else rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-1.0, 1.5) / strikes
        numbers = NUMBERS | {
            "R": R, "r": r, "e": 0.5, "h": rng.uniform(-3.0, 3.0), "w": turns, "c": rng.uniform(-3.0, 3.0),
            "d": R * 10 ** rng.uniform(-1.0, 1.0), "s": rng.uniform(-3.0, 3.0),
            "drift": rng.uniform(-2.0, 2.0) * R / strikes if base == "driven" else 0.0,
        }  # fmt: skip
        place, _ = placed(numbers, np.array([strikes]))
        reach = 1.1 * (TARGETS[shape].extent * R + r)
        way, far = rng.uniform(0.0, 2.0 * np.pi), (reach + numbers["d"]) * 10 ** rng.uniform(0.4, 1.5)
        aim = place[0] + rng.uniform(-0.7 * reach, 0.7 * reach, 2)
        start, rates, g = lob(rng, far * np.array([np.cos(way), np.sin(way)]), aim, strikes)
        numbers = plain(numbers | {"g": g})
        if distance(shape, numbers, start, rates)(np.zeros(1))[0] > 0.1 * R:
            return numbers, start, rates, 1.5 * strikes


def placed(numbers, t):
    """Place and angle of the target at instants: the base, its arm and the target on it, by hand."""
    base = numbers["h"] + numbers["w"] * t
    arm = base + numbers["c"]
    along = np.column_stack([numbers["drift"] * t, np.zeros_like(t)])
    return along + numbers["d"] * np.column_stack([np.cos(arm), np.sin(arm)]), arm + numbers["s"]


def distance(shape, numbers, start, rates):
    """The distance of the ball from the target as a function of the time, m."""

    def between(t):
        place, angle = placed(numbers, t)
        ball = start + t[:, None] * rates
        ball[:, 1] -= 0.5 * numbers["g"] * t**2
        return TARGETS[shape].far(plane.turned(ball - place, -angle), numbers["R"]) - numbers["r"]

    return between


def trial(shape, base, seed):
    """Whether there is a touch, and what is wrong with its time by the model made of components, or None."""
    numbers, start, rates, until = throw(shape, base, seed)
    initial = {"x": start[0], "y": start[1], "x_dot": rates[0], "y_dot": rates[1]}
    if base == "turning":
        initial |= {"q": numbers["h"], "q_dot": numbers["w"]}
    given = {"parameters": numbers, "initial": plain(initial), "on_failure": "return", "max_steps": 5000}
    runs = [simulator.run(until, **given) for simulator in simulators(shape, base)]
    times = [run.transitions[0].time if run.transitions else np.inf for run in runs]
    if times[0] != times[1] and abs(times[0] - times[1]) > SAME * until:
        return False, f"touches at {times[0]:.12g} s, written flat at {times[1]:.12g} s"
    between = distance(shape, numbers, start, rates)
    fastest = np.hypot(rates[0], abs(rates[1]) + numbers["g"] * until) + abs(numbers["drift"])
    rate = 1.01 * fastest + abs(numbers["w"]) * (numbers["d"] + TARGETS[shape].extent * numbers["R"])
    true, _ = first_touch(between, 0.0, until, rate, min(numbers["R"], numbers["r"]))
    if true < np.inf and (free := TARGETS[shape].free) is not None:
        place, angle = placed(numbers, np.array([true]))
        ball = start + true * rates - np.array([0.0, 0.5 * numbers["g"] * true**2])
        if not free(plane.turned(ball[None] - place, -angle), numbers["R"])[0]:
            return False, None  # from behind a thin face
    if min(true, times[0]) == np.inf or abs(true - times[0]) < LATE:
        return true < np.inf, None
    if times[0] < np.inf and abs(between(np.array([times[0]]))[0]) < (FOLLOWED if shape == "curve" else ON):
        return true < np.inf, None
    return True, f"touches at {times[0]:.12g} s, truly at {true:.12g} s"


def case(seed, count=BATCH):
    """A batch of throws at one shape on one base."""
    shape, base = SCENES[seed % len(SCENES)]
    found = []
    for number in range(seed * count, (seed + 1) * count):
        _, wrong = trial(shape, base, number)
        if wrong:
            found.append(f"{wrong} [{shape}, {base}, throw {number}]")
    return result(f"{shape} on a {base} base", count, found)
