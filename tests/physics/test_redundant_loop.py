"""A parallelogram with a third, parallel bar: one row too many for the motion, forces that cannot be known."""

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from mechanisms.chain import chain

PARALLELOGRAM = {
    "fsm_dyn": 1,
    "name": "three_bars",
    "parameters": {"l": 0.4, "g": 9.81},
    "points": {
        "D": {"from": "O", "at": "0.5*N.x"},
        "E": {"from": "O", "at": "1*N.x"},
        "P": {"from": "O", "at": "-l*left.y"},
        "middle_of_plate": {"from": "P", "at": "0.5*plate.x"},
        "end_of_plate": {"from": "P", "at": "1*plate.x"},
        "Q": {"from": "D", "at": "-l*middle.y"},
        "R": {"from": "E", "at": "-l*right.y"},
    },
    "joints": {
        "one": {"revolute": {"child": "left", "at": "O", "axis": "N.z"}},
        "two": {"revolute": {"child": "middle", "at": "D", "axis": "N.z"}},
        "three": {"revolute": {"child": "right", "at": "E", "axis": "N.z"}},
        "hold": {"revolute": {"parent": "left", "child": "plate", "at": "P", "axis": "left.z"}},
        "loop": {"revolute": {"parent": "plate", "child": "right", "at": ["end_of_plate", "R"], "axis": "N.z"}},
        "extra": {"revolute": {"parent": "plate", "child": "middle", "at": ["middle_of_plate", "Q"], "axis": "N.z"}},
    },
    "bodies": {
        "a": {"frame": "left", "center": "P", "mass": 0.1, "inertia": {"zz": 0.01}},
        "b": {"frame": "middle", "center": "Q", "mass": 0.1, "inertia": {"zz": 0.01}},
        "c": {"frame": "right", "center": "R", "mass": 0.1, "inertia": {"zz": 0.01}},
        "load": {"frame": "plate", "center": "middle_of_plate", "mass": 2, "inertia": {"zz": 0.1}},
    },
    "loads": [{"gravity": "-g*N.y"}],
    "initial": {"one": 0.5, "guess": {"two": 0.5, "three": 0.5, "hold": -0.5}},
}


def test_a_redundant_loop_runs_as_a_pendulum():
    """All bars turn alike, so that the plate moves in a circle without turning: (m l² + 3 J) q'' = -m g l sin q."""
    graph = fsm_dyn.compile(PARALLELOGRAM)
    (mode,) = graph.modes.values()
    assert mode.degrees_of_freedom == 1
    assert len(mode.redundant_rows) >= 1
    assert {name.split("_")[0] for name in mode.redundant_rows} <= {"loop", "extra"}
    q = np.array([0.5, 0.5, 0.5, -0.5])
    _, u_dot = mode.derivatives(0.0, q, np.zeros(4))
    length, g = 0.4, 9.81
    wanted = -(2.3 * g * length * np.sin(0.5)) / (2.3 * length**2 + 0.03)
    np.testing.assert_allclose(u_dot, [wanted, wanted, wanted, -wanted], rtol=1e-10)
    run = fsm_dyn.simulate(graph, 1.0, rtol=1e-10, atol=1e-12)
    assert run.outcome.name == "done"
    assert run.energy.relative_residual < 1e-8
    np.testing.assert_allclose(run.q[:, 1:3], run.q[:, :1] * [1.0, 1.0], atol=1e-8)


def test_check_names_the_forces_that_are_not_determined(tmp_path):

    path = tmp_path / "three_bars.yaml"
    path.write_text(yaml.safe_dump(PARALLELOGRAM, sort_keys=False), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 0
    line = next(line for line in result.stdout.split("\n") if "indeterminate multipliers" in line)
    assert "none" not in line
    assert "motion: " in result.stdout


def test_a_loop_that_cannot_close_says_which_row_and_what_comes_nearest():
    long = {**PARALLELOGRAM, "points": {**PARALLELOGRAM["points"], "R": {"from": "E", "at": "-9*right.y"}}}
    with pytest.raises(fsm_dyn.ModelError) as caught:
        fsm_dyn.compile(long)
    message = str(caught.value)
    assert "cannot be assembled: 'loop_" in message or "cannot be assembled: 'extra_" in message
    assert "what comes nearest" in message
    assert "the lengths do not fit" in message


@pytest.mark.parametrize(
    ("change", "where", "says"),
    [
        ({"parent": "gone", "axis": "gone.z"}, "joints.two", "there is no frame"),
        ({"child": "gone", "at": ["P", "Q"]}, "joints.two", "which nothing makes"),
    ],
)
def test_a_joint_to_a_missing_frame_names_joint_and_frame(change, where, says):
    joints = dict(PARALLELOGRAM["joints"])
    joints["two"] = {"revolute": {**joints["two"]["revolute"], **change}}
    with pytest.raises(fsm_dyn.ModelError) as caught:
        fsm_dyn.load({**PARALLELOGRAM, "joints": joints})
    message = str(caught.value)
    assert where in message
    assert says in message
    assert "gone" in message
    assert "allowed: N, left" in message


def test_a_long_chain_whose_last_link_has_no_mass_names_its_speed():
    model = chain(9)
    model["bodies"]["rod9"] |= {"mass": "0 kg", "inertia": {"zz": "0 kg*m^2"}}
    with pytest.raises(fsm_dyn.ModelError, match="mass matrix singular along q9_dot"):
        fsm_dyn.compile(model)


def test_speeds_without_inertia_are_named():
    light = {**PARALLELOGRAM, "bodies": {"a": PARALLELOGRAM["bodies"]["a"]}, "initial": {}}
    light["joints"] = {k: v for k, v in PARALLELOGRAM["joints"].items() if k in ("one", "two")}
    light["points"] = {k: v for k, v in PARALLELOGRAM["points"].items() if k in ("D", "P", "Q")}
    with pytest.raises(fsm_dyn.ModelError, match="two_dot"):
        fsm_dyn.compile(light)
