"""The paddle's frames: closed forms, whatever comes in between, and the firmware's C against its twin in Python."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import pytest

import fsm_dyn.devices
from fsm_dyn.devices import hapkit as hf
from fsm_dyn.devices.emulators.hapkit import Board

FIRMWARE = Path(fsm_dyn.devices.__file__).parent / "firmware" / "hapkit"
HARNESS = Path(__file__).with_name("hapkit_harness.c")
FLAGS = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O1", "-shared", "-fPIC"]


def some_body(rng):
    word, signed, small, byte = (
        rng.getrandbits(32),
        rng.getrandbits(32) - 2**31,
        rng.getrandbits(16),
        rng.getrandbits(8),
    )
    often_zero = rng.choice([0, signed])
    return rng.choice(
        [
            hf.HelloBody(byte),
            hf.ForceBody(small, often_zero),
            hf.ZeroBody(),
            hf.IdentityBody(byte, word, small, byte, rng.choice([0, word])),
            hf.SampleBody(small, word, signed, often_zero, rng.choice([0, small]), -often_zero - 1, byte, 0),
        ]
    )


def some_stream(rng, count):
    """Frames, garbage, halves and frames with a bit turned over, and the frames that arrive whole between zeros."""
    data = b""
    for _ in range(count):
        one = hf.encode_packet(some_body(rng))
        what = rng.randrange(8)
        if what == 0:
            one = rng.randbytes(rng.randrange(1, 60))
        elif what == 1:
            one = one[: rng.randrange(1, len(one))]
        elif what == 2:
            at = rng.randrange(len(one))
            one = one[:at] + bytes((one[at] ^ 1 << rng.randrange(8),)) + one[at + 1 :]
        data += one
    return data


def test_the_checksum_is_the_catalogue_s():
    assert hf.crc16(b"123456789") == 0x29B1  # CRC-16/CCITT-FALSE


@pytest.mark.parametrize(
    ("plain", "stuffed"),
    [  # examples of Cheshire and Baker 1999, and of the article on COBS in the encyclopaedias
        (b"\x00", b"\x01\x01"),
        (b"\x00\x00", b"\x01\x01\x01"),
        (b"\x11\x22\x00\x33", b"\x03\x11\x22\x02\x33"),
        (b"\x11\x22\x33\x44", b"\x05\x11\x22\x33\x44"),
        (b"\x11\x00\x00\x00", b"\x02\x11\x01\x01\x01"),
    ],
)
def test_stuffing(plain, stuffed):
    assert hf.cobs_encode(plain) == stuffed
    assert hf.cobs_decode(stuffed) == plain


def test_the_safe_packet_is_understood_after_every_half_of_a_frame():
    before = hf.encode_packet(hf.ForceBody(257, -1_000_000))
    for length in range(len(before) - 1):  # all but its last zero is the whole of it
        reader = hf.PacketReader()
        found = reader.feed(before[:length]) + reader.feed(hf.SAFE_PACKET)
        assert found[-1] == hf.ForceBody(0, 0)
        assert len(found) == 1
        assert reader.dropped == (length > 1)


def test_frames_are_found_however_the_bytes_are_cut():
    rng = random.Random(3)
    data = some_stream(rng, 300)
    whole, pieces = hf.PacketReader(), hf.PacketReader()
    expected, found, at = whole.feed(data), [], 0
    while at < len(data):
        step = rng.randrange(1, 50)
        found += pieces.feed(data[at : at + step])
        at += step
    assert found == expected
    assert pieces.dropped == whole.dropped > 0
    assert len(found) > 150


def test_a_frame_with_one_bit_wrong_is_none():
    frame = hf.encode_packet(hf.SampleBody(7, 1234567, -15, 40000, 7, -250000, 0, 0))
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        assert hf.PacketReader().feed(bytes(damaged)) in (
            [],
            [hf.decode_packet(frame[1:-1])],
        )  # the zeros around it may go
        if 8 <= bit < 8 * (len(frame) - 1):
            assert hf.PacketReader().feed(bytes(damaged)) == []


# -- the same in C ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    library = tmp_path_factory.mktemp("firmware") / "hapkit.so"
    done = subprocess.run(
        ["cc", *FLAGS, "-I", str(FIRMWARE), str(HARNESS), "-o", str(library)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = ctypes.CDLL(str(library))
    for name in ("frame", "reader_size", "board_size", "take", "sample"):
        getattr(found, name).restype = ctypes.c_size_t
    return found


def test_the_firmware_writes_the_same_frames(firmware):
    rng, out = random.Random(1), ctypes.create_string_buffer(64)
    for _ in range(500):
        body = some_body(rng)
        kind = hf.KINDS[type(body)]
        packed = hf.BODIES[kind].pack(*body)
        length = firmware.frame(out, kind, packed, ctypes.c_size_t(len(packed)))
        assert out.raw[:length] == hf.encode_packet(body)


def test_the_firmware_finds_the_same_frames(firmware):
    rng = random.Random(2)
    reader, twin = ctypes.create_string_buffer(firmware.reader_size()), hf.PacketReader()
    out = ctypes.create_string_buffer(4096)
    count = 0
    for _ in range(200):
        data = some_stream(rng, 8)
        number = firmware.read_all(reader, data, ctypes.c_size_t(len(data)), out)
        expected = twin.feed(data)
        flat = b"".join(bytes((hf.KINDS[type(b)],)) + hf.BODIES[hf.KINDS[type(b)]].pack(*b) for b in expected)
        assert number == len(expected)
        assert out.raw[: len(flat)] == flat
        assert firmware.dropped(reader) == twin.dropped % 256
        count += number
    assert count > 800


def test_the_firmware_s_machine_is_its_twin_s(firmware):
    """The force shown, the samples, the answers and the watchdog, over frames and garbage at random times."""
    rng = random.Random(4)
    twin = Board(80_000, 20_000, 5_000_000, 20_000)
    reader = ctypes.create_string_buffer(firmware.reader_size())
    board = ctypes.create_string_buffer(firmware.board_size())
    firmware.begin(board, twin.radius, twin.resolution, twin.most, twin.watchdog)
    out, seen = ctypes.create_string_buffer(4096), set()
    now = 2**32 - 300_000  # the clock begins anew on the way
    for k in range(3000):
        now = (now + rng.choice([300, 1000, 1000, 19_000, 25_000])) % 2**32
        force = rng.choice([0, 0, rng.randrange(-7_000_000, 7_000_000)])
        data = rng.choice([*2 * [hf.encode_packet(hf.ForceBody(k % 65536, force))],
                           some_stream(rng, 1), b"", hf.encode_packet(hf.HelloBody())])  # fmt: skip
        length = firmware.take(board, reader, data, ctypes.c_size_t(len(data)), ctypes.c_uint32(now), out)
        assert out.raw[:length] == twin.take(data, now)
        firmware.watch(board, ctypes.c_uint32(now))
        twin.watch(now)
        counts, velocity = rng.getrandbits(31) - 2**30, rng.getrandbits(20) - 2**19
        lost = firmware.dropped(reader)
        length = firmware.sample(board, out, ctypes.c_uint32(now), counts, velocity, ctypes.c_uint8(lost))
        assert out.raw[:length] == twin.sample(now, counts, velocity)
        seen.add((twin.let_go, twin.limited, twin.force != 0))
    assert {(True, False, False), (False, False, True), (False, True, True), (False, False, False)} <= seen


# -- what the machine is for -----------------------------------------------------------------------------------


def shows(board, force, now, sequence=1):
    board.take(hf.encode_packet(hf.ForceBody(sequence, force)), now)
    board.watch(now)
    return board.force


def test_the_watchdog_lets_go_and_stays_so_until_a_force_of_zero():
    board = Board(80_000, 20_000, 5_000_000, 20_000)
    assert shows(board, 1_000_000, 0) == 0  # first a force of zero
    assert shows(board, 0, 1000) == 0
    assert shows(board, 1_000_000, 2000) == 1_000_000
    board.watch(22_000)
    assert board.force == 1_000_000
    board.watch(22_001)
    assert board.force == 0
    assert board.let_go
    assert shows(board, 1_000_000, 23_000) == 0
    assert shows(board, 0, 24_000) == 0
    assert not board.let_go
    assert shows(board, -9_000_000, 25_000) == -5_000_000
    assert board.limited


def test_damaged_frames_do_not_feed_the_watchdog():
    board = Board(80_000, 20_000, 5_000_000, 20_000)
    shows(board, 0, 0)
    shows(board, 1_000_000, 1000)
    for now in range(2000, 21_000, 1000):
        damaged = bytearray(hf.encode_packet(hf.ForceBody(3, 2_000_000)))
        damaged[5] ^= 0x10
        board.take(bytes(damaged), now)
        board.watch(now)
        assert board.force == 1_000_000
    board.watch(21_001)
    assert board.force == 0
    assert board.reader.dropped == 19
