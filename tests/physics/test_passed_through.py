"""Moreau-Jean with steps too long for thin bodies: named, with a step in which they are met."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError

MODEL = """
fsm_dyn: 1
name: thin
parameters: {{v: 20 m/s, b: 0 m}}
coordinates: {{x: m, y: m}}
points: {{P: {{from: O, at: x*N.x + y*N.y}}}}
bodies: {{ball: {{center: P, mass: 1 kg}}}}
shapes:
  rim: {{circle: {{center: P, radius: 5 mm}}}}
  target: {shape}
contacts: {{hit: {{between: [rim, target], restitution: 0.5}}}}
initial: {{x: -1 m, y: b, x_dot: v}}
"""
TARGETS = {
    "segment": "{segment: {points: [[0 m, -1 m], [0 m, 1 m]]}, side: -N.x}",
    "plate": "{polygon: {from: O, points: [[0 m, -1 m], [1 mm, -1 m], [1 mm, 1 m], [0 m, 1 m]]}}",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("offset", [0.0, 0.004, -0.0097])
def test_a_step_too_long_is_named_with_one_that_is_not(target, offset, tmp_path):
    """Of random steps every one either meets the body or is refused, and the step that is allowed does meet it."""
    path = tmp_path / "model.yaml"
    path.write_text(MODEL.format(shape=TARGETS[target]))
    graph = fsm_dyn.compile(path)

    def run(step, x):
        return fsm_dyn.simulate(graph, until=0.1, method="moreau_jean", step=step, initial={"x": x, "y": offset})

    random, refused = np.random.default_rng(3), 0
    for step, x in zip(10 ** random.uniform(-4, -2, 25), random.uniform(-1.1, -0.9, 25), strict=True):
        try:
            end = run(step, x)
        except InputError as error:
            refused += "is passed through" in error.message
            end = run(float(error.allowed.split()[2]), x)
        assert np.abs(end.u[-1] - [20.0, 0.0]).max() > 0.01, (step, x)
    assert refused > 5


def test_a_body_that_misses_is_left_alone(tmp_path):
    path = tmp_path / "model.yaml"
    path.write_text(MODEL.format(shape="{circle: {center: O, radius: 5 mm}}"))
    run = fsm_dyn.simulate(fsm_dyn.compile(path), until=0.1, method="moreau_jean", step=1e-2, initial={"y": 0.0100001})
    assert run.u[-1] == pytest.approx([20.0, 0.0])
