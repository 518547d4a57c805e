"""Whole runs, and the runtime's part of them, beside a C program written by hand for the one mechanism.

Both use steps of Runge and Kutta's method of the same length, and come to the same motion; times are processor times of
one process, taken in turns.
"""

import ctypes
import time
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run import loop as running
from fsm_dyn.runtime import library
from tests.benchmarks.repeating import compiled

pytestmark = pytest.mark.benchmark
ROUNDS = 15

# mechanism: model, program, parameters of the program, its start, until, step, how often the runtime may take as long
CASES = {
    "ball": ("bouncing_ball", (9.81, 0.8, 1e-4), (1.0, 0.0), 6.0, 0.06, 30),
    "belt": ("stick_slip_belt", (40.0, 1.0, 6.0, 4.0, 0.2), (0.0, 0.2), 10.0, 0.01, 30),
    "wheel": ("rimless_wheel", (9.81, 1.0, 0.08, np.pi / 8), (0.0, 1.2), 10.0, 0.01, 10),
    "knee": ("double_pendulum_with_stop", (1.0, 0.8, 0.45, 0.42, 9.81, 0.6), np.deg2rad((70.0, 50.0, 0.0, 0.0)), 2.0,
             1e-3, 10),
}  # fmt: skip


class Handwritten:
    """One of the programs of ``handwritten.c``."""

    def __init__(self, name, parameters, start, until, step):
        self.program = getattr(compiled(Path(__file__).with_name("handwritten.c").read_text()), name)
        self.program.restype = ctypes.c_int64
        self.arrays = np.array(parameters, float), np.array(start, float), np.empty((20_000, 1 + len(start)))
        self.changes = ctypes.c_int64()
        parameters, start, rows = (ctypes.c_void_p(array.ctypes.data) for array in self.arrays)
        self.arguments = parameters, start, ctypes.c_double(until), ctypes.c_double(step), rows
        self.count = 0

    def __call__(self):
        self.count = self.program(*self.arguments, ctypes.byref(self.changes))

    @property
    def rows(self):
        return self.arrays[2][: self.count]


class Advance:
    """The runtime's function with the time that it takes added up."""

    def __init__(self, monkeypatch):
        self.spent, real = 0.0, library.advance

        def timed(*arguments):
            begin = time.process_time()
            status = real(*arguments)
            self.spent += time.process_time() - begin
            return status

        monkeypatch.setattr(running, "advance", timed)


def seconds(action, times):
    begin = time.process_time()
    for _ in range(times):
        action()
    return (time.process_time() - begin) / times


@pytest.mark.parametrize("name", CASES)
def test_against_a_program_written_by_hand(name, monkeypatch):
    model, parameters, start, until, step, bound = CASES[name]
    graph = fsm_dyn.compile(model)
    by_hand = Handwritten(name, parameters, start, until, step)
    run = fsm_dyn.simulate(graph, until, method="rk4", step=step)
    by_hand()
    ours, theirs = state(name, run), by_hand.rows[-1, 1:]
    changes = len(run.transitions)
    print(f"\n{name}: {len(run)} rows and {changes} transitions, by hand {by_hand.count} and {by_hand.changes.value}")
    np.testing.assert_allclose(ours, theirs, atol=2e-4)

    advance = Advance(monkeypatch)
    found = []
    for _ in range(ROUNDS):
        advance.spent = 0.0
        whole = seconds(lambda: fsm_dyn.simulate(graph, until, method="rk4", step=step), 20)
        least = seconds(by_hand, 400)
        found.append((whole, advance.spent / 20, least))
    whole, inside, least = np.min(found, axis=0)
    print(f"{name}: by hand {least * 1e6:.1f} us, the runtime {inside * 1e6:.1f} us ({inside / least:.1f} times), "
          f"all of simulate {whole * 1e6:.1f} us ({whole / least:.1f} times)")  # fmt: skip
    assert whole <= bound * least


def test_a_ball_comes_to_rest_by_the_default_method():
    """All of ``simulate``: at most 120 us where the program written by hand takes 2.7 us."""
    graph = fsm_dyn.compile("bouncing_ball")
    by_hand = Handwritten("ball", *CASES["ball"][1:5])
    found = [(seconds(lambda: fsm_dyn.simulate(graph, 6.0), 50), seconds(by_hand, 400)) for _ in range(ROUNDS)]
    whole, least = np.min(found, axis=0)
    print(f"\nball at rest: by hand {least * 1e6:.1f} us, all of simulate {whole * 1e6:.0f} us")
    assert whole <= 120 / 2.7 * least


def state(name, run):
    """The state at the end as the program of this name has it."""
    if name == "wheel":
        return [run["lean"][-1], run["spin"][-1]]
    return [*run.q[-1], *run.u[-1]]
