"""The command line as a whole: help, options that all commands take, exit codes, and what is imported."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fsm_dyn.cli.console import COMMANDS, command_of
from fsm_dyn.core.errors import InputError, RunError
from tests.unit.cli.conftest import call

DOCS = Path(__file__).parents[3] / "docs"


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


def test_the_page_of_the_command_line_lists_every_command():
    rows = (DOCS / "how_to" / "command_line.md").read_text(encoding="utf-8").split("##")[0]
    listed = re.findall(
        r"`([\w-]+)`", "".join(line.split("|")[1] for line in rows.splitlines() if line.startswith("| `"))
    )
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
    for one in command_of(command).params:
        if one.required:
            needed += ["nothing"] if one.param_type_name == "argument" else [one.opts[0], "nothing"]
    for before, after in ([("-q", "-v"), ()], [("-q",), ("-v",)], [("-v",), ("--quiet",)], [(), ("-q", "--verbose")]):
        result = call(*before, command, *needed, *after)
        assert result.exit_code == 2
        assert result.stderr.strip() == "error: --quiet and --verbose exclude each other"
    help_ = call(command, "--help").stdout
    assert "-q, --quiet" in help_
    assert "-v, --verbose" in help_


def test_help_needs_none_of_the_heavy_libraries():
    code = (
        "import sys; from fsm_dyn.cli.console import app\n"
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
        f"import sys; from fsm_dyn.cli.console import app\n"
        f"try: app({list(arguments)!r})\nexcept SystemExit: pass\n"
        f"print(sorted({set(HEAVY)!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_wrong_command_or_option_is_bad_input():
    assert call("rnu").exit_code == 2
    assert call("run", "shopping_cart", "--untill", "3").exit_code == 2


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
