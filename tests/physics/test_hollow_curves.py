"""Curves with hollows: a disc rests on two bulges at once, cams stand on two lobes, nothing sinks in."""

import numpy as np
import pytest
from scipy.optimize import brentq

import fsm_dyn
from tests.physics import hollow_curves

METHODS = {
    "dopri5": {},
    "radau": {"method": "radau"},
    "bdf": {"method": "bdf"},
    "online": {"strategy": "online"},
    "moreau_jean": {"method": "moreau_jean", "step": 2e-4},
}
PEANUT = """
fsm_dyn: 1
name: peanut
parameters: {{d: 0.2 N*s/m}}
coordinates: {{x: m, y: m}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{ball: {{center: P, mass: 0.1 kg}}}}
shapes:
  disc: {{circle: {{center: P, radius: 50 mm}}}}
  waist: {{curve: {{from: O, {outline}}}}}
contacts: {{touch: {{between: [{pair}]}}}}
loads:
  - {{gravity: -9.81 m/s^2*N.y}}
  - {{damper: {{coordinate: x, damping: d}}}}
  - {{damper: {{coordinate: y, damping: d}}}}
initial: {{x: {s}*5 mm, y: 0.2 m}}
"""
R = "(0.1 m + 0.05 m*cos(2*s))"
OUTLINES = {
    "anticlockwise": "r: 0.1 m + 0.05 m*cos(2*phi)",
    "clockwise": f'x: "{R}*cos(s)", y: "-{R}*sin(s)"',
}


def compiled(text, tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return fsm_dyn.compile(path)


def height_on_peanut():
    """The height at which a disc of 50 mm touches both bulges (m)."""

    def depth(y):
        a = np.linspace(0.6, 1.6, 20001)
        r = 0.1 + 0.05 * np.cos(2 * a)
        return np.hypot(r * np.cos(a), y - r * np.sin(a)).min() - 0.05

    return brentq(depth, 0.1003, 0.12, xtol=1e-13)


@pytest.mark.parametrize("outline", OUTLINES)
@pytest.mark.parametrize("method", METHODS)
def test_a_disc_rests_on_both_bulges(method, outline, tmp_path):
    for s, pair in ((1, "disc, waist"), (-1, "waist, disc")) if method == "dopri5" else ((1, "disc, waist"),):
        graph = compiled(PEANUT.format(outline=OUTLINES[outline], pair=pair, s=s), tmp_path)
        run = fsm_dyn.simulate(graph, until=4.0, **METHODS[method])
        close = 1e-6 if method == "moreau_jean" else 1e-8
        assert run.q[-1, :2] == pytest.approx([0.0, height_on_peanut()], abs=close)
        assert run.q[-1, 1] == pytest.approx(0.103316, abs=1e-6)


def test_a_start_inside_is_named(tmp_path):
    """A start below the place of rest overlaps a bulge."""
    text = PEANUT.format(outline=OUTLINES["anticlockwise"], pair="disc, waist", s=1)
    graph = compiled(text.replace("y: 0.2 m", "y: 0.09 m"), tmp_path)
    run = fsm_dyn.simulate(graph, until=0.1, on_failure="return")
    assert "penetration" in run.outcome.name


def test_parameters_may_not_dent_a_curve(tmp_path):
    """The contacts were made for a curve that bulges everywhere: values with which it has hollows are refused."""
    text = PEANUT.format(outline="r: 0.1 m + c*cos(2*phi)", pair="disc, waist", s=1)
    graph = compiled(text.replace("{d: 0.2 N*s/m}", "{d: 0.2 N*s/m, c: 0.01 m}"), tmp_path)
    with pytest.raises(fsm_dyn.FsmDynError, match="change these values in the file"):
        fsm_dyn.simulate(graph, until=0.1, parameters={"c": 0.05})


def test_steps_of_a_rolling_cam_are_proved(tmp_path):
    """A rolling cam takes steps of the length it is allowed, not ever shorter ones (70 s and 4,000 rows for 0.8 s)."""
    starts = 3
    text = next(text for title, text, *_ in hollow_curves.models() if title == "peanut on floor")
    graph = compiled(text, tmp_path)
    for start in hollow_curves.cam_starts(np.random.default_rng(7), starts):
        run = fsm_dyn.simulate(graph, until=0.8, initial=start, max_step=0.004)
        steps = np.diff(run.t)
        assert len(run) < 1000
        assert np.median(steps[steps > 0.0]) > 1e-4


@pytest.mark.parametrize("title", ["bean 0.05", "clover on floor"])
def test_random_starts(title, tmp_path):
    """Judged by the distance to the outline."""
    assert hollow_curves.campaign(2, 7, tmp_path, {title}) == []


@pytest.mark.long
def test_more_random_starts(tmp_path):
    """Discs of two sizes on three outlines, and these on a floor: 108 starts."""
    assert hollow_curves.campaign(12, 7, tmp_path) == []
