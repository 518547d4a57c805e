"""Finished runs, as a page is shown them: the same instants, modes, transitions and words as the run had."""

import asyncio
import base64
import json

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.session import LiveSession
from fsm_dyn.page.frames import HEAD
from fsm_dyn.page.playback import (
    PlaybackFrames,
    PlaybackSession,
    from_recording,
    from_trajectory,
    open_recorded_run,
    plain_json,
)

KINDS = {"times": "<f8", "modes": "<i4", "values": "<f4"}
MOTION = [[0, 0.05, 0.9, 0.0], [1, 0.03, 1.1, 3.0]]


def unpacked(text, kind="<f8"):
    return np.frombuffer(base64.b64decode(text), kind)


@pytest.fixture(scope="module")
def cart():
    graph = fsm_dyn.compile("shopping_cart")
    return fsm_dyn.simulate(graph, until=4.5)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A held wall: a parameter changed, a reset, going back."""
    path = tmp_path_factory.mktemp("film") / "wall.mcap"
    settings = LiveSettings(
        paced=False,
        realtime_privileges=False,
        watchdog_timeout=20.0,
        stall_ticks=10**6,
        limits=Limits(ramp=0.02, velocity=20.0),
    )
    hand = {"axes": 2, "motion": MOTION, "stop": "watchdog"}
    graph = fsm_dyn.compile("virtual_wall")
    with LiveSession.start(graph, "scripted", hand, settings=settings, record=path) as session:
        session.wait_for_ticks(1200)
        session.send("set", values={"k": 1e4})
        session.wait_for_ticks(1800)
        session.send("reset")
        session.wait_for_ticks(3500)
    return path


def test_a_run_is_shown_at_its_rows(cart):
    film = from_trajectory(cart)
    playback = PlaybackFrames(film)
    payload = playback.payload()
    assert payload["playback"]["span"] == [0.0, 4.5]
    assert payload["totals"]["transitions"] == len(cart.transitions) >= 3
    assert unpacked(payload["playback"]["when"]).tolist() == [x.time for x in cart.transitions]
    bands = payload["playback"]["bands"]
    begins, met = unpacked(bands["begins"]), unpacked(bands["modes"], "<i4")
    assert begins.tolist() == [0.0, *(x.time for x in cart.transitions)]
    names = [mode["name"] for mode in payload["graph"]["modes"]]
    assert [names[k] for k in met] == [cart.modes[0], *(x.target for x in cart.transitions)]
    assert set(cart.t) <= set(film.t)  # between them frames are added, so that short visits are seen
    third = len(cart.t) // 3
    for row, number in ((0, 0), (third, int(np.searchsorted(film.t, cart.t[third]))), (-1, len(film.t) - 1)):
        frame = playback.frame(number)
        assert frame[2] == cart.t[row]
        assert names[int(frame[3])] == cart.modes[row]
        width = 2 + len(payload["quantities"])
        quantities = dict(zip((q["name"] for q in payload["quantities"]), frame[-width + 2 :], strict=True))
        assert quantities["u1"] == cart["u1"][row]
        assert quantities["total energy"] == pytest.approx(cart["energy.kinetic"][row] + cart["energy.potential"][row])
        guards = int(frame[9])
        picture = payload["picture"]
        head = HEAD + 6 * len(picture["shapes"]) + 2 * picture["anchors"]
        head += 4 * len(payload["pushes"]) + 9 * len(payload["forces"])
        assert len(frame) == head + 2 * guards + width
    told = [item["cause"] for item in playback.transition_details(0)]
    assert len(told) == len(cart.transitions)
    for words, transition in zip(told, cart.transitions, strict=True):
        assert words.startswith("caster ")
        assert ("grips" in words) == (" sticks " in transition.cause)
    spent = payload["totals"]["seconds"]
    assert sum(spent.values()) == pytest.approx(4.5, abs=1e-12)


def test_a_transition_is_gone_to_on_its_later_side(cart):
    film = from_trajectory(cart)
    for x, (_, target) in zip(cart.transitions, film.changes, strict=True):
        number = film.number(x.time, after=True)
        assert film.t[number] == x.time
        assert film.mode[number] == target
        assert film.mode[film.number(np.nextafter(x.time, -1.0))] != target
    assert film.number(-1.0) == 0
    assert film.number(99.0) == film.number(99.0, after=True) == len(film.t) - 1


def test_a_saved_run_plays_the_same(cart, tmp_path):
    path = cart.save(tmp_path / "cart.run.json")
    film, own = open_recorded_run(path), from_trajectory(cart)
    assert film.t.tolist() == own.t.tolist()
    assert PlaybackFrames(film).frame(100) == pytest.approx(PlaybackFrames(own).frame(100), rel=1e-12, abs=1e-12)


def test_a_recording_goes_along_a_clock_that_never_goes_back(recording):
    recorded = read_recording(recording)
    film = from_recording(recorded)
    assert np.diff(film.t).min() < 0.0, "there was a reset"
    assert np.diff(film.clock).min() >= 0.0
    assert len(film.when) == len(recorded.records) >= 4
    assert np.diff(film.when).min() >= 0.0
    names = recorded.settings.modes
    for k in range(0, len(film.t), 97):
        state = film.encoder.evaluator.automaton.name_of(film.at(k).states).name
        assert state == names[int(recorded.rows[k, 5])]
    for k, (a, b) in enumerate(film.changes):
        after = film.number(film.when[k], after=True)
        assert film.mode[after] == b or after + 1 < len(film.t)
        x = film.transition(k)
        assert (x.source, x.target) == tuple(
            film.encoder.evaluator.automaton.name_of(film.states[i]).name for i in (a, b)
        )
        assert x.time == recorded.records[k, 1]


def test_parameters_set_on_the_way_count_from_then_on(recording):
    film = from_recording(read_recording(recording))
    place = film.encoder.evaluator.layout.p.index("k")
    before, after = film.at(300).c[place], film.at(len(film.t) - 1).c[place]
    assert after == 1e4 != before


def test_charts_are_finite_and_even_over_what_is_asked_for(recording):
    playback = PlaybackFrames(from_recording(read_recording(recording)))
    payload = playback.payload()
    span = payload["playback"]["span"]
    for low, high in (span, (1.0, 1.2)):
        chosen = playback.chosen(400, low, high)
        charts = playback.charts(chosen, playback.sampled(chosen))
        times, modes, values = (unpacked(charts[key], kind) for key, kind in KINDS.items())
        assert len(values) == len(payload["quantities"]) * len(times) == len(payload["quantities"]) * len(modes)
        assert np.isfinite(values).all()
        assert times.tolist() == sorted(times)
        assert times[0] <= low < high <= times[-1]
        assert np.diff(times).max() <= 2.1 * max((high - low) / 200, 1e-3), "as dense as asked for, or as the rows are"
        row = playback.frame(int(chosen[7]))
        found = values.reshape(len(payload["quantities"]), -1)[:, 7]
        assert found == pytest.approx(row[-len(found) :], rel=1e-6), "four bytes of each number"


def test_playback_session_commands(cart):
    heard = []

    async def visit():
        session = PlaybackSession(lambda: from_trajectory(cart, "run"), "cart")
        session.join(heard.append)
        with pytest.raises(InputError, match="no run loaded"):
            await session.carry_out({"do": "seek_row", "number": 3})
        await session.play()
        await session.carry_out({"do": "seek", "at": 2.0, "after": False})
        await session.carry_out({"do": "transition_details", "first": 1})
        await session.carry_out({"do": "charts", "from": 0.0, "to": 9.0})
        await session.carry_out({"do": "charts", "from": 1.0, "to": 1.5})
        while sum(message["kind"] == "charts" for message in heard if isinstance(message, dict)) < 2:
            await asyncio.sleep(0.01)
        with pytest.raises(InputError, match="not available in playback"):
            await session.carry_out({"do": "reset"})

    asyncio.run(visit())
    kinds = [message["kind"] if isinstance(message, dict) else "frame" for message in heard]
    wanted = ["starting", "model", "frame", "frame", "transition_details", "charts", "charts"]
    assert [kind for kind in kinds if kind != "guards"] == wanted
    coarse, fine = (message for message in heard[-2:])
    assert coarse["span"] == fine["span"] == [1.0, 1.5], "the first question was given up for the second"
    assert len(coarse["times"]) < len(fine["times"])
    frame = np.frombuffer([m for m in heard if isinstance(m, bytes)][-1], "<f8")
    assert frame[2] == cart.t[cart.t <= 2.0][-1]
    assert heard[-3]["items"][0]["number"] == 1


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"\x89MCAP0\r\n"])
def test_what_is_no_run_is_reported(tmp_path, content):
    path = tmp_path / "broken.mcap"
    path.write_bytes(content)
    heard = []

    async def visit():
        session = PlaybackSession(lambda: open_recorded_run(path), "broken.mcap")
        await session.play()
        session.join(heard.append)

    asyncio.run(visit())
    assert heard[0]["kind"] == "error"
    assert str(path) in heard[0]["where"]


def test_text_of_a_model_ends_no_script():
    text = plain_json({"a": "</script><!--\u2028", "b": [1.5, None]})
    assert "<" not in text
    assert json.loads(text) == {"a": "</script><!--\u2028", "b": [1.5, None]}
