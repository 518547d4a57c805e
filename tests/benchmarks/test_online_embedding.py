"""Online embedding beside the kernels derived for the same modes: cost of an evaluation and of an accepted step.

Ratios of processor time within one run, medians over rounds.  Most derived kernels of the shipped models take 1 to 20
ns: where contacts fix a body entirely one has nothing left to work out, and calling it is all.  What is online in the
place of such a kernel may take ten times 20 ns; those above it, and the walker of seven speeds with up to four
contacts, are judged by the ratio.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
import yaml

import fsm_dyn
from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.run.executable import Executable
from fsm_dyn.run.online import OnlineExecutable
from tests.benchmarks.repeating import repeat, repeat_online

pytestmark = pytest.mark.benchmark

EVALUATION = 4.0  # times the kernel of the mode
REACHED = {"sliding_rod": 7.0}  # in the place of that: kernels of 23 to 25 ns; see docs/runtime.md
LEAST = 20e-9  # s, of a kernel that is judged by the ratio
SMALL = 10.0 * LEAST  # s, online where the kernel is below that
STEP = 6.0  # times an accepted step with kernels
EVALUATIONS = 20_000
ROUNDS = 7
MODELS = ("bouncing_ball", "pendulum_with_stop", "double_pendulum_with_stop", "ball_in_corner", "rocking_block",
          "sliding_rod", "stick_slip_belt", "ratchet", "box_on_table", "felt_drop")  # fmt: skip

WALKER = """
fsm_dyn: 1
name: walker
parameters: {m: 2.0, l: 0.4, f: 0.1, g: 9.81, mu: 0.6}
coordinates: [x, y, q, a1, b1, a2, b2]
frames:
  B: {parent: N, rotate: {z: q}}
  T1: {parent: B, rotate: {z: a1}}
  F1: {parent: T1, rotate: {z: b1}}
  T2: {parent: B, rotate: {z: a2}}
  F2: {parent: T2, rotate: {z: b2}}
points:
  H: {from: O, at: x*N.x + y*N.y}
  Bo: {from: H, at: 0.2*B.y}
  K1: {from: H, at: -l*T1.y}
  K2: {from: H, at: -l*T2.y}
  T1o: {from: H, at: -l/2*T1.y}
  T2o: {from: H, at: -l/2*T2.y}
  F1o: {from: K1, at: -f/2*F1.y}
  F2o: {from: K2, at: -f/2*F2.y}
  heel1: {from: K1, at: -f*F1.y - f*F1.x}
  toe1: {from: K1, at: -f*F1.y + f*F1.x}
  heel2: {from: K2, at: -f*F2.y - f*F2.x}
  toe2: {from: K2, at: -f*F2.y + f*F2.x}
bodies:
  trunk: {frame: B, center: Bo, mass: 5*m, inertia: {zz: 0.1}}
  leg1: {frame: T1, center: T1o, mass: m, inertia: {zz: m*l**2/12}}
  leg2: {frame: T2, center: T2o, mass: m, inertia: {zz: m*l**2/12}}
  foot1: {frame: F1, center: F1o, mass: m/4, inertia: {zz: 0.003}}
  foot2: {frame: F2, center: F2o, mass: m/4, inertia: {zz: 0.003}}
contacts:
  h1: {gap: "dot(pos(heel1), N.y)", slip: "dot(vel(heel1), N.x)", friction: mu}
  t1: {gap: "dot(pos(toe1), N.y)", slip: "dot(vel(toe1), N.x)", friction: mu}
  h2: {gap: "dot(pos(heel2), N.y)", slip: "dot(vel(heel2), N.x)", friction: mu}
  t2: {gap: "dot(pos(toe2), N.y)", slip: "dot(vel(toe2), N.x)", friction: mu}
loads:
  - {gravity: -g*N.y}
initial: {x: 0, y: 1, a1: 0.2, a2: -0.2, b1: -0.3, b2: 0.3}
"""
# contacts of the two feet that stick (1) or slide (2); heel and toe that stick have rows without a chart of their own
HELD = [(1, 0, 0, 0), (2, 0, 0, 0), (1, 0, 1, 0), (1, 0, 2, 0), (2, 2, 0, 0), (2, 2, 2, 0), (1, 1, 1, 1), (2, 2, 2, 2)]


def _seconds(chart, x, c):
    """Processor time of one evaluation of rates in a batch."""
    out = np.zeros(len(x))
    begin = time.process_time()
    if chart.online:
        repeat_online(chart.online, x, c, out, EVALUATIONS)
    else:
        repeat(chart.rhs, x, c, out, EVALUATIONS)
    assert np.isfinite(out).all()
    return (time.process_time() - begin) / EVALUATIONS


def _evaluations(graph, sets):
    """Medians of processor time of an evaluation by the kernel and online, s, for modes in a chart that is good."""
    begin = initial_state(graph.automaton, graph.values, graph.parameters)
    home = (begin.x, begin.context)
    online = OnlineExecutable(graph.automaton, home)
    numbers = [(states, online.mode_index(states)) for states in sets]
    kernels = Executable(graph.automaton, home)
    own = {states: kernels.mode_index(states) for states in sets}
    for states, number in numbers:
        context = begin.context.copy()
        layout = graph.automaton.terms.layout
        context[layout.sigma_slice] = np.where(np.array(states) == 2, 1.0, 0.0)
        chart = kernels.charts[own[states]]
        if chart.programs.full.evaluate(0.0, begin.x, context)["pivot"][0] > 1e-3:
            times = [
                (_seconds(chart, begin.x, context), _seconds(online.charts[number], begin.x, context))
                for _ in range(ROUNDS)
            ]
            kernel, embedded = np.median(times, axis=0)
            name = graph.automaton.name_of(states).name
            print(f"{graph.name} {name}: {kernel * 1e9:.0f} ns, on line {embedded * 1e9:.0f} ns: "
                  f"{embedded / kernel:.1f}")  # fmt: skip
            yield name, kernel, embedded


@pytest.mark.parametrize("model", MODELS)
def test_an_evaluation(model):
    graph = compile_model(model)
    found = list(_evaluations(graph, [mode.states for mode in graph.automaton.modes]))
    ratios = {name: embedded / kernel for name, kernel, embedded in found if kernel > LEAST}
    assert max(ratios.values(), default=0.0) <= REACHED.get(model, EVALUATION), ratios
    assert max((embedded for _, kernel, embedded in found if kernel <= LEAST), default=0.0) <= SMALL


def test_an_evaluation_of_a_mechanism_with_up_to_four_contacts():
    ratios = {name: embedded / kernel for name, kernel, embedded in _evaluations(walker(), HELD)}
    assert len(ratios) == len(HELD)
    assert max(ratios.values()) <= EVALUATION, ratios


def walker():
    return compile_model(yaml.safe_load(WALKER))


@pytest.mark.parametrize("model", [*MODELS, "walker"])
def test_an_accepted_step(model):
    graph = walker() if model == "walker" else compile_model(model)
    ratios, used = [], {}
    for _ in range(ROUNDS + 1):  # the first is not counted: it compiles
        for strategy in ("compiled", "online"):
            begin = time.process_time()
            run = fsm_dyn.simulate(graph, until=2.0, strategy=strategy, max_step=1e-3, on_failure="return")
            used[strategy] = (time.process_time() - begin) / len(run.t)
        ratios.append(used["online"] / used["compiled"])
    ratio = np.median(ratios[1:])
    print(f"{model}: {used['compiled'] * 1e9:.0f} ns a step, on line {ratio:.1f} times")
    assert ratio <= STEP
