"""The search for violations, against closed forms whose worst corner is known."""

import numpy as np
import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import InputError
from fsm_dyn.language.loader import load

# A mass without forces: its position after 1 s is x0 + v0, linear in both parameters.
TEXT = """
fsm_dyn: 1
name: slider
parameters:
  x0: 1 m +- 0.1 m
  v0: 2 m/s +- 0.3 m/s
coordinates: {x: m}
points:
  C: {from: O, at: x*N.x}
bodies:
  block: {center: C, mass: 1 kg}
initial: {x: x0, x_dot: v0}
requirements:
  far: final(x) > 2.7 m
  sound: final(x) > 2.5 m
  strict: final(x) > 4 m
  timely: eventually x > 4 m before 2 s
"""


@pytest.fixture(scope="module")
def slider():
    return fsm_dyn.compile(load("slider", text=TEXT))


def test_the_worst_corner_of_a_linear_margin(slider):
    """The least x0 + v0 is 0.9 + 1.7: a search of two parameters reaches this corner to 1e-3 m in 256 runs."""
    for seed in range(3):
        found = fsm_dyn.worst_case(slider, "far", seed=seed, until=1.0)
        assert found.runs <= 256
        assert found.margin == pytest.approx(2.6 - 2.7, abs=1e-3)
        assert found.values == pytest.approx({"x0": 0.9, "v0": 1.7}, abs=1e-3)
        assert (found.undecided, found.failed) == (0, 0)
        margins = [item.judgement.margin for item in found.violations]
        assert margins == sorted(margins)
        assert margins[0] == found.margin
        assert found.violations[0].run["x"][-1] == pytest.approx(2.7 + found.margin, abs=1e-12)
        assert str(found) == f"far: refuted in {len(margins)} of {found.runs} runs"


def test_what_is_not_violated_is_not_refuted(slider):
    found = fsm_dyn.worst_case(slider, "sound", runs=64, until=1.0)
    assert str(found) == f"sound: not refuted in {found.runs} runs"
    assert found.margin >= 0.1 - 1e-9


def test_equal_seeds_make_equal_runs(slider):
    first, again, other = (fsm_dyn.worst_case(slider, "far", runs=40, seed=s, until=1.0) for s in (4, 4, 5))
    points = [[item.values for item in found.violations] for found in (first, again, other)]
    assert points[0] == points[1] != points[2]


def test_a_range_replaces_the_tolerances(slider):
    found = fsm_dyn.worst_case(slider, "far", vary={"x0": ("50 cm", 2.0)}, runs=128, until=1.0)
    assert found.box == {"x0": (0.5, 2.0)}
    assert found.values["x0"] == pytest.approx(0.5, abs=1e-3)


def test_undecided_and_failed_runs_are_counted_apart(slider):
    late = fsm_dyn.worst_case(slider, "timely", runs=8, until=1.0)
    assert late.undecided == late.runs > 0  # none decided: there is no vicinity to search
    assert (late.failed, late.violations, late.values) == (0, (), {})
    assert np.isnan(late.margin)
    assert str(late) == f"timely: not refuted in {late.runs} runs ({late.runs} undecided, 0 failed)"
    short = fsm_dyn.worst_case(slider, "sound", runs=8, until=1.0, max_steps=1)
    assert (short.undecided, short.failed) == (0, short.runs)


@pytest.mark.parametrize(
    ("requirement", "options", "message"),
    [
        ("fra", {}, "did you mean 'far'"),
        ("far", {"vary": {}}, "there is nothing to vary"),
        ("far", {"vary": {"x0": (1.0, 1.0)}}, "there is nothing to vary"),
        ("far", {"vary": {"x0": (2.0, 1.0)}}, "the range of 'x0' is empty"),
        ("far", {"vary": {"x1": (0.0, 1.0)}}, "x1"),
        ("far", {"runs": 0}, "a search needs runs"),
    ],
)
def test_what_cannot_be_searched_is_refused(slider, requirement, options, message):
    with pytest.raises(InputError, match=message):
        fsm_dyn.worst_case(slider, requirement, until=1.0, **options)


def test_the_command_writes_each_violation_and_refuses_what_is_unknown(tmp_path):
    model = tmp_path / "slider.yaml"
    model.write_text(TEXT, encoding="utf-8")
    call = ["study", str(model), "--worst", "strict", "--until", "1", "--runs", "5", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 0, result.output
    assert "strict: refuted in 5 of 5 runs" in result.output
    files = sorted((tmp_path / "out").glob("*.run.json"))
    margins = [fsm_dyn.open_run(path).judge()["strict"].margin for path in files]
    assert len(margins) == 5
    assert margins == sorted(margins)
    call[3] = "unknown"
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 2
    assert "no requirement 'unknown'" in result.output


@pytest.mark.parametrize("option", [("--jobs", "2"), ("--quantity", "x"), ("--sample", "sobol")])
def test_options_of_other_studies_are_refused(option):
    result = CliRunner().invoke(app, ["study", "latch_door", "--worst", "latches", *option])
    assert result.exit_code == 2
    assert option[0] in result.output
