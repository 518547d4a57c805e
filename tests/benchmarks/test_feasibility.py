"""Time of an assessment of the piano action's contacts, from nothing and from the cache."""

import time

import pytest

import fsm_dyn

pytestmark = pytest.mark.benchmark


def test_the_piano_action_is_assessed_within_a_minute(tmp_path, monkeypatch):
    graph = fsm_dyn.compile("piano_action")
    monkeypatch.setenv("FSM_DYN_CACHE", str(tmp_path))
    begin = time.process_time()
    found = graph.assess_geometry()
    took = time.process_time() - begin
    begin = time.perf_counter()
    assert graph.assess_geometry() == found
    again = time.perf_counter() - begin
    print(f"\n{found.boxes:,} boxes in {took:.1f} s of a processor; from the cache {1e3 * again:.0f} ms")
    assert took <= 60.0
