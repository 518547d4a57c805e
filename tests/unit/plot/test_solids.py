"""Spheres and disks without ``view:`` are drawn in figures by what their shapes say."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.plot.scene_projection import project
from fsm_dyn.run.run_timeline import place_scene

R = 0.1  # m
MODEL = {
    "fsm_dyn": 1,
    "name": "thrown",
    "summary": "A body thrown onto a floor, turning.",
    "parameters": {"m": "0.1 kg", "r": f"{R} m", "g": "9.81 m/s**2"},
    "coordinates": {"x": "m", "y": "m", "z": "m", "a": "rad", "b": "rad"},
    "frames": {"A": {"parent": "N", "rotate": {"z": "a"}}, "B": {"parent": "A", "rotate": {"x": "b"}}},
    "points": {"C": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"}},
    "bodies": {
        "thing": {"frame": "B", "center": "C", "mass": "m", "inertia": dict.fromkeys(("xx", "yy", "zz"), "m*r**2/4")}
    },
    "contacts": {"touch": {"between": ["solid", "table"], "restitution": 0.3}},
    "loads": [{"gravity": "-g*N.z"}],
    "initial": {"z": "1 m", "b": "0.4 rad", "x_dot": "1 m/s", "b_dot": "9 rad/s"},
}
SOLIDS = {
    "sphere": {"frame": "B", "center": "C", "radius": "r"},
    "disk": {"frame": "B", "center": "C", "axis": "B.y", "radius": "r"},
}


@pytest.fixture(params=SOLIDS)
def run(request):
    shapes = {
        "solid": {request.param: SOLIDS[request.param]},
        "table": {"plane": {"from": "O"}, "side": "N.z"},
    }
    return request.param, fsm_dyn.simulate(fsm_dyn.compile({**MODEL, "shapes": shapes}), until=0.2)


def test_a_solid_is_drawn_in_its_size_and_turns(run):
    kind, trajectory = run
    scene, times = trajectory.model.scene, np.array([0.0, 0.1])
    placed = place_scene(scene, trajectory.sample(times))
    (first, *rings), (table,) = ([shape for shape in scene.shapes if shape.plane is plane] for plane in (False, True))
    assert first.closed
    assert table.body == "table"
    if kind == "sphere":
        view = project(trajectory, scene, times)
        for outline in view.shapes[0]:  # a circle however it is turned
            np.testing.assert_allclose(np.linalg.norm(outline - outline.mean(axis=0), axis=1), R, rtol=1e-12)
        assert len(rings) == 2
    else:
        axis = placed.rotations[:, scene.frames.index("B"), :, 1]
        apart = placed.outline(first) - placed.point("C")[:, None, :]
        np.testing.assert_allclose(np.linalg.norm(apart, axis=-1), R, rtol=1e-12)
        np.testing.assert_allclose(np.einsum("nki,ni->nk", apart, axis), 0.0, atol=1e-15)
    turning = placed.outline(rings[1] if rings else first) - placed.point("C")[:, None, :]
    assert np.abs(turning[1] - turning[0]).max() > 0.5 * R
