"""Events as they come: on a surface at the start, grazing, several at once, two in a step, a thousand a second."""

import numpy as np
import pytest

import fsm_dyn


def point(contacts, *, gravity=0.0, inputs=None, schedule=None, **extra):
    """A mass point on a vertical line."""
    model = {
        "fsm_dyn": 1, "name": "point", "coordinates": ["y"], "points": {"P": {"from": "O", "at": "y*N.y"}},
        "bodies": {"bead": {"center": "P", "mass": 1}}, "speeds": {"v": "rate(y)"}, "contacts": contacts,
        "loads": [{"gravity": f"-{gravity}*N.y"}], **extra,
    }  # fmt: skip
    if inputs:
        model |= {"inputs": inputs, "schedule": schedule}
    return fsm_dyn.compile(model)


METHODS = [{"rtol": 1e-10, "atol": 1e-12}, {"method": "rk4", "step": 1e-2}]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("share", "touches"), [(1 - 1e-9, 0), (1 + 1e-9, 1)])
def test_grazing(method, share, touches):
    """Thrown to within a nanometre of a ceiling: v² = 2 g h decides, on either side."""
    graph = point({"ceiling": {"gap": "1 - y", "restitution": 0.5}}, gravity=10.0)
    run = fsm_dyn.simulate(graph, until=0.8, initial={"v": float(np.sqrt(20.0 * share))}, **method)
    assert len(run.transitions) == touches
    assert run.sample(np.linspace(0.0, 0.8, 2001)).q.max() <= 1.0 + 1e-9
    if touches:
        # the crossing lies sqrt(2 · 1e-9 h / g) before the apex, where the gap is as flat as a parabola's top
        assert run.transitions[0].time == pytest.approx(np.sqrt(0.2), abs=2e-5)


@pytest.mark.parametrize("method", [{"rtol": 1e-10, "atol": 1e-12}, {"method": "rk4", "step": 0.5}])
def test_two_crossings_in_one_step(method):
    """Above a mark for a tenth of a second, up and down within a step that sees both its ends below."""
    graph = point(
        {}, gravity=10.0, memory={"crossings": 0},
        transitions=[{"from": "*", "when": "y - 0.9875", "crossing": "both", "set": {"crossings": "crossings + 1"}}],
    )  # fmt: skip
    run = fsm_dyn.simulate(graph, until=1.0, initial={"v": float(np.sqrt(20.0))}, **method)
    apex = np.sqrt(0.2)
    np.testing.assert_allclose([x.time for x in run.transitions], [apex - 0.05, apex + 0.05], rtol=1e-9)
    assert run["crossings"][-1] == 2


def test_both_ends_strike_at_once():
    """A rod that falls flat: one transition, both contacts, equal impulses, no rotation."""
    graph = fsm_dyn.compile("sliding_rod")
    start = {"mode": "in_air", "q": 0.0, "y": 0.3}
    run = fsm_dyn.simulate(graph, until=2.0, initial=start, rtol=1e-11, atol=1e-13)
    first = run.transitions[0]
    assert set(first.impulse) == {"foot", "tip"}
    speed = np.sqrt(2 * 9.81 * 0.3)
    # half of m (1 + e) v each
    np.testing.assert_allclose([first.impulse[k][0] for k in ("foot", "tip")], 0.65 * speed, rtol=1e-9)
    strokes = [x for x in run.transitions if x.impulse]
    assert all(set(x.impulse) == {"foot", "tip"} for x in strokes)
    np.testing.assert_allclose(run.q[:, 2], 0.0, atol=1e-12)
    assert run.modes[-1] == "lying"


def test_start_on_both_surfaces():
    """A block set down upright stands, and nothing happens to it."""
    run = fsm_dyn.simulate(
        fsm_dyn.compile("rocking_block"), until=1.0, initial={"mode": "standing", "q": 0.0, "x": 0.0}
    )
    assert run.transitions == ()
    assert set(run.modes) == {"standing"}
    np.testing.assert_allclose(run.multipliers["left"][-1, 0] + run.multipliers["right"][-1, 0], 981.0, rtol=1e-12)


def test_a_thousand_impacts_a_second():
    """A bead between walls a millimetre apart strikes every millisecond, exactly."""
    graph = point({"below": {"gap": "y", "restitution": 1}, "above": {"gap": "0.001 - y", "restitution": 1}})
    run = fsm_dyn.simulate(graph, until=1.0005, initial={"y": 0.0, "v": 1.0})
    times = [x.time for x in run.transitions]
    assert len(times) == 1000
    np.testing.assert_allclose(times, 1e-3 * np.arange(1, 1001), atol=1e-9)


def test_a_thousand_slips_a_second():
    """A belt that shakes at 500 Hz makes the block reverse its slip 1,000 times a second, without a hang."""
    graph = fsm_dyn.compile("stick_slip_belt")
    shaken = {"v_belt": {"expression": "0.2 m/s*sin(2*pi*t*500/1 s)"}}
    run = fsm_dyn.simulate(graph, until=1.0, inputs=shaken, initial={"mode": "slipping", "x": 0.0, "v": 0.0})
    assert run.outcome.name == "done"
    # once per half period of the belt, whose acceleration friction cannot follow
    assert 990 <= len(run.transitions) <= 1010


@pytest.mark.parametrize("method", [{"rtol": 1e-10, "atol": 1e-12}, {"method": "rk4", "step": 1e-3}])
def test_reversal_is_met_once(method):
    """Where a slip reverses, its instant known to rounding only, the reversal does not repeat without end."""
    mu = 0.6501512790621702
    belt = {"v_belt": {"expression": "-2.0029167703701365 m/s*sin(t/1 s*3.978392612590289)"}}
    run = fsm_dyn.simulate(
        fsm_dyn.compile("stick_slip_belt"), until=2.0, inputs=belt, parameters={"mu_s": mu, "mu_k": mu},
        initial={"mode": "slipping", "x": 0.13275084519639466, "v": -0.24751974348966035}, **method,
    )  # fmt: skip
    assert run.outcome.name == "done"
    assert len(run.transitions) == 4
