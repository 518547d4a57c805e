"""Forces in connections on the page of live runs, on request, and of their recordings."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.live.device_map import Limits
from fsm_dyn.live.live_settings import LiveSettings
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import off_line
from fsm_dyn.live.session import LiveSession

pytestmark = pytest.mark.browser
HANGING = """
fsm_dyn: 1
name: hanging
summary: A rod that hangs at rest; its pin bears m g.
parameters: {m: 0.5 kg, b: 0.6 m}
joints: {pin: {revolute: {child: A, at: O, axis: N.z}}}
points: {Ao: {from: A_origin, at: -b/2*A.y}}
bodies: {rod: {frame: A, center: Ao, mass: m, inertia: {zz: m*b**2/12}}}
loads: [{gravity: -9.81 m/s^2*N.y}, {damper: {coordinate: pin, damping: 0.2 N*m*s}}]
"""
ARROW = "document.querySelector('.pin-force .shaft').getAttribute('d')"
FRAMES = "fsmDyn.pins.pins[0]?.place.length > 0"


def click(page, name):
    """Click on a connection; the view may still adapt to the card."""
    box = page.locator("#picture").bounding_box()
    place = "(() => { const p = fsmDyn.pins.pins.find((pin) => pin.name === NAME); return [p.x, p.y]; })()"
    x, y = page.evaluate(place.replace("NAME", repr(name)))
    page.mouse.click(box["x"] + x, box["y"] + y)


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 740)])
def test_a_live_run_shows_forces_on_request(viewed, tmp_path, width, height):
    path = tmp_path / "hanging.yaml"
    path.write_text(HANGING, encoding="utf-8")
    _, page = viewed(path)
    page.set_viewport_size({"width": width, "height": height})
    page.running()
    numbers = page.evaluate("fsmDyn.drawn.numbers.length")
    assert page.evaluate("fsmDyn.pins.pins.length") == 0, "without a request"
    page.locator("#pin-ask").click()
    page.wait(FRAMES)
    assert page.evaluate("fsmDyn.drawn.numbers.length") == numbers + 6
    page.expect("#pin-ask").to_be_hidden()
    page.locator("#pin-name").select_option("pin")
    page.wait("document.querySelector('#pin-value').textContent.startsWith('4.9')")  # 0.5 kg * 9.81 m/s^2
    page.wait("document.querySelector('#pin-peak').textContent.startsWith('largest seen 4.9')")
    (x0, y0), (x1, y1) = (map(float, part.split(" ")) for part in page.evaluate(ARROW).removeprefix("M").split("L"))
    assert abs(x1 - x0) < 1.0
    assert y1 - y0 < -40.0, "upwards"
    inside = page.evaluate("""(() => { const card = document.querySelector("#pin").getBoundingClientRect(),
        panel = document.querySelector("#mechanism").getBoundingClientRect();
        return card.left >= panel.left && card.right <= panel.right && card.bottom <= panel.bottom; })()""")
    assert inside
    click(page, "pin")
    assert page.evaluate("fsmDyn.pins.chosen") is None
    click(page, "pin")
    assert page.evaluate("fsmDyn.pins.chosen.name") == "pin"
    assert page.evaluate("fsmDyn.dragging.held") is False, "a click on a pin moves nothing"
    page.keyboard.press("r")  # a reset keeps it
    page.wait("document.querySelector('#pin-value').textContent.startsWith('4.9')")
    assert page.complaints == []


def test_a_recording_shows_forces_as_the_run_had_them(viewed, tmp_path):
    path = tmp_path / "latch.mcap"
    how = LiveSettings(
        paced=False, realtime_privileges=False, watchdog_timeout=20.0, ticks=1500, limits=Limits(velocity=20.0)
    )
    hand = {"axes": 1, "motion": [[0, 0.09, 0.6, 0.0]], "stop": "watchdog"}
    graph = fsm_dyn.compile("latch")
    with LiveSession.start(graph, "scripted", hand, settings=how, record=path) as session:
        assert session.wait(60)
    run = off_line(read_recording(path))
    _, page = viewed(path)
    page.wait(f"fsmDyn.last && {FRAMES}")
    for name in ("N_door", "N_bolt"):
        page.locator("#pin-name").select_option(name)
        words = page.text("#pin-peak").split()
        rows = run.sample(np.arange(1e-3, run.t[-1], 1e-3))
        sizes = rows.pins[name].magnitude
        assert float(words[1]) == pytest.approx(sizes.max(), rel=2e-2)  # its rows are ticks
        hits = [np.linalg.norm(item.pin_impulse[name][:3]) for item in run.transitions if item.impulse]
        shown = page.text("#pin-impulse").split()
        assert float(shown[2]) == pytest.approx(max(hits), rel=1e-2)
        for number in (3, 700, 1400):
            page.evaluate(f"fsmDyn.playback.ask({{ do: 'seek_row', number: {number} }})")
            page.wait(f"fsmDyn.last.tick === {number}")
            now = run.sample([page.evaluate("fsmDyn.last.t")]).pins[name]
            assert float(page.text("#pin-value").split()[0].replace("−", "-")) == pytest.approx(
                now.magnitude[0], rel=5e-3, abs=1e-4
            )
    assert page.complaints == []
