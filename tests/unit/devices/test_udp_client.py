"""The client in C: its datagrams against Python's, its watchdog, and its program against the driver."""

from __future__ import annotations

import math
import random
import re
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.devices import udp
from fsm_dyn.devices import udp as datagrams
from fsm_dyn.devices.udp import ForceDatagram, SampleDatagram
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from fsm_dyn.runtime.abi import ForceFlag
from tests.runtime.building import sanitizers_work

CLIENTS = Path(udp.__file__).parent / "clients"
HARNESS = Path(__file__).parent / "udp_harness.c"
WATCHDOG = 0.02
PATIENT = 30.0  # s


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a function that builds a C source with every warning an error."""
    folder = tmp_path_factory.mktemp("client")
    compiler = shutil.which("cc")
    assert compiler, "the tests need a C compiler, as the Makefile says"

    def build(*sources, more=()):
        program = folder / f"{sources[0].stem}{len(more)}"
        strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-Wshadow", "-Wconversion", *more]
        files = map(str, sources)
        subprocess.run([compiler, *strict, "-O2", f"-I{CLIENTS}", *files, "-o", str(program), "-lm"], check=True)
        return program

    return build


def answers(program, lines, axes=2):
    done = subprocess.run([program, str(axes)], input="\n".join(lines), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def take(at, data):
    return f"take {at} {data.hex() or '-'}"


def test_its_samples_are_pythons(built):
    rng = random.Random(3)
    numbers = [rng.uniform(-1, 1) for _ in range(6)]
    lines = [f"sample {0.1 * k!r} {n} {' '.join(map(repr, numbers[:n]))}" for k, n in ((1, 6), (2, 3))]
    first, second = (bytes.fromhex(line) for line in answers(built(HARNESS), lines, axes=3))
    assert datagrams.unpack_sample(first, 3) == SampleDatagram(1, 0.1, 5, tuple(numbers[:3]), tuple(numbers[3:]))
    assert datagrams.unpack_sample(second, 3) == SampleDatagram(2, 0.2, 5, tuple(numbers[:3]), None)


def test_what_it_shows_and_when_it_lets_go(built):
    """Zero at first, then what came, for 20 ms; zero at once when told to; old and bad ones are not taken."""

    def force(sequence, x, flags=ForceFlag.RUNNING):
        return datagrams.pack_force(ForceDatagram(sequence, 0.0, 0, (x, -x), flags))

    good = force(8, 9.0)
    steps = [
        ("force 1.0", "0 0 "),
        (take(1.0, force(7, 1.5)), "1"),
        ("force 1.001", "1.5 -1.5 "),
        (take(1.002, force(7, 3.0)), "0"),  # old
        (take(1.002, force(6, 3.0)), "0"),
        (take(1.002, good[:-1]), "0"),
        (take(1.002, good[: len(good) // 2]), "0"),
        (take(1.002, b""), "0"),
        (take(1.002, b"FSMS" + good[4:]), "0"),
        (take(1.002, good[:4] + b"\2" + good[5:]), "0"),
        (take(1.002, good[:5] + b"\3" + good[6:]), "0"),
        (take(1.002, good[:-8] + struct.pack("<d", math.nan)), "0"),
        (take(1.002, good[:-8] + struct.pack("<d", math.inf)), "0"),
        (take(1.002, good + bytes(8)), "0"),
        ("force 1.0199", "1.5 -1.5 "),
        ("force 1.0201", "0 0 "),  # the watchdog: what is bad does not feed it
        ("force 1.0202", "0 0 "),
        (take(1.03, force(2, 2.5)), "1"),  # after a silence any number will do
        ("force 1.031", "2.5 -2.5 "),
        (take(1.032, force(0, 0.0, ForceFlag.LET_GO)), "1"),  # the safe packet, whatever its number
        ("force 1.032", "0 0 "),
        (take(1.033, force(2**32 - 1, 4.0)), "1"),
        (take(1.034, force(0, 5.0)), "1"),  # numbers begin again
        ("force 1.035", "5 -5 "),
    ]
    found = answers(built(HARNESS), [line for line, _ in steps])
    assert found == [wanted for _, wanted in steps]


def test_the_programs_access_no_memory_but_theirs(built):
    """With forces of right and wrong lengths on their socket, under the sanitizers."""
    if reason := sanitizers_work():
        pytest.skip(reason)
    rng = random.Random(11)
    for name in ("udp_device", "udp_follower"):
        program = built(CLIENTS / f"{name}.c", CLIENTS / "client.c", more=("-fsanitize=address,undefined", "-g"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver:
            driver.bind(("127.0.0.1", 0))
            driver.settimeout(PATIENT)
            held = subprocess.Popen([program, "6", "0.5", str(driver.getsockname()[1])], stderr=subprocess.PIPE)
            for number in range(150):
                _, client = driver.recvfrom(512)
                good = datagrams.pack_force(ForceDatagram(number + 1, 0.0, 0, (0.1,) * 6, ForceFlag.RUNNING))
                driver.sendto(good + rng.randbytes(rng.randrange(200)) if number % 3 else good[: number % 60], client)
                driver.sendto(good, client)
            _, complaint = held.communicate(timeout=PATIENT)
        assert (held.returncode, complaint) == (0, b"")


def test_its_program_holds_the_driver(built):
    """Against the driver: it moves by its own mass and hand, feels the force, and lets go when told to."""
    options = {"axes": 2, "port": 0}
    transport = udp.Driver.open_transport(options)
    driver = udp.Driver(options, transport)
    port = driver._socket.getsockname()[1]
    program = subprocess.Popen(
        [built(CLIENTS / "udp_device.c", CLIENTS / "client.c"), "2", "0.7", str(port)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        driver.open()
        sequence = driver.read().sequence
        until, travelled = time.monotonic() + 0.5, 0.0
        while time.monotonic() < until:
            sample = driver.read()
            travelled = max(travelled, abs(sample.position[0]))
            driver.write([-1.25, 0.0])
            time.sleep(1e-3)
        driver.close()
        told, _ = program.communicate(timeout=20.0)
    finally:
        program.kill()
        program.wait()
    assert sample.sequence > sequence + 20
    assert 1e-3 < travelled < 0.1
    assert re.search(r"removed 1, dropped 0, unsent \d+, largest 1\.250 N, shown at the end 0", told)
    assert not driver.dropped


def test_a_second_program_holds_a_mechanism(built):
    """The program's device moves the mass of a live run and feels it; when the run ends, the program shows no force.

    Its hand moves 3 cm to either side at 0.5 Hz, away from the wall: what is felt is inertia, some tenths of a newton.
    """
    program = built(CLIENTS / "udp_device.c", CLIENTS / "client.c")
    port = _free_port()
    settings = LiveSettings(
        realtime_privileges=False, watchdog_timeout=1.0, stall_ticks=150, limits=Limits(velocity=20.0)
    )
    held = subprocess.Popen([program, "2", "300", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        options = {"axes": 2, "port": port}
        with LiveSession.start(fsm_dyn.compile("virtual_wall"), "udp", options, settings=settings) as session:
            session.wait_for_ticks(1500)
            assert session.snapshot()["fault"] in (None, "")
        time.sleep(0.1)  # until its watchdog would act, if nothing else did
        held.terminate()
        found, _ = held.communicate(timeout=20.0)
    finally:
        held.kill()
        held.wait()
    counts = re.search(r"forces (\d+), removed (\d), dropped (\d+), .*largest (.*) N, shown at the end (\d)", found)
    forces, removed, dropped, largest, shown = map(float, counts.groups())
    assert forces > 500
    assert (removed, dropped, shown) == (1, 0, 0)
    assert 0.1 < largest < 20.0


def test_a_program_whose_device_follows(built):
    """The hand pulls the mass (2 kg) of a live run along 3 cm; the device goes where the port goes, then stands still.

    The device integrates by its own clock: where ticks are late, port and device part by millimetres.
    """
    program, port = built(CLIENTS / "udp_follower.c", CLIENTS / "client.c"), _free_port()
    settings = LiveSettings(
        realtime_privileges=False, watchdog_timeout=1.0, stall_ticks=150, limits=Limits(velocity=20.0)
    )
    device = subprocess.Popen([program, "2", "300", str(port)], stdout=subprocess.PIPE, text=True)
    try:
        options = {"axes": 2, "port": port, "kind": "admittance"}
        graph = fsm_dyn.compile("virtual_wall")
        with LiveSession.start(graph, "udp", options, settings=settings, parameters={"m": 2.0}) as session:
            session.wait_for_ticks(1500)
            assert session.snapshot()["fault"] in (None, "")
            rows, columns = session.rows()[0], session.columns
        time.sleep(0.1)
        device.terminate()
        found, _ = device.communicate(timeout=20.0)
    finally:
        device.kill()
        device.wait()
    counts = re.search(
        r"velocities (\d+), removed (\d), dropped (\d+), .*largest (.*) m/s, went (.*) m, .* (\d)", found
    )
    velocities, removed, dropped, fastest, went, follows = map(float, counts.groups())
    assert velocities > 500
    assert (removed, dropped, follows) == (1, 0, 0)
    assert 0.01 < fastest < 2.0
    places, ports = rows[:, columns.places["position"]], rows[:, columns.places["ports"]][:, 2:4]
    assert 0.003 < np.abs(places).max() <= went + 1e-4 < 0.1  # printed to 0.1 mm; it moves until the session closes
    assert np.corrcoef(ports[:, 0], places[:, 0])[0, 1] > 0.9


def _free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


BAD = """
#include "client.h"
#include <errno.h>
int main(void) {
    fsm_client client;
    const double x[6] = {0};
    int bad = fsm_client_open(&client, 7, "127.0.0.1", 9) == 0 || errno != EINVAL;
    bad |= fsm_client_open(&client, 0, "127.0.0.1", 9) == 0 || errno != EINVAL;
    bad |= fsm_client_open(&client, 2, "localhost", 9) == 0 || errno != EINVAL || client.line != -1;
    bad |= fsm_client_open(&client, 2, "127.0.0.1", PORT) != 0;
    for (int i = 0; i < 10; i++) bad |= fsm_client_exchange(&client, x, NULL, 0)[0] != 0.0;
    bad |= client.unsent == 0; /* nothing is bound to the port */
    fsm_client_close(&client);
    fsm_client_close(&client);
    return bad;
}
"""


def test_what_a_client_refuses(built, tmp_path):
    """Invalid axes and addresses; a model that is not there is no error, and no force."""
    (tmp_path / "bad.c").write_text(BAD.replace("PORT", str(_free_port())))
    assert subprocess.run([built(tmp_path / "bad.c", CLIENTS / "client.c")], check=False).returncode == 0


def test_the_client_is_cpp_too(tmp_path):
    """As CHAI3D and ROS 2 include it; `cc` compiles C++ where its compiler proper is installed."""
    if subprocess.run(["cc", "-xc++", "-fsyntax-only", "-"], input="", text=True, check=False).returncode:
        pytest.skip("no C++ compiler")
    (tmp_path / "node.cpp").write_text('#include "client.h"\nint main() { return fsm_client_time() < 0.0; }\n')
    strict = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only"]
    subprocess.run(["cc", *strict, f"-I{CLIENTS}", str(tmp_path / "node.cpp")], check=True)


HD = """
typedef double HDdouble; typedef int HDint; typedef unsigned HHD; typedef unsigned HDCallbackCode;
#define HDCALLBACK
enum { HD_CURRENT_POSITION, HD_CURRENT_VELOCITY, HD_CURRENT_BUTTONS, HD_CURRENT_FORCE, HD_CALLBACK_CONTINUE };
HHD hdGetCurrentDevice(void); void hdBeginFrame(HHD); void hdEndFrame(HHD);
void hdGetDoublev(int, HDdouble *); void hdGetIntegerv(int, HDint *); void hdSetDoublev(int, const HDdouble *);
"""
DHD = """
enum { DHD_OFF, DHD_ON };
int dhdOpen(void); int dhdClose(char); void dhdEnableExpertMode(void); int dhdSetWatchdog(unsigned char, char);
int dhdEnableForce(unsigned char, char); int dhdGetPosition(double *, double *, double *, char);
int dhdGetLinearVelocity(double *, double *, double *, char); unsigned dhdGetButtonMask(char);
int dhdSetForce(double, double, double, char);
"""


def test_the_programs_of_the_documentation_are_c(tmp_path):
    """Against stand-ins of the makers' headers, with the types that their manuals tell: the snippets are whole."""
    page = (Path(__file__).parents[3] / "docs" / "how_to" / "protocols.md").read_text(encoding="utf-8")
    found = re.findall(r"^```c\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(found) == 2
    (tmp_path / "HD").mkdir()
    (tmp_path / "HD" / "hd.h").write_text(HD)
    (tmp_path / "dhdc.h").write_text(DHD)
    for text in found:
        (tmp_path / "snippet.c").write_text(text)
        strict = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only"]
        subprocess.run(["cc", *strict, f"-I{CLIENTS}", f"-I{tmp_path}", str(tmp_path / "snippet.c")], check=True)
