"""Modes first reached in a run: the cost of each, counted, however many were reached before."""

import sys

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.run.online import OnlineExecutable
from fsm_dyn.runtime.abi import Sizes
from tests.campaigns.flush import dominoes

MODES = 24


@pytest.fixture(scope="module")
def executable():
    return OnlineExecutable(fsm_dyn.compile(dominoes(2)).automaton)


def _different(executable, count):
    """Contact states of as many modes, drawn once."""
    contacts = executable.automaton.contacts
    random = np.random.default_rng(3)
    return [tuple(int(random.choice(contact.codes)) for contact in contacts) for _ in range(count)]


def _calls(work):
    """How many functions, of Python or built in, a piece of work calls."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_a_new_mode_costs_the_same_calls_and_memory_however_many_there_are(executable):
    modes = _different(executable, MODES)
    calls = [_calls(lambda states=states: executable.mode_index(states)) for states in modes]
    assert max(calls[-8:]) <= 1.1 * np.median(calls[4:12])
    assert max(calls[4:]) < 20 * len(executable.automaton.contacts)
    before = executable.memory
    executable.mode_index(_different(executable, MODES + 1)[-1])
    guards = executable.tables.mode_guard_start[-1] - executable.tables.mode_guard_start[-2]
    contacts = len(executable.automaton.contacts)
    assert executable.memory - before < 8 * (6 * guards + 8 * contacts + 500)


def test_tables_that_grew_are_those_built_at_once(executable):
    for states in _different(executable, MODES):
        executable.mode_index(states)
    grown, built = executable.tables, executable._build()
    assert int(grown.sizes[Sizes.N_MODES]) == len(executable.charts) >= MODES
    for name in grown._fields:
        assert np.array_equal(getattr(grown, name), getattr(built, name)), name


@pytest.mark.parametrize("name", ["four_bar", "chain"])
def test_a_model_without_guards_is_embedded_online(name):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), until=0.05, strategy="online")
    assert not run.outcome.failed
    assert not run.transitions
