"""Compiling in several processes: the same automaton to the last bit, errors, progress."""

import pytest

import fsm_dyn
from fsm_dyn.automaton import storage
from fsm_dyn.errors import InputError
from tests.unit.cli.conftest import call


def test_modes_derived_in_two_processes_are_those_of_one():
    told = []
    one, two = (
        fsm_dyn.compile("latch", cache=False, jobs=jobs, progress=lambda done, of: told.append((done, of)))
        for jobs in (1, 2)
    )
    assert len(one.modes) > 2
    assert storage.to_bytes(one.automaton) == storage.to_bytes(two.automaton)
    assert told == 2 * [(k + 1, len(one.modes)) for k in range(len(one.modes))]


@pytest.mark.parametrize("jobs", [0, -1, 1.5, None])
def test_a_number_of_processes_that_cannot_be_is_refused(jobs):
    with pytest.raises(InputError, match="number of processes"):
        fsm_dyn.compile("bouncing_ball", jobs=jobs)


def test_the_command_refuses_it_too():
    found = call("compile", "latch", "--jobs", "0")
    assert found.exit_code == 2
    assert "--jobs" in found.output
    assert call("compile", "latch", "--jobs", "2").exit_code == 0
