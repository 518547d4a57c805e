"""How time grows with the number of bodies: chains of n links, rows of n four-bars; and chains against MuJoCo.

Slopes are those of the straight line through the logarithms.  Compiling is all from the model's data to machine code
that can run, nothing read from disk.
"""

import time
from pathlib import Path

import numpy as np
import pytest
from matplotlib.ticker import LogLocator, StrMethodFormatter

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style
from fsm_dyn.programs.kernels import SELDOM_RUN, ObjectCache, compile_programs
from mechanisms.chain import chain
from mechanisms.four_bar_row import four_bar_row
from tests.benchmarks.repeating import repeat

pytestmark = pytest.mark.benchmark
LENGTHS = {"chain": (chain, (8, 16, 32, 64, 160)), "four-bar row": (four_bar_row, (8, 16, 32, 64, 96))}
STEEPEST = 1.3
STEPS = 400
STEP = 1e-4
FIGURE = Path("out/scale.png")  # beside what `make demo` draws


def best(action, times):
    """The least processor time of several calls: what else the machine does only adds to it."""
    found = []
    for _ in range(times):
        begin = time.process_time()
        action()
        found.append(time.process_time() - begin)
    return min(found)


def compiled(model):
    graph = fsm_dyn.compile(fsm_dyn.load(model), cache=False)
    programs = [program for mode in graph.automaton.modes for program in (mode.programs.rhs, mode.programs.full)]
    nowhere = ObjectCache(None)
    compile_programs(programs, nowhere)
    compile_programs([graph.automaton.terms], nowhere, optimisation=SELDOM_RUN)
    return graph


def step_time(graph):
    """Seconds per step of Runge and Kutta's method in a run: what a longer run takes more than a shorter one."""
    settings = {"method": "rk4", "step": STEP}

    def run(steps):
        assert fsm_dyn.simulate(graph, until=steps * STEP, **settings).outcome.name == "done"

    run(STEPS)
    return (best(lambda: run(5 * STEPS), 5) - best(lambda: run(STEPS), 5)) / (4 * STEPS)


def measured(build, n):
    compiled(build(2))  # what is imported and started once
    return best(lambda: compiled(build(n)), 3 if n < 50 else 2), step_time(fsm_dyn.compile(build(n)))


@style.settings()
def scale_figure(times):
    """Seconds to compile and microseconds of a step over the number of bodies, with the slopes of their lines."""
    figure = style.new_figure(9.6, 4.0)
    figure.set_layout_engine("constrained", w_pad=0.12)
    for axes, column, label in zip(
        figure.subplots(1, 2), (0, 1), ("time to compile, s", "time of a step, µs"), strict=True
    ):
        for colour, (name, (lengths, found)) in zip(palette.LINES, times.items(), strict=False):
            values = found[:, column] * (1e6 if column else 1.0)
            axes.loglog(lengths, values, "o-", color=colour, ms=5, label=f"{name}, slope {slope(lengths, values):.2f}")
        axes.set(xlabel="n: links of the chain, four-bars of the row", ylabel=label)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.minorticks_off()
        axes.grid(color="#EEEEEE", lw=0.8)
        axes.legend(loc="upper left")
    return figure


def slope(lengths, values):
    """Exponent of the power of ``lengths`` that fits values best."""
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def test_slopes():
    times = {}
    for name, (build, lengths) in LENGTHS.items():
        found = np.array([measured(build, n) for n in lengths])
        times[name] = lengths, found
        for values, what, unit in ((found[:, 0], "compile", "s"), (1e6 * found[:, 1], "step", "µs")):
            print(f"\n{name}: {what}, {unit}, slope {slope(lengths, values):.2f}:", ", ".join(
                f"n = {n}: {value:.3g}" for n, value in zip(lengths, values, strict=True)))  # fmt: skip
    FIGURE.parent.mkdir(exist_ok=True)
    plot.save(scale_figure(times), FIGURE)
    assert max(slope(lengths, found[:, i]) for lengths, found in times.values() for i in (0, 1)) <= STEEPEST


# -- MuJoCo ---------------------------------------------------------------------------------------------------


def mujoco_chain(n):
    """The chain as an MJCF model; contacts and limits, of which there are none, are switched off."""
    link = (
        "<body pos='0 {at} 0'><joint type='hinge' axis='0 0 1'/>"
        "<inertial pos='0 -0.05 0' mass='0.1' diaginertia='1e-4 1e-4 8.333333333333333e-05'/>"
    )
    bodies = "".join(link.format(at=0 if i == 0 else -0.1) for i in range(n)) + "</body>" * n
    flags = "<flag contact='disable' constraint='disable'/>"
    return f"<mujoco><option gravity='0 -9.81 0'>{flags}</option><worldbody>{bodies}</worldbody></mujoco>"


@pytest.mark.parametrize("n", [2, 5, 10, 20, 40, 80, 160])
def test_against_mujoco(n):
    """Forward dynamics at one state, each called in a loop of its own; MuJoCo's from Python, which adds under 0.3 µs.

    The same accelerations first, to 1e-7: inertia is given to MuJoCo about the centre in decimals.
    """
    import mujoco

    model = mujoco.MjModel.from_xml_string(mujoco_chain(n))
    data = mujoco.MjData(model)
    random = np.random.default_rng(4)
    data.qpos[:], data.qvel[:] = random.uniform(-1.0, 1.0, n), random.uniform(-1.0, 1.0, n)
    mujoco.mj_forward(model, data)

    graph = fsm_dyn.compile(chain(n))
    layout = graph.automaton.terms.layout
    kernel = compile_programs([graph.automaton.modes[0].programs.rhs])[0]
    x, c, out = np.concatenate([data.qpos, data.qvel]), np.zeros(layout.n_c), np.zeros(2 * n)
    c[layout.p_slice] = graph.parameters
    repeat(kernel.address, x, c, out, 1)
    np.testing.assert_allclose(out[n:], data.qacc, rtol=0, atol=1e-7 * np.abs(data.qacc).max())

    count = 200_000 // n
    ratios = []
    for _ in range(7):
        begin = time.process_time()
        repeat(kernel.address, x, c, out, count)
        middle = time.process_time()
        for _ in range(count):
            mujoco.mj_forward(model, data)
        ratios.append(((middle - begin) / count, (time.process_time() - middle) / count))
    ours, theirs = np.min(ratios, axis=0)
    found = float(np.median([b / a for a, b in ratios]))
    print(f"\nn = {n}: {ours * 1e6:.2f} µs, MuJoCo {theirs * 1e6:.2f} µs, {found:.1f} times as fast")
    assert found >= 3.0
