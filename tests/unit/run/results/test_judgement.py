"""Requirements judged over runs: against closed forms, and against a monitor that sees dense samples alone."""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.study import study
from fsm_dyn.language.loader import load
from fsm_dyn.run.extremes import largest_of_runs

TEXT = """
fsm_dyn: 1
name: ball
parameters: {m: 2 kg, g: 10 m/s^2, e: 0.8, c: 1 m}
coordinates: {y: m}
points:
  C: {from: O, at: y*N.y}
bodies:
  ball: {center: C, mass: m}
contacts:
  ground: {gap: y, restitution: e}
modes:
  flying: {ground: open}
  resting: {ground: closed}
loads: [{gravity: -g*N.y}]
outputs: {square: y**2}
initial: {y: 5 m, mode: flying}
"""
G, E, TOP = 10.0, 0.8, 5.0
FIRST = math.sqrt(2.0 * TOP / G)  # 1 s, at 10 m/s
BOUNCES = [FIRST, FIRST + 1.6, FIRST + 1.6 + 1.28, FIRST + 1.6 + 1.28 + 1.024]
EXACT = 1e-9


def judged(requirements, until, text=TEXT, **options):
    lines = "\n".join(f"  r{i}: {formula}" for i, formula in enumerate(requirements))
    graph = fsm_dyn.compile(load("ball", text=f"{text}requirements:\n{lines}\n"))
    run = fsm_dyn.simulate(graph, until=until, rtol=1e-11, atol=1e-13, **options)
    return run, list(run.judge().values())


# until 5 s: four bounces
CLOSED_FORMS = [
    ("never ground closes twice within 200 ms", "met", 1.024 - 0.2, BOUNCES[3]),
    ("never ground closes twice within 1.1 s", "violated", 1.024 - 1.1, BOUNCES[3]),
    ("count(ground closes) <= 2", "violated", -2.0, BOUNCES[2]),
    ("count(ground closes) > 3", "met", 1.0, BOUNCES[3]),
    ("count(ground closes) < 9", "met", 5.0, None),
    ("never ground closes", "violated", -4.0, BOUNCES[0]),
    ("eventually ground closes before 1.5 s", "met", 0.5, BOUNCES[0]),
    ("eventually ground closes before 0.5 s", "violated", -0.5, BOUNCES[0]),
    ("eventually resting before 3 s", "violated", -2.0, None),
    ("eventually resting", "undecided", math.nan, None),
    ("eventually resting before 6 s", "undecided", math.nan, None),
    ("always flying", "met", 5.0, None),
    ("never mode == flying", "violated", -5.0, 0.0),
    ("always ground.normal > 5 N while resting", "met", math.inf, None),
    ("eventually y < 1 m before 0.5 s", "violated", 1.0 - 3.75, 0.5),
    ("eventually y < 4 m before 0.5 s", "met", 0.25, 0.5),
    ("eventually y > 7 m before 9 s", "undecided", -2.0, 0.0),
    ("peak(y_dot) < 8.5 m/s", "met", 0.5, BOUNCES[0]),
    ("trough(y_dot) > -9 m/s", "violated", -1.0, BOUNCES[0]),
    ("peak(y) < 6*c", "met", 1.0, 0.0),
    ("trough(y_dot) < -4 m/s", "met", 6.0, BOUNCES[0]),
    ("peak(square) > 30 m^2", "violated", -5.0, 0.0),
    ("final(y_dot) > 4 m/s", "violated", 0.096 - G * (5.0 - BOUNCES[3]), 5.0),
]


def test_margins_equal_closed_forms():
    run, found = judged([case[0] for case in CLOSED_FORMS], 5.0)
    for item, (formula, verdict, margin, time) in zip(found, CLOSED_FORMS, strict=True):
        assert item.verdict == verdict, formula
        assert item.margin == pytest.approx(margin, abs=EXACT, nan_ok=True), formula
        assert item.time == (None if time is None else pytest.approx(time, abs=EXACT)), formula
        chain = [] if item.time is None else [change for change in run.transitions if change.time <= item.time]
        assert list(item.chain) == chain, formula
    assert [item.unit for item in found[:4]] == ["s", "s", "1", "1"]
    assert found[17].unit == "m/s"
    assert found[21].unit == "m^2"


def test_the_largest_value_between_rows_is_found():
    """A bounce of 3.2 m whose top no row needs to hit: long steps of a motion that they integrate exactly."""
    run, (item,) = judged(
        ["peak(y) < 3 m"], 2.4, TEXT.replace("y: 5 m", "y: 0 m, y_dot: 8 m/s"), method="rk4", step=0.3
    )
    assert np.max(run["y"]) < 3.2 - 1e-4
    assert item.verdict == "violated"
    assert item.margin == pytest.approx(-0.2, abs=EXACT)
    assert item.time == pytest.approx(0.8, abs=1e-7)  # of a flat maximum: the square root of the value's error


def test_steps_that_are_passed_over_do_not_hold_the_largest_value(monkeypatch):
    kept = []

    def compared(t, at_rows, steps, end, between, bound=None):
        counted = []

        def counting(times, rows):
            counted.append(len(rows))
            return between(times, rows)

        found = largest_of_runs(t, at_rows, steps, end, counting, bound)
        assert np.array_equal(found, largest_of_runs(t, at_rows, steps, end, between))
        kept.append(sum(counted) / (7 * len(steps)))
        return found

    monkeypatch.setattr("fsm_dyn.run.judgement.largest_of_runs", compared)
    measured = (("y", "4 m"), ("y_dot", "4 m/s"), ("abs(y)", "4 m"), ("abs(y_dot)", "4 m/s"))
    formulas = [f"{kind}({what}) < {bound}" for kind in ("peak", "trough") for what, bound in measured]
    judged(formulas, 5.0)
    assert len(kept) == len(formulas)
    assert min(kept) < 0.5  # of the evaluations that a grid in every step would take


def test_a_failed_run_leaves_undecided_what_its_rest_could_change():
    graph = fsm_dyn.compile(
        load("ball", text=TEXT + "requirements:\n  low: peak(y) < 6 m\n  deep: trough(y) > 4.9 m\n"
             "  late: count(ground closes) >= 9\n  first: eventually y < 4.9 m\n")
    )  # fmt: skip
    run = fsm_dyn.simulate(graph, until=9.0, max_steps=9, on_failure="return")
    assert run.outcome.failed
    assert {name: item.verdict for name, item in run.judge().items()} == {
        "low": "undecided", "deep": "violated", "late": "undecided", "first": "met",
    }  # fmt: skip


def monitor(run, times):
    """Return what samples at ``times`` alone say: heights, speeds, and times at which the speed jumps upwards."""
    samples = run.sample(times)
    y, v = samples["y"], samples["y_dot"]
    return y, v, times[1:][(v[:-1] < 0.0) & (v[1:] > 0.0)]


@pytest.mark.parametrize("runs", [150, pytest.param(1000, marks=pytest.mark.long)])
def test_verdicts_and_margins_are_those_of_a_brute_force_monitor(runs):
    """Random runs and bounds; the monitor errs by what happens between two of its samples."""
    formulas = {
        "low": "always y < c",
        "high": "eventually y > c before d",
        "slow": "peak(abs(y_dot)) < v",
        "calm": "never ground closes twice within d",
        "few": "count(ground closes) <= n",
        "soon": "eventually ground closes before d",
        "bounded": "final(y) < c",
    }
    text = TEXT.replace("c: 1 m", "c: 1 m, d: 1 s, v: 1 m/s, n: 3")
    lines = "\n".join(f"  {name}: {formula}" for name, formula in formulas.items())
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(load("ball", text=f"{text}requirements:\n{lines}\n")))
    random = np.random.default_rng(19)
    until, compared = 2.5, 0
    times = np.linspace(0.0, until, 5001)
    between = times[1]
    for _ in range(runs):
        c, d, v, n = (
            random.uniform(0.1, 6.0),
            random.uniform(0.05, 2.4),
            random.uniform(1.0, 12.0),
            random.integers(0, 8),
        )
        e, top, start = random.uniform(0.7, 0.9), random.uniform(0.5, 5.0), random.uniform(-4.0, 4.0)
        run = simulator.run(until=until, parameters={"c": c, "d": d, "v": v, "n": float(n), "e": e},
                            initial={"y": top, "y_dot": start})  # fmt: skip
        y, speed, closes = monitor(run, times)
        fast = np.abs(speed).max() + G * between
        gap = np.diff(closes).min() if len(closes) > 1 else np.inf
        rests = gap < 3.0 * between or y[-2:].max() < EXACT  # of two impacts between samples one is seen, or none
        expected = {
            "low": (c - y.max(), G * between**2 + fast * 1e-9),
            "high": (y[times <= d].max() - c, fast * between),
            "slow": (v - np.abs(speed).max(), 2.0 * G * between),
            "calm": (gap - d, 2.0 * between),
            "few": (n - len(closes), np.inf if rests else 0.0),
            "soon": (d - (closes[0] if len(closes) else until), between),
            "bounded": (c - y[-1], EXACT),
        }
        for name, item in run.judge().items():
            margin, error = expected[name]
            assert item.margin == pytest.approx(margin, abs=error), (name, item)
            if abs(margin) > error or not error:
                compared += 1
                assert item.verdict == ("met" if margin >= 0.0 else "violated"), (name, item)
    assert compared > 6 * runs


@pytest.mark.parametrize("lead", [3e-3, 1e-4, 1e-5, 1e-6])
def test_a_maximum_just_behind_a_row_of_a_long_step(lead):
    """A ball with its apex in the first part in 200 of a step of 0.7 s, which a grid in the step does not see."""
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(load("ball", text=TEXT + "requirements:\n  low: peak(y) < 6 m\n")))
    speed = 0.7
    for _ in range(20):  # the length of the first steps depends on the speed a little
        run = simulator.run(until=2.5, initial={"y": 3.0, "y_dot": speed})
        speed = G * (run.t[2] + lead)
    assert run.t[2] < speed / G < run.t[2] + 0.005 * (run.t[3] - run.t[2])
    assert run.judge()["low"].margin == pytest.approx(3.0 - speed**2 / (2.0 * G), abs=1e-12)


ROUNDING = """
fsm_dyn: 1
name: rounding
parameters: {w: 0.5 m +- 1 cm, h: 1 m +- 1 cm}
coordinates: {y: m}
points: {C: {from: O, at: y*N.y}}
bodies: {ball: {center: C, mass: 1 kg}}
contacts: {gr: {gap: y - w, restitution: 0.5}}
loads: [{gravity: -9.81 m/s^2*N.y}]
outputs: {height: y - w, push: 9.81 N - 9.81 N*y/h}
initial: {y: h}
requirements:
  above: trough(y) >= w
  top: peak(y) <= h
  same: always height >= 0 m
  pressed: always gr.normal >= 0 N
  off: trough(y) >= w + 1 um
  higher: always height > 10 nm
"""


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_margin_within_the_error_of_the_run_is_no_verdict_against(mirrored):
    """In half of the runs a ball rebounds, and rests, a rounding below the ground; a micrometre is no rounding."""
    text = ROUNDING
    if mirrored:  # the ball falls up
        text = text.replace("at: y*N.y", "at: -y*N.y").replace("gravity: -", "gravity: ")
    graph = fsm_dyn.compile(load("rounding", text=text))
    margins = []
    for w in np.linspace(0.49, 0.51, 12):
        found = fsm_dyn.simulate(graph, until=3.0, parameters={"w": float(w)}).judge()
        margins.append(found["above"].margin)
        verdicts = {name: item.verdict for name, item in found.items()}
        assert verdicts.pop("off") == verdicts.pop("higher") == "violated"
        assert set(verdicts.values()) == {"met"}, (w, found)
    assert min(margins) < 0.0


def test_no_margin_is_judged_worse_than_a_smaller_one():
    """A ball that touches the ground keeps `>=`, and `>` only where rounding leaves it above."""
    graph = fsm_dyn.compile(load("rounding", text=ROUNDING.replace("trough(y) >= w\n", "trough(y) > w\n")))
    simulator = fsm_dyn.Simulator(graph)
    found = [simulator.run(until=3.0, parameters={"w": float(w)}).judge()["above"] for w in np.linspace(0.49, 0.51, 12)]
    assert min(item.margin for item in found) < 0.0
    assert [item.verdict == "met" for item in found] == [item.margin > 0.0 for item in found]


@pytest.mark.parametrize("h", [0.5, 0.7, 0.9, 1.1, 1.3])
def test_a_jump_at_the_deadline_is_in_time(h):
    """The third impact of a ball, by its event and by the memory that counts it, at a time right up to rounding."""
    third = np.sqrt(2.0 * h / 9.81) * (1.0 + 2.0 * 0.5 + 2.0 * 0.25)
    text = (
        ROUNDING[: ROUNDING.index("outputs")]
        + f"""
initial: {{y: w + {h} m}}
memory: {{n: 0}}
transitions: [{{from: "*", on: gr closes, set: {{n: n + 1}}}}]
requirements:
  in_time: eventually n >= 3 before {float(third)!r} s
  too_late: eventually n >= 3 before {float(third) - 1e-9!r} s
"""
    )
    found = fsm_dyn.simulate(
        fsm_dyn.compile(load("late", text=text.replace(", h: 1 m +- 1 cm", ""))), until=3.0
    ).judge()
    assert [item.verdict for item in found.values()] == ["met", "violated"]
    assert found["in_time"].time == pytest.approx(third, abs=1e-11)


def test_a_study_judges_margins_as_a_run_does():
    graph = fsm_dyn.compile(load("rounding", text=ROUNDING))
    found = study(graph, sample="random", n=24, seed=1, jobs=1)
    assert set(found.verdicts["above"]) == set(found.verdicts["same"]) == {"met"}
    assert set(found.verdicts["off"]) == {"violated"}


@pytest.mark.parametrize("step", [1e-3, 2.5e-4])
def test_the_error_of_time_stepping_is_that_of_a_step(step):
    """The ball sinks by its speed times a part of the step; a tenth of a metre is no such error."""
    text = ROUNDING.replace("trough(y) >= w + 1 um", "trough(y) >= w + 10 cm")
    run = fsm_dyn.simulate(fsm_dyn.compile(load("rounding", text=text)), until=3.0, method="moreau_jean", step=step)
    found = run.judge()
    assert found["above"].margin < -0.05 * step
    assert {found[name].verdict for name in ("above", "top", "same")} == {"met"}
    assert found["off"].verdict == "violated"


def test_the_error_is_that_of_the_tolerances():
    graph = fsm_dyn.compile(load("rounding", text=ROUNDING))
    coarse = {"gap": 1e-5, "speed": 1e-5}
    assert fsm_dyn.simulate(graph, until=1.0).judge()["off"].verdict == "violated"
    assert fsm_dyn.simulate(graph, until=1.0, tolerances=coarse).judge()["off"].verdict == "met"


BRICK = """
fsm_dyn: 1
name: brick
coordinates: {x: m, y: m, q: rad}
frames: {B: {rotate: {z: q}}}
points: {C: {from: O, at: x*N.x + y*N.y}}
bodies: {brick: {frame: B, center: C, mass: 2 kg, inertia: {zz: 0.05 kg*m^2}}}
memory: {landings: 0}
shapes:
  outline: {polygon: {frame: B, points: [[-0.2 m, -0.1 m], [0.2 m, -0.1 m], [0.2 m, 0.1 m], [-0.2 m, 0.1 m]]}}
  ground: {line: {along: N.x}, side: N.y}
contacts:
  rubs: {between: [outline, ground], friction: 0.5}
  magnet: {lock: {position: x, holds_to: 3 N}}
inputs: {pull: N}
schedule: {pull: {linear: [[0 s, 0 N], [1 s, 20 N]]}}
loads: [{gravity: -9.81 m/s^2*N.y}, {force: pull*N.x, at: C}]
transitions: [{from: "*", on: rubs_1 closes, set: {landings: landings + 1}}]
initial: {mode: held, y: 0.1 m}
modes: {held: {magnet: engaged, rubs_1: stick, rubs_2: stick}}
requirements:
  weight: always rubs.normal >= 19.61 N
  light: always rubs.normal <= 19.63 N
  rubbed: peak(abs(rubs.friction)) <= 9.9 N
  stuck: always rubs is stick
  slid: eventually rubs is slide before 1 s
  down: never rubs is open
  torn: eventually magnet lets go before 1 s
  once: never magnet lets go twice within 1 s
  one: count(magnet lets go) <= 1
  never_lets: never magnet lets go
  counted: always landings <= 0
  two: peak(landings) < 1
"""


def test_entries_are_judged_as_one_contact_and_events_and_memory_by_name():
    found = fsm_dyn.simulate(fsm_dyn.compile(load("brick", text=BRICK)), until=1.0).judge()
    verdicts = {name: item.verdict for name, item in found.items()}
    assert {name for name, verdict in verdicts.items() if verdict != "met"} == {"stuck", "never_lets"}
    assert found["weight"].unit == "N"
    assert found["torn"].margin > 0.0


def test_what_an_entry_does_not_have_is_refused():
    for formula, words in (
        ("always rubs.normal > 0 m", "bound"), ("always rubs is engaged", "no state 'engaged'"),
        ("never rubs lets go", "no event 'lets go'"), ("always nothing.normal > 0 N", "no contact 'nothing'"),
        ("always landing > 0", "did you mean 'landings'"),
    ):  # fmt: skip
        with pytest.raises(fsm_dyn.ModelError, match=words):
            load("brick", text=BRICK.replace("always rubs is stick", formula))
