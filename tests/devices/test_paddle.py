"""A device by another hand: a paddle in C on the published datagrams, with a lever's kinematics, at a wall."""

import shutil
import signal
import socket
import statistics
import subprocess
import time
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.live.device_map import device_map_for
from fsm_dyn.live.launch import coupled_graph
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from tests.unit.live.stalling import STALLS, stalling_wall

SECONDS = 4.0  # of the program, from the first force
SOON, LAG = 50.0, 100.0  # ms
REPEATS = 3
COMPILER = shutil.which("cc")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="a C compiler is needed")


@pytest.fixture(scope="module")
def paddle(tmp_path_factory):
    program = tmp_path_factory.mktemp("paddle") / "paddle"
    source = Path(__file__).parent / "paddle.c"
    subprocess.run([COMPILER, "-std=c99", "-O2", "-Wall", "-Wextra", "-o", program, source, "-lm"], check=True)
    return program


@pytest.fixture(scope="module")
def wall():
    return coupled_graph(fsm_dyn.compile(stalling_wall()), {"handle_2_stiffness": 1000.0})


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


def pressed(paddle, wall, happen, port):
    """Let something happen to the pressed wall; return what the program saw, the report and the events."""
    options = {"axes": 1, "port": port}
    # a busy machine is to end nothing by itself
    settings = LiveSettings(device_map=device_map_for(wall, "", 1), watchdog_timeout=20.0, stall_ticks=100_000)
    program = subprocess.Popen([paddle, str(port), str(SECONDS)], stdout=subprocess.PIPE, text=True)
    try:
        with LiveSession.start(wall, "udp", options, settings=settings) as session:
            begun = time.monotonic()
            while abs(session.snapshot()["force"][0]) < 1.0 if session.snapshot() else True:
                assert time.monotonic() < begun + 30.0, session.report()
                time.sleep(0.01)
            time.sleep(0.3)
            happen(session, program)
            output, _ = program.communicate(timeout=20.0)
            report, events = session.report(), session.events()
    finally:
        program.kill()
    largest, last, later, energy = map(float, output.split())
    return {"largest": largest, "last": last, "later": later, "energy": energy}, report, events


def signalled(number):
    return lambda session, program: program.send_signal(number)


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2], ids=["silent", "garbage"])
def test_the_force_ends_when_the_samples_do(paddle, wall, number):
    found = [pressed(paddle, wall, signalled(number), free_port())[0] for _ in range(REPEATS)]
    assert statistics.median(item["largest"] for item in found) > 1.0
    assert statistics.median(item["last"] for item in found) <= SOON


@pytest.mark.parametrize("stall", STALLS)
def test_the_force_ends_when_the_model_stalls(paddle, wall, stall):
    def happen(session, program):
        program.send_signal(signal.SIGWINCH)  # which the program does not hear
        session.send("input", values=STALLS[stall])

    _, report, events = pressed(paddle, wall, happen, free_port())
    assert report["phase"] == "fault"
    assert report["real_time_ratio"] < 1.0
    fault = next(event for event in events if event["event"] == "fault")  # another one follows when the program ends
    assert fault["reason"] == "the model fell behind the clock"
    done = next(event for event in events if event["event"] == "command_done")
    assert fault["tick"] - done["tick"] <= LAG + SOON  # ticks, as many as the loop has had


def test_a_hand_that_is_gone_gets_no_more_than_the_spring_holds(paddle, wall):
    """What the coupler of 1 kN/m holds at the force with which it is pressed, and the plate's spring behind it."""
    found = [pressed(paddle, wall, signalled(signal.SIGHUP), free_port())[0] for _ in range(REPEATS)]
    force = statistics.median(item["largest"] for item in found)
    assert statistics.median(item["energy"] for item in found) <= 1.2 * 1e3 * force**2 / (2.0 * 1000.0) + 1.0
