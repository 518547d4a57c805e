"""Compiling in several processes: the same automaton to the last bit, errors, progress."""

import subprocess
import sys

import pytest

import fsm_dyn
from fsm_dyn.automaton import compilation, storage
from fsm_dyn.core.errors import InputError
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
    with pytest.raises(InputError, match="jobs"):
        fsm_dyn.compile("bouncing_ball", jobs=jobs)


def test_equations_of_other_sources_are_not_taken_from_the_cache(tmp_path, monkeypatch):
    """Results of other sources are derived again."""
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    derived = []
    derive = compilation._derive
    monkeypatch.setattr(compilation, "_derive", lambda *given: derived.append(1) or derive(*given))
    for version, wanted in (("old", 1), ("old", 1), ("new", 2), ("old", 2)):
        monkeypatch.setattr(storage, "equations_version", lambda version=version: version)
        fsm_dyn.compile("bouncing_ball")
        assert len(derived) == wanted


def test_the_version_of_equations_knows_all_sources_that_derive_them():
    """Among the parts loaded by a derivation, only those for files, drawings and messages are not in it."""
    script = """
import sys
import fsm_dyn
fsm_dyn.compile("latch", cache=False)
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("fsm_dyn.")}))
"""
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    others = {"core", "draw", "runtime"}
    assert set(loaded) - others <= set(storage.DERIVING) <= set(loaded)


def test_the_command_refuses_it_too():
    found = call("compile", "latch", "--jobs", "0")
    assert found.exit_code == 2
    assert "--jobs" in found.output
    assert call("compile", "latch", "--jobs", "2").exit_code == 0
