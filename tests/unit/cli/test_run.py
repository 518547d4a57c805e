"""`run` and what reads or shows its runs: `explain`, `demo`."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

import fsm_dyn
from fsm_dyn.cli.console import assignments
from fsm_dyn.cli.run import METHOD
from fsm_dyn.core.errors import InputError
from tests.unit.cli.conftest import call


def test_modes_are_listed_by_labels_or_by_names_in_full():
    run = ("run", "piano_action", "--until", "0.06")
    plain, full = call(*run, "--all").stdout, call(*run, "--full").stdout
    name = "rising+back_rail_compressed+capstan_heel_slide+lever_knuckle_slide+lever_stop_compressed"
    assert name in full
    assert name not in plain
    assert "rising; back_rail, lever_stop compressed; 2 more slide ·" in plain


def test_ctrl_c_ends_a_run_with_its_rows_and_code_130(tmp_path):
    (tmp_path / "drift.yaml").write_text(
        "fsm_dyn: 1\nname: drift\ncoordinates: [x]\npoints: {P: {from: O, at: x*N.x}}\n"
        "bodies: {b: {center: P, mass: 1}}\nloads: [{law: 100*cos(50*x), coordinate: x}]\ninitial: {x: 0.01}\n"
    )
    command = [sys.executable, "-m", "fsm_dyn", "-v", "run", "drift.yaml", "--until", "1e9", "--csv", "--out", "out"]
    for begun in (0.2, 0.5, 1.0, 2.0):  # s: on a busy machine the first steps come late, before which there are no rows
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        ) as process:
            try:
                while "running" not in (line := process.stderr.readline()):
                    assert line
                time.sleep(begun)
                process.send_signal(signal.SIGINT)
                printed, _ = process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode in (130, -signal.SIGINT)  # a shell says 130 for both
        if printed:
            break
    assert "drift: 0 s to" in printed
    rows = (tmp_path / "out" / "drift.csv").read_text().splitlines()
    assert rows[0].startswith("t")
    assert len({len(row.split(",")) for row in rows}) == 1
    assert len(rows) > 2


def test_run_tells_when_and_why(tmp_path):
    result = call("run", "pendulum_with_stop", "--until", "0.5")
    assert result.exit_code == 0
    assert "bob bounces on block" in result.stdout
    assert "block impacts and rebounds" in call("run", "pendulum_with_stop", "--until", "0.5", "--all").stdout
    assert list(tmp_path.iterdir()) == []


def test_run_as_json_matches_the_interface():
    found = json.loads(call("run", "bouncing_ball", "--until", "1", "--json").stdout)
    trajectory = fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball"), until=1.0)
    assert found["end"] == 1.0
    assert found["final"]["q"]["y"] == trajectory["y"][-1]
    assert [x["time"] for x in found["transitions"]] == [x.time for x in trajectory.transitions]
    assert found["transitions"][0]["impulse"]["ground"] == [trajectory.transitions[0].impulse["ground"][0]]


def test_run_writes_what_is_asked(tmp_path, picture_size):
    def written(*options):
        folder = tmp_path / "_".join(("run", *options))
        assert call("run", "rolling_disk", "--until", "0.3", "--out", folder, *options).exit_code == 0
        return sorted(path.name for path in folder.iterdir())

    assert written("--csv") == ["rolling_disk.csv"]
    assert written("--netcdf") == ["rolling_disk.nc"]
    assert written("--figure", "--motion") == ["rolling_disk.png", "rolling_disk_motion.png", "rolling_disk_score.png"]
    assert written("--save-run") == ["rolling_disk.run.json"]
    everything = [f"rolling_disk{end}" for end in (".csv", ".png", ".run.json", "_motion.png", "_score.png")]
    assert written() == everything
    assert min(picture_size(tmp_path / "run_--figure_--motion" / "rolling_disk.png")) > 500


def test_options_reach_the_run():
    options = ["--until", "1", "--set", "h=2 m", "--initial", "v=-1 m/s", "--method", "rk4", "--step", "0.01"]
    found = json.loads(call("run", "bouncing_ball", *options, "--json").stdout)
    fall = (-1.0 + (1.0 + 4.0 * 9.81) ** 0.5) / 9.81
    assert found["transitions"][0]["time"] == pytest.approx(fall, abs=1e-9)
    pushed = json.loads(
        call("run", "shopping_cart", "--until", "0.1", "--input", "push=[[0, 0], [1, 30]]", "--json").stdout
    )
    assert pushed["outcome"] == "done"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--method", "dopri6"], "did you mean 'dopri5'"),
        (["--strategy", "onlin"], "did you mean 'online'"),
        (["--formulation", "multiplier"], "did you mean 'multipliers'"),
        (["--input", "pull=3"], "no input 'pull'"),
        (["--initial", "z=1"], "z"),
        (["--until", "-1"], "--until"),
        (["--set", "e=0.5 m"], "wrong unit"),
    ],
)
def test_a_wrong_option_of_a_run_is_bad_input(options, told):
    result = call("run", "bouncing_ball", "--until", "1", *options)
    assert result.exit_code == 2
    assert told in result.stderr


def test_the_modes_that_a_run_met_are_drawn(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("fsm_dyn.plot.draw", lambda graph, target, trajectory: drawn.append(set(graph)) or target)
    result = call("run", "latch_door", "--strategy", "auto", "--until", "1", "--plot", "graph", "--out", tmp_path)
    assert result.exit_code == 0
    graph = fsm_dyn.compile("latch_door")
    met = {*fsm_dyn.simulate(graph, 1.0).modes}
    assert met - {*graph.modes}
    assert drawn == [met | {*graph.modes}]


def test_a_run_that_cannot_go_on_fails_after_what_it_recorded(tmp_path):
    path = tmp_path / "burst.yaml"
    path.write_text(
        "fsm_dyn: 1\nname: burst\ncoordinates: [x]\npoints: {P: {from: O, at: x*N.x}}\n"
        "bodies: {b: {center: P, mass: 1}}\nloads: [{law: 1/(1 - t)**2, coordinate: x}]\n"
    )
    result = call("run", path, "--until", "2", "--out", tmp_path / "out", "--csv")
    assert result.exit_code == 1
    assert result.stderr.startswith("failed: burst")
    assert "burst: 0 s to" in result.stdout
    times = [float(row.split(",")[0]) for row in (tmp_path / "out" / "burst.csv").read_text().splitlines()[1:]]
    assert times == sorted(times)
    assert 0.9 < times[-1] < 1.0  # where the load has its pole


def test_demo_shows_the_cart_and_writes_its_pictures(tmp_path, picture_size):
    result = call("demo", "--out", tmp_path)
    assert result.exit_code == 0
    assert result.stdout.count("caster stuck") >= 2
    for name in ("shopping_cart.png", "shopping_cart_motion.png", "shopping_cart_modes.png"):
        assert picture_size(tmp_path / name)[0] > 300


def test_values_are_split_at_the_first_sign_and_lists_read():
    given = assignments("--set", ["mB=25 kg", "f = a==b", "lip=[809 mm, 12 mm]", "w=[[0 s, 1 N], [1 s, 2 N]]"])
    assert given == {
        "mB": "25 kg",
        "f": "a==b",
        "lip": ["809 mm", "12 mm"],
        "w": [["0 s", "1 N"], ["1 s", "2 N"]],
    }
    assert assignments("--set", None) is None


@pytest.mark.parametrize("text", ["mB", "=3", "mB=", "mB=[1, 2"])
def test_a_malformed_value_is_refused(text):
    with pytest.raises(InputError, match="--set"):
        assignments("--set", [text])
    with pytest.raises(InputError, match="twice"):
        assignments("--set", ["a=1", "a=2"])


def test_explain_tells_the_reasons_of_a_saved_run(tmp_path):
    assert call("run", "felt_drop", "--until", "0.2", "--save-run", "--out", tmp_path).exit_code == 0
    path = tmp_path / "felt_drop.run.json"
    result = call("explain", path, "--at", "0.15")
    assert result.exit_code == 0
    for word in ("flight", "felt opens", "slope", "selected:", "felt closes"):
        assert word in result.stdout
    pressed = json.loads(call("explain", path, "--at", "0.102", "--json").stdout)
    assert pressed["mode"] == "pressed"
    assert pressed["contacts"][0]["state"] == "compressed"
    assert pressed["contacts"][0]["normal"] > 0.0
    assert {guard["event"] for guard in pressed["guards"]} == {"felt opens"}
    assert call("explain", path, "--set", "m=1").exit_code == 2
    assert call("explain", path, "--at", "7").exit_code == 2


def test_explain_runs_a_model_as_far_as_needed():
    told = json.loads(call("explain", "bouncing_ball", "--at", "0.451524", "--set", "e=0.5", "--json").stdout)
    assert (
        told["preceding_transitions"][0]["fired"][0]["guard"] == "ground closes"
    )  # the digits printed mean that very instant
    assert call("explain", "bouncing_ball", "--at", "6").exit_code == 0


def test_run_writes_an_animation(tmp_path):
    file = tmp_path / "new" / "disk.gif"
    result = call("run", "rolling_disk", "--until", "1", "--animation", file, "--animation-speed", "2")
    assert f"wrote {file}" in result.output
    assert file.read_bytes().startswith(b"GIF89a")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--animation", "disk.avi"), "cannot be written as 'disk.avi'"),
        (("--animation", "disk.gif", "--animation-speed", "0"), "must be positive"),
        (("--animation-speed", "2"), "--animation-speed needs --animation"),
    ],
)
def test_an_animation_that_cannot_be_written_is_refused_before_the_run(options, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("run", "rolling_disk", *options)
    assert result.exit_code == 2
    assert says in result.output
    assert "running" not in result.output


def test_run_draws_the_plots_asked_for(tmp_path):
    result = call("run", "rolling_disk", "--until", "1", "--plot", "forces", "--plot", "graph", "--out", tmp_path)
    assert result.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"rolling_disk_forces.png", "rolling_disk_graph.png"}
    wrong = call("run", "rolling_disk", "--plot", "forcse")
    assert wrong.exit_code == 2
    assert "forces" in wrong.output


@pytest.mark.parametrize(("model", "columns"), [("bouncing_ball", ["from", "to"]), ("piano_action_simple", ["to"])])
def test_of_two_long_names_a_line_tells_where_it_leads(model, columns):
    """Where it comes from is where the line before ended."""
    from fsm_dyn.cli.run import describe

    heading = describe(fsm_dyn.simulate(fsm_dyn.compile(model), until=1.0), None).splitlines()[2].split()
    assert heading[2 : 2 + len(columns)] == columns


def test_a_run_is_continued_as_it_was_begun(tmp_path):
    def told(*options):
        result = call("run", *options)
        assert result.exit_code == 0, result.stderr
        return result.stdout

    file, begun = tmp_path / "bouncing_ball.run.json", ("bouncing_ball", "--method", "rk4", "--step", "0.01")
    told(*begun, "--until", "1", "--save-run", "--out", tmp_path)
    assert json.loads(told("--resume", file, "--until", "2", "--json")) == json.loads(
        told(*begun, "--until", "2", "--json")
    )
    assert "bouncing_ball: 0.99 s to 2 s" in told("--resume", file, "--until", "2", "--rest")
    # by another method from there on, also by that which is the default of new runs
    begin = fsm_dyn.open_run(file)
    for words, changed in (
        (["--step", "5 ms"], {"step": "5 ms"}),
        (["--method", METHOD.default], {"method": METHOD.default}),
    ):
        told("--resume", file, "--until", "2", "--csv", "--out", tmp_path, *words)
        begin.resume(2.0, **changed).to_csv(tmp_path / "wanted.csv")
        assert (tmp_path / "bouncing_ball.csv").read_text() == (tmp_path / "wanted.csv").read_text()
    told("--resume", file, "--until", "2", "--save-run", "--plot", "graph", "--out", tmp_path)
    assert "0 s to 3 s" in told("--resume", file, "--until", "3")
    for options, reason in (
        (["--resume", file], "--until"),
        (["--resume", file, "--until", "9", "--strategy", "online"], "--strategy"),
        (["--resume", file, "--until", "9", "--method", "eulr"], "eulr"),
        (["--resume", file, "--until", "9", "--set", "m=2"], "--set"),
        (["bouncing_ball", "--resume", file, "--until", "9"], "a model"),
        (["--resume", file, "--until", "1"], "later end"),
        (["--resume", tmp_path / "none.json", "--until", "9"], "no such file"),
        (["bouncing_ball", "--rest"], "--resume"),
        ([], "no model"),
    ):
        result = call("run", *options)
        assert (result.exit_code, reason in result.stderr) == (2, True), (options, result.stderr)


def test_run_and_check_know_requirements(tmp_path):
    file = tmp_path / "latch.yaml"
    latch = fsm_dyn.load("latch").text
    file.write_text(f"{latch}\nrequirements:\n  latches: eventually mode == latched before 1 s\n")
    printed = call("run", file, "--until", 0.2).output
    assert re.search(r"latches +met +0\.9086\d+ s +0\.0913\d+ +the bolt snaps behind the lip", printed)
    found = json.loads(call("run", file, "--until", 0.2, "--json").output)["requirements"]["latches"]
    assert found["verdict"] == "met"
    assert found["margin"] == pytest.approx(1.0 - found["time"], abs=1e-15)
    file.write_text(f"{latch}\nrequirements:\n  latches: eventually mode == latch before 1 s\n")
    refused = call("check", file)
    assert refused.exit_code == 2
    assert f"{file}:{latch.count(chr(10)) + 3}:12: requirement 'latches': there is no mode 'latch'" in refused.stderr


def test_a_likely_mistake_of_a_model_is_a_line_with_its_place(tmp_path):
    path = tmp_path / "drop.yaml"
    path.write_text(
        "fsm_dyn: 1\ncoordinates: {y: m}\npoints: {P: {from: O, at: y*N.y}}\nbodies: {b: {center: P, mass: 1 kg}}\n"
        "loads: [{force: 1 N*N.y, at: P, name: lift}]\n"
        "variants: {heavy: {loads: [{force: 2 N*N.y, at: P, name: lifft}]}}\n",
        encoding="utf-8",
    )
    for name in (str(path), f"{path}:heavy"):
        result = call("run", name, "--until", "0.1")
        assert result.exit_code == 0, result.stderr
        (line,) = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
        assert re.fullmatch(
            r"warning: .*drop\.yaml:6:\d+: in variant heavy: loads has no 'lifft' .*did you mean 'lift'\?", line
        )
