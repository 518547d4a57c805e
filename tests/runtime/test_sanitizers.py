"""The runtime compiled with sanitizers: runs of shipped models, and numbers at random for its inner functions.

What a sanitizer reports ends the process.
"""

import os
import subprocess
import sys

import pytest

from tests.runtime.building import BUILT, FOLDER, SANITIZE, compile_library, sanitizer_environment, sanitizers_work

pytestmark = pytest.mark.runtime

#: Every kind of contact, impacts one by one and together, compliance, redundancy, Euler parameters, ports.
MODELS = [
    "bouncing_ball", "latch", "rolling_disk", "double_pendulum_with_stop", "stick_slip_belt", "ball_in_corner",
    "rocking_block", "piano_action", "shopping_cart", "box_on_table", "felt_drop", "geneva_drive",
]  # fmt: skip
FUZZING = 15  # s, of each of two processes


@pytest.fixture(scope="module", autouse=True)
def _able():
    if reason := sanitizers_work():
        pytest.skip(reason)


def started(module, *arguments, **environment):
    """Start a module of this folder in a process of its own, away from the library that this one has loaded."""
    command = [sys.executable, "-W", "ignore", "-m", f"tests.runtime.{module}", *arguments]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=BUILT.parents[1]
    )


def ended(process, seconds):
    """Return what a process printed; fail with what it said where it did not end well."""
    try:
        out, error = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, f"{out[-2000:]}\n{error[-6000:]}"
    return out


def test_runs_are_the_same_and_nothing_is_reported(tmp_path):
    """Twelve models with every method, live ticks and several runs in one call, byte for byte as without sanitizers."""
    watched, plain = tmp_path / "watched.so", tmp_path / "plain.so"
    compile_library([FOLDER / "fsm_runtime.c"], plain, "-O2", "-fvisibility=hidden")
    here = started("runs", str(plain), *MODELS, **os.environ)
    compile_library([FOLDER / "fsm_runtime.c"], watched, "-O1", *SANITIZE)
    wanted = ended(here, 200)
    found = ended(started("runs", str(watched), *MODELS, **sanitizer_environment()), 200)
    assert found.splitlines() == wanted.splitlines()
    assert len(found.splitlines()) == 9 * len(MODELS)


@pytest.mark.long
def test_proofs_of_approaches_are_clean(tmp_path):
    """Throws at every shape and narrow guards by every way: enclosures, regions, pieces, forces that are solved for."""
    watched = tmp_path / "watched.so"
    compile_library([FOLDER / "fsm_runtime.c"], watched, "-O1", *SANITIZE)
    found = ended(started("thrown", str(watched), "1", **sanitizer_environment()), 1800).splitlines()
    assert found[:-1] == []
    assert int(found[-1]) > 200


@pytest.mark.parametrize("seed", [1, 2])
def test_fuzzing(seed, tmp_path):
    """No report, no unbounded loop, and right results where they can be judged; see ``fuzz.py``."""
    note = tmp_path / "case"
    note.write_text("none")
    environment = {**sanitizer_environment(), "FSM_DYN_TEST_FLAGS": " ".join(SANITIZE)}
    process = started("fuzz", "--seconds", str(FUZZING), "--seed", str(seed), "--note", str(note), **environment)
    try:
        out = ended(process, FUZZING + 150)
    except AssertionError as error:
        raise AssertionError(f"at the case: {note.read_text()}\n{error}") from None
    assert int(out.split()[0]) > 500
