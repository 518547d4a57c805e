"""Cost of the forces in all connections in addition to that of their run."""

import time

import numpy as np
import pytest

import fsm_dyn

pytestmark = pytest.mark.benchmark
ROUNDS = 7
MODELS = (
    "double_pendulum_with_stop",
    "slider_crank",
    "seven_body_mechanism",
    "shopping_cart",
    "latch",
    "spatial_two_body",
)
UNTIL = {"seven_body_mechanism": 0.03}  # s, as printed
KERNEL = 40.0  # ns per connection and row, with its arguments; 15 to 38 on an idle machine


@pytest.mark.parametrize("name", MODELS)
def test_forces_in_connections(name):
    """A run with and without them, and the parts: motion of the rows by NumPy, wrenches by the kernel."""
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(name))
    first = simulator.run(UNTIL.get(name))
    connections = len(first.pins)
    assert first.pins.table["wrench"].shape[:2] == (len(first), connections)  # derived and compiled before
    parts = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        rows = simulator.run(UNTIL.get(name)).rows
        ran = time.process_time()
        assert rows.pins.multipliers.shape[0] == len(rows)
        moved = time.process_time()
        assert rows.pins.table["wrench"].shape[0] == len(rows)
        parts.append((ran - begin, moved - ran, time.process_time() - moved))
    run, motion, kernel = np.median(parts, axis=0)
    each = 1e9 * kernel / (len(first) * connections)
    print(
        f"\n{name}: {len(first)} rows, {connections} connections; with them {1.0 + (motion + kernel) / run:.2f} of"
        f" the run, motion of the rows {motion / run:.1%}, wrenches {kernel / run:.1%},"
        f" {each:.0f} ns per connection and row"
    )
    assert each < 10.0 * KERNEL
    assert motion + kernel < run
