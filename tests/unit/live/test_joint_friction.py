"""A joint with friction in the live loop: a scripted hand turns its wheel; live, replayed and offline
it is the same run.
"""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.device_map import Limits, add_couplers
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line, replay
from fsm_dyn.live.session import LiveSession

WHEEL = {
    "fsm_dyn": 1,
    "name": "wheel_in_a_bearing",
    "joints": {
        "shaft": {
            "revolute": {
                "child": "W", "at": "O", "axis": "N.z",
                "radius": "20 mm", "friction": {"static": 0.4, "kinetic": 0.3},
            }
        }
    },
    "points": {
        "C": {"from": "W_origin", "at": "5 mm*W.x"},
        "H": {"from": "W_origin", "at": "0.1 m*W.y"},
    },
    "bodies": {"wheel": {"frame": "W", "center": "C", "mass": "2 kg", "inertia": {"zz": "4e-3 kg*m^2"}}},
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
    "ports": {"handle": {"point": "H", "body": "wheel", "axes": ["N.x"], "stiffness": "300 N/m", "damping": "2 N*s/m"}},
}  # fmt: skip
HAND = [[0, 0.02, 1.3, 0.0]]


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(add_couplers(fsm_dyn.load(WHEEL)))


def test_live_replayed_and_offline_it_is_the_same_run(graph, tmp_path):
    """In its processes: the wheel slips and sticks as the hand moves and turns."""
    path = tmp_path / "wheel.mcap"
    settings = LiveSettings(
        paced=False, realtime_privileges=False, watchdog_timeout=60.0, ticks=3000, limits=Limits(ramp=0.05)
    )
    hand = {"motion": HAND, "stop": "watchdog"}
    with LiveSession.start(graph, "scripted", hand, settings=settings, record=path) as session:
        assert session.wait(60.0), session.log()
    recorded = read_recording(path)
    again, stepper = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)
    state = recorded.rows[-1, recorded.columns.places["state"]]
    assert np.array_equal(stepper.loop.state.x, state)
    run = off_line(recorded)
    assert [x.time for x in run.transitions] == recorded.records[:, 1].tolist()
    assert np.array_equal(run.rows.x[-1], state)
    assert {x.target for x in run.transitions} == {"shaft_friction_stick", "shaft_friction_slide"}
    assert len(run.transitions) >= 10


def test_friction_in_the_loop_is_its_coefficient_times_the_reaction(graph, bench):
    """In every row of the offline run with the inputs of the ticks, by the forces across the axis."""
    live = bench(graph, motion=HAND, method="rk4").run(1500)
    run = fsm_dyn.simulate(graph, live.times[-1], method="rk4", step=1e-3, inputs=live.tables())
    assert [*run.q[-1], *run.u[-1]] == live.stepper.loop.state.x.tolist()
    across = np.hypot(run.multipliers["shaft_bearing_x"][:, 0], run.multipliers["shaft_bearing_y"][:, 0])
    ratio = np.abs(run.multipliers["shaft_friction"][:, 0]) / (0.02 * across)
    slides = np.array(run.labels) == "shaft_friction_slide"
    assert 10 < slides.sum() < len(slides) - 10
    np.testing.assert_allclose(ratio[slides], 0.3, rtol=1e-9)
    assert ratio[~slides].max() <= 0.4 * (1 + 1e-9)
