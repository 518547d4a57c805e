"""Constraints that lose rank for an instant: driven linkages, ends with names, several loops, what users are told."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from tests.reference.linkages import four_bar, parallelogram_angle, parallelograms


def slider_crank(drive=None, guess=0.7, rod=2.0, **more):
    """A crank of 1 m, a rod and a slider on one line, perhaps driven along it."""
    model = {
        "fsm_dyn": 1,
        "name": "slider_crank",
        "parameters": {"a": 1.0, "b": rod, "m": 1.0},
        "coordinates": ["q1", "q2", "x"],
        "frames": {"A": {"parent": "N", "rotate": {"z": "q1"}}, "B": {"parent": "N", "rotate": {"z": "q2"}}},
        "points": {
            "P": {"from": "O", "at": "a*A.x"},
            "Q": {"from": "P", "at": "b*B.x"},
            "S": {"from": "O", "at": "x*N.x"},
            "Ao": {"from": "O", "at": "0.5*a*A.x"},
            "Bo": {"from": "P", "at": "0.5*b*B.x"},
        },
        "bodies": {
            "crank": {"frame": "A", "center": "Ao", "mass": "m", "inertia": {"zz": "m*a**2/12"}},
            "rod": {"frame": "B", "center": "Bo", "mass": "m", "inertia": {"zz": "m*b**2/12"}},
            "slider": {"center": "S", "mass": "m"},
        },
        "constraints": {
            "pin_x": {"position": "dot(pos(Q, S), N.x)"},
            "pin_y": {"position": "dot(pos(Q, S), N.y)"},
        },
        "initial": {"guess": {"q1": guess, "q2": -0.1, "x": 2.9}},
    }
    if drive:
        model["constraints"]["drive"] = {"position": f"x - ({drive})"}
    return {**model, **more}


def failed(model, until, **settings):
    with pytest.raises(fsm_dyn.RunError) as caught:
        fsm_dyn.simulate(fsm_dyn.compile(model), until, **settings)
    return caught.value


# -- driven linkages: the crank follows from the slider alone ----------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"rtol": 1e-6}, {"rtol": 1e-11, "atol": 1e-13}])
def test_a_slider_pulled_to_its_limit_and_back_turns_the_crank_over(settings):
    """Outstretched for an instant at rest at t = 1: the crank goes on to the other side (cosine rule at x = 2.6)."""
    run = fsm_dyn.simulate(fsm_dyn.compile(slider_crank("3 - 0.4*(t - 1)**2")), 2.0, **settings)
    assert np.arccos((1 + 2.6**2 - 4) / (2 * 2.6)) == pytest.approx(0.762549975768, abs=1e-12)
    assert run.q[-1, 0] == pytest.approx(-0.762549975768, abs=3e-12)  # the digits, and the residual of the rows
    (passed,) = run.change_points
    assert passed.time == pytest.approx(1.0, abs=1e-3)
    assert set(passed.rows) == {"pin_x", "drive"}


def test_a_slider_drives_its_crank_through_five_dead_points():
    run = fsm_dyn.simulate(fsm_dyn.compile(slider_crank("cos(1 + 3*t) + sqrt(4 - sin(1 + 3*t)**2)", guess=1.0)), 5.0)
    np.testing.assert_allclose(run.q[:, 0], 1 + 3 * run.t, rtol=0, atol=1e-11)
    dead = (np.pi * np.arange(1, 6) - 1) / 3
    np.testing.assert_allclose([item.time for item in run.change_points], dead, rtol=0, atol=1e-4)


# -- where a motion cannot go on ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rtol", np.linspace(0.5e-9, 2e-9, 10))
def test_a_loop_driven_beyond_its_length_is_stretched_to_its_limit(rtol):
    error = failed(slider_crank("2.2 + 0.4*t", guess=1.2), 3.0, rtol=rtol)
    run = error.trajectory
    assert run.outcome.name == "stretched to its limit"
    assert run.t[-1] == pytest.approx(2.0, abs=1e-10)
    assert run.q[-1, 2] == pytest.approx(3.0, abs=1e-9)
    text = str(error)
    assert "pin_x" in text
    assert "drive" in text
    limit = float(text.split("the limit is at t = ")[1].split(" s")[0])
    assert limit == pytest.approx(2.0, abs=1e-8)


def test_at_rest_in_a_change_point_the_motion_is_undetermined():
    model = parallelograms(2, r0=0.0, r0_dot=0.0, r1=0.0, r2=0.0)
    error = failed(model, 1.0)
    assert error.trajectory.outcome.name == "undetermined at a change point"
    assert error.trajectory.t[-1] == 0.0
    assert "loop1_x" in str(error)


def test_speeds_of_two_branches_at_once_are_refused():
    """The first rocker turns and the others do not: the joining bar would have to turn, and its loop to open."""
    error = failed(parallelograms(2, r0=0.0, r0_dot=-3.0, r1=0.0, r2=0.0, r1_dot=0.0, r2_dot=0.0), 1.0)
    assert error.trajectory.outcome.name == "speeds belong to no branch"


def test_a_mechanism_at_rest_with_redundant_rows_is_no_change_point():
    twice = four_bar(g=9.81, q1_dot=0.0, c=1.6)
    twice["constraints"] |= {f"again_{axis}": twice["constraints"][f"loop_{axis}"] for axis in "xy"}
    run = fsm_dyn.simulate(fsm_dyn.compile(twice), 0.5, rtol=1e-10)
    once = fsm_dyn.simulate(fsm_dyn.compile(four_bar(g=9.81, q1_dot=0.0, c=1.6)), 0.5, rtol=1e-10)
    np.testing.assert_allclose(run.q[-1], once.q[-1], rtol=0, atol=1e-8)


# -- several loops, several freedoms, contacts -------------------------------------------------------------------


def two_four_bars(apart):
    """Two linkages that line up, the crank of the second one turned by a fixed angle against that of the first."""
    one = four_bar()
    two = {
        "E": {"parent": "A", "rotate": {"z": "apart"}},
        "F": {"parent": "N", "rotate": {"z": "q4"}},
        "H": {"parent": "N", "rotate": {"z": "q5"}},
    }
    one["coordinates"] += ["q4", "q5"]
    one["parameters"] |= {"apart": apart}
    one["frames"] |= two
    one["points"] |= {
        "P2": {"from": "O", "at": "a*E.x"},
        "Q2": {"from": "P2", "at": "b*F.x"},
        "R2": {"from": "D", "at": "c*H.x"},
        "Fo": {"from": "P2", "at": "0.5*b*F.x"},
        "Ho": {"from": "D", "at": "0.5*c*H.x"},
    }
    one["bodies"] |= {
        "coupler2": {"frame": "F", "center": "Fo", "mass": "m", "inertia": {"zz": "m*b**2/12"}},
        "rocker2": {"frame": "H", "center": "Ho", "mass": "m", "inertia": {"zz": "m*c**2/12"}},
    }
    one["constraints"] |= {
        "second_x": {"position": "dot(pos(Q2, R2), N.x)"},
        "second_y": {"position": "dot(pos(Q2, R2), N.y)"},
    }
    one["initial"]["guess"] |= {"q4": 0.3, "q5": 1.2}
    return one


@pytest.mark.parametrize("apart", [1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 5e-2])
def test_change_points_close_to_each_other_are_passed(apart):
    run = fsm_dyn.simulate(fsm_dyn.compile(two_four_bars(apart)), 3.0, rtol=1e-8, atol=1e-10)
    assert run.energy.relative_residual <= 5e-7
    assert sum(item.lost for item in run.change_points) >= 2
    if apart == 1e-9:  # both linkages are one
        np.testing.assert_allclose(run.q[:, 3:], run.q[:, 1:3], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("rtol", "closure"), [(1e-7, 1e-4), (1e-9, 1e-6), (1e-11, 1e-8)])
def test_a_loop_with_a_second_freedom_keeps_its_energy(rtol, closure):
    """The ground bar turns too: where the loop lines up it lies in any direction."""
    model = four_bar()
    model["coordinates"] = ["q0", *model["coordinates"]]
    model["frames"] |= {"G": {"parent": "N", "rotate": {"z": "q0"}}}
    model["points"]["D"] = {"from": "O", "at": "d*G.x"}
    model["points"]["Do"] = {"from": "O", "at": "0.5*d*G.x"}
    model["bodies"]["ground"] = {"frame": "G", "center": "Do", "mass": "m", "inertia": {"zz": "m*d**2/12"}}
    model["initial"] |= {"q0": 0.0, "q0_dot": 0.5}
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 4.0, rtol=rtol, atol=1e-2 * rtol)
    assert run.outcome.name == "done"
    assert run.energy.relative_residual <= closure


def test_a_stop_touched_at_the_dead_point_is_a_graze():
    """The slider reaches x = 3 with no speed, at the one place where the crank cannot be stopped by it."""
    model = slider_crank(
        guess=0.7,
        contacts={"stop": {"gap": "3 - x", "restitution": 0.0}},
        initial={"q1": 0.7, "q1_dot": -2.0, "guess": {"q2": -0.3, "x": 2.7}},
    )
    free = fsm_dyn.simulate(fsm_dyn.compile(slider_crank(initial=model["initial"])), 1.0)
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 1.0)
    assert free.q[-1, 0] < 0.0
    assert run.transitions == ()
    np.testing.assert_allclose(run.q[-1], free.q[-1], rtol=0, atol=1e-6)


# -- what users are told -----------------------------------------------------------------------------------------


def test_passages_are_reported_saved_and_explained(tmp_path):
    graph = fsm_dyn.compile(four_bar())
    run = fsm_dyn.simulate(graph, 2.0)
    (passed,) = run.change_points
    assert passed.rows == ("loop_x",) or passed.rows == ("loop_y",)
    assert (passed.rank, passed.lost, passed.mode) == (2, 1, run.modes[0])
    assert "branch kept (velocity continuous)" in str(passed)
    assert run.transitions == ()
    again = fsm_dyn.open_run(str(run.save(tmp_path / "run.json")))
    assert again.change_points == run.change_points
    assert run.explain(1.9).passed == run.change_points
    assert run.explain(1.0).passed == ()
    assert run.explain(1.9).as_data()["passed"][0]["lost"] == 1


def test_the_command_line_prints_passages(tmp_path):
    import yaml

    path = tmp_path / "linkage.yaml"
    path.write_text(yaml.safe_dump(four_bar(), sort_keys=False), encoding="utf-8")
    for command in (["run", str(path), "--until", "2"], ["explain", str(path), "--until", "2"]):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.output
        assert "passes a change point: rank 2 to 1" in result.output


def test_runs_through_change_points_repeat_to_the_last_bit():
    graph = fsm_dyn.compile(parallelograms(2))
    one, two = (fsm_dyn.simulate(graph, 1.5, rtol=1e-10) for _ in range(2))
    assert one.rows.x.tobytes() == two.rows.x.tobytes()
    np.testing.assert_allclose(one.q[-1, 0], parallelogram_angle(2, [1.5])[-1], atol=1e-7)


def test_a_stop_touched_at_rest_at_the_dead_point_does_not_hold_the_crank():
    """There the loop leaves nothing of the stop's row; the crank turns under its torque as it would without a stop.

    The angle follows from the energy: T(q1) q1'^2 / 2 = q1 with the inertia seen by the crank, by quadrature in a
    linkage of its own formulas.
    """
    torque = [{"torque": "1.0*N.z", "on": "crank"}]
    start = {"q1": 0.0, "guess": {"q2": 0.0, "x": 3.0}}
    model = slider_crank(contacts={"stop": {"gap": "3 - x", "restitution": 0.0}}, loads=torque, initial=start)
    run = fsm_dyn.simulate(fsm_dyn.compile(model), 1.0)
    free = fsm_dyn.simulate(fsm_dyn.compile(slider_crank(loads=torque, initial=start)), 1.0)
    q1, rate = crank_under_torque(1.0)
    assert run.outcome.name == "done"
    assert run.q[-1, 0] == pytest.approx(q1, abs=1e-6)
    assert run.u[-1, 0] == pytest.approx(rate, abs=1e-6)
    np.testing.assert_allclose(run.q[-1], free.q[-1], rtol=0, atol=1e-6)


def crank_under_torque(until, a=1.0, b=2.0, m=1.0):
    """Angle and rate of the crank of :func:`slider_crank` under a torque of 1 N m, from rest outstretched."""

    def inertia(q):
        sine = -a * np.sin(q) / b
        cosine = np.sqrt(1.0 - sine**2)
        turn = -a * np.cos(q) / (b * cosine)  # of the rod, per turn of the crank
        centre = np.array([-a * np.sin(q) - 0.5 * b * sine * turn, a * np.cos(q) + 0.5 * b * cosine * turn])
        slider = -a * np.sin(q) - b * sine * turn
        return m * a**2 / 3 + m * b**2 / 12 * turn**2 + m * centre @ centre + m * slider**2

    def rates(_, y):
        h = 1e-6
        slope = (inertia(y[0] + h) - inertia(y[0] - h)) / (2 * h)
        return [y[1], (1.0 - 0.5 * slope * y[1] ** 2) / inertia(y[0])]

    found = solve_ivp(rates, (0.0, until), [0.0, 0.0], "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    return float(found[0]), float(found[1])
