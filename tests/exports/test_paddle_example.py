"""The example of a mechanism on the board of its motor, in simulated time; the package's own decoder reads it."""

import subprocess
from importlib import resources

import pytest

import fsm_dyn
from fsm_dyn.devices.hapkit import HelloBody, IdentityBody, SampleBody, decode_packet, encode_packet
from tests.exports.building import COMPILER, FLAGS, machine_object

HAND, COUPLER, PLATE = 60.0, 500.0, 20e3  # N/m, as in the sources
START = 0.010  # m, of the tool above the plate where the model begins


@pytest.fixture(scope="module", params=["double", "float"])
def board(request, tmp_path_factory):
    """The program, with the mechanism, the example and a simulated board in it."""
    graph = fsm_dyn.compile("virtual_wall")
    folder = fsm_dyn.export(graph, tmp_path_factory.mktemp("paddle") / "out", real=request.param)
    package = resources.files("fsm_dyn")
    for path in (
        *(package / "exports" / "examples").iterdir(),
        package / "devices" / "firmware" / "hapkit" / "hapkit_protocol.h",
    ):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "board.c").write_bytes((resources.files("tests.exports") / "paddle_board.c").read_bytes())
    sources = ["board.c", "paddle.c", "virtual_wall.c", str(machine_object(folder))]
    subprocess.run([COMPILER, *FLAGS, "-O0", *sources, "-o", "program", "-lm"], cwd=folder, check=True)
    return folder / "program"


def run(program, target, ticks=3000, said=b"", hears=0):
    """Return what the host got, position and velocity of the handle at the end, and whether the force was ended."""
    done = subprocess.run([program, str(target), str(ticks), str(hears)], input=said, capture_output=True)
    assert done.returncode == 0, done.stderr
    x, v, ended = map(float, done.stderr.split())
    return [decode_packet(piece) for piece in done.stdout.split(b"\0") if piece], x, v, bool(ended)


def test_a_pressed_wall_yields_as_the_springs_say(board):
    """Hand, coupler and plate in series, at rest; the handle's zero is 10 mm above the plate."""
    target = -0.03
    frames, x, v, ended = run(board, target)
    assert frames == [], "nobody listens"
    stiff = 1.0 / (1.0 / COUPLER + 1.0 / PLATE)
    wanted = (HAND * target - stiff * START) / (HAND + stiff)
    assert x == pytest.approx(wanted, rel=1e-4)
    assert abs(v) < 1e-5
    assert ended


def test_free_of_the_wall_there_is_no_force(board):
    _, x, _, _ = run(board, 0.02, ticks=10_000)
    assert x == pytest.approx(0.02, abs=1e-6)


def test_a_host_that_says_hello_gets_every_tick(board):
    target = -0.03
    frames, x, _, _ = run(board, target, said=encode_packet(HelloBody()), hears=1000)
    identity, *samples = frames
    assert isinstance(identity, IdentityBody)
    assert all(isinstance(sample, SampleBody) for sample in samples)
    assert [sample.time for sample in samples] == [1000 * (1000 + k) for k in range(2000)]
    assert samples[-1].counts * identity.resolution * 1e-9 == pytest.approx(x + START, abs=identity.resolution * 1e-9)
    assert samples[-1].force * 1e-6 == pytest.approx(HAND * (x - target), rel=1e-3)
    assert samples[-1].dropped == 0


def test_the_force_is_limited_to_what_the_board_shows(board):
    frames, _, _, _ = run(board, -0.3, said=encode_packet(HelloBody()))
    assert frames[-1].force == 5_000_000
    assert frames[-1].state == 2
