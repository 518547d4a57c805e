"""A slice of the random starts: exported machines have the bits of Python's runs; a changed number is seen."""

import numpy as np
import pytest

from fsm_dyn.run.simulator import Simulator
from fsm_dyn.runtime.abi import Status
from tests.exports import random_starts

CASES = ["bouncing_ball", "rocking_block", "stick_slip_belt"]


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_from_random_starts(name, monkeypatch):
    monkeypatch.setattr(random_starts, "BATCH", 12)
    found = random_starts.case(random_starts.NAMES.index(name))
    assert found["ok"], found["reason"]
    assert found["tried"] + found["left_out"] == 12
    assert found["tried"] >= 10
    assert found["transitions"] > 0


def test_a_last_bit_is_seen(monkeypatch):
    monkeypatch.setattr(random_starts, "BATCH", 2)
    exact = random_starts.in_c

    def in_c(*given):
        status, end, rows = exact(*given)
        return status, np.nextafter(end, np.inf), rows

    monkeypatch.setattr(random_starts, "in_c", in_c)
    found = random_starts.case(0)
    assert (found["ok"], found["wrong"]) == (False, 2)
    assert found["reason"].startswith("the end differs [model ")


def test_the_state_of_a_run_that_failed_is_that_of_its_last_row(tmp_path):
    """Decisions that change nothing, each after a step below the resolution of the clock, and then one that fails."""
    graph, one = random_starts.graph_of("rocking_block"), random_starts.start("rocking_block", 3_000_348)
    executable = (simulator := Simulator(graph)).take("compiled")
    given, run = random_starts.in_python(simulator, executable, one)
    assert run.outcome.code == Status.INCONSISTENT
    lib, model = random_starts.library(graph, executable, tmp_path)
    found = random_starts.in_c(lib, model, given, one.until, run.transitions.u_after.shape[1])
    assert random_starts.difference(run, found) == ""
