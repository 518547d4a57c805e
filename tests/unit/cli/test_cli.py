"""The command line: exit codes, what goes to which stream, and what is written."""

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn import models
from fsm_dyn.cli.app import app
from fsm_dyn.cli.assignments import assignments
from fsm_dyn.cli.file_watch import watch
from fsm_dyn.errors import InputError, RunError
from fsm_dyn.live.recording_reader import read_recording
from tests.pictures import is_drawn

SLIDE = """
fsm_dyn: 1
name: slide
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {block: {center: P, mass: 1 kg}}
contacts: {left: {gap: x + 0.1 m}, right: {gap: 0.3 m - x}}
"""

DOCS = Path(__file__).parents[3] / "docs"
COMMANDS = tuple(command.name for command in app.registered_commands)


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
    assert call("--help").stdout.count(f"{command} ") >= 1


def test_the_list_of_commands_cuts_no_sentence(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    listed = call("--help").stdout.split("Commands:")[1]
    assert "..." not in listed
    assert all(line.rstrip().endswith(".") for line in listed.strip().splitlines())


def test_modes_are_listed_by_labels_or_by_names_in_full():
    run = ("run", "piano_action", "--until", "0.06")
    plain, full = call(*run).stdout, call(*run, "--full").stdout
    name = "rising+back_rail_compressed+capstan_heel_slide+lever_knuckle_slide+lever_stop_compressed"
    assert name in full
    assert name not in plain
    assert "rising; back_rail, lever_stop compressed; 2 slide ·" in plain


def test_the_page_of_the_command_line_lists_every_command():
    rows = (DOCS / "how_to" / "command_line.md").read_text(encoding="utf-8").split("##")[0]
    listed = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in rows.splitlines() if line.startswith("| `")))
    assert sorted(listed) == sorted(COMMANDS)


def test_progress_is_left_out_or_shown_stage_by_stage(tmp_path):
    """In separate processes: the choice holds for a process."""

    def stderr_of(*options, after=()):
        command = [sys.executable, "-m", "fsm_dyn", *options, "run", "bouncing_ball", "--until", "0.1", *after]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        assert "bouncing_ball: 0 s to 0.1 s" in done.stdout
        return done.stderr

    assert stderr_of("-q") == stderr_of(after=["-q"]) == ""
    for stages in (stderr_of("-v").splitlines(), stderr_of(after=["-v"]).splitlines()):
        assert "running bouncing_ball ..." in stages
        assert any(re.fullmatch(r"running bouncing_ball: \d+\.\d\d s", line) for line in stages)
    assert call("-q", "-v", "models").exit_code == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_options_of_progress_before_and_after_its_name(command):
    """Both options together are refused, in any position: so each was read, and nothing has begun."""
    needed = []
    for one in get_command(app).commands[command].params:
        if one.required:
            needed += ["nothing"] if one.param_type_name == "argument" else [one.opts[0], "nothing"]
    for before, after in ([("-q", "-v"), ()], [("-q",), ("-v",)], [("-v",), ("--quiet",)], [(), ("-q", "--verbose")]):
        result = call(*before, command, *needed, *after)
        assert result.exit_code == 2
        assert result.stderr.strip() == "error: --quiet and --verbose exclude each other"
    help_ = call(command, "--help").stdout
    assert "-q, --quiet" in help_
    assert "-v, --verbose" in help_


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


def test_help_needs_none_of_the_heavy_libraries():
    code = (
        "import sys; from fsm_dyn.cli.app import app\n"
        "try: app(['run', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'sympy', 'matplotlib', 'numpy', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_pictures_wait_for_matplotlib_alone():
    """What one figure needs of scipy, or of sympy, is imported when that figure is drawn."""
    code = "import sys; import fsm_dyn.plot; print(sorted({'sympy', 'scipy', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['matplotlib']"]


HEAVY = ("sympy", "scipy", "matplotlib", "networkx", "rich", "xarray", "pandas", "starlette", "uvicorn")


@pytest.mark.parametrize("arguments", [("models",), ("check", "bouncing_ball"), ("run", "bouncing_ball")])
def test_a_compiled_model_is_listed_checked_and_run_without_heavy_libraries(arguments):
    """Importing networkx alone takes as long as numpy: it is for graphs that are drawn or asked for."""
    call(*arguments)  # compiled now, if it was not
    code = (
        f"import sys; from fsm_dyn.cli.app import app\n"
        f"try: app({list(arguments)!r})\nexcept SystemExit: pass\n"
        f"print(sorted({set(HEAVY)!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_wrong_command_or_option_is_bad_input():
    assert call("rnu").exit_code == 2
    assert call("run", "shopping_cart", "--untill", "3").exit_code == 2


def test_the_listing_of_models_agrees_with_the_models():
    for item in json.loads(call("models", "--json").stdout):
        mechanism = fsm_dyn.load(item["name"])
        assert item["summary"] == mechanism.summary
        assert item["variants"] == list(mechanism.variants)


def test_models_are_listed_with_their_summaries():
    result = call("models")
    assert result.exit_code == 0
    for name in models.names():
        assert name in result.stdout
    listed = json.loads(call("models", "--json").stdout)
    assert [entry["name"] for entry in listed] == models.names()
    assert all(entry["summary"] for entry in listed)


def test_new_writes_a_file_that_checks_and_never_overwrites(tmp_path):
    assert call("new", "door", "--dir", tmp_path).exit_code == 0
    path = tmp_path / "door.yaml"
    text = path.read_text()
    assert text.startswith("#") or "fsm_dyn: 1" in text
    path.write_text("mine")
    result = call("new", "door", "--dir", tmp_path)
    assert result.exit_code == 2
    assert "already exists" in result.stderr
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["1door", "a/b", "do or", ".."])
def test_new_refuses_what_cannot_name_a_mechanism(tmp_path, name):
    assert call("new", name, "--dir", tmp_path).exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_the_schema_is_json(tmp_path):
    schema = json.loads(call("schema").stdout)
    assert {"coordinates", "contacts", "initial"} <= set(schema["properties"])
    assert call("schema", "--out", tmp_path / "s.json").exit_code == 0
    assert json.loads((tmp_path / "s.json").read_text()) == schema


def test_an_unknown_model_is_bad_input_on_stderr():
    result = call("check", "shoping_cart")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "did you mean 'shopping_cart'" in result.stderr


def test_check_counts_modes_and_prints_the_tolerances():
    result = call("check", "latch")
    assert result.exit_code == 0
    for word in ("latched", "infeasible modes", "terminal modes", "pivot", "1e-06"):
        assert word in result.stdout
    found = json.loads(call("check", "latch", "--json").stdout)
    assert found["counts"]["contacts"] == len(fsm_dyn.load("latch").contacts)
    assert found["counts"]["modes"] == len(found["modes"]) > 3
    assert len(found["infeasible"]) == found["counts"]["infeasible"]
    assert found["tolerances"]["gap"]["unit"] == "m"
    assert "geometry" not in found


def test_check_geometry(tmp_path):
    path = tmp_path / "slide.yaml"
    path.write_text(SLIDE)
    result = call("check", str(path), "--geometry")
    assert result.exit_code == 0, result.output
    assert "left closed and right closed  x would be -0.1 with left closed and 0.3 with right closed" in result.stdout
    assert "1 impossible, 4 possible, 0 undecided" in result.stdout
    assert "of 4 combinations of contact states 1 are impossible, 3 possible, 0 undecided" in result.stdout
    found = json.loads(call("check", str(path), "--geometry", "--json").stdout)["geometry"]
    assert (found["combinations"], found["remaining"], len(found["verdicts"])) == (4, 3, 5)


def test_proofs_are_written_and_checked(tmp_path):
    path, proofs = tmp_path / "slide.yaml", tmp_path / "proofs.json"
    path.write_text(SLIDE)
    result = call("check", str(path), "--proofs", str(proofs))
    assert result.exit_code == 0, result.output
    assert "1 proofs, 1 boxes" in result.output
    result = call("check", str(path), "--check-proofs", str(proofs))
    assert result.exit_code == 0, result.output
    assert "hold: contradictions verified in 1 boxes" in result.stdout
    tampered = json.loads(proofs.read_text())
    tampered["proofs"][0]["conditions"] = tampered["proofs"][0]["conditions"][:1]
    proofs.write_text(json.dumps(tampered))
    result = call("check", str(path), "--check-proofs", str(proofs))
    assert result.exit_code == 2
    assert "the proof that excludes left closed and right closed does not hold" in result.output


def test_reach_lists_and_draws_what_runs_visit(tmp_path):
    result = call("check", "latch", "--reach", "1")
    assert result.exit_code == 0, result.output
    assert "modes never entered: riding+seat_closed" in result.stdout
    assert "terminal modes: none" in result.stdout
    found = json.loads(call("check", "latch", "--reach", "1", "--json").stdout)["exploration"]
    assert found["never_entered"] == ["riding+seat_closed"]
    dot = call("graph", "latch", "--reach", "1", "--format", "dot").stdout
    assert "style=dashed" in dot
    assert re.search(r"\d+ of \d+: ", dot)
    assert json.loads(call("graph", "latch", "--reach", "0", "--json").stdout)["runs"] == 1
    machine = json.loads(call("graph", "latch", "--format", "transitions").stdout)
    assert machine["initial"] in machine["states"]


def test_compile_saves_an_automaton_that_graph_and_check_read(tmp_path):
    path = tmp_path / "disk.json"
    assert call("compile", "rolling_disk", "--save", path).exit_code == 0
    listed = json.loads(call("compile", path, "--json").stdout)
    assert {mode["name"] for mode in listed["modes"]} == {"rolling", "sliding", "flying"}
    assert call("check", path).exit_code == 0


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf", ".dot", ".mmd"])
def test_graph_writes_what_the_suffix_says(tmp_path, suffix):
    path = tmp_path / f"graph{suffix}"
    result = call("graph", "shopping_cart", "--out", path)
    assert result.exit_code == 0
    if suffix in (".dot", ".mmd"):
        assert all(name in path.read_text() for name in ("rolling", "sticking", "caster_axis sticks"))
    else:
        assert is_drawn(path)
    assert str(path) in result.stdout


def test_graph_as_text_goes_to_the_terminal():
    assert call("graph", "shopping_cart", "--format", "dot").stdout.startswith('digraph "shopping_cart"')
    assert call("graph", "shopping_cart", "--format", "mermaid").stdout.startswith("flowchart")
    edges = json.loads(call("graph", "shopping_cart", "--json").stdout)["edges"]
    assert {(edge["source"], edge["target"]) for edge in edges} >= {("rolling", "sticking"), ("sticking", "rolling")}


def test_a_wrong_format_is_bad_input_before_anything_is_compiled(tmp_path):
    result = call("graph", "no_such_model", "--out", tmp_path / "graph.gif")
    assert result.exit_code == 2
    assert ".svg" in result.stderr


@pytest.mark.parametrize(
    ("option", "told"),
    [("tau_stik=1 N*m", "did you mean 'tau_stick'"), ("mB=2 m", "wrong unit"), ("mB=__import__('os')", "mB")],
)
def test_a_wrong_parameter_is_bad_input(option, told):
    result = call("compile", "shopping_cart", "--set", option)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.startswith("error: ")


def test_a_malformed_file_is_bad_input_with_its_place(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("fsm_dyn: 1\nbodys: {}\n")
    result = call("check", path)
    assert result.exit_code == 2
    assert f"{path}:2:1" in result.stderr
    assert "did you mean 'bodies'" in result.stderr


def test_run_tells_when_and_why(tmp_path):
    result = call("run", "pendulum_with_stop", "--until", "0.5")
    assert result.exit_code == 0
    assert "block impacts and rebounds" in result.stdout
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
    assert written("--figure", "--motion") == ["rolling_disk.png", "rolling_disk_motion.png"]
    assert written("--save-run") == ["rolling_disk.run.json"]
    everything = ["rolling_disk.csv", "rolling_disk.png", "rolling_disk.run.json", "rolling_disk_motion.png"]
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


def test_the_modes_that_a_run_met_are_drawn_and_an_old_name_of_a_strategy_is_reported(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("fsm_dyn.plot.draw", lambda graph, target, trajectory: drawn.append(set(graph)) or target)
    result = call("run", "latch_door", "--strategy", "mixed", "--until", "1", "--plot", "graph", "--out", tmp_path)
    assert result.exit_code == 0
    assert result.stderr.count("--strategy=mixed is called --strategy=auto now\n") == 1
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
    assert result.stdout.count("sticking  ") >= 2
    for name in ("shopping_cart.png", "shopping_cart_motion.png", "shopping_cart_modes.png"):
        assert picture_size(tmp_path / name)[0] > 300


def test_watch_runs_again_after_a_save_and_ends_with_ctrl_c(tmp_path):
    path = tmp_path / "ball.yaml"
    text = models.find("bouncing_ball").read_text()
    path.write_text(text)
    command = [sys.executable, "-m", "fsm_dyn", "run", str(path), "--until", "0.5", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lines = []

        def until(word):
            while word not in (line := process.stdout.readline()):
                assert line, "".join(lines)
                lines.append(line)

        try:
            until("impacts and rebounds")
            path.write_text(text.replace("coordinates", "cordinates"))
            until("did you mean 'coordinates'")
            path.write_text(text.replace("0.8", "0.7"))
            until("impacts and rebounds")
            process.send_signal(signal.SIGINT)
            until("stopped watching")
            assert process.wait(10) == 0
        finally:
            process.kill()


def test_ctrl_c_ends_a_watch_even_where_python_cannot_raise_it(tmp_path, capsys):
    class Thing:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "a.yaml"
    path.touch()
    seen = []

    def action():
        seen.append(1)
        Thing()

    before = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "unraisablehook", lambda _: None)
        watch(path, action)
    assert seen == [1]
    assert capsys.readouterr().err.rstrip().endswith("stopped watching")
    assert signal.getsignal(signal.SIGINT) is before


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


def test_watch_runs_again_after_every_change_and_survives_errors(tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.yaml"
    path.write_text("one")
    steps = iter(["half", "two", "", None, "three", "", "four", ""])
    stamps = iter(range(1, 100))
    seen = []

    def action():
        seen.append(path.read_text())
        if seen[-1] == "two":
            raise InputError("two is bad")
        if seen[-1] == "three":
            raise ZeroDivisionError

    def edit(_):
        try:
            text = next(steps)
        except StopIteration:
            raise KeyboardInterrupt from None
        if text is None:
            path.unlink()
        elif text:
            path.write_text(text)
            os.utime(path, ns=(0, next(stamps)))

    monkeypatch.setattr(time, "sleep", edit)
    watch(path, action)
    assert seen == ["one", "two", "three", "four"]
    told = capsys.readouterr().err
    assert "two is bad" in told
    assert "ZeroDivisionError" in told
    assert told.rstrip().endswith("stopped watching")


def test_errors_become_exit_codes_and_bugs_pass_through():
    import typer

    from fsm_dyn.cli.console import handle_errors

    for error, code in ((InputError("x"), 2), (RunError("y"), 1)):

        @handle_errors
        def command(error=error):
            raise error

        with pytest.raises(typer.Exit) as caught:
            command()
        assert caught.value.exit_code == code

    @handle_errors
    def bug():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bug()


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


def test_live_tells_how_time_was_kept(tmp_path):
    path = tmp_path / "run.mcap"
    stiff = ("--set", "handle_2_stiffness=4 kN/m", "--set", "handle_2_damping=0 N*s/m", "--passivity", "observe")
    result = call("live", "virtual_wall", "--duration", "1.5", "--no-pacing", "--record", path, *stiff)
    assert result.exit_code == 0
    leak = re.search(
        r"gave the device up to (\S+) J, and \S+ J while it was disengaged; damping dissipated 0 J", result.stdout
    )
    assert float(leak[1]) > 1e-6
    assert "virtual_wall: 1500 ticks" in result.stdout
    assert "wakeup latency" in result.stdout
    assert "sliding" in result.stdout
    recorded = read_recording(path)
    assert recorded.complete
    assert len(recorded.rows) == 1500


def test_live_with_a_fault_fails():
    result = call(
        "live",
        "latch",
        "--duration",
        "0.5",
        "--no-pacing",
        "--json",
        "--option",
        "fault=nan",
        "--option",
        "fault_at=0.2",
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["fault"] == "a position, velocity or force was not a number"


def test_live_says_why_a_model_could_not_go_on():
    """Such a spring takes speeds out of the range of numbers in a single step."""
    stiff = ("--set", "handle_2_stiffness=1e99 N/m")
    result = call("live", "virtual_wall", "--duration", "0.6", "--no-pacing", "--json", *stiff)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["phase"] == "failed"
    assert re.match(r"at 0\.\d+ s: .+ Remedy: ", report["failure"])
    assert report["failure"] in result.stderr
    assert "steps are of 0.001 s" in result.stderr.lower()


def test_live_with_a_wrong_word_is_bad_input():
    assert call("live", "virtual_wall", "--duration", "1", "--passivity", "on").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("live", "latch", "--duration", "inf"), "--duration"),
        (("live", "latch", "--duration", "1e300"), "--duration"),
        (("live", "latch", "--period", "nan"), "--period"),
        (("live", "latch", "--duration", "1", "--period", "0"), "--period"),
        (("live", "latch", "--stall-timeout", "inf"), "--stall-timeout"),
        (("device", "virtual_wall", "--driver", "hapkit", "--duration", "1e300"), "--duration"),
        (("live", "latch", "--option", "axes=1" + "0" * 400), "axes of the scripted device"),
        (("live", "latch", "--option", f"motion={'[' * 1000}{']' * 1000}"), "--option: the brackets"),
    ],
)
def test_numbers_that_make_no_live_run_are_bad_input(arguments, message):
    result = call(*arguments, "--no-pacing") if arguments[0] == "live" else call(*arguments)
    assert result.exit_code == 2
    assert f"error: {message}" in result.stderr
    assert len(result.stderr) < 1000


def test_what_is_no_file_is_bad_input(tmp_path):
    for name in ("a.yaml", "a.json", "a.mcap"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "b.mcap").mkdir()
    for command, name in (("compile", "a.yaml"), ("compile", "a.json"), ("view", "a.mcap"), ("view", "b.mcap")):
        result = call(command, tmp_path / name, *(["--no-browser"] * (command == "view")))
        assert result.exit_code == 2
        assert "pipe or device" in result.stderr


def test_a_mechanism_that_is_nowhere_cannot_be_drawn(tmp_path):
    path = tmp_path / "nowhere.yaml"
    path.write_text(
        "fsm_dyn: 1\nparameters: {l: 1 m, z: 0 kg}\ncoordinates: {x: m}\n"
        "points: {P: {from: O, at: x*N.x + l*(1 kg)/z*N.y}}\nbodies: {b: {center: P, mass: 1 kg}}\n"
    )
    result = call("run", path, "--until", "0.01", "--motion", "--out", tmp_path)
    assert result.exit_code == 2
    assert "cannot be drawn" in result.stderr


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
    from fsm_dyn.cli.run_summary import describe

    heading = describe(fsm_dyn.simulate(fsm_dyn.compile(model), until=1.0)).splitlines()[2].split()
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
    told("--resume", file, "--until", "2", "--save-run", "--plot", "graph", "--out", tmp_path)
    assert "0 s to 3 s" in told("--resume", file, "--until", "3")
    for options, reason in (
        (["--resume", file], "--until"),
        (["--resume", file, "--until", "9", "--rtol", "1e-3"], "--rtol"),
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
    """No file may grow beyond 100 kB: first the ledger, then the table of a study whose ledger is complete."""
    (tmp_path / "drop.yaml").write_text(DROP)
    command = [sys.executable, "-m", "fsm_dyn", "study", "drop.yaml", "--sample", "sobol", "--runs", "4096"]
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
    code, out, message = run("--ledger", "drop.sqlite", limit=100_000)
    assert (code, out) == (1, "")
    assert "failed: the ledger 'drop.sqlite' cannot be used" in message
    assert "make room, or choose another file; what was stored stays, and the same command continues" in message
    assert 0 < stored() < 4096
    assert run("--ledger", "drop.sqlite")[:2] == whole[:2]
    code, out, message = run("--ledger", "drop.sqlite", "--out", "out", limit=100_000)
    assert (code, out) == (1, "")
    assert "drop_sample.csv" in message
    assert "File too large" in message
    assert stored() == 4096
    assert [path.name for path in (tmp_path / "out").iterdir()] == []  # no half of a file
    code, out, _ = run("--ledger", "drop.sqlite", "--out", "out")
    assert code == 0
    assert out.startswith(whole[1])
    assert len((tmp_path / "out" / "drop_sample.csv").read_text().splitlines()) == 4097


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
