"""Mistakes of a first model and a first command: each named where it is, with a remedy, and without a traceback."""

import os

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.cli.run import describe
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.models import find
from fsm_dyn.run.outcomes import OUTCOMES
from fsm_dyn.runtime.abi import Status

SLIDER = """\
fsm_dyn: 1
name: slider
parameters: {m: 1 kg, k: 2 N}
coordinates: {x: m}
points:
  P: {from: O, at: x*N.x}
bodies:
  block: {center: P, mass: m}
contacts:
  stop: {gap: x}
loads:
  - {force: k*N.x, at: P}
initial: {x: 1 m}
"""


def call(*arguments):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def changed(before, after):
    assert before in SLIDER
    return SLIDER.replace(before, after)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("k: 2 N}", "floor: 2 N}", ["3:23", "'floor' is reserved", "a function of the language"]),
        ("mass: m", 'mass: "m', ["8:28", "the quote that opens here does not close"]),
        ("mass: m", "mass: 0 kg", ["8:28", "no mass of block"]),
        ("x*N.x}", "30 deg*N.x}", ["6:20", "is an angle where a length is expected", "allowed: m"]),
        ("x: 1 m}", "x: 30 deg}", ["13:14", "is an angle where a length is expected", "allowed: m"]),
        ("x*N.x}", "(30 + x)*N.x}", ["6:20", "units do not match", "give the number the unit m"]),
        ("m: 1 kg", "m: 1 deg", ["8:28", "the mass of 'block' has no unit", "line 3: give it the unit kg there"]),
        ("{gap: x}", "{gap: x*(1 m)/(x - 1 m)}", ["10:3", "'stop' is not finite where the motion begins"]),
        (
            "{gap: x}",
            "{gap: x, restitution: 1 m/(x - 1 m)}",
            ["10:3", "'stop' is not finite where the motion begins"],
        ),
        (
            "contacts:",
            "constraints:\n  slow: {velocity: rate(x)/(x - 1 m)}\ncontacts:",
            ["10:3", "'slow' is not finite where the motion begins"],
        ),
        (
            "initial: {x: 1 m}",
            "modes: {shut: {stop: closed}}\ninitial:\n  mode: shut\n  x: 1 m",
            ["16:6", "'stop' is not satisfied with x = 1", "leave out x, or begin in another mode"],
        ),
        (
            "initial: {x: 1 m}",
            "modes: {shut: {stop: closed}}\ninitial:\n  mode: shut\n  x_dot: 1 m/s",
            ["16:10", "contradict 'stop'", "leave out x_dot"],
        ),
    ],
)
def test_a_model_is_refused_where_it_is_wrong(tmp_path, before, after, words):
    path = tmp_path / "slider.yaml"
    path.write_text(changed(before, after))
    result = call("run", path)
    assert result.exit_code == 2
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--set", "m=0", "no mass of block"),
        ("--set", "m=1 rad", "is an angle where a mass is expected"),
        ("--initial", "x=1 rad", "is an angle where a length is expected"),
        ("--initial", "x=1 kg", "has the wrong unit"),
    ],
)
def test_an_option_is_refused_before_anything_runs(tmp_path, option, value, words):
    path = tmp_path / "slider.yaml"
    path.write_text(SLIDER)
    result = call("run", path, option, value)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert "remedy: " in result.stderr or "allowed: " in result.stderr


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("{force: k*N.x, at: P}", "{force: k*(1 m)/(x - 1 m)*N.x, at: P}", "load force_P (FILE:12:6)"),
        ("{force: k*N.x, at: P}", "{name: pull, law: k*(1 m)/(x - 1 m), coordinate: x}", "load pull (FILE:12:18)"),
        ("{force: k*N.x, at: P}", "{damper: {coordinate: x, damping: 1 N*s/(x - 1 m)}}", "load damper_x (FILE:12:6)"),
        ("x*N.x}", "sqrt(x - 2 m)*(1 m^0.5)*N.x}", "point P (FILE:6:3)"),
        (
            "{force: k*N.x, at: P}",
            "{force: F*N.x, at: P}\ninputs: {F: N}\nschedule: {F: 1 N*s/t}",
            "input F (FILE:13:10)",
        ),
    ],
)
def test_what_divides_by_zero_is_named_with_its_place(tmp_path, before, after, named):
    path = tmp_path / "slider.yaml"
    path.write_text(changed(before, after))
    result = call("run", path)
    assert result.exit_code == 1
    assert f"{named.replace('FILE', str(path))}: not finite" in result.stderr


@pytest.mark.parametrize("method", ["dopri5", "radau"])
def test_a_load_that_divides_by_zero_in_contact_is_no_jam(tmp_path, method):
    """The contact's state cannot be decided there, but not because of the contact laws."""
    path = tmp_path / "slider.yaml"
    path.write_text(changed("{force: k*N.x, at: P}\ninitial: {x: 1 m}", "{force: k*(1 m)/x*N.x, at: P}"))
    result = call("run", path, "--method", method)
    assert result.exit_code == 1
    assert "non-finite state" in result.stderr
    assert f"load force_P ({path}:12:6): not finite" in result.stderr
    result = call("live", path, "--duration", "0.02", "--no-pacing")
    assert result.exit_code == 1
    assert "non-finite state" in result.stderr


def test_a_study_names_it_too(tmp_path):
    """Runs of a study are carried out in one call of the runtime, which decides the outcome."""
    path = tmp_path / "slider.yaml"
    path.write_text(changed("{force: k*N.x, at: P}\ninitial: {x: 1 m}", "{force: k*(1 m)/x*N.x, at: P}"))
    found = fsm_dyn.study(fsm_dyn.compile(path), {"k": [1.0, 2.0]}, until=0.1, jobs=1)
    assert [row.outcome for row in found.rows] == ["non-finite state"] * 2


def test_a_redundant_constraint_is_a_warning(tmp_path):
    path = tmp_path / "slider.yaml"
    path.write_text(
        changed("{x: m}", "{x: m, y: m}")
        .replace("at: x*N.x", "at: x*N.x + y*N.y")
        .replace("contacts:", "constraints:\n  line: {position: x - y}\n  twice: {position: 2*x - 2*y}\ncontacts:")
    )
    assert "warning: constraint 'twice' depends linearly on others" in call("compile", path).stderr
    assert call("compile", "shopping_cart").stderr == ""


def test_large_parameters_do_not_warn(recwarn):
    run = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), 0.5, parameters={"m": 1e99})
    assert len(run.transitions) == 1
    assert recwarn.list == []


def test_a_study_of_what_stays_zero_does_not_warn(tmp_path, recwarn):
    result = call("study", "bouncing_ball", "--vary", "e=0.5..0.8:2", "--quantity", "v", "--until", "0", "--jobs", 1,
                  "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0
    assert [str(one.message) for one in recwarn.list if "ylim" in str(one.message)] == []


def test_what_is_not_compiled_is_no_traceback():
    for wrong in ("bouncing_ball", find("bouncing_ball"), fsm_dyn.load("bouncing_ball")):
        with pytest.raises(InputError, match=r"fsm_dyn\.compile"):
            fsm_dyn.simulate(wrong)


@pytest.mark.parametrize("kind", ["initial", "parameters", "inputs"])
@pytest.mark.parametrize("value", [None, 1j, object(), {"a": 1}, float("nan"), ""])
def test_a_value_that_is_no_number_is_named(kind, value):
    name = {"initial": "q1", "parameters": "mB", "inputs": "push"}[kind]
    with pytest.raises(InputError, match=name):
        fsm_dyn.simulate(fsm_dyn.compile("shopping_cart"), 0.01, **{kind: {name: value}})


def test_an_unknown_model_names_the_nearest():
    result = call("run", "bouncy_ball")
    assert result.exit_code == 2
    assert "did you mean 'bouncing_ball'" in result.stderr
    assert len(result.stderr) < 250


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "bouncing_ball", "--out"],
        ["run", "bouncing_ball", "--html"],
        ["graph", "bouncing_ball", "--out"],
        ["compile", "bouncing_ball", "--save"],
        ["study", "bouncing_ball", "--vary", "e=0.5..0.8:2", "--out"],
        ["schema", "--out"],
        ["demo", "--out"],
        ["view", "bouncing_ball", "--record"],
    ],
)
def test_output_that_cannot_be_written_is_found_before_anything_runs(tmp_path, arguments, monkeypatch):
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file" / "x.svg", tmp_path / "file" / "deep" / "x.svg"):
        result = call(*arguments, target)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"'{tmp_path / 'file'}' is a file" in result.stderr
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    result = call(*arguments, tmp_path / "x.svg")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no permission" in result.stderr


def test_missing_folders_are_made(tmp_path):
    assert call("graph", "bouncing_ball", "--out", tmp_path / "new" / "deep" / "x.svg").exit_code == 0
    assert (tmp_path / "new" / "deep" / "x.svg").is_file()


def test_the_last_visit_is_always_listed():
    run = fsm_dyn.simulate(fsm_dyn.compile("stick_slip_belt"))
    listed = describe(run, 5).splitlines()
    times = [line.split()[0] for line in listed if line[:1].isdigit() and "transitions" not in line]
    assert times == [row[0] for row in (*run.visits.cells()[:4], run.visits.cells()[-1])]
    assert any(line.endswith(f"{len(run.visits) - 5} more: --all") for line in listed)
    assert f"{len(run.transitions)} transitions; --all lists them" in listed
    whole = [line for line in describe(run, None).splitlines() if line[:1].isdigit()]
    assert [line.split()[0] for line in whole] == [f"{x.time:.6f}" for x in run.transitions]
    assert "more" not in describe(run, len(run.visits))
    assert listed[-1].startswith("energy-balance residual: ")


def test_rounding_is_no_energy():
    """Impacts without loss: differences of two energies that agree to 14 digits are printed as 0."""
    run = fsm_dyn.simulate(fsm_dyn.compile("newtons_cradle"))
    impacts = [item for item in run.transitions if item.impulse]
    assert impacts
    assert max(abs(item.energy_lost) for item in impacts) < 1e-14 * max(abs(item.energy_before) for item in impacts)
    assert "e-" not in describe(run, None).partition("energy-balance")[0]
    assert np.isfinite(run.energy.relative_residual)


def test_a_jam_names_the_key_that_resolves_it():
    assert "on_inconsistent: impact" in OUTCOMES[Status.INCONSISTENT].remedy


def test_a_live_run_of_a_model_without_a_port_gets_one():
    """As the page does."""
    result = call("live", "bouncing_ball", "--duration", "0.02", "--no-pacing", "--json")
    assert result.exit_code == 0
    assert '"ticks": 20' in result.stdout


def test_explain_takes_a_scenario():
    result = call("explain", "toggle_switch", "--scenario", "nope")
    assert result.exit_code == 2
    assert "has no scenario 'nope'" in result.stderr


@pytest.mark.parametrize("short", ["-o", "--out"])
def test_out_has_a_short_form(tmp_path, short):
    result = call("graph", "bouncing_ball", short, tmp_path / "x.dot")
    assert (result.exit_code, (tmp_path / "x.dot").is_file()) == (0, True)


def test_a_mass_of_zero_names_the_speed_that_nothing_resists(tmp_path):
    """The start is on the stop, which nothing presses it against: the first mode has a solution, the next has none."""
    text = changed("m: 1 kg", "m: 0 kg").replace("loads:\n  - {force: k*N.x, at: P}\ninitial: {x: 1 m}\n", "")
    assert "loads" not in text
    (tmp_path / "slider.yaml").write_text(text, encoding="utf-8")
    result = call("run", tmp_path / "slider.yaml")
    assert result.exit_code == 1
    assert "no body that moves with x_dot has mass or inertia" in result.stderr
    assert f"no mass of block ({tmp_path / 'slider.yaml'}:8:28)" in result.stderr
    assert "remedy: give the bodies that move with it a mass" in result.stderr
    assert "division by zero" not in result.stderr


def test_a_study_prints_units_and_no_rounding_remains():
    result = call("study", "latch", "--vary", "e=0.1..0.3:2", "--until", "1")
    rows, _, sequences = result.stdout.partition("\n\n")
    headings, _, *lines = rows.splitlines()
    assert sequences.split()[:2] == ["runs", "modes"]
    assert headings.split("  ")[0] == "e"
    assert "x_max, m" in headings
    assert "end, s" in headings
    assert len(lines) == 2
    for line in lines:
        numbers = [float(cell) for cell in line.split()[-6:]]
        assert numbers[0] == numbers[3] == numbers[5] == 0.0  # the seat stops the door; the bolt is back at its stop
        assert numbers[1] > 0.06
