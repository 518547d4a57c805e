"""Kinks of held rows and gaps are crossed with the impulse of the row beyond, by momentum and closed forms."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.runtime.abi import Status

METHODS = {"dopri5": {}, "rk4": {"step": 0.01}, "radau": {}, "bdf": {}}


def model(**sections):
    return {
        "fsm_dyn": 1,
        "name": "kinked",
        "parameters": {"m": "0.05 kg", "J": "2e-5 kg*m^2", "r": "5 mm", "L": "0.8 m", "a": 0.5, "p": "0.1 m"},
        "coordinates": {"y": "m", "x": "m", "q": "rad"},
        "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"bob": {"frame": "B", "center": "P", "mass": "m", "inertia": {"zz": "J"}}},
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
    } | sections


YOYO = {
    "constraints": {"string": {"position": "-y - L + r*abs(q)"}, "guide": {"position": "x"}},
    "initial": {"q": "-160 rad"},
}


def jumps(run):
    """Return times, and speeds before and after, of all jumps of the speeds."""
    at = np.flatnonzero(np.diff(run.t) == 0.0)
    return [(run.t[k], run.u[k], run.u[k + 1]) for k in at if np.any(run.u[k] != run.u[k + 1])]


@pytest.mark.parametrize("strategy", ["compiled", "online"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inertia", [2e-5, 1e-7])
def test_a_yoyo_turns_at_the_end_of_its_string_with_an_impulse(method, inertia, strategy):
    """M (u+ - u-) = A^T Λ along the row beyond gives w+ = w- (k - 1)/(k + 1), k = J/(m r²)."""
    graph = fsm_dyn.compile(model(**YOYO))
    until, parameters, k = (3.0 if inertia > 1e-6 else 1.0), {"J": inertia}, inertia / (0.05 * 0.005**2)
    run = fsm_dyn.simulate(
        graph, until, parameters=parameters, method=method, strategy=strategy, on_failure="return", **METHODS[method]
    )
    acceleration = 9.81 / (1.0 + k)
    speed = np.sqrt(2.0 * acceleration * 0.8) / 0.005
    time, before, after = jumps(run)[0]
    assert time == pytest.approx(np.sqrt(2.0 * 0.8 / acceleration), rel=1e-7)
    spin = list(run.model.layout.u).index("q_dot")
    assert before[spin] == pytest.approx(speed, rel=1e-7)
    assert after[spin] == pytest.approx(speed * (k - 1.0) / (k + 1.0), rel=1e-7)  # 169.6 and -649.5
    assert run.transitions[0].cause == "string passes the kink of abs(q)"
    assert run.energy.relative_residual < 1e-7
    # with little inertia the string's impulses reverse it again and again: no motion of the model continues it
    assert run.outcome.code == (Status.DONE if k > 1.0 else Status.CHATTERING)


def test_a_resumed_run_has_the_bits_of_one_run():
    graph = fsm_dyn.compile(model(**YOYO))
    whole = fsm_dyn.simulate(graph, 3.0)
    for first in (1.0, 1.6651369126346802, 2.0):
        run = fsm_dyn.simulate(graph, first).resume(3.0)
        assert run.record.x.tobytes() == whole.record.x.tobytes()


def rolling(gap, **entries):
    return model(
        contacts={"face": {"gap": gap, **entries}}, parameters={"m": "1 kg", "J": "1 kg*m^2", "a": 0.5, "p": "0.1 m"}
    )


def speeds(run, u):
    names = list(run.model.layout.u)
    return u[names.index("x_dot")], u[names.index("y_dot")]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_valley_bounces(method, restitution):
    """The other face is struck: its normal speed is reversed by the restitution, the tangential one is kept."""
    graph = fsm_dyn.compile(rolling("y - a*abs(x)", restitution=restitution))
    run = fsm_dyn.simulate(graph, 0.6, initial={"x": -0.5, "y": 0.25}, method=method, **METHODS[method])
    _, before, after = jumps(run)[0]
    before, after = np.array(speeds(run, before)), np.array(speeds(run, after))
    normal, tangent = np.array([-0.5, 1.0]) / np.sqrt(1.25), np.array([1.0, 0.5]) / np.sqrt(1.25)
    assert before[0] == pytest.approx(np.sqrt(2 * 9.81 * 0.25 * 0.8), rel=1e-7)
    assert after @ normal == pytest.approx(-restitution * (before @ normal), abs=1e-9)
    assert after @ tangent == pytest.approx(before @ tangent, rel=1e-9)


def test_a_ridge_is_left_and_a_tooth_drops_the_pawl():
    ridge = fsm_dyn.simulate(
        fsm_dyn.compile(rolling("y + a*abs(x)")), 0.5, initial={"x": -0.5, "y": -0.25, "x_dot": 2.5, "y_dot": 1.25}
    )
    assert ridge.transitions[0].target == "all_free"
    assert ridge.transitions[0].cause == "face passes the kink of abs(x); face opens"
    graph = fsm_dyn.compile(rolling("y - 0.2*mod(x, p)"))
    tooth = fsm_dyn.simulate(graph, 0.3, initial={"x": 0.05, "y": 0.01, "x_dot": 1.0, "y_dot": 0.2})
    drop, landing = tooth.transitions[0], tooth.transitions[1]
    assert drop.cause == "face passes the kink of mod(x, p); face opens"
    assert drop.energy_after == drop.energy_before
    assert landing.time > drop.time
    back = fsm_dyn.simulate(
        graph, 1.0, initial={"x": 0.05, "y": 0.01, "x_dot": -1.0, "y_dot": -0.2}, on_failure="return"
    )
    assert back.outcome.name == "penetration during the run"  # a wall that the gap does not describe


def test_a_ledge_ends_where_its_condition_does():
    graph = fsm_dyn.compile(rolling("y - where(x < 0.2 m, 0.1 m, 0 m)"))
    run = fsm_dyn.simulate(graph, 1.0, initial={"y": 0.1, "x_dot": 1.0})
    assert [item.time for item in run.transitions] == pytest.approx([0.2, 0.2 + np.sqrt(0.2 / 9.81)], abs=1e-9)


def test_a_rest_in_a_kink_is_named():
    graph = fsm_dyn.compile(rolling("y - a*abs(x)"))
    run = fsm_dyn.simulate(graph, 1.0, on_failure="return")
    assert run.outcome.code == Status.CHATTERING
    assert len(run.transitions) < 200


def test_the_start_finds_the_side_on_which_it_is():
    text = "y - abs(abs(x) - 0.1 m) - max(0 m, x)"
    graph = fsm_dyn.compile(rolling(text))
    for x in (-0.3, -0.05, 0.05, 0.3):
        y = abs(abs(x) - 0.1) + max(0.0, x)
        start = fsm_dyn.simulate(graph, 1e-6, initial={"x": x, "y": y})
        assert start.labels[0] == "face_closed"
        assert {name: start[name][0] for name in ("face_kink", "face_kink2", "face_kink3")} == {
            "face_kink": np.sign(x), "face_kink2": np.sign(abs(x) - 0.1), "face_kink3": -np.sign(x)
        }  # fmt: skip


def test_what_cannot_be_carried_out_is_refused_by_name():
    with pytest.raises(ModelError, match="'face' has a kink where something other than an expression of coordinates"):
        fsm_dyn.load(rolling("y - abs(dot(pos(P), N.x))"))
    folded = model(points={"P": {"from": "O", "at": "abs(x)*N.x + y*N.y"}})
    with pytest.raises(ModelError, match="'P' has a kink, in which a body or a held row would jump"):
        fsm_dyn.load(folded)
    with pytest.raises(InputError, match="does not support kinks of held rows"):
        fsm_dyn.simulate(fsm_dyn.compile(model(**YOYO)), 0.1, method="moreau_jean", step=1e-3)
