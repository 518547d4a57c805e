"""Messages to the page's server that no page would send: refused by name, or carried out."""

import asyncio
import json
import random
from functools import cache
from unittest import mock

import fsm_dyn
from fsm_dyn.page import playback as playback_session
from fsm_dyn.page.broadcast import read_command
from fsm_dyn.page.playback import PlaybackSession, from_trajectory
from tests.campaigns.artefacts import NUMBERS, tampered_bytes, tampered_values
from tests.campaigns.files import LEAVES
from tests.campaigns.judging import batch

TRIALS = 500  # of a batch
DEEPEST = 400
SAMPLES = (
    *({"do": word} for word in ("run", "pause", "reset", "clear", "restart", "next")),
    {"do": "step", "ticks": 3}, {"do": "speed", "value": 0.5}, {"do": "schedule", "on": False},
    {"do": "port", "port": "handle", "twist": True}, {"do": "view_direction", "azimuth": 1.0, "elevation": -1.0},
    {"do": "set", "name": "k", "value": 3.0}, {"do": "input", "name": "push", "value": -1.0},
    {"do": "initial", "mode": "open"}, {"do": "seek", "at": 0.2, "after": True},
    {"do": "charts", "from": 0.0, "to": 0.3},
    {"do": "seek_row", "number": 17}, {"do": "transition_details", "first": 0},
    {"do": "emulate", "what": "stall", "on": True}, {"do": "hand", "axis": 1, "value": -0.03},
    {"do": "point", "port": "handle", "x": 1.0, "y": -2, "turn": 0.0, "held": True},
)  # fmt: skip


def message(seed, number):
    """The text of a message."""
    chance = random.Random(f"message {seed} {number}")
    whole = chance.choice(SAMPLES)
    match chance.randrange(6):
        case 0:
            return tampered_bytes(json.dumps(whole).encode(), chance).decode("utf-8", "replace")
        case 1:
            depth = chance.randint(1, DEEPEST)
            return json.dumps(whole)[:-1] + ', "more": ' + "[" * depth + "]" * chance.choice((depth, depth - 1)) + "}"
        case 2:
            key = chance.choice(list(whole))
            digits = chance.choice(("1" + "0" * chance.randint(1, 900), "1e999", "-Infinity", "NaN", "1e-400", "0x7"))
            return json.dumps({**whole, key: "@"}).replace('"@"', digits)
        case 3:
            key = chance.choice([*whole, "do", "more"])
            return json.dumps({**whole, key: chance.choice((*NUMBERS, *LEAVES, "\ud800", "\x00", "x" * 300))})
        case _:
            return json.dumps(tampered_values(whole, chance))


@cache
def session():
    """A page's other end: a recorded run whose instants can be asked for."""
    trajectory = fsm_dyn.simulate(fsm_dyn.compile("latch"), 0.3)
    found = PlaybackSession(lambda: from_trajectory(trajectory), "latch")
    asyncio.run(found.play())
    return found


async def _carried_out(text):
    shown = session()
    with mock.patch.object(playback_session, "package_error", _as_it_is):
        await shown.carry_out(read_command(text))
        if shown._charting is not None:
            await shown._charting
            shown._charting = None


def _as_it_is(error, what):
    """In place of the message that a page would get."""
    raise error


def messages(seed, trials=TRIALS):
    """Reading them, and carrying out those that can be read."""
    session()

    def trial(number):
        text = message(seed, number)
        return (lambda: asyncio.run(_carried_out(text))), text, False, f"{number}"

    return batch(seed, map(trial, range(trials)))
