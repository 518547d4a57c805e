"""Walkers that Drake ships as examples, run by Drake's simulator, which locates impacts by witness functions.

The same parameters and start; each at the loosest of its tolerances that has the final state to 1e-5.
"""

import numpy as np
import pytest

import fsm_dyn
from tests.benchmarks.timing import ratio

pytestmark = pytest.mark.benchmark
TOLERANCES = 10.0 ** -np.arange(3.0, 12.0)
ERROR = 1e-5  # of the state at the end, rad and rad/s
SLOPE = 0.0525  # of the compass gait, Drake's default


def drakes(system, until, first):
    """A function of the accuracy that returns the last state."""
    from pydrake.systems.analysis import Simulator

    simulator = Simulator(system)
    context = simulator.get_mutable_context()
    for i in range(system.num_input_ports()):
        system.get_input_port(i).FixValue(context, 0.0)

    def run(accuracy):
        system.SetDefaultContext(context)
        context.SetTime(0.0)
        context.SetAccuracy(accuracy)
        context.get_mutable_continuous_state_vector().SetFromVector(first)
        simulator.get_mutable_integrator().set_target_accuracy(accuracy)
        simulator.Initialize()
        simulator.AdvanceTo(until)
        return context.get_continuous_state_vector().CopyToVector()

    return run


def compared(name, ours, theirs):
    """How many times as fast: both held to the mean of the two sharpest runs, which agree to a tenth of the bound."""
    sharp = ours(TOLERANCES[-1]), theirs(TOLERANCES[-1])
    assert np.abs(np.subtract(*sharp)).max() < 0.1 * ERROR
    exact = np.mean(sharp, axis=0)
    tolerances, errors = [], []
    for run in (ours, theirs):
        for tolerance in TOLERANCES:
            error = np.abs(run(tolerance) - exact).max()
            if error <= ERROR:
                break
        tolerances.append(tolerance)
        errors.append(error)
    found = ratio(lambda: ours(tolerances[0]), lambda: theirs(tolerances[1]))
    print(f"\n{name}: {found:.1f} times as fast as Drake; errors {errors[0]:.0e} and {errors[1]:.0e} at tolerances "
          f"{tolerances[0]:.0e} and {tolerances[1]:.0e}")  # fmt: skip
    return found


def test_rimless_wheel():
    """Eleven spokes in ten seconds; Drake's angle is from the vertical and turns the other way."""
    from pydrake.examples import RimlessWheel

    graph = fsm_dyn.compile("rimless_wheel")

    def ours(tolerance):
        run = fsm_dyn.simulate(graph, 10.0, rtol=tolerance, atol=1e-2 * tolerance)
        return np.array([0.08 + run["lean"][-1], run["spin"][-1]])

    assert compared("rimless wheel", ours, drakes(RimlessWheel(), 10.0, (0.08, 1.2))) >= 3.0


def test_compass_gait():
    """Seven steps; Drake's state is of the leg that stands, then of the one that swings."""
    from pydrake.examples import CompassGait

    graph = fsm_dyn.compile("compass_gait")
    start = fsm_dyn.simulate(graph, 1e-3)
    first = [start[name][0] for name in ("qL", "qR", "qL_dot", "qR_dot")]

    def ours(tolerance):
        run = fsm_dyn.simulate(graph, 5.0, parameters={"slope": SLOPE}, rtol=tolerance, atol=1e-2 * tolerance)
        legs = "LR" if run.modes[-1] == "left_stance" else "RL"
        return np.array([run[f"q{leg}{rate}"][-1] for rate in ("", "_dot") for leg in legs])

    assert compared("compass gait", ours, drakes(CompassGait(), 5.0, first)) >= 3.0
