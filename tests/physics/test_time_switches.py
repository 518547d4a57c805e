"""Loads and inputs that switch at an instant: no step passes over a pulse, and none mixes both branches."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis.study import study

PULSE = """\
fsm_dyn: 1
name: pulse
summary: "A mass with a pulse."
parameters: {{m: 2 kg, t0: 0.7 s, w: 1 ms, F: 100 N}}
coordinates: {{y: m}}
points: {{P: {{from: O, at: y*N.y}}}}
bodies: {{ball: {{center: P, mass: m}}}}
loads: [{{force: "{load}*N.y", at: P, name: tap}}]
initial: {{y: 0 m}}
"""
ONCE = "where(t > t0, where(t <= t0 + w, F, 0), 0)"
METHODS = {"dopri5": {}, "radau": {}, "bdf": {}, "rk4": {"step": 0.01}, "heun": {"step": 0.01}, "euler": {"step": 0.01}}


def compiled(tmp_path, load):
    path = tmp_path / "pulse.yaml"
    path.write_text(PULSE.format(load=load), encoding="utf-8")
    return fsm_dyn.compile(path)


@pytest.mark.parametrize("method", METHODS)
def test_a_short_pulse_gives_its_momentum(tmp_path, method):
    run = fsm_dyn.simulate(compiled(tmp_path, ONCE), 1.0, method=method, **METHODS[method])
    # F w / m; bounds of the pulse are rounded to doubles, 1.1e-16 s apart
    assert run.u[-1, 0] == pytest.approx(0.05, abs=1e-13)
    if method != "euler":  # exact for constant forces up to the order
        assert run.q[-1, 0] == pytest.approx(0.05 * 0.2995, abs=1e-13)


@pytest.mark.parametrize(
    ("load", "momentum"),
    [
        ("where(sin(20*pi/1 s*t) > 0, F, 0)", 50.0),  # a square wave of 10 Hz
        ("F*mod(floor(t/0.05 s), 2)", 50.0),
        ("F*sign(t - 0.25 s)", 50.0),
        ("F*sign(t - 0.3 s)", 40.0),
        ("F*max(t - 0.9 s, 0 s)/1 s", 0.5),
        ("F*abs(t - 0.3 s)/1 s", 29.0),
    ],
)
def test_choices_of_the_time_end_steps(tmp_path, load, momentum):
    graph = compiled(tmp_path, load)
    for method in ("dopri5", "rk4"):
        run = fsm_dyn.simulate(graph, 1.0, method=method, **METHODS[method])
        assert 2.0 * run.u[-1, 0] == pytest.approx(momentum, abs=1e-11)


def test_a_parameter_moves_the_switch_and_a_longer_run_has_more_of_them(tmp_path):
    graph = compiled(tmp_path, ONCE)
    assert fsm_dyn.simulate(graph, 0.5).u[-1, 0] == 0.0
    late = fsm_dyn.simulate(graph, 2.0, parameters={"t0": 1.6})
    assert np.interp(1.59, late.t, late.u[:, 0]) == 0.0
    assert late.u[-1, 0] == pytest.approx(0.05, abs=1e-13)
    assert fsm_dyn.simulate(graph, 2.0).u[-1, 0] == pytest.approx(0.05, abs=1e-13)


def test_an_input_that_switches_is_seen(tmp_path):
    graph = fsm_dyn.compile("latch")
    name = graph.automaton.terms.layout.w[0]
    text = fsm_dyn.simulate(graph, 0.5, inputs={name: "where(t < 0.3 s, 0, 1e-3)"})
    table = fsm_dyn.simulate(graph, 0.5, inputs={name: {"steps": [[0, 0], [0.3, 1e-3]]}})
    np.testing.assert_allclose(text.q[-1], table.q[-1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_condition_is_met_in_the_instant_of_a_jump(method):
    """A jump of the schedule has all guards armed again, and one at zero would wait: the condition comes first."""
    graph = fsm_dyn.compile(
        {
            "fsm_dyn": 1,
            "name": "tapped",
            "coordinates": {"x": "m"},
            "points": {"P": {"from": "O", "at": "x*N.x"}},
            "bodies": {"ball": {"center": "P", "mass": "2 kg"}},
            "inputs": {"push": "N"},
            "schedule": {"push": {"steps": [["0 s", "0 N"], ["0.05 s", "1 N"]]}},
            "loads": [{"force": "push*N.x", "at": "P"}],
            "transitions": [
                {"from": "*", "when": "t - 0.05 s", "impulse": [{"along": "1 N*s", "coordinate": "x"}]},
            ],
        }
    )
    run = fsm_dyn.simulate(graph, 0.1, method=method, **METHODS[method])
    assert [item.time for item in run.transitions] == [0.05]
    assert run.u[-1, 0] == pytest.approx(0.5 + 0.5 * 0.05, abs=1e-13)


# -- many switches ---------------------------------------------------------------------------------------------------

WIDTH_MODULATED = "where(mod(t, w) < 0.3*w, F, 0 N)"  # 1 kHz
SELDOM = "where(mod(t, 1 s) < w, F, 0 N)"  # 1 ms each second
SHIFTED = "(F*sign(sin(2*pi*700*t/1 s + 0.3)) + F*floor(mod(t/0.9 ms, 3)))"


@pytest.mark.parametrize(("load", "until", "pulses"), [(WIDTH_MODULATED, 10.0, 0.3 * 10_000), (SELDOM, 5000.0, 5000)])
@pytest.mark.parametrize("method", ["dopri5", "rk4"])
def test_no_pulse_of_thousands_is_missed(tmp_path, load, until, pulses, method):
    options = {"step": 0.01 * until} if method == "rk4" else {}
    run = fsm_dyn.simulate(compiled(tmp_path, load), until, method=method, **options)
    # F w / m for each, w being 0.3 ms or 1 ms; a bound of a pulse is a double, at 5000 s known to 1e-12 s
    assert run.u[-1, 0] == pytest.approx(0.05 * pulses, rel=1e-9)
    assert run.energy.relative_residual < 1e-8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("load", [WIDTH_MODULATED, SHIFTED])
def test_a_resumed_run_has_the_bits_of_one_run_with_any_switches(tmp_path, load, method):
    """Ends before, at and behind the instant in which the second window of switches takes over."""
    graph = compiled(tmp_path, load)
    until = 2.3 if method not in ("radau", "bdf") else 2.1
    whole = fsm_dyn.simulate(graph, until, method=method, **METHODS[method])
    for first in (0.1, 2.048) if method == "dopri5" else (2.0483,):
        run = fsm_dyn.simulate(graph, first, method=method, **METHODS[method]).resume(until)
        assert run.t.tobytes() == whole.t.tobytes()
        assert run.record.x.tobytes() == whole.record.x.tobytes()


def test_runs_of_a_study_see_every_switch(tmp_path):
    graph = compiled(tmp_path, WIDTH_MODULATED)
    found = study(graph, {"initial.y_dot": [0.0, 1.0]}, outputs=["y_dot"], until=3.0, jobs=1)
    np.testing.assert_allclose(found.to_dataset()["y_dot_final"], [45.0, 46.0], rtol=1e-10)


def test_switches_that_cannot_be_told_apart_are_refused(tmp_path):
    graph = compiled(tmp_path, "where(mod(t, 2e-11 s) < 1e-11 s, F, 0 N)")
    with pytest.raises(fsm_dyn.InputError, match="switch too often near t = 0 s"):
        fsm_dyn.simulate(graph, 1.0)
