"""Lines of faces that are crossed far beyond their ends: nothing happens there, and nothing is made of it."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.runtime.abi import Status

BAR = [["0 m", "-1 cm"], ["0.5 m", "-1 cm"], ["0.5 m", "1 cm"], ["0 m", "1 cm"]]
SQUARE = [["-25 cm", "-25 cm"], ["25 cm", "-25 cm"], ["25 cm", "25 cm"], ["-25 cm", "25 cm"]]
PENTAGON = [["0.3 m", "0 m"], ["0.0927051 m", "0.285317 m"], ["-0.242705 m", "0.176336 m"]]
PENTAGON += [["-0.242705 m", "-0.176336 m"], ["0.0927051 m", "-0.285317 m"]]


def blade(points):
    """A body that turns about the origin, and a ball that falls."""
    return {
        "fsm_dyn": 1,
        "name": "blade",
        "coordinates": {"q": "rad", "x": "m", "y": "m"},
        "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {
            "bar": {"frame": "B", "center": "O", "mass": "1 kg", "inertia": {"zz": "0.02 kg*m^2"}},
            "ball": {"center": "P", "mass": "0.1 kg"},
        },
        "shapes": {
            "blade": {"polygon": {"frame": "B", "points": points}},
            "disc": {"circle": {"center": "P", "radius": "5 cm"}},
        },
        "contacts": {"hit": {"between": ["disc", "blade"], "restitution": 0.5}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y", "on": "ball"}],
    }


STARTS = [  # they fired again where they were zero by rounding, as a Zeno sequence and then as chattering
    (SQUARE, (2.8566375198046776, -12.120539386259825, 0.4531732442412417, 1.2267206709041436)),
    (PENTAGON, (0.6107639386052957, -9.645509151350538, 0.5319315723288698, 0.9066729811800057)),
    (PENTAGON, (3.017204687809965, 8.09105861710102, -0.43801748324832174, 1.5693335834356925)),
    (BAR, (0.6428132857325095, 14.258714141723528, -0.01538594289430184, 1.9382797115757966)),
    (BAR, (-0.606076481471737, 165.00982546101915, -0.1464322448261709, 1.0761927166551937)),
]


@pytest.mark.parametrize(("points", "start"), STARTS)
def test_a_ball_that_passes_the_line_of_a_face_flies_on(points, start):
    initial = dict(zip(("q", "q_dot", "x", "y"), start, strict=True))
    run = fsm_dyn.Simulator(fsm_dyn.compile(blade(points))).run(1.0, initial=initial)
    assert run.outcome.code == Status.DONE
    assert all("Zeno" not in item.cause for item in run.transitions)
    assert run.energy.relative_residual < 1e-10
    times = [item.time for item in run.transitions]
    if points is BAR and initial["q_dot"] > 100.0:
        assert times == [pytest.approx(0.357025, abs=1e-6)]


def test_no_run_of_many_ends_for_it():
    rng = np.random.default_rng(5)
    for points in (BAR, SQUARE, PENTAGON):
        simulator = fsm_dyn.Simulator(fsm_dyn.compile(blade(points)))
        for _ in range(140):
            q_dot = rng.choice([-1, 1]) * 10 ** rng.uniform(0.0, 2.7)
            initial = {
                "q": rng.uniform(-3.2, 3.2),
                "q_dot": q_dot,
                "x": rng.uniform(-0.7, 0.7),
                "y": rng.uniform(0.7, 2),
            }
            run = simulator.run(1.0, initial=initial, on_failure="return")
            assert run.outcome.code == Status.DONE, (points, initial)
