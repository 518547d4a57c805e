"""Messages from a page: what is taken, what is refused."""

import json

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.page import broadcast as commands
from fsm_dyn.page.broadcast import RateLimiter, read_command

POINT = {"do": "point", "port": "handle", "x": 1.0, "y": -2, "turn": 0.0, "held": True}


@pytest.mark.parametrize("word", ["run", "pause", "reset", "clear", "restart", "next"])
def test_plain_commands_keep_nothing_else(word):
    assert read_command(json.dumps({"do": word, "until": "transition"})) == {"do": word}


def test_commands_with_fields():
    assert read_command('{"do": "step", "ticks": 3}') == {"do": "step", "ticks": 3}
    assert read_command('{"do": "speed", "value": 0.001}') == {"do": "speed", "value": 0.001}
    assert read_command('{"do": "schedule", "on": false}') == {"do": "schedule", "on": False}
    assert read_command('{"do": "look_ahead", "on": true}') == {"do": "look_ahead", "on": True}
    assert read_command('{"do": "port", "port": "a", "twist": true}') == {"do": "port", "port": "a", "twist": True}
    assert read_command('{"do": "seek", "at": 2, "after": true}') == {"do": "seek", "at": 2.0, "after": True}
    assert read_command('{"do": "set", "name": "k", "value": 3}') == {"do": "set", "name": "k", "value": 3.0}
    assert read_command('{"do": "input", "name": "push", "value": -1}') == {
        "do": "input",
        "name": "push",
        "value": -1.0,
    }
    assert read_command('{"do": "initial", "mode": ""}') == {"do": "initial", "mode": ""}
    assert read_command('{"do": "view_direction", "azimuth": 1, "elevation": -1}') == {
        "do": "view_direction", "azimuth": 1.0, "elevation": -1.0,
    }  # fmt: skip
    assert read_command('{"do": "seek_row", "number": 17}') == {"do": "seek_row", "number": 17}
    assert read_command('{"do": "transition_details", "first": 0}') == {"do": "transition_details", "first": 0}
    assert read_command('{"do": "emulate", "what": "stall", "on": true}') == {
        "do": "emulate", "what": "stall", "on": True,
    }  # fmt: skip
    assert read_command('{"do": "hand", "axis": 1, "value": -0.03}') == {"do": "hand", "axis": 1, "value": -0.03}
    assert read_command('{"do": "press", "port": "tip", "down": true, "speed": 0.3}') == {
        "do": "press", "port": "tip", "down": True, "speed": 0.3,
    }  # fmt: skip
    assert read_command(json.dumps(POINT)) == {
        "do": "point", "port": "handle", "at": (1.0, -2.0), "turn": 0.0, "held": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "{}",
        '{"do": "set", "values": {"m": 1}}',
        '{"do": ["run"]}',
        '{"do": "step"}',
        '{"do": "seek", "at": 1}',
        '{"do": "press", "port": "tip", "down": true, "speed": 0}',
        '{"do": "press", "port": "tip", "down": 1, "speed": 0.3}',
        '{"do": "set", "name": "k", "value": "3"}',
        '{"do": "set", "name": "k", "value": Infinity}',
        '{"do": "initial"}',
        '{"do": "step", "ticks": 1' + "0" * 400 + "}",
        '{"do": "set", "name": "k", "value": -1' + "0" * 400 + "}",
        '{"do": ' + "[" * 1000 + "}",
        '{"do": ' + "[" * 500 + "]" * 500 + "}",
        '{"do": "set", "name": "k", "value": ' + "[" * 400 + "]" * 400 + "}",
        '{"do": "set", "name": "\\ud800", "value": 1}',
        '{"do": "initial", "mode": "\\u0000"}',
        '{"do": "seek_row", "number": -1}',
        '{"do": "transition_details"}',
        '{"do": "emulate", "what": "stall"}',
        '{"do": "hand", "axis": 9, "value": 0}',
        '{"do": "hand", "axis": 0, "value": 2}',
        '{"do": "step", "ticks": 0}',
        '{"do": "step", "ticks": 1e9}',
        '{"do": "step", "ticks": true}',
        '{"do": "speed", "value": 2}',
        '{"do": "speed", "value": "1"}',
        '{"do": "speed", "value": NaN}',
        '{"do": "port", "port": 3, "twist": false}',
        '{"do": "port", "port": "a"}',
        json.dumps({**POINT, "x": 1e300}),
        json.dumps({**POINT, "y": None}),
        json.dumps({**POINT, "port": "p" * 201}),
        json.dumps({"do": "run", "more": "x" * commands.LONGEST}),
        '{"do": ' * 200,
    ],
)
def test_everything_else_is_refused(text):
    with pytest.raises(InputError):
        read_command(text)


def test_the_allowance_ends_and_is_refilled(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(commands.time, "monotonic", lambda: now[0])
    allowance = RateLimiter()
    assert sum(allowance.take() for _ in range(2000)) == commands.BURST
    now[0] = 0.5
    assert sum(allowance.take() for _ in range(2000)) == commands.MESSAGE_RATE / 2
