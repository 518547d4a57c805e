"""Modes embedded online against the derived programs of the same modes, at random states."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from fsm_dyn.analysis.variations import AnalysisSetup
from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.derive.guards import list_guards
from fsm_dyn.language import models
from fsm_dyn.language.loader import load
from fsm_dyn.run.online import OnlineExecutable, routine_address
from fsm_dyn.runtime.abi import OnlineKernel

STATES = 20
MODES = 12  # of each model
NEAR = 0.05  # how far from the start (rad, lengths of the model): farther off, felts are pressed beyond any use

BRAKED_BLOCK = """
fsm_dyn: 1
name: block_on_two_feet
parameters: {m: 2.0, w: 0.6, h: 0.4, mu_s: 0.4, mu_k: 0.3, F: 1.0, Iz: 0.05}
coordinates: [x, y, phi]
frames:
  B: {parent: N, rotate: {z: phi}}
points:
  Bo: {from: O, at: x*N.x + y*N.y}
  L: {from: Bo, at: -w/2*B.x - h/2*B.y}
  R: {from: Bo, at: w/2*B.x - h/2*B.y}
bodies:
  block: {frame: B, center: Bo, mass: m, inertia: {zz: Iz}}
loads:
  - {gravity: -9.81*N.y}
  - {force: F*N.x, at: Bo}
contacts:
  left:  {gap: "dot(pos(O, L), N.y)", slip: "dot(vel(L), N.x)", friction: {static: mu_s, kinetic: mu_k}}
  right: {gap: "dot(pos(O, R), N.y)", slip: "dot(vel(R), N.x)", friction: {static: mu_s, kinetic: mu_k}}
initial: {y: 0.2}
"""

DRIVEN_PAD = """
fsm_dyn: 1
name: driven_pad
parameters: {m: 0.4, k: 900.0, loss: 0.7, mu_s: 0.5, mu_k: 0.35}
inputs: [lift, push]
coordinates: [x, y]
points:
  P: {from: O, at: x*N.x + y*N.y}
bodies:
  puck: {center: P, mass: m}
loads:
  - {gravity: -9.81*N.y}
  - {force: push*N.x, at: P}
contacts:
  pad: {gap: y - lift, slip: "dot(vel(P), N.x)", compliant: {stiffness: k, exponent: 1.5, dissipation: loss},
        friction: {static: mu_s, kinetic: mu_k}}
initial: {y: -0.01}
"""


def row_of_blocks(count):
    """A row of blocks on rough ground that push each other, braked besides: two speeds each."""
    row = range(1, count + 1)
    points = "\n".join(f"  P{i}: {{from: O, at: x{i}*N.x + y{i}*N.y}}" for i in row)
    bodies = "\n".join(f"  block{i}: {{center: P{i}, mass: m}}" for i in row)
    ground = "\n".join(
        f'  g{i}: {{gap: y{i}, slip: "dot(vel(P{i}), N.x)", friction: {{static: 0.5, kinetic: 0.3}}}}' for i in row
    )
    bumps = "\n".join(f'  b{i}: {{gap: "norm(pos(P{i + 1}, P{i})) - d"}}' for i in row[:-1])
    brakes = "\n".join(f"  k{i}: {{dry_friction: {{speed: v{i}, static: 0.5, kinetic: 0.4}}}}" for i in row)
    modes = {
        "standing": {f"g{i}": "stick" for i in row},
        "pushed": {f"g{i}": "slide" for i in row}
        | {f"k{i}": "slide" for i in row}
        | {f"b{i}": "closed" for i in row[2:-1]},
        "mixed": {f"g{i}": ("slide", "stick", "open")[i % 3] for i in row}
        | {f"k{i}": "slide" for i in row}
        | {"b3": "closed"},
        "flying": {f"g{i}": "open" for i in row}
        | {f"b{i}": "closed" for i in row[:-1]}
        | {f"k{i}": "slide" for i in row},
    }
    listed = "\n".join(
        f"  {name}: {{{', '.join(f'{k}: {v}' for k, v in mode.items())}}}" for name, mode in modes.items()
    )
    return f"""
fsm_dyn: 1
name: row_of_blocks
parameters: {{m: 1.5, d: 0.2}}
coordinates: [{", ".join(f"x{i}, y{i}" for i in row)}]
points:
{points}
bodies:
{bodies}
speeds: {{{", ".join(f"v{i}: rate(x{i}), w{i}: rate(y{i})" for i in row)}}}
loads:
  - {{gravity: -9.81*N.y}}
  - {{force: 5.0*N.x, at: P1}}
contacts:
{ground}
{bumps}
{brakes}
modes:
{listed}
initial: {{{", ".join(f"x{i}: {0.2 * i}" for i in row)}, mode: standing}}
"""


# the row has more speeds than are worked out with full loops (FSM_FEW_SPEEDS)
TEXTS = {"block_on_two_feet": BRAKED_BLOCK, "driven_pad": DRIVEN_PAD, "row_of_blocks": row_of_blocks(8)}


@pytest.fixture(scope="module", params=[*TEXTS, *models.names()])
def graph(request):
    text = TEXTS.get(request.param)
    return compile_model(request.param if text is None else load("text", text=text), cache=False)


def machine_of(graph):
    start = initial_state(graph.automaton, graph.values, graph.parameters)
    return OnlineExecutable(graph.automaton, (start.x, start.context))


def call(chart, which, t, x, c, length):
    """Evaluate a mode embedded online as the runtime does: by its address."""
    out = np.zeros(length)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *2 * [ctypes.c_int64], ctypes.c_double, *3 * [ctypes.c_void_p])
    prototype(routine_address())(chart.online, which, t, x.ctypes.data, c.ctypes.data, out.ctypes.data)
    return out


@pytest.fixture
def states(random_states):
    """Return a function from a graph, a mode and a seed to states x and c: slip directions and inputs at random."""

    def draw(graph, mode, seed):
        rng = np.random.default_rng(seed)
        layout = graph.automaton.terms.layout
        start = graph.start
        c = np.tile(start.context, (STATES, 1))
        c[:, layout.w_slice.start : layout.w_rate2_slice.stop] = rng.uniform(-1, 1, (STATES, 3 * len(layout.w)))
        c[:, layout.w_rate3_slice] = rng.uniform(-1, 1, (STATES, len(layout.w)))
        c[:, layout.sigma_slice] = np.where(np.array(mode.states) >= 2, rng.choice([-1.0, 1.0], (STATES, 1)), 0.0)
        return random_states(graph, STATES, seed, NEAR), c

    return draw


def compare(found, expected, good, limit, what):
    """Compare per state, relative to the largest entry there."""
    size = np.abs(expected).max(axis=-1, keepdims=True, initial=1.0)
    error = (np.abs(found - expected) / size)[good]
    assert error.size == 0 or error.max() <= limit, f"{what}: {error.max():.1e}"


def test_all_modes_agree_with_their_programs(graph, states):
    """Tolerances: 1e-10 is rounding times the worst pivot compared (1e-3); slopes of forces are differenced."""
    rng = np.random.default_rng(7)
    executable, met = machine_of(graph), 0
    for number, mode in enumerate(graph.automaton.modes[:MODES]):
        full = executable.charts[executable.mode_index(mode.states)].programs.full
        x, c = states(graph, mode, number)
        t = rng.uniform(0.0, 1.0, STATES)
        with np.errstate(all="ignore"):
            expected = mode.programs.full.evaluate(t, x, c)
        expected = {name: np.broadcast_to(value, (STATES, value.shape[-1])) for name, value in expected.items()}
        # where dependent speeds differ, both read other independent ones: compare from the speeds that one gives
        x = np.concatenate([x[:, : len(graph.automaton.terms.layout.q)], expected["u"]], axis=1)
        found = full.evaluate(t, x, c)
        good = (expected["pivot"][:, 0] > 1e-3) & np.isfinite(expected["x_dot"]).all(axis=1)
        met += good.sum()
        for name in ("u", "x_dot", "multipliers"):
            compare(found[name], expected[name], good, 1e-10, f"{mode.name} {name}")
        if not mode.programs.redundant:
            compare(found["guards"], expected["guards"], good, 1e-10, f"{mode.name} guards")
            compare(found["slopes"], expected["slopes"], good, 2e-6, f"{mode.name} slopes")
    assert met > 0


def test_guards_are_listed_as_derived(graph):
    automaton = graph.automaton
    for mode in automaton.modes[:MODES]:
        leaving = automaton.outgoing_transitions(automaton.name_of(mode.states))
        if not mode.programs.redundant:
            assert list_guards(automaton.system, mode.states, leaving) == mode.guards


def test_kernels_give_what_the_mode_gives(graph, states):
    """Bit for bit from the same chart: the kernels by address, the evaluation of many states; ``rhs`` and ``full``."""
    executable = machine_of(graph)
    for number, mode in enumerate(graph.automaton.modes[:3]):
        chart = executable.charts[executable.mode_index(mode.states)]
        x, c = states(graph, mode, number)
        expected = chart.programs.full.evaluate(0.3, x[0], c[0])
        executable.reset_charts()
        full = call(chart, OnlineKernel.FULL, 0.3, x[0], c[0], sum(value.size for value in expected.values()))
        rate = call(chart, OnlineKernel.RHS, 0.3, x[0], c[0], len(x[0]))
        np.testing.assert_array_equal(full, np.concatenate([value.ravel() for value in expected.values()]))
        np.testing.assert_array_equal(rate, expected["x_dot"])


PENDULUM = """
fsm_dyn: 1
name: pendulum_by_its_bob
parameters: {m: 1.0, L: 0.5}
coordinates: [x, y]
points:
  P: {from: O, at: x*N.x + y*N.y}
bodies:
  bob: {center: P, mass: m}
constraints:
  rod: {position: x**2 + y**2 - L**2}
initial: {x: 0.3, y: -0.4, x_dot: 8.0}
"""


def test_charts_are_chosen_at_entry_and_where_the_pivot_is_too_small_only():
    """Counted: once a mode of a block that slides; of a pendulum in Cartesian coordinates, four times a turn."""
    block = compile_model(load("text", text=BRAKED_BLOCK))
    executable, choices = machine_of(block), {}
    setting = replace(AnalysisSetup.of(block), executable=executable)
    start = setting.start({"x_dot": 1.0})
    raw = setting.run(start.x, start.context, start.states, 1.0)
    for chart in executable.charts:
        choices[chart.programs.states] = executable._online[chart.full].choices
    assert raw.steps >= 9
    assert len(choices) > 1
    assert set(choices.values()) == {1}

    pendulum = compile_model(load("text", text=PENDULUM))
    setting = replace(AnalysisSetup.of(pendulum), executable=machine_of(pendulum))
    start = setting.start()
    raw = setting.run(start.x, start.context, start.states, 2.0)
    (chart,) = setting.executable.charts
    turns = np.ptp(np.unwrap(np.arctan2(*raw.x[:, 1::-1].T))) / (2.0 * np.pi)
    assert raw.steps > 500
    assert turns > 3
    assert 1 + 4 * np.floor(turns) <= setting.executable._online[chart.full].choices <= 1 + 4 * np.ceil(turns)
