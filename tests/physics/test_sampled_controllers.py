"""Sampled controllers against recurrences written out by hand, with every method and strategy.

Between samples the force on a mass is constant, so that every method of order two and more is exact up to rounding:
some 1e-16 of numbers around 1, for which 1e-12 leaves room.
"""

import math

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.analysis import exploration
from fsm_dyn.analysis.sensitivities import sensitivities
from fsm_dyn.core.errors import InputError, ModelError
from tests.continued import rows_that_differ

EXACT = 1e-12
M, K, D, T, GOAL = 2.0, 400.0, 30.0, 0.01, 0.1
SERVO = {
    "fsm_dyn": 1,
    "name": "servo",
    "parameters": {"m": "2 kg", "k": "400 N/m", "d": "30 N*s/m", "T": "10 ms", "goal": "0.1 m"},
    "coordinates": {"x": "m"},
    "points": {"P": {"from": "O", "at": "x*N.x"}},
    "bodies": {"mass": {"center": "P", "mass": "m"}},
    "controllers": {
        "servo": {
            "period": "T",
            "inputs": {"e": "goal - x", "v": "rate(x)"},
            "outputs": {"push": {"unit": "N", "value": "k*e - d*v"}},
        }
    },
    "loads": [{"force": "push*N.x", "at": "P"}],
}
FIXED = {"rk4": 2e-3, "heun": 2e-3, "moreau_jean": 1e-3}
METHODS = ["dopri5", "rk4", "heun", "radau", "bdf", "moreau_jean"]


def with_controller(**keys):
    """Return the servo with other keys of its controller, or of the model under `model`."""
    model = keys.pop("model", {})
    return {**SERVO, **model, "controllers": {"servo": {**SERVO["controllers"]["servo"], **keys}}}


def recurrence(count, command, delay=0):
    """Return place, speed (SI) and force after each of `count` periods; `command`: the force from place and speed."""
    x = v = 0.0
    rows, waiting = [], [0.0] * delay
    for _ in range(count):
        waiting.append(command(x, v))
        force = waiting.pop(0)
        x, v = x + v * T + 0.5 * force / M * T**2, v + force / M * T
        rows.append((x, v, force))
    return np.array(rows)


def at_samples(run, names=("x", "x_dot", "push")):
    """Return the first row at each whole period, before the sample there."""
    first = [np.flatnonzero(np.abs(run.t - k * T) < 1e-9)[0] for k in range(1, round(run.t[-1] / T) + 1)]
    columns = dict(run.rows.columns())
    return np.array([columns[name] for name in names]).T[first]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_a_sampled_pd_on_one_mass(method, strategy):
    run = fsm_dyn.simulate(fsm_dyn.compile(SERVO), 0.5, method=method, step=FIXED.get(method), strategy=strategy)
    wanted = recurrence(50, lambda x, v: K * (GOAL - x) - D * v)
    assert at_samples(run) == pytest.approx(wanted, abs=EXACT)
    assert not run.transitions  # samples are no transitions
    assert run.rows.memory["servo.samples"][-1] == 50


@pytest.mark.parametrize("delay", [1, 3])
def test_outputs_wait_for_whole_samples(delay):
    run = fsm_dyn.simulate(fsm_dyn.compile(with_controller(delay=delay)), 0.3)
    wanted = recurrence(30, lambda x, v: K * (GOAL - x) - D * v, delay)
    assert at_samples(run) == pytest.approx(wanted, abs=EXACT)


def test_quantised_inputs_and_outputs():
    graph = fsm_dyn.compile(
        with_controller(
            inputs={"e": {"value": "goal - x", "quantum": "0.37 mm"}, "v": "rate(x)"},
            outputs={"push": {"unit": "N", "value": "k*e - d*v", "quantum": "0.3 N"}},
        )
    )

    def command(x, v):
        e = math.floor((GOAL - x) / 0.37e-3 + 0.5) * 0.37e-3
        return math.floor((K * e - D * v) / 0.3 + 0.5) * 0.3

    assert at_samples(fsm_dyn.simulate(graph, 0.3)) == pytest.approx(recurrence(30, command), abs=EXACT)


def test_memory_is_updated_at_once_from_the_values_before():
    """An integral and a difference; the output sees the values before, as `set` and `reset` do."""
    graph = fsm_dyn.compile(
        with_controller(
            inputs={"e": "goal - x"},
            memory={
                "total": {"unit": "m*s", "start": "1 mm*s", "update": "total + T*e"},
                "last": {"unit": "m", "start": "goal", "update": "e"},
            },
            outputs={"push": {"unit": "N", "value": "k*e + d*(e - last)/T + 300 N/(m*s)*total"}},
        )
    )
    kept = {"total": 1e-3, "last": GOAL}

    def command(x, v):
        e = GOAL - x
        force = K * e + D * (e - kept["last"]) / T + 300.0 * kept["total"]
        kept.update(total=kept["total"] + T * e, last=e)
        return force

    assert at_samples(fsm_dyn.simulate(graph, 0.3)) == pytest.approx(recurrence(30, command), abs=EXACT)


def test_two_controllers_see_what_the_other_gave_before():
    """The slow one sets the goal of the fast one: in a common instant the fast one still has the goal before."""
    outer = {"period": "5*T", "outputs": {"aim": {"unit": "m", "value": "goal*floor(t/(5*T) + 0.5)"}}}
    inner = {**SERVO["controllers"]["servo"], "inputs": {"e": "aim - x", "v": "rate(x)"}}
    for controllers in ({"outer": outer, "servo": inner}, {"servo": inner, "outer": outer}):
        run = fsm_dyn.simulate(fsm_dyn.compile({**SERVO, "controllers": controllers}), 0.3)
        number = iter(range(30))

        def command(x, v, number=number):
            return K * (GOAL * ((next(number) - 1) // 5 if x or v else 0.0) - x) - D * v

        rows = at_samples(run, ("push",))
        aims = [GOAL * max(0, (k - 1) // 5) for k in range(30)]
        goals = iter(aims)
        wanted = recurrence(30, lambda x, v, goals=goals: K * (next(goals) - x) - D * v)
        assert rows[:, 0] == pytest.approx(wanted[:, 2], abs=1e-11)  # of forces up to 100 N


def test_samples_whose_instants_differ_by_rounding_are_one_instant():
    """3 x 0.1 s is 0.30000000000000004 s: both controllers are sampled there together, and once."""
    model = {
        **SERVO,
        "controllers": {
            "fast": {"period": "0.1 s", "outputs": {"a": {"value": "a + 1"}}},
            "slow": {"period": "0.3 s", "outputs": {"b": {"value": "a"}}},
        },
        "loads": [],
    }
    assert 3 * 0.1 != 0.3
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 1.0)
    assert [run.rows.memory[name][-1] for name in ("fast.samples", "slow.samples", "a", "b")] == [10, 4, 10, 9]
    assert {t for t in run.t if 0.25 < t < 0.35} == {0.3, 3 * 0.1}


def test_a_sample_sees_the_state_after_an_event_in_the_same_instant():
    """A tap at a sample: the speed that is sampled is that after it."""
    tap = {"from": "*", "when": "t - 0.05 s", "impulse": [{"along": "1 N*s", "coordinate": "x"}]}
    graph = fsm_dyn.compile(with_controller(model={"loads": [], "transitions": [tap]}))
    run = fsm_dyn.simulate(graph, 0.1, method="rk4", step=T)
    v = run.rows.memory["v"]
    assert run.transitions[0].time == 0.05
    assert v[run.t > 0.05][0] == pytest.approx(0.5, abs=EXACT)


def test_a_jump_of_a_schedule_comes_before_the_sample():
    model = {"inputs": {"aim": "m"}, "schedule": {"aim": {"steps": [["0 s", "0 m"], ["50 ms", "0.1 m"]]}}}
    run = fsm_dyn.simulate(fsm_dyn.compile(with_controller(inputs={"e": "aim - x", "v": "rate(x)"}, model=model)), 0.2)
    goals = iter([0.0] * 5 + [GOAL] * 15)
    wanted = recurrence(20, lambda x, v: K * (next(goals) - x) - D * v)
    assert at_samples(run) == pytest.approx(wanted, abs=EXACT)


@pytest.mark.parametrize("strategy", ["compiled", "online"])
def test_contact_states_are_decided_again_at_a_sample(strategy):
    """A ball rests on a table until the sample in which a controller lifts it by more than its weight."""
    model = {
        "fsm_dyn": 1,
        "name": "magnet",
        "coordinates": {"y": "m"},
        "points": {"C": {"from": "O", "at": "y*N.y"}},
        "bodies": {"ball": {"center": "C", "mass": "1 kg"}},
        "controllers": {
            "off": {"period": "0.1 s", "outputs": {"lift": {"unit": "N", "value": "15 N*floor(t/0.3 s + 0.01)"}}}
        },
        "loads": [{"gravity": "-10 m/s^2*N.y"}, {"force": "lift*N.y", "at": "C"}],
        "contacts": {"table": {"gap": "y"}},
    }
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 0.5, strategy=strategy)
    (off,) = run.transitions
    assert (off.source, off.target) == ("table_closed", "all_free")
    assert off.time == 3 * 0.1
    assert off.cause == "sample of a controller; table opens"
    assert run.q[-1] == pytest.approx(0.5 * 5.0 * 0.2**2, abs=EXACT)


def test_a_condition_that_a_sample_makes_true_fires_in_that_instant():
    stop = {"from": "*", "when": "push < 20 N", "stop": True, "because": "it is near"}
    model = {"transitions": [stop]}
    run = fsm_dyn.simulate(fsm_dyn.compile(with_controller(model=model)), 0.5)
    wanted = recurrence(50, lambda x, v: K * (GOAL - x) - D * v)
    sample = int(np.flatnonzero(wanted[:, 2] < 20.0)[0])
    assert run.outcome.name == "stopped"
    assert run.t[-1] == sample * T
    assert [item.cause for item in run.transitions] == ["it is near"]


@pytest.mark.parametrize("method", ["dopri5", "rk4", "radau"])
def test_samples_in_one_instant_are_refused(method):
    """Such a run would not advance: its clock does not resolve the period."""
    graph = fsm_dyn.compile(with_controller())
    with pytest.raises(InputError, match="samples of controller 'servo' count as simultaneous"):
        fsm_dyn.simulate(graph, 0.3, method=method, step=FIXED.get(method), parameters={"T": 1e-30})


@pytest.mark.parametrize("method", ["dopri5", "rk4", "radau", "moreau_jean"])
def test_a_run_continues_between_and_at_samples(method):
    graph = fsm_dyn.compile(with_controller(delay=2))
    whole = fsm_dyn.simulate(graph, 0.3, method=method, step=FIXED.get(method))
    for pause in (0.1, 0.1037):
        run = fsm_dyn.simulate(graph, pause, method=method, step=FIXED.get(method)).resume(0.3)
        assert not rows_that_differ(whole, run)


def test_energy_of_a_sampled_force_is_its_work():
    """The balance holds across samples, where the force jumps: to 1e-11 J of 1 J."""
    run = fsm_dyn.simulate(fsm_dyn.compile(SERVO), 0.3)
    assert np.abs(run.energy.residual).max() < 1e-11


def test_moreau_jean_refuses_a_period_of_parts_of_steps():
    with pytest.raises(InputError, match="within steps of method 'moreau_jean'"):
        fsm_dyn.simulate(fsm_dyn.compile(SERVO), 0.1, method="moreau_jean", step=3e-3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"period": "0 s"}, "the period of controller 'servo' is not positive"),
        ({"period": "-1 ms"}, "the period of controller 'servo' is not positive"),
        ({"period": "1 m"}, "the period of controller 'servo'"),
        ({"period": "x"}, "x"),
        ({"delay": 0.5}, "a delay is a whole number of samples"),
        ({"delay": -1}, "a delay is a whole number of samples"),
        ({"delay": "1 ms"}, "a delay is a whole number of samples"),
        ({"inputs": {"e": "goal - z", "v": "rate(x)"}}, "'z'"),
        (
            {"inputs": {"e": {"value": "goal - x", "quantum": "0 m"}, "v": "rate(x)"}},
            "the quantum of 'e' is not positive",
        ),
        ({"inputs": {"e": {"value": "goal - x", "quantum": "1 N"}, "v": "rate(x)"}}, "the quantum of 'e'"),
        ({"inputs": {"x": "goal", "e": "goal - x", "v": "rate(x)"}}, "is already a coordinate"),
        ({"outputs": {"push": {"unit": "m", "value": "k*e - d*v"}}}, "'push' of controller 'servo'"),
        ({"outputs": {"push": {"unit": "N", "value": "k*e - d*v", "start": "1 m"}}}, "the start of 'push'"),
        ({"outputs": {}}, "has no output"),
        ({"outputs": {"push": {"unit": "kN", "value": "k*e - d*v"}}}, "must be in an SI unit"),
    ],
)
def test_what_is_refused(keys, message):
    with pytest.raises(ModelError, match=message):
        fsm_dyn.load(with_controller(**keys))


def test_outputs_are_no_part_of_the_geometry():
    with pytest.raises(ModelError, match="push"):
        fsm_dyn.load({**SERVO, "points": {"P": {"from": "O", "at": "x*N.x + push*1 m/N*N.y"}}})


def test_a_period_that_a_run_makes_negative_is_refused():
    with pytest.raises(InputError, match="the period of controller 'servo' is not positive"):
        fsm_dyn.simulate(fsm_dyn.compile(SERVO), 0.1, parameters={"T": -1.0})


def test_what_takes_motion_to_be_continuous_refuses_controllers():
    graph = fsm_dyn.compile(SERVO)
    for analysis in (
        lambda: sensitivities(graph, 0.1, by_initial=("x",)),
        lambda: fsm_dyn.limit_cycle(graph, "x rising"),
    ):
        with pytest.raises(InputError, match="does not take sampled controllers into account"):
            analysis()
    matrix = fsm_dyn.linearise(graph, graph.initial).A  # as if the force were a constant
    assert np.array_equal(matrix, [[0.0, 1.0], [0.0, 0.0]])


def test_a_component_brings_its_controller():
    use = {"left": {"model": SERVO}, "right": {"model": SERVO, "with": {"goal": "0.2 m"}}}
    pair = {"fsm_dyn": 1, "name": "pair", "bodies": {"rest": {"center": "O", "mass": "1 kg"}}, "use": use}
    run = fsm_dyn.simulate(fsm_dyn.compile(pair), 0.3)
    one = recurrence(30, lambda x, v: K * (GOAL - x) - D * v)
    two = recurrence(30, lambda x, v: K * (2.0 * GOAL - x) - D * v)
    assert at_samples(run, ("left_x", "left_push")) == pytest.approx(one[:, [0, 2]], abs=EXACT)
    assert at_samples(run, ("right_x", "right_push")) == pytest.approx(two[:, [0, 2]], abs=EXACT)


def test_the_same_by_calls():
    model = fsm_dyn.Model("servo")
    for name, value in SERVO["parameters"].items():
        model.parameter(name, value)
    model.coordinate("x", "m")
    model.point("P", from_="O", at="x*N.x")
    model.body("mass", center="P", mass="m")
    model.controller("servo", **SERVO["controllers"]["servo"])
    model.load(**SERVO["loads"][0])
    assert fsm_dyn.load(model).digest == fsm_dyn.load(SERVO).digest


def test_verification_takes_outputs_as_numbers():
    assert fsm_dyn.verify(SERVO).passed


def test_explored_runs_are_sampled_from_their_start(monkeypatch):
    """A state from the middle of a run begins a run at time 0: with its memory, and its first sample then."""
    starts = []

    def simulate(*args, initial, **keys):
        starts.append(initial)
        return fsm_dyn.simulate(*args, initial=initial, **keys)

    monkeypatch.setattr(exploration, "simulate", simulate)
    exploration.explore(fsm_dyn.compile(SERVO), samples=2, depth=1)
    assert any("push" in start for start in starts)
    assert not any(name in start for start in starts for name in ("servo.next", "servo.samples"))
