"""The action in four bodies: let-off, blow, check and return, and that it is the fast one."""

import numpy as np
import pytest

import fsm_dyn

STROKES = {"piano": 2.0, "mezzo": 5.0, "forte": 10.0}  # N, held
STAGES = ("regulating_button closes", "jack_knuckle_face leaves", "string impacts", "backcheck", "jack_stop closes")


@pytest.fixture(scope="module")
def strokes():
    graph = fsm_dyn.compile("piano_action_simple")
    return {
        name: fsm_dyn.simulate(graph, until=1.2, inputs={"finger": {"steps": [(0, 0), (0.05, force), (0.35, 0)]}})
        for name, force in STROKES.items()
    }


def test_each_stroke_runs_through_its_stages_and_comes_back_to_rest(strokes):
    for run in strokes.values():
        causes = iter(x.cause for x in run.transitions)
        for stage in STAGES:
            assert any(stage in cause for cause in causes), stage
        assert run.modes[-1].startswith("rest")
        assert run.q[-1] == pytest.approx(run.q[0], abs=1e-7)


def test_the_string_gives_back_its_share(strokes):
    """Newton's law at the string, and harder strokes strike faster."""
    speeds = []
    for run in strokes.values():
        time = next(x.time for x in run.transitions if x.cause.startswith("string impacts"))
        before, after = run.sample([time - 1e-9, time + 1e-9])["hammer_speed"]
        assert after == pytest.approx(-0.5 * before, rel=1e-5)
        speeds.append(before)
    assert speeds[0] > 0.5
    assert speeds == sorted(speeds)


@pytest.mark.parametrize("let_off", [0.8e-3, 3e-3])
def test_a_slow_stroke_by_motion_takes_the_hammer_as_near_as_let_off_says(let_off):
    """And sounds nothing; the tip of the hammer moves five times the key's front before."""
    led = fsm_dyn.compile("piano_action_simple:motion")
    run = fsm_dyn.simulate(led, until=1.2, scenario="slow", parameters={"let_off": let_off})
    assert run["hammer_below"].min() == pytest.approx(let_off, abs=0.4e-3)
    assert not any("string" in x.cause for x in run.transitions)
    early = run["key_travel"] < 5e-3
    ratio = np.polyfit(run["key_travel"][early], -run["hammer_below"][early], 1)[0]
    assert 4.5 < ratio < 5.5


def test_energy_closes(strokes):
    for run in strokes.values():
        assert np.abs(run.energy.residual).max() <= 1e-8 * np.abs(run.energy.work["finger_force"]).max()
