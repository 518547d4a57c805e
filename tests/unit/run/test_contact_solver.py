"""Contact problems with more contacts in an island than are enumerated at once, and with what is no number.

The laws are checked on what comes back: v = K f + base, f >= 0, v >= 0, f v = 0.
"""

import re

import numpy as np
import pytest

from fsm_dyn.runtime.abi import LOG_LENGTH
from tests.runtime.building import FOLDER
from tests.runtime.internals import Arena, internals

STATUS = {name: int(code) for name, code in re.findall(r"X\((\w+), (\d+), \"", (FOLDER / "codes.h").read_text())}
MANY = 8  # contacts of an island: complementarity proposes one candidate
HOLD = 1


@pytest.fixture
def solve():
    """Solve a problem of contacts without friction; returns status, result, choices, forces, motions."""
    runtime, arena = internals(), Arena()

    def solved(K, base):
        n = len(base)
        problem = runtime.allocate_problem(arena.struct, n)
        problem.get("normal")[:], problem.get("tangent")[:], problem.get("excluded")[:] = np.arange(n), -1, -1
        problem.get("allowed")[:, : HOLD + 1] = 1
        problem.put("contact", np.arange(n))
        problem.put("target", np.zeros(n))
        problem.put("floor", np.zeros(n))
        scaled = runtime.scale_problem(arena.struct, problem, K, base, np.ones(n), 0.0)
        parts = np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
        solution = runtime.struct("contact_solution", choices=parts[0], forces=parts[1], motions=parts[2])
        log = runtime.struct("candidate_log", entries=np.zeros(LOG_LENGTH))
        status, result = runtime.solve_contact_problem(arena.struct, scaled, 1e-9, solution, log)
        return status, result, *parts

    return solved


@pytest.mark.parametrize("seed", range(20))
def test_many_coupled_contacts_satisfy_the_laws(solve, seed):
    random = np.random.default_rng(seed)
    J, base = random.normal(size=(MANY, MANY + 1)), random.normal(size=MANY)
    K = J @ J.T
    status, result, choices, forces, motions = solve(K, base)
    assert status == STATUS["CONTINUE"]
    assert result.tried == 1, "the one that is proposed"
    assert np.allclose(motions, K @ forces + base, atol=1e-9)
    assert min(forces.min(), motions.min()) > -1e-9
    assert np.abs(forces * motions).max() < 1e-9
    assert ((choices == HOLD) == (forces > 0.0)).all()


def test_what_no_choice_satisfies_is_inconsistent_after_a_second_proposal(solve):
    """Forces that pull where they should push: no contact can be opened or held."""
    status, result, *_ = solve(-np.eye(MANY) - 0.1, -np.ones(MANY))
    assert status == STATUS["INCONSISTENT"]
    assert result.consistent == 0
    assert result.tried >= 2


@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_named(solve, count, value):
    base = np.full(count, -1.0)
    base[0] = value
    status, *_ = solve(np.eye(count) + 0.1, base)
    assert status == STATUS["NON_FINITE"]
