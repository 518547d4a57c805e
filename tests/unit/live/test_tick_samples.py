"""Rows of a live run as samples: the forces in all connections at every tick, without work for the tick."""

import base64

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.tick_samples import samples_of_rows
from fsm_dyn.page.playback import PlaybackFrames, from_recording

BOB = {
    "fsm_dyn": 1,
    "name": "bob",
    "parameters": {"m": "0.5 kg", "l": "0.3 m"},
    "joints": {"pin": {"revolute": {"child": "B", "at": "O", "axis": "N.z"}}},
    "points": {"P": {"from": "O", "at": "-l*B.y"}},
    "bodies": {"bob": {"frame": "B", "center": "P", "mass": "m", "inertia": {"zz": "1e-3 kg*m^2"}}},
    "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
    "contacts": {"stop": {"gap": "dot(pos(P), N.x) + 0.02 m", "restitution": 0}},
    "ports": {"handle": {"point": "P", "body": "bob", "axes": ["N.x"], "stiffness": "200 N/m", "damping": "2 N*s/m"}},
    "initial": {"pin": "0.2 rad"},
}
TICKS = 1000


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """Return a session of an unpaced run moved by a hand, its rows as samples, and the same run offline."""
    path = tmp_path_factory.mktemp("live") / "run.mcap"
    hand = {"axes": 1, "motion": [[0, -0.15, 1.5, 0.0]]}
    settings = LiveSettings(paced=False, ticks=TICKS)
    with LiveSession.start(fsm_dyn.compile(BOB), "scripted", hand, settings=settings, record=path) as session:
        session.wait_for_ticks(TICKS)
        session.events()
        rows, _ = session.rows(0)
        samples, following = session.samples(0)
    assert following == len(samples) == len(rows)
    return session, rows, samples, read_recording(path)


def test_forces_at_every_tick_are_those_of_the_run_offline(live):
    """The pin carries weight, hand and stop of the bob, at all ticks in both modes."""
    samples, run = live[2], off_line(live[3])
    jumps = np.array([item.time for item in run.transitions])
    assert len(jumps)
    kept = (samples.t > 0.0) & (samples.t < run.t[-1])
    kept &= np.abs(samples.t[:, None] - jumps).min(axis=1) > 1e-3
    assert kept.sum() > TICKS // 2
    assert len(set(samples.mode[kept])) == 2
    same = run.sample(samples.t[kept])
    for name, pin in same.pins.items():
        np.testing.assert_allclose(samples.pins[name].wrench()[kept], pin.wrench(), rtol=1e-7, atol=1e-9)
    # by hand: only pin and weight act across the directions of hand and stop
    q, u, a = samples.q[kept, 0], samples.u[kept, 0], samples.u_dot[kept, 0]
    lift = 0.5 * 0.3 * (np.sin(q) * a + np.cos(q) * u**2) + 0.5 * 9.81
    np.testing.assert_allclose(samples.pins["pin"].force[kept, 1], lift, rtol=1e-9, atol=1e-12)


def test_parameters_count_since_they_were_set(live):
    """A bob made heavier at a tick weighs more from there on; a structural parameter changes at the next reset."""
    session, rows, samples, _ = live
    p = list(session.graph.automaton.terms.layout.p)
    events = [
        {"event": "pending_reset", "parameters": ["l"]},
        {"event": "command_done", "tick": 100, "command": {"do": "set", "values": {"m": 0.8, "l": 0.4}}},
        {"event": "command_done", "tick": 150, "command": {"do": "pause"}},
        {"event": "command_done", "tick": 200, "command": {"do": "reset"}},
    ]
    executable = session._stepper.executable
    found = samples_of_rows(
        session.graph, executable, session.columns, rows, lambda tick: session.modes_at(tick)[1], events, {}
    )
    tick = rows[:, session.columns.names.index("tick")]
    np.testing.assert_array_equal(found.context[:, p.index("m")], np.where(tick < 100, 0.5, 0.8))
    np.testing.assert_array_equal(found.context[:, p.index("l")], np.where(tick < 200, 0.3, 0.4))
    k = int(np.flatnonzero(tick == 120)[0])
    assert found.pins["pin"].force[k, 1] > samples.pins["pin"].force[k, 1] + 2.0


def test_forces_of_a_recording_on_its_page(live):
    """Course, peak and impulse of the pin, whose position at an impact is found between two ticks."""
    recorded = live[3]
    run, film = off_line(recorded), from_recording(recorded)
    (shown,) = PlaybackFrames(film).loads()["loads"]["pins"]
    sizes = np.frombuffer(base64.b64decode(shown["size"]), "<f4")
    own = run.sample(np.clip(film.t, 0.0, run.t[-1])).pins["pin"].magnitude
    kept = np.abs(film.t[:, None] - [item.time for item in run.transitions]).min(axis=1) > 1e-3
    np.testing.assert_allclose(sizes[kept], own[kept], rtol=1e-5)
    assert shown["peak"][0] == pytest.approx(sizes.max(), rel=1e-6)
    hits = [(item.time, np.linalg.norm(item.pin_impulse["pin"][:3])) for item in run.transitions if item.impulse]
    assert len(hits) == len(shown["impulses"]) > 0
    np.testing.assert_allclose(shown["impulses"], hits, rtol=1e-5, atol=1e-12)
