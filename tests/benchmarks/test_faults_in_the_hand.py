"""Every way of letting go and every fault x every emulated device: time to zero, peak speed and energy afterwards.

Tables in docs/how_to/device.md are written anew.  A hand that stays tells how long a force lasts and the work done on
it; one that is gone at the same instant tells speed and kinetic energy of the device.
"""

import os
import signal
from contextlib import closing
from functools import partial

import pytest

import fsm_dyn
from fsm_dyn.runtime.abi import LiveHeader
from tests.benchmarks.hand import (
    COMMANDS,
    DRIVERS,
    LIBRARIES,
    UNWATCHED,
    WATCHDOG,
    Hand,
    put_rows,
    put_table,
    undisturbed,
)

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(3600)]

STIFFNESSES = (200.0, 1000.0, 5000.0)  # N/m
BEARABLE = 1000.0  # N/m; stiffer couplers swing by themselves on these devices, and what they give scatters
MILLI = 1e3
STOP, KILL = signal.SIGSTOP, signal.SIGKILL


@pytest.fixture(scope="module")
def wall():
    return fsm_dyn.compile(fsm_dyn.load("virtual_wall"))


def kill(which, how):
    return lambda hand: os.kill(getattr(hand, which), how)


def both(hand):
    os.kill(hand.watchdog_pid, STOP)
    os.kill(hand.tick_pid, STOP)


def spoil(what, **arguments):
    return lambda hand: hand.device.do(what, **arguments)


def nothing(hand):
    pass


FAULTS = {  # what happens; how long it is looked at, s
    "no samples": (spoil("stall"), 0.3),
    "garbage": (spoil("garbage", on=True), 0.3),
    "half frames": (spoil("half", on=True), 0.3),
    "positions jump by 20 cm": (spoil("jump", by=0.2), 0.3),
    "the device hears nothing": (spoil("freeze"), 0.3),
    "no power": (spoil("unplug"), 0.3),
    "tick process stopped": (kill("tick_pid", STOP), 0.3),
    "tick process killed": (kill("tick_pid", KILL), 0.3),
    "guard stopped": (kill("watchdog_pid", STOP), 0.3),
    "guard killed": (kill("watchdog_pid", KILL), 0.3),
    "guard and tick process stopped": (both, 0.3),
    "session stopped": (lambda hand: hand.owner.send_signal(STOP), 1.0),
    "session killed": (lambda hand: hand.owner.kill(), 0.5),
}


def measured(wall, driver, happen, gone, duration, **options):
    """What became of it."""

    def once():
        with closing(Hand(wall, driver, **options)) as hand:
            hand.press()
            return hand.measure(lambda: happen(hand), gone, duration)

    return undisturbed(once)


def let_go(wall, driver, stiffness, gone, names):
    """The meters after each of these commands, ``end`` last, by their names; the grip is open after 0.2 s."""
    found = {}
    for _ in range(6):
        left = [name for name in names if name not in found]
        if not left:
            break
        hand = Hand(wall, driver, stiffness=stiffness)
        try:
            for name in left:
                hand.begin_again()
                hand.press()
                found[name] = hand.measure(partial(command, hand, name), gone, 0.2 if gone else 0.18)[2]
        except RuntimeError as error:
            print(f"\nagain: {error}")
        finally:
            hand.close()
    return {name: found[name] for name in names}


def command(hand, name):
    if name == "end":
        hand.session._block.header[LiveHeader.STOP_REQUESTED] = 1  # as by close, which would wait for the end
    elif name:
        hand.session.send(name, **COMMANDS[name])


BLIND = {"the device hears nothing", "guard and tick process stopped"}  # where only a device's own watchdog is left
UNHEARD = {"the device hears nothing"}  # behind a library, whose process removes the force for the others


def helpless(driver, name, watchdog):
    """Whether nothing is left that could end a force."""
    if driver in LIBRARIES:
        return not watchdog and name in UNHEARD
    return not watchdog and name in BLIND


SLOWEST = 0.04  # s to zero, on a busy machine


def row_of(wall, driver, name, watchdog, happen, duration):
    """A row of the table, and whether it exceeds a bound that the program can keep."""
    own = name.startswith("session")
    options = {"watchdog": watchdog, "own_process": own}
    after, why, _ = measured(wall, driver, happen, False, duration, **options)
    _, _, meter = measured(wall, driver, happen, True, duration, **options)
    line = (
        f"| {name} | {driver} | {'none' if driver in UNWATCHED else 'on' if watchdog else 'off'} "
        f"| {'stays' if after is None else f'{MILLI * after:.0f}'} | {why} "
        f"| {meter['peak_speed']:.2f} | {MILLI * meter['peak_energy']:.1f} |"
    )
    blind = helpless(driver, name, watchdog)
    return line, (after is None) != blind or (after is not None and not own and after > SLOWEST)


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_fault(wall, driver):
    late = []
    _, _, meter = measured(wall, driver, nothing, True, 0.3)
    lines = [f"| the run continues | {driver} | | | | {meter['peak_speed']:.2f} | {MILLI * meter['peak_energy']:.1f} |"]
    for name, (happen, duration) in FAULTS.items():
        if driver in LIBRARIES and name == "half frames":
            continue  # numbers of a library come whole
        for watchdog in (0.0,) if driver in UNWATCHED else (WATCHDOG, 0.0):
            line, wrong = row_of(wall, driver, name, watchdog, happen, duration)
            lines.append(line)
            print(line, f"load {os.getloadavg()[0]:.0f}", flush=True)
            late += [line] if wrong else []
    put_rows("device faults", driver, lines)
    assert not late


def stopped(wall, happen, duration, **options):
    """What became of a device that follows."""

    def once():
        with closing(Hand(wall, "udp", kind="admittance", **options)) as hand:
            hand.set_off()
            return hand.stop(lambda: happen(hand), duration)

    return undisturbed(once)


def test_every_fault_of_a_device_that_follows(wall):
    late = []
    lines = [
        "| event | its watchdog | time until no motion is commanded, ms | ended by | displacement, mm |",
        "|---|---|--:|---|--:|",
    ]
    for name, (happen, duration) in FAULTS.items():
        for watchdog in (WATCHDOG, 0.0):
            own = name.startswith("session")
            after, why, moved = stopped(wall, happen, duration, watchdog=watchdog, own_process=own)
            lines.append(
                f"| {name} | {'on' if watchdog else 'off'} "
                f"| {'stays' if after is None else f'{MILLI * after:.0f}'} | {why} | {MILLI * moved:.1f} |"
            )
            print(lines[-1], flush=True)
            blind = name in BLIND and not watchdog
            if (after is None) != blind or (after is not None and not own and after > SLOWEST):
                late.append((name, watchdog, after))
    put_table("faults while following", lines)
    assert not late


def test_every_command(wall):
    """Energy at most 1.2 x + 1 mJ of what a hand that lets go is given where the run goes on; work at most 1 mJ."""
    lines = [
        "| driver | K, N/m | the run goes on, mJ | " + " | ".join((*COMMANDS, "end")) + " |",
        "|---|--:|--:|" + (len(COMMANDS) + 1) * "--:|",
    ]
    bad = []
    for driver in DRIVERS:
        for stiffness in STIFFNESSES:
            gone = let_go(wall, driver, stiffness, True, ("", *COMMANDS, "end"))
            stays = let_go(wall, driver, stiffness, False, (*COMMANDS, "end"))
            goes_on = MILLI * gone[""]["peak_energy"]
            cells = []
            for name in stays:
                energy, work = MILLI * gone[name]["peak_energy"], MILLI * max(0.0, stays[name]["most_work"])
                cells.append(f"{energy:.1f} ({work:.1f})")
                if stiffness <= BEARABLE and (energy > 1.2 * goes_on + 1.0 or work > 1.0):
                    bad.append((driver, stiffness, name, energy, goes_on, work))
            lines.append(f"| {driver} | {stiffness:g} | {goes_on:.1f} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    put_table("letting go", lines)
    assert not bad
