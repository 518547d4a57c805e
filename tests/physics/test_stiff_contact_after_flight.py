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
