"""The sketch on a simulated board: its sensor through flips, its force on the pins, its clock, watchdog.

simavr runs the machine code that a board would, cycle for cycle.  What is compared with is the magnet's own motion, the
timer's registers and formulas written here; frames are those of the host's driver.
"""

import concurrent.futures

import numpy as np
import pytest

from fsm_dyn.devices import hapkit as hf
from tests.firmware import rig

pytestmark = pytest.mark.firmware

READINGS = [(48, 971), (0, 1023), (20, 1000), (110, 905), (300, 1001)]  # least and largest of a sensor, counts
NOISE = 1.0  # counts either way
SETTLED = 4  # counts by which readings after a flip may differ (``hapkit_sensor.h``)
HELLO = [(0.005, hf.encode_packet(hf.HelloBody()) + hf.encode_packet(hf.ZeroBody()) + hf.SAFE_PACKET)]
RADIUS, SECTOR, PULLEY, FULL = 0.0657, 0.0732, 0.0042, 0.03  # the sketch's: m, m, m, N m


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    assert not rig.missing(), f"{rig.missing()} are missing; `.ci/get_compiler avr` gets them"
    folder = tmp_path_factory.mktemp("board")
    return rig.built_board(folder), rig.built_sketch(folder)


def magnet(readings, noise=NOISE, slew=30e-6):
    least, most = readings
    return rig.Magnet(least, most - least + 1 - 0.37, noise, slew)


def flips(seen, span):
    """Instants at which the magnet passes from one span into the next."""
    times, places = seen.places.T
    return times[1:][np.diff(np.floor(places / span)) != 0]


def runs(tools, seconds, noise, folder):
    """One board for each sensor, with nothing known of it, and switched on again when it has measured the span."""

    def both(readings):
        eeprom = folder / str(readings[0])
        given = magnet(readings, noise)
        return [(given.span, rig.run(*tools, seconds, HELLO, given, seed, eeprom)) for seed in (1, 2)]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [run for pair in pool.map(both, READINGS) for run in pair]


def held(found, noise, most):
    """Nothing is lost for good, and errors are as small as the sensor lets them be; return the largest of each kind."""
    worst = {"measuring": 0.0, "known": 0.0, "at flips": 0.0}
    for k, (span, seen) in enumerate(found):
        error, begun = seen.errors()
        at = flips(seen, span)
        assert len(at) >= most
        near = np.abs(begun[:, None] - at).min(axis=1) < 2.5e-3
        early = np.zeros_like(near) if k % 2 else np.searchsorted(at, begun) < 128
        for name, which in (("at flips", near & ~early), ("known", ~near & ~early), ("measuring", early)):
            worst[name] = max(worst[name], np.abs(error[which]).max(initial=0.0))
    assert worst["known"] <= 1.5 + noise, "half a count is what positions are rounded by"
    assert worst["at flips"] <= 1.0 + SETTLED / 2.0 + 2.0 * noise, "the end of a flip may enter one of two readings"
    assert worst["measuring"] <= 3.0 + 3.0 * noise
    return worst


def test_flips_of_five_sensors(tools, tmp_path):
    """A step per flip of 56 counts was what a span of 980 in the place of 924 made; a reading in a flip cost 12 mm."""
    held(runs(tools, 8.0, NOISE, tmp_path), NOISE, 100)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_thousand_flips_of_five_sensors(tools, tmp_path):
    for noise in (0.0, NOISE):
        (tmp_path / str(noise)).mkdir()
        held(runs(tools, 65.0, noise, tmp_path / str(noise)), noise, 1000)


def test_a_flip_as_slow_as_a_sample_loses_nothing(tools):
    """Readings in its middle are passed over; those near its ends may be motions, from which the next goes on."""
    given = magnet(READINGS[0], slew=1e-3)
    seen = rig.run(*tools, 6.0, HELLO, given)
    error, begun = seen.errors()
    at = flips(seen, given.span)
    assert np.abs(error).max() < 64
    far = np.abs(begun[:, None] - at).min(axis=1) > 4e-3
    assert np.abs(error[far & (begun > 3.0)]).max() <= 2.0 + NOISE


def test_another_sensor_than_the_one_remembered(tools, tmp_path):
    """The remembered span is given up after two flips that do not fit."""
    eeprom = tmp_path / "eeprom"
    rig.run(*tools, 9.0, HELLO, magnet(READINGS[1]), eeprom=eeprom)
    stored = eeprom.read_bytes()
    assert int.from_bytes(stored[:3], "little") / 1024 == pytest.approx(1023.63, abs=0.3)
    other = magnet(READINGS[3])
    error, begun = rig.run(*tools, 4.0, HELLO, other, eeprom=eeprom).errors()
    assert np.abs(error[begun > 2.0] - np.median(error[begun > 2.0])).max() <= 3.0 + 3.0 * NOISE


def test_samples_do_not_drift(tools):
    """A sample a millisecond by the board's own clock, which is the crystal's though timer 0 runs 64 times as fast."""
    seen = rig.run(*tools, 3.0, HELLO)
    _, samples = seen.samples()
    times = np.array([body.time for body in samples])
    assert set(np.diff(times)) == {1000}
    assert len(samples) == pytest.approx(3.0e3 - 6, abs=3)
    begun = seen.places[1:, 0]
    assert np.diff(begun).mean() == pytest.approx(1e-3, rel=1e-6)
    assert np.abs(np.diff(begun[begun > 0.01]) - 1e-3).max() < 10e-6, "steps of the sensor are compared"


def test_the_force_on_the_pins(tools):
    """Duty goes with the root of the torque, at 62.5 kHz; the direction is the force's sign."""
    wanted = [0, 500_000, -500_000, 2_000_000, 5_000_000, -9_000_000, 0]
    said = HELLO + [
        (0.02 + 0.01 * k + 0.002 * j, hf.encode_packet(hf.ForceBody(5 * k + j + 1, force)))
        for k, force in enumerate(wanted)
        for j in range(5)
    ]
    seen = rig.run(*tools, 0.12, said)
    assert seen.prescaler == 1, "16 MHz / 256"
    times, levels = seen.levels.T
    for k, force in enumerate(wanted[1:-1], 1):
        at = 0.02 + 0.01 * k + 0.0095
        torque = min(abs(force), 5_000_000) * 1e-6 * RADIUS * PULLEY / SECTOR
        duty = seen.duties[np.searchsorted(seen.duties[:, 0], at) - 1, 1]
        assert duty == pytest.approx(255.0 * min(1.0, (torque / FULL) ** 0.5), abs=1.0)
        assert levels[np.searchsorted(times, at) - 1] == (force < 0)
    shown = {body.force for _, body in seen.bodies if isinstance(body, hf.SampleBody)}
    assert shown == {max(-5_000_000, min(5_000_000, force)) for force in wanted}
    answered = next(t for t, body in seen.bodies if isinstance(body, hf.SampleBody) and body.force == 500_000)
    assert answered < 0.03 + 0.0025


def test_the_watchdog_lets_go(tools):
    """20 ms after the last force, by the crystal; no force again before one of zero, whatever noise comes."""
    force = [(0.02 + 0.001 * k, hf.encode_packet(hf.ForceBody(k + 1, 2_000_000))) for k in range(10)]
    again = [(0.1, hf.encode_packet(hf.ForceBody(21, 2_000_000))), (0.11, hf.SAFE_PACKET)]
    again += [(0.115, hf.encode_packet(hf.ForceBody(22, 1_000_000)))]
    noise = [(0.06, bytes(range(1, 200)) + b"\0")]
    seen = rig.run(*tools, 0.125, HELLO + force + noise + again)
    states = [
        (t, body.force, bool(body.state & hf.LET_GO)) for t, body in seen.bodies if isinstance(body, hf.SampleBody)
    ]
    let_go = next(t for t, _, gone in states if gone and t > 0.025)
    assert let_go - 0.029 == pytest.approx(0.02, abs=0.0025)
    assert all(force == 0 for t, force, _ in states if let_go <= t < 0.115)
    assert states[-1][1:] == (1_000_000, False)
    assert max(body.dropped for _, body in seen.bodies if isinstance(body, hf.SampleBody)) == 1
