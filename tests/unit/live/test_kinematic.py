"""Kinematic ports: a device prescribes a coordinate and feels the multiplier."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.live.device_map import DeviceMap, Limits, add_couplers, coupled_ports
from fsm_dyn.live.driver_protocol import Sample
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import input_tables, replay
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.live.tick_process import columns_of
from fsm_dyn.runtime.abi import TickCounts, TickNumbers

SPRING = {
    "fsm_dyn": 1,
    "name": "spring",
    "parameters": {"m": "2 kg", "k": "50 N/m", "d": "3 N*s/m", "f": "15 Hz"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"b": {"center": "P", "mass": "m"}},
    "loads": [{"law": "-k*x - d*rate(x)", "coordinate": "x"}],
    "ports": {"crank": {"coordinate": "x", "kinematic": "f"}},
    "initial": {"x": "0.02 m"},
}

# a block on a table moved by the device; it slips if the table accelerates faster than mu g
TABLE = {
    "fsm_dyn": 1,
    "name": "table",
    "parameters": {"m": "1 kg", "M": "3 kg", "F": "2 N"},
    "coordinates": {"w": "m", "x": "m"},
    "points": {"T": {"from": "O", "at": "w*N.x"}, "P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"table": {"center": "T", "mass": "M"}, "block": {"center": "P", "mass": "m"}},
    "contacts": {"rub": {"dry_friction": {"speed": "rate(x) - rate(w)", "static": "F", "kinetic": "0.8*F"}}},
    "ports": {"crank": {"coordinate": "w", "kinematic": "15 Hz"}},
}


class Crank:
    """A stepper with a device moving by ``place(t)``; keeps times, inputs, motion, forces and transitions."""

    def __init__(self, model, **options):
        options.setdefault("limits", Limits(force=1e6, slew=1e9, ramp=0.0, velocity=1e3))
        self.graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(model)))
        self.stepper = LiveStepper(self.graph, 1, **options)
        tick = self.stepper.tick_data
        tick.counts[TickCounts.ADVANCING] = tick.counts[TickCounts.ANCHOR] = 1
        tick.numbers[TickNumbers.ENGAGEMENT_TARGET] = 1.0
        self.t, self.w, self.motion = [0.0], [tick.now[0]], [tick.motion.copy()]
        self.forces, self.x, self.changes = [], [], []

    def run(self, place, rate, ticks):
        tick = self.stepper.tick_data
        for _ in range(ticks):
            t = self.stepper.t + self.stepper.period
            tick.device[:] = [place(t), rate(t)]
            assert self.stepper.tick() == 5
            self.t.append(self.stepper.t)
            self.w.append(tick.now[0])
            self.motion.append(tick.motion.copy())
            self.forces.append(tick.force[0])
            self.x.append(self.stepper.loop.state.x.copy())
            self.changes += [tuple(record[:3]) for record in self.stepper.records()]
        return self

    def tables(self):
        motion = np.array(self.motion)
        return {"crank_1_device": {"sampled": np.column_stack([self.t, self.w, motion[:, 0], motion[:, 1]])}}


def test_the_multiplier_is_what_newton_and_hooke_say():
    """The device feels minus m a + d v + k x, with the filtered motion."""
    run = Crank(SPRING).run(lambda t: 0.1 * np.sin(7 * t), lambda t: 0.7 * np.cos(7 * t), 2000)
    (rate, second), x = np.array(run.motion[1:]).T, np.array(run.x)[:, 0]
    felt = -(2.0 * second + 3.0 * rate + 50.0 * x)
    np.testing.assert_allclose(run.forces[1:], felt[1:], atol=1e-9)  # with the first tick the device engages
    # the coordinate is the prescribed one: cubics are integrated exactly, rounding adds up
    np.testing.assert_allclose(x, 0.02 + np.array(run.w[1:]), atol=1e-12)
    np.testing.assert_allclose(np.array(run.x)[:, 1], rate, atol=1e-11)
    assert np.abs(run.forces).max() > 5.0


def test_the_motion_is_smooth_and_does_not_lag():
    """Value, rate and second rate fit from tick to tick; the filter's reponse is (3 g^2 s + g^3) / (s + g)^3."""
    run = Crank(SPRING).run(lambda t: 0.1 * np.sin(7 * t), lambda t: 0.7 * np.cos(7 * t), 4000)
    (rate, second), w, h = np.array(run.motion).T, np.array(run.w), 1e-3
    third = np.diff(second) / h
    np.testing.assert_allclose(np.diff(w), h * rate[:-1] + h**2 / 2 * second[:-1] + h**3 / 6 * third, atol=1e-15)
    np.testing.assert_allclose(np.diff(rate), h * second[:-1] + h**2 / 2 * third, atol=1e-13)
    g, s = 2 * np.pi * 15.0, 7j
    response = (3 * g**2 * s + g**3) / (s + g) ** 3
    t = np.array(run.t[2000:])
    wanted = 0.1 * np.abs(response) * np.sin(7 * t + np.angle(response))
    # anchored with the device elsewhere; the tick's delay is 7 rad/s times a millisecond
    np.testing.assert_allclose(w[2000:] - w[2000:].mean(), wanted - wanted.mean(), atol=0.012 * 0.1)


@pytest.mark.parametrize("bandwidth", [1.0, 15.0, 100.0, 477.0])
def test_the_filter_is_stable_up_to_its_limit(bandwidth):
    """A jumping device: the coordinate comes to rest at the new place, for any bandwidth."""
    run = Crank({**SPRING, "parameters": {**SPRING["parameters"], "f": f"{bandwidth} Hz"}})
    run.run(lambda t: 0.1 * (t > 0.005), lambda t: 0.0, 5000)
    assert run.w[-1] == pytest.approx(0.1, abs=1e-9)
    assert max(run.w) < 0.14


def test_offline_with_the_same_motion_it_is_the_same_run():
    """A transition while a prescribed coordinate moves: slip and stick of a block on a table shaken by the device."""
    run = Crank(TABLE).run(lambda t: 0.02 * np.sin(12 * t), lambda t: 0.24 * np.cos(12 * t), 2000)
    names = run.stepper.executable.chart_names
    assert len(run.changes) >= 4
    trajectory = fsm_dyn.simulate(run.graph, until=run.t[-1], method="rk4", step=1e-3, inputs=run.tables())
    live = [(t, names[int(a)], names[int(b)]) for t, a, b in run.changes]
    assert [(x.time, x.source, x.target) for x in trajectory.transitions] == live
    assert np.array_equal(trajectory.rows.x[-1], run.stepper.loop.state.x)
    forces = trajectory.multipliers["crank_1_constraint"][:, 0]
    assert -forces[-1] == pytest.approx(run.forces[-1], rel=1e-12)


def test_the_block_slips_where_the_table_accelerates_too_fast():
    """Friction of 2 N bears 2 m/s^2 of 1 kg; the second rate is straight between ticks, so the instant is known."""
    run = Crank(TABLE).run(lambda t: 0.02 * np.sin(12 * t), lambda t: 0.24 * np.cos(12 * t), 1000)
    names = run.stepper.executable.chart_names
    time, source, target = run.changes[0]
    assert (names[int(source)], names[int(target)]) == ("stick", "slide") or "slide" in names[int(target)]
    second, t = np.array(run.motion)[:, 1], np.array(run.t)
    k = int(np.argmax(np.abs(second) > 2.0))
    part = (2.0 - abs(second[k - 1])) / (abs(second[k]) - abs(second[k - 1]))
    assert time == pytest.approx(t[k - 1] + part * 1e-3, abs=1e-9)
    # from then on the device feels the table and 0.8 of the friction
    after = int(np.argmax(t > time + 2e-3)) - 1
    assert abs(run.forces[after]) == pytest.approx(abs(3.0 * second[after + 1]) + 1.6, abs=1e-9)


def test_recorded_replayed_and_offline_it_is_the_same_run(tmp_path):
    """In its processes, with a hand shaking the table: replayed bit for bit, and offline from the recording."""
    path = tmp_path / "table.mcap"
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(TABLE)))
    settings = LiveSettings(
        paced=False, realtime_privileges=False, watchdog_timeout=60.0, ticks=2000, limits=Limits(ramp=0.05)
    )
    hand = {"motion": [[0, 0.04, 2.0, 0.0]], "stop": "watchdog"}
    with LiveSession.start(graph, "scripted", hand, settings=settings, record=path) as session:
        assert session.wait(60.0), session.log()
    recorded = read_recording(path)
    assert recorded.columns.smooth == ("crank_1_device",)
    assert len(recorded.records) >= 4
    again, stepper = replay(recorded)
    assert np.array_equal(again, recorded.records, equal_nan=True)
    state = recorded.rows[-1, recorded.columns.places["state"]]
    assert np.array_equal(stepper.loop.state.x, state)
    until, tables = float(recorded.rows[-1, 1]), input_tables(recorded)
    trajectory = fsm_dyn.simulate(graph, until=until, method="rk4", step=1e-3, inputs=tables)
    assert [x.time for x in trajectory.transitions] == recorded.records[:, 1].tolist()
    assert np.array_equal(trajectory.rows.x[-1], state)
    ports = recorded.rows[:, recorded.columns.places["ports"]]
    shown = recorded.rows[:, recorded.columns.places["force"]][:, 0]
    free = np.abs(ports[:, 0]) < 7.0  # within the limits of force and slew
    assert np.allclose(shown[200:-100][free[200:-100]], -ports[200:-100, 0][free[200:-100]], atol=1e-12)


def test_let_go_the_coordinate_comes_to_rest_and_nothing_is_felt():
    run = Crank(SPRING, limits=Limits(force=1e6, slew=1e9, ramp=0.05, velocity=1e3))
    run.run(lambda t: 0.3 * t, lambda t: 0.3, 500)
    tick = run.stepper.tick_data
    assert tick.numbers[TickNumbers.ENGAGEMENT] == 1.0
    assert tick.motion[0] == pytest.approx(0.3, rel=1e-3)
    tick.numbers[TickNumbers.ENGAGEMENT_TARGET] = 0.0
    run.run(lambda t: 0.3 * t, lambda t: 0.3, 1000)
    assert run.forces[-1] == 0.0
    assert abs(tick.motion[0]) < 1e-9
    # 9 N fade over 50 ticks, and the spring and the braked mass are felt no more
    assert np.abs(np.diff(run.forces[499:])).max() < 0.25


def test_slow_motion_and_scale_keep_the_power():
    """Half the speed: model time runs half as fast, the coordinate moves as the hand does, force times scale."""
    run = Crank(SPRING, mapping=DeviceMap(scale=2.0))
    run.stepper.set_speed(0.5)
    run.run(lambda t: 0.1 * t, lambda t: 0.05, 3000)  # of model time: the hand moves at 0.05 m/s
    tick = run.stepper.tick_data
    assert run.stepper.t == pytest.approx(1.5)
    assert tick.motion[0] == pytest.approx(0.2, rel=1e-6)
    assert tick.force[0] == pytest.approx(-2.0 * tick.ports[0], rel=1e-12)


def test_columns_and_names():
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load(SPRING)))
    (port,) = coupled_ports(graph.automaton.mechanism)
    assert port.inputs == ("crank_1_device",)
    columns = columns_of(LiveStepper(graph, 1))
    assert columns.smooth == ("crank_1_device",)
    assert columns.names[-2:] == ("input_crank_1_device_rate", "input_crank_1_device_rate2")
    assert len(columns.names) == columns.width


def test_it_begins_at_rest_where_the_model_begins():
    run = Crank({**SPRING, "initial": {"x": "0.02 m + f*0.001 m/1 Hz", "x_dot": "0.4 m/s"}})
    assert run.stepper.loop.state.x.tolist() == pytest.approx([0.035, 0.0])


def test_an_offset_puts_the_device_where_it_says():
    """Counted from the coordinate's zero, not from its initial value."""
    run = Crank(SPRING, mapping=DeviceMap(offset=(0.05,), scale=2.0))
    run.run(lambda t: 0.01, lambda t: 0.0, 2000)
    assert run.x[-1][0] == pytest.approx(0.07, abs=1e-12)


def test_a_device_at_a_kinematic_port_is_anchored(bench):
    run = bench(fsm_dyn.compile(add_couplers(fsm_dyn.load(SPRING))), motion=(), limits=Limits(ramp=0.02))
    for i in range(300):
        run.one(Sample(0.0, i, [0.5], [0.0]))
    assert run.grips[-1] == 1.0
    assert run.stepper.loop.state.x[0] == pytest.approx(0.02, abs=1e-12)
    assert run.forces[-1][0] == pytest.approx(-50.0 * 0.02, rel=1e-9)


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ({"coordinate": "x", "kinematic": "3 m"}, "bandwidth"),
        ({"point": "P", "body": "b", "axes": ["N.x"], "kinematic": "3 Hz"}, "kinematic"),
    ],
)
def test_what_a_kinematic_port_cannot_be(port, words):
    with pytest.raises(ModelError, match=words):
        fsm_dyn.load({**SPRING, "ports": {"crank": port}})


@pytest.mark.parametrize("bandwidth", ["-1 Hz", "0 Hz", "600 Hz"])
def test_a_bandwidth_beyond_the_period(bandwidth):
    graph = fsm_dyn.compile(
        add_couplers(fsm_dyn.load({**SPRING, "parameters": {**SPRING["parameters"], "f": bandwidth}}))
    )
    with pytest.raises(InputError, match="477"):
        LiveStepper(graph, 1)
