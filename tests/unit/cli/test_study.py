"""Commands about many runs: `study`, `fit`."""

import json
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import fsm_dyn
from tests.pictures import is_drawn
from tests.unit.cli.conftest import call


def test_a_fit_finds_parameters_and_refuses_what_does_not_fit(tmp_path):
    run = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), until=0.4, parameters={"g": 9.9}, rtol=1e-10)
    rows = [f"{row.t[0]},{1e3 * row['y'][0]}" for row in (run.sample([t]) for t in (0.1, 0.2, 0.25, 0.3, 0.4))]
    measured = tmp_path / "measured.csv"
    measured.write_text("\n".join(["t,y [mm]", *rows]))
    found = json.loads(call("fit", "bouncing_ball", measured, "--vary", "g,m", "--json").stdout)
    assert found["values"]["g"] == pytest.approx(9.9, rel=1e-7)
    assert [list(direction) for direction in found["undetermined"]] == [["m"]]
    shown = call("fit", "bouncing_ball", measured, "--vary", "g,m")
    assert "the data cannot determine: m +1.00" in shown.stdout
    assert call("fit", "bouncing_ball", measured, "--vary", "G").exit_code == 2
    assert call("fit", "bouncing_ball", tmp_path / "none.csv", "--vary", "g").exit_code == 2
    measured.write_text("t,y [kg]\n0.1,1")
    refused = call("fit", "bouncing_ball", measured, "--vary", "g")
    assert refused.exit_code == 2
    assert f"{measured}:1:1: the unit of 'y' does not fit" in refused.stderr


def test_a_study_varies_initial_values_inputs_scenarios_and_variants(tmp_path):
    shared = ("study", "push_button", "--until", "0.3", "--quantity", "y", "--jobs", "1")
    vary = ("--vary", "variant=[none, motion]", "--vary", "initial.y=-0.02..0mm:2")
    result = call(*shared, *vary, "--json", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [(row["variant"], row["initial.y"]) for row in rows] == [
        ("none", -2e-5), ("none", 0.0), ("motion", -2e-5), ("motion", 0.0)
    ]  # fmt: skip
    assert is_drawn(tmp_path / "push_button_study.png")
    shown = call(*shared, "--vary", "scenario=[slowly, tap]", "--vary", "amplitude.finger=[0.5, 1]")
    assert len(shown.stdout.partition("\n\n")[0].splitlines()) == 6
    assert "runs  modes" in shown.stdout
    rows = json.loads(call(*shared, "--vary", "input.finger=[1 N, [[0 s, 0 N], [1 s, 3 N]]]", "--json").stdout)["rows"]
    run = fsm_dyn.simulate(fsm_dyn.compile("push_button"), 0.3, inputs={"finger": [(0.0, 0.0), (1.0, 3.0)]})
    assert rows[1]["y_final"] == run["y"][-1]
    for wrong, message in (
        ("variant=[moton]", "did you mean 'motion'"), ("y=0..1mm:2", "initial.y"), ("m=[]", "no values"),
        ("m=[1 g", "brackets"), ("m", "NAME=FIRST..LAST:COUNT"),
    ):  # fmt: skip
        refused = call(*shared, "--vary", wrong)
        assert (refused.exit_code, message in refused.stderr) == (2, True), refused.stderr


DROP = (
    "fsm_dyn: 1\nname: drop\nparameters: {h: 1 m +- 5 cm}\ncoordinates: {y: m}\npoints: {C: {from: O, at: y*N.y}}\n"
    "bodies: {ball: {center: C, mass: 1 kg}}\nloads: [{gravity: -9.81 m/s^2*N.y}]\ninitial: {y: h}\n"
    "requirements: {high: eventually y < 0.2 m before 0.41 s}\n"
)


def test_a_grid_prints_verdicts_and_sequences_and_writes_their_figures(tmp_path):
    (tmp_path / "drop.yaml").write_text(DROP)
    grid = ("study", tmp_path / "drop.yaml", "--vary", "h=[1 m, 1.04 m]", "--vary", "initial.y_dot=-0.1..0m/s:2",
            "--until", "0.5", "--jobs", "1")  # fmt: skip
    shown = call(*grid, "--out", tmp_path)
    assert shown.exit_code == 0, shown.output
    rows, counts, sequences, *_ = shown.stdout.split("\n\n")
    assert [line.split()[-2] for line in rows.splitlines()[2:]] == ["met", "met", "met", "violated"]
    assert counts.splitlines()[2].split() == ["high", "3", "1", "0"]
    assert sequences.splitlines()[2].split() == ["4", "3", "met,", "1", "violated", "motion"]
    assert "violated nearest to the nominal values: run 3, h = 1.04, initial.y_dot = 0" in shown.stdout
    written = ("drop_study.csv", "drop_study.png", "drop_shares.svg", "drop_map.png")
    assert all((tmp_path / name).stat().st_size > 100 and str(tmp_path / name) in shown.stdout for name in written)
    assert call(*grid, "--sample", "grid").stdout == shown.stdout.partition("wrote")[0]
    data = json.loads(call(*grid, "--json").stdout)
    assert data["requirements"] == {"high": {"met": 3, "violated": 1}, "all": {"met": 3, "violated": 1}}
    assert data["sequences"] == [{"modes": ["motion"], "verdicts": {"met": 3, "violated": 1}}]
    for option in (("--runs", "8"), ("--seed", "0")):
        assert "no effect on a grid" in call(*grid, *option).stderr


def test_a_full_disk_stops_a_study_and_the_same_command_continues(tmp_path):
    """No file may grow beyond 25 kB: first the ledger, then the table of a study whose ledger is complete."""
    (tmp_path / "drop.yaml").write_text(DROP)
    command = [sys.executable, "-m", "fsm_dyn", "study", "drop.yaml", "--sample", "sobol", "--runs", "512"]
    command += ["--until", "0.5", "--jobs", "1"]

    def run(*options, limit=resource.RLIM_INFINITY):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        done = subprocess.run(
            [*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=120, preexec_fn=limited
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def stored():
        with closing(sqlite3.connect(tmp_path / "drop.sqlite")) as file:
            return file.execute("SELECT count(*) FROM runs").fetchone()[0]

    whole = run()
    assert whole[0] == 0, whole
    code, out, message = run("--ledger", "drop.sqlite", limit=25_000)
    assert (code, out) == (1, "")
    assert "failed: the ledger 'drop.sqlite' cannot be used" in message
    assert "make room, or choose another file; what was stored stays, and the same command continues" in message
    assert 0 < stored() < 512
    assert run("--ledger", "drop.sqlite")[:2] == whole[:2]
    code, out, message = run("--ledger", "drop.sqlite", "--out", "out", limit=25_000)
    assert (code, out) == (1, "")
    assert "drop_sample.csv" in message
    assert "File too large" in message
    assert stored() == 512
    assert [path.name for path in (tmp_path / "out").iterdir()] == []  # no half of a file
    code, out, _ = run("--ledger", "drop.sqlite", "--out", "out")
    assert code == 0
    assert out.startswith(whole[1])
    assert len((tmp_path / "out" / "drop_sample.csv").read_text().splitlines()) == 513


def test_a_sample_of_tolerances_gives_the_yield(tmp_path):
    (tmp_path / "drop.yaml").write_text(DROP)
    sample = ("study", tmp_path / "drop.yaml", "--sample", "lhs", "--runs", "32", "--until", "0.5", "--jobs", "1")
    result = call(*sample, "--json", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    # it falls 0.8245 m in 0.41 s: parts below 1.0245 m meet it, 74.5 % of the range, 23 or 24 of 32 strata
    assert data["yield"]["high"]["met"] in (23, 24)
    assert data["sensitivity"] == {"high": {"h": pytest.approx(-1.0)}}
    assert len((tmp_path / "out" / "drop_sample.csv").read_text().splitlines()) == 33
    ledger = ("--ledger", tmp_path / "drop.sqlite")
    assert call(*sample, *ledger).stdout == call(*sample, *ledger).stdout
    assert "ledger of another study" in call(*sample, *ledger, "--seed", "1").stderr
    shown = call(*sample)
    assert "95 % interval" in shown.stdout
    assert "violated nearest to the nominal values" in shown.stdout
    assert call("study", tmp_path / "drop.yaml").exit_code == 2
    assert call("study", tmp_path / "drop.yaml", "--sample", "sobol", "--runs", "30").exit_code == 2
