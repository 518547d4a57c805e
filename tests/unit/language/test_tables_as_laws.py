"""Laws by tables: lines through points, constant beyond; a run of a measured spring against its exact motion."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError
from fsm_dyn.language import loader

MODEL = """
fsm_dyn: 1
parameters: {{stiff: 12 N}}
coordinates: {{x: m}}
points: {{P: {{from: O, at: x*N.x}}}}
bodies: {{block: {{center: P, mass: 2 kg}}}}
loads: [{{law: "{law}", coordinate: x}}]
outputs: {{force: "{law}"}}
initial: {{x: 1 cm, x_dot: -1 m/s}}
"""
LAW = "interpolate(x, -2 cm, 40 N, 0 cm, stiff, 3 cm, 0 N, 9 cm, -6 N)"


def test_a_table_is_linear_between_its_points_and_constant_beyond():
    run = fsm_dyn.simulate(fsm_dyn.compile(loader.load(text=MODEL.format(law=LAW))), 1.0)
    expected = np.interp(run["x"], [-0.02, 0.0, 0.03, 0.09], [40.0, 12.0, 0.0, -6.0])
    assert run["x"].min() < -0.02
    assert run["x"].max() > 0.09
    np.testing.assert_allclose(run["force"], expected, atol=1e-12)
    assert run.energy.relative_residual < 1e-6


def test_one_interval_is_an_oscillator():
    """Between two points the law is a spring: x = A cos + B sin about its rest."""
    law = "interpolate(x, -1 m, 200 N, 1 m, -200 N)"
    run = fsm_dyn.simulate(fsm_dyn.compile(loader.load(text=MODEL.format(law=law))), 2.0)
    w = 10.0
    np.testing.assert_allclose(run["x"], 0.01 * np.cos(w * run.t) - 0.1 * np.sin(w * run.t), atol=1e-8)


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ("interpolate(x, 0 m, 1 N)", "a quantity, then 2 to 60 places"),
        ("interpolate(x, 0 m, 1 N, 1 m)", "a value each"),
        ("interpolate(x, 1 m, 1 N, 0 m, 2 N)", "order the points by their places"),
        ("interpolate(x, 0 m, 1 N, x, 2 N)", "are numbers"),
        ("interpolate(x, 0 s, 1 N, 1 s, 2 N)", "units do not match"),
        ("interpolate(x, 0 m, 1 N, 1 m, 2 m)", "units do not match"),
        ("interpolat(x, 0 m, 1 N, 1 m, 2 N)", "interpolate"),
    ],
)
def test_tables_that_are_none_are_refused(law, words):
    with pytest.raises(ModelError, match=words):
        loader.load(text=MODEL.format(law=law))
