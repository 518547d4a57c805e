"""The datagrams of a device program: there and back, by hand, and what none of them is."""

from __future__ import annotations

import contextlib
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fsm_dyn.devices import udp as datagrams
from fsm_dyn.devices.udp import BadDatagramError, ForceDatagram, SampleDatagram
from fsm_dyn.runtime.abi import ForceFlag

WORDS = some.integers(0, 2**32 - 1)
NUMBERS = some.floats(allow_nan=False, allow_infinity=False)
AXES = some.integers(1, 6)


def tuples(axes):
    return some.tuples(*[NUMBERS] * axes)


@given(some.data(), AXES, WORDS, WORDS, NUMBERS, some.booleans())
def test_a_sample_there_and_back(data, axes, sequence, buttons, time, measured):
    sent = SampleDatagram(
        sequence, time, buttons, data.draw(tuples(axes)), data.draw(tuples(axes)) if measured else None
    )
    assert datagrams.unpack_sample(datagrams.pack_sample(sent), axes) == sent


@given(some.data(), AXES, WORDS, WORDS, NUMBERS, some.integers(0, 7))
def test_a_force_there_and_back(data, axes, sequence, echo, time, flags):
    sent = ForceDatagram(sequence, time, echo, data.draw(tuples(axes)), flags)
    assert datagrams.unpack_force(datagrams.pack_force(sent), axes) == sent


def test_the_bytes_are_those_of_the_documentation():
    """Written out by hand: offsets 0 magic, 4 version, 5 axes, 6 flags, 8 sequence, 12 word, 16 time, 24 numbers."""
    sample = datagrams.pack_sample(SampleDatagram(0x01020304, 0.5, 0b101, (1.0, -2.0), (0.25, 0.0)))
    assert sample[:8] == b"FSMS\x01\x02\x01\x00"
    assert sample[8:16] == b"\x04\x03\x02\x01\x05\x00\x00\x00"
    assert sample[16:24] == b"\x00\x00\x00\x00\x00\x00\xe0\x3f"  # one half
    assert struct.unpack("<4d", sample[24:]) == (1.0, -2.0, 0.25, 0.0)
    force = datagrams.pack_force(ForceDatagram(7, 0.0, 9, (3.0,), ForceFlag.LET_GO))
    assert force == b"FSMF\x01\x01\x04\x00\x07\x00\x00\x00\x09\x00\x00\x00" + struct.pack("<dd", 0.0, 3.0)


@given(some.binary(max_size=200), AXES)
def test_no_bytes_at_all_do_harm(data, axes):
    """Whatever comes is a finite sample of so many axes, or refused."""
    with contextlib.suppress(BadDatagramError):  # anything else that is raised fails
        sample = datagrams.unpack_sample(b"FSMS\x01" + bytes([axes]) + data, axes)
        assert len(sample.position) == axes
        assert all(map(math.isfinite, (sample.time, *sample.position)))


GOOD = datagrams.pack_sample(SampleDatagram(1, 0.0, 0, (0.0, 0.0), (0.0, 0.0)))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "size"),
        (GOOD[:23], "size"),
        (GOOD[:-1], "size"),
        (GOOD[:-8], "size"),
        (GOOD + bytes(8), "size"),
        (GOOD[: len(GOOD) // 2], "size"),
        (b"FSMF" + GOOD[4:], "magic"),
        (GOOD[:4] + b"\x02" + GOOD[5:], "version"),
        (GOOD[:5] + b"\x03" + GOOD[6:], "axes"),
        (GOOD[:-8] + struct.pack("<d", math.nan), "number"),
        (GOOD[:-8] + struct.pack("<d", -math.inf), "number"),
        (GOOD[:16] + struct.pack("<d", math.nan) + GOOD[24:], "number"),
    ],
)
def test_what_is_no_sample_is_refused_with_its_reason(data, why):
    with pytest.raises(BadDatagramError, match=f"^{why}$"):
        datagrams.unpack_sample(data, 2)


@given(WORDS, some.integers(1, 2**31 - 1))
def test_numbers_go_on_past_their_end(sequence, further):
    later = (sequence + further) % 2**32
    assert datagrams.is_newer(later, sequence)
    assert not datagrams.is_newer(sequence, later)
    assert not datagrams.is_newer(sequence, sequence)
