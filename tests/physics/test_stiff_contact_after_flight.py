"""A flight whose step is long, and a stiff contact at its end: the step out of the contact is accurate too."""

import pytest

import fsm_dyn

MODEL = {
    "fsm_dyn": 1, "name": "disc", "coordinates": ["x", "y"], "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"ball": {"center": "P", "mass": 0.5}},
    "shapes": {"peg": {"circle": {"center": "O", "radius": 0.03}}, "b": {"circle": {"center": "P", "radius": 0.005}}},
    "parameters": {"k": 1.5e6},
    "contacts": {"hit": {"between": ["b", "peg"], "compliant": {"stiffness": "k"}}},
    "initial": {"x": -0.32, "x_dot": 0.85},
}  # fmt: skip


@pytest.mark.parametrize("rtol", [1e-6, 1e-9, 1e-11, 1e-12])
@pytest.mark.parametrize("stiffness", [1.5e4, 1.5e6, 1.5e8])
def test_a_ball_leaves_a_stiff_disc_as_fast_as_it_came(stiffness, rtol):
    """After half a period of the oscillator; a step that passes through the disc has no stage that feels its force."""
    run = fsm_dyn.simulate(fsm_dyn.compile(MODEL), 2.5, rtol=rtol, parameters={"k": stiffness})
    closes, opens = (item.time for item in run.transitions)
    assert closes == pytest.approx(0.285 / 0.85, abs=1e-9)
    assert opens - closes == pytest.approx(3.141592653589793 * (0.5 / stiffness) ** 0.5, rel=1e-4)
    assert run.u[-1, 0] == pytest.approx(-0.85, rel=1e-5)


@pytest.mark.parametrize(("stiffness", "method"), [(1e8, "radau"), (1e8, "bdf"), (1e10, "radau"), (1e12, "bdf")])
def test_a_light_ball_leaves_a_stiff_wall_by_implicit_steps(stiffness, method):
    """Half a period lasts 0.3 us to 3 ns; 12 m from the origin the rounding of its place moves the wall's force."""
    model = {
        "fsm_dyn": 1, "name": "light", "coordinates": ["x"], "points": {"P": {"from": "O", "at": "x*N.x"}},
        "bodies": {"ball": {"center": "P", "mass": 1e-6}}, "initial": {"x": 12.8, "x_dot": -1},
        "contacts": {"wall": {"gap": "x - 12", "compliant": {"stiffness": stiffness}}},
    }  # fmt: skip
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 1.0, method=method)
    closes, opens = (item.time for item in run.transitions)
    assert closes == pytest.approx(0.8, abs=1e-9)
    assert opens - closes == pytest.approx(3.141592653589793 * (1e-6 / stiffness) ** 0.5, rel=1e-3)
    assert run.u[-1, 0] == pytest.approx(1.0, rel=1e-4)
