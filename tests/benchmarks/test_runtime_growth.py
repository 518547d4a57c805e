"""How a step and a transition grow with the number of bodies: Newton's cradle, and a row of wagons.

A transition of the cradle that loses energy ends in a collapse: with 96 balls one instant takes 57,000 impacts of two
balls each, with 24 some tens.  What a transition costs is judged with the ideal one, in which an instant takes as many
as there are contacts.  Modes are embedded online, so nothing is derived during a run.  Exponents are those of the
straight line through the logarithms; the number of steps is separated from that of transitions by runs with steps of
other lengths.
"""

import subprocess
import sys
import time

import numpy as np
import pytest

import fsm_dyn

pytestmark = pytest.mark.benchmark
BODIES = (6, 12, 24, 48, 96)
REPEATS = 2


def cradle(n, restitution=0.9):
    """n hanging balls that touch, the first one raised."""
    balls = range(1, n + 1)
    return {
        "fsm_dyn": 1, "name": "cradle", "impacts": "sequential",
        "parameters": {"m": "0.1 kg", "l": "0.4 m", "r": "20 mm", "e": restitution, "g": "9.81 m/s^2"},
        "coordinates": {f"q{i}": "rad" for i in balls},
        "points": {
            f"P{i}": {"from": "O", "at": f"({2 * i}*r + l*sin(q{i}))*N.x - l*cos(q{i})*N.y"} for i in balls
        },
        "bodies": {f"ball{i}": {"center": f"P{i}", "mass": "m"} for i in balls},
        "speeds": {f"w{i}": f"rate(q{i})" for i in balls},
        "contacts": {
            f"c{i}": {"gap": f"norm(pos(P{i + 1}, P{i})) - 2*r", "restitution": "e"} for i in balls[:-1]
        },
        "loads": [{"gravity": "-g*N.y"}],
        "modes": {"swings": {"c1": "open", **{f"c{i}": "closed" for i in balls[1:-1]}}},
        "initial": {"q1": "-40 deg", "mode": "swings"},
    }  # fmt: skip


def wagons(n):
    """n wagons in a row, coupled with slack and braked by dry friction; the first one is pulled, then let go."""
    row = range(1, n + 1)
    return {
        "fsm_dyn": 1, "name": "wagons",
        "parameters": {"m": "1 kg", "d": "2 mm", "drag": "0.4 N", "pull": "60 N"},
        "coordinates": {f"x{i}": "m" for i in row},
        "points": {f"P{i}": {"from": "O", "at": f"x{i}*N.x"} for i in row},
        "bodies": {f"wagon{i}": {"center": f"P{i}", "mass": "m"} for i in row},
        "speeds": {f"v{i}": f"rate(x{i})" for i in row},
        "contacts": {
            **{f"pull{i}": {"gap": f"d - (x{i} - x{i + 1})", "restitution": 0.2} for i in row[:-1]},
            **{f"push{i}": {"gap": f"d + (x{i} - x{i + 1})", "restitution": 0.2} for i in row[:-1]},
            **{f"brake{i}": {"dry_friction": {"speed": f"v{i}", "static": "drag", "kinetic": "drag"}} for i in row},
        },
        "inputs": {"draw": "N"},
        "schedule": {"draw": "60 N"},
        "loads": [{"force": "draw*N.x", "at": "P1"}],
        "modes": {"standing": {f"brake{i}": "stick" for i in row}},
        "initial": {"mode": "standing"},
    }  # fmt: skip


UNTIL = {"cradle": 2.0, "ideal cradle": 2.0, "wagons": 0.3}
MODELS = {"cradle": cradle, "ideal cradle": lambda n: cradle(n, 1.0), "wagons": wagons}


def measured(graph, until):
    """Processor time of a step and of a transition (s), how many transitions there were."""
    rows, times, made = [], [], []
    for steps in (400, 2000):
        options = {"until": until, "strategy": "online", "method": "rk4", "step": until / steps, "on_failure": "return"}
        best = np.inf
        for _ in range(REPEATS + 1):
            begin = time.process_time()
            run = fsm_dyn.simulate(graph, **options)
            best = min(best, time.process_time() - begin)
        made.append(len(run.transitions))
        rows.append(len(run) - 2 * len(run.transitions))
        times.append(best)
        assert run.outcome.name == "done", run.outcome
    step, begin = np.polyfit(rows, times, 1)
    return step, max(begin, 1e-9) / np.mean(made), int(np.mean(made))


@pytest.mark.parametrize("name", MODELS)
def test_growth(name):
    found = []
    for n in BODIES:
        step, transition, made = measured(fsm_dyn.compile(MODELS[name](n)), UNTIL[name])
        print(f"\n{name} of {n}: a step {step * 1e6:.2f} us, a transition {transition * 1e6:.1f} us, {made} of them")
        found.append((step, transition))
    step, transition = np.polyfit(np.log(BODIES), np.log(found), 1)[0]
    print(f"{name}: a step grows as n^{step:.2f}, a transition as n^{transition:.2f}")
    assert step <= 1.3
    assert transition <= 1.5 or name == "cradle"


FIRST = """
import time
begin = time.process_time()
import fsm_dyn
from tests.benchmarks.test_runtime_growth import cradle
graph = fsm_dyn.compile(cradle(24), cache=False)
compiled = time.process_time()
run = fsm_dyn.simulate(graph, 2.0, on_failure="return")
print(compiled - begin, time.process_time() - compiled, len(run.transitions))
"""


def test_first_run_of_the_cradle_of_24(tmp_path):
    """From the model's data to a run's end, nothing read from disk."""
    done = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, check=True)
    compiled, ran, made = map(float, done.stdout.split())
    print(f"\ncradle of 24: compiled in {compiled:.2f} s, run in {ran:.2f} s with {made:.0f} transitions")
    assert compiled + ran <= 5.0
