"""Repeated notes of the piano action in real time: an emulated paddle across its line, played by an emulated hand."""

import time

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.devices.emulators.emulated_device import emulation
from fsm_dyn.live.device_map import add_couplers, device_map_for
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.session import LiveSession
from fsm_dyn.live.strokes import FINGER_DAMPING, FINGER_STIFFNESS, NOTES, REPETITION
from fsm_dyn.page.live_view import ImpactSounds

pytestmark = pytest.mark.benchmark
SCALE = 0.5
PRESSED, LIFTED = -0.012, -0.0005  # m of the key


def test_eight_of_eight_at_the_emulated_paddle():
    graph = fsm_dyn.compile(add_couplers(fsm_dyn.load("piano_action")))
    settings = LiveSettings(device_map=device_map_for(graph, "", 1, scale=SCALE), watchdog_timeout=0.5)
    with emulation("hapkit", {"hand": {"stiffness": FINGER_STIFFNESS, "damping": FINGER_DAMPING}}) as device:
        with LiveSession.start(graph, "hapkit", device.options, settings=settings) as session:
            session.wait_for_ticks(600)
            sounds = ImpactSounds(session, graph.automaton)
            device.do("play", rate=REPETITION, notes=NOTES, pressed=PRESSED / SCALE, lifted=LIFTED / SCALE)
            notes, until = [], time.monotonic() + NOTES / REPETITION + 0.5
            while time.monotonic() < until:  # hundreds of transitions a second: the ring wraps around
                notes += [(t, speed) for name, t, speed in sounds.new_impacts() if name == "string"]
                time.sleep(0.02)
        report = session.close()
    times, speeds = np.array(notes).T
    print(
        f"{len(notes)} of {NOTES} notes, {1e3 * np.diff(times).min():.0f} to {1e3 * np.diff(times).max():.0f} ms apart,"
        f" hammer {speeds.min():.2f} to {speeds.max():.2f} m/s, {report['overruns']} overruns, "
        f"{report['saturations']} saturations, {report['releases']} releases, fault '{report['fault']}'"
    )
    assert len(notes) == NOTES
    assert speeds.min() > 0.8
    assert report["fault"] == ""
