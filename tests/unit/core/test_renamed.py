"""Older names of the public interface and of options: each works and names the new one, once."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.analysis.limit_cycle import LimitCycle
from fsm_dyn.analysis.study import study
from fsm_dyn.analysis.study_results import Study, StudyRun
from fsm_dyn.analysis.verification import Verification
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.cli.app import app
from fsm_dyn.cli.older_options import OPTIONS, renamed_arguments
from fsm_dyn.core.renamed import RenamedAttribute, RenamedWarning, renamed_keywords
from fsm_dyn.run.energy import EnergyBalance
from fsm_dyn.run.explanation import ContactReport, Explanation, GuardReport
from fsm_dyn.run.simulator import Simulator
from fsm_dyn.run.tolerances import Tolerances
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition

ATTRIBUTES = [
    (LimitCycle, "multipliers", "floquet_multipliers"),
    (ModeGraph, "pruned", "infeasible"),
    (ModeGraph, "dead_ends", "terminal_modes"),
    (Trajectory, "describe_end", "describe_outcome"),
    (EnergyBalance, "closure", "relative_residual"),
    (EnergyBalance, "throughput", "exchanged"),
    (Transition, "why", "selection"),
    (Transition, "guard", "guard_value"),
    (Transition, "candidates", "consistent_count"),
    (Explanation, "led_here", "preceding"),
    (Explanation, "coming", "next_transition"),
    (GuardReport, "announces", "event"),
    (GuardReport, "what", "guard"),
    (GuardReport, "zero_in", "time_to_zero"),
    (ContactReport, "shared", "indeterminate"),
    (Verification, "good", "passed"),
    (Study, "quantities", "outputs"),
    (StudyRun, "last", "final"),
    (Tolerances, "given", "specified_entries"),
]
KEYWORDS = [
    (fsm_dyn.simulate, "drive", "scenario"),
    (Simulator.run, "drive", "scenario"),
    (study, "drive", "scenario"),
    (study, "quantities", "outputs"),
    (fsm_dyn.limit_cycle, "modulo", "advancing"),
    (fsm_dyn.limit_cycle, "relabel", "symmetry"),
    (fsm_dyn.limit_cycle, "longest", "max_return_time"),
]


@pytest.mark.parametrize(("owner", "old", "new"), ATTRIBUTES)
def test_attribute(owner: type, old: str, new: str) -> None:
    descriptor = vars(owner)[old]
    assert isinstance(descriptor, RenamedAttribute)
    assert new in dir(owner) or new in owner.__dataclass_fields__  # type: ignore[attr-defined]
    with pytest.warns(RenamedWarning, match=f"'{old}' is called '{new}' now") as caught:
        assert descriptor.__get__(SimpleNamespace(**{new: 3}), owner) == 3
    assert len(caught) == 1


@pytest.mark.parametrize(("function", "old", "new"), KEYWORDS)
def test_keyword(function: Any, old: str, new: str) -> None:
    with pytest.raises(TypeError, match=f"'{new}' or, its older name, '{old}', not both"):
        function(None, **{old: 1, new: 2})


def test_keyword_is_passed_on() -> None:
    @renamed_keywords(old="new")
    def function(*, new: int = 0) -> int:
        return new

    with pytest.warns(RenamedWarning, match="'old' is called 'new' now") as caught:
        assert function(old=5) == 5
    assert caught[0].filename == __file__
    assert function(new=6) == 6


@pytest.mark.parametrize(
    ("module", "old", "new"), [(fsm_dyn, "settle", fsm_dyn.static_equilibrium), (plot, "ending", plot.outcome)]
)
def test_name_in_module(module: Any, old: str, new: Any) -> None:
    with pytest.warns(RenamedWarning, match=f"'{old}' is called"):
        assert getattr(module, old) is new
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize(
    ("command", "old", "new"), [(c, *pair) for c, names in OPTIONS.items() for pair in names.items()]
)
def test_option(command: str, old: str, new: str) -> None:
    assert renamed_arguments(command, [old, "m"]) == ([new, "m"], [(old, new)])
    assert renamed_arguments(command, ["--", old]) == (["--", old], [])
    parts, new_parts = old.split("="), new.split("=")
    assert renamed_arguments(command, ["m", *parts])[0] == ["m", *new_parts]
    text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    options = set(re.findall(r"--[\w-]+", text))
    assert new_parts[0] in options
    assert old == "--record" or parts[0] in {*options, *OPTIONS[command]}
    assert len(parts) == 2 or parts[0] not in options


def test_line_on_stderr_and_the_same_result(tmp_path: Any) -> None:
    def run(*options: str) -> Any:
        return CliRunner().invoke(app, ["run", "bouncing_ball", "--until", "0.1", *options, "--out", str(tmp_path)])

    old, new = run("--record", "--strategy=graph"), run("--save-run", "--strategy", "compiled")
    assert old.exit_code == new.exit_code == 0
    assert old.stdout == new.stdout
    assert new.stderr == ""
    assert old.stderr == "--record is called --save-run now\n--strategy=graph is called --strategy=compiled now\n"


def test_option_that_became_a_command() -> None:
    arguments = ["virtual_wall", "--damping", "3"]
    old = CliRunner().invoke(app, ["device", arguments[0], "--analyse", *arguments[1:]])
    assert old.stdout == CliRunner().invoke(app, ["passivity", *arguments]).stdout != ""
    assert "device --analyse is called passivity now\n" in old.stderr


def test_older_key_of_a_model_is_one_line(tmp_path: Any) -> None:
    path = tmp_path / "m.yaml"
    path.write_text("fsm_dyn: 1\nbodies: {b: {center: P, mass: 1 kg}}\npoints: {P: {from: O, at: x*N.x}}\n"
                    "coordinates: {x: m}\non_several: stop\n")  # fmt: skip
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 0
    assert result.stderr == f"{path}:5:1: key 'on_several' is called 'on_nonunique' now\n"
