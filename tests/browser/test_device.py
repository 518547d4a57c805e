"""The first ten minutes with a device, without one: the wall coupled to an emulated paddle."""

import numpy as np
import pytest

from fsm_dyn.live.recording import read_recording

pytestmark = pytest.mark.browser

ENGAGED = "document.querySelector('#device-state').textContent === 'engaged'"


def move(page, label, value):
    """Put a slider somewhere, as a hand does that lets go of it there."""
    page.locator(f"input[aria-label^='{label}']").evaluate(
        "(slider, value) => { slider.value = value; for (const kind of ['input', 'change']) "
        "slider.dispatchEvent(new Event(kind)); }",
        value,
    )


def push(page):
    """The force that the panel tells, N."""
    return page.evaluate("parseFloat(document.querySelector('#device-axes .axis').children[3].textContent)")


def test_stiffer_until_it_buzzes_then_unplugged(viewed, tmp_path):
    recording = tmp_path / "run.mcap"
    options = ("--driver", "hapkit", "--emulate", "--watchdog-timeout", "10", "--record", recording)
    started, page = viewed("virtual_wall", *options, command="device")
    page.running().wait(ENGAGED)
    assert [end.partition(":")[0] for end in page.locator("#device li").all_inner_texts()] == [
        "tick process", "watchdog process", "watchdog process", "device watchdog",
    ]  # fmt: skip

    # the hand presses the wall, by the softest coupler; then by one stiffer than the loop bears
    move(page, "Target position of the emulated operator", -0.03)
    page.wait("fsmDyn.last.mode === 1")
    calm = page.evaluate("fsmDyn.last.transitions")
    move(page, "handle_2_stiffness, stiffness", 0.85)
    page.wait("fsmDyn.setup.rows.get('handle_2_stiffness').number.valueAsNumber > 7000")
    # it leaves the wall and comes back, again and again; on a busy machine so violently that it is released
    page.wait(f"fsmDyn.last.transitions > {calm} + 6 || document.body.dataset.phase === 'fault'")

    # no sample: a fault that stays, with the force at zero, until it is cleared
    page.locator("#device-stall").click()
    page.wait("document.body.dataset.phase === 'fault' && !document.querySelector('#banner').hidden")
    page.locator("#device-stall").click()
    page.wait_for_timeout(300)
    assert page.phase == "fault"
    assert push(page) == 0.0
    page.locator("#banner button:not(.close)").click()
    page.wait("document.body.dataset.phase === 'paused'")

    # unplugged: the run is over, and says why and what to do
    page.locator("#plug").click()
    page.wait("/unplugged.*restart/.test(document.querySelector('#banner').textContent)")
    page.expect("#plug").to_have_text("Plug in")
    page.expect("#banner").to_contain_text(str(recording))
    page.expect("#device-state").to_contain_text("unplugged")
    page.locator("#banner button:not(.close)").click()
    page.wait("/plug the device in/.test(document.querySelector('#banner').textContent)")
    page.locator("#plug").click()
    page.wait("document.querySelector('#plug').textContent === 'Unplug'")
    page.locator("#banner button:not(.close)").click()
    page.wait("fsmDyn.model.number > 1")
    page.running().wait(ENGAGED)
    assert page.complaints == []

    code, runs = started.end()
    assert code == 0
    assert [bool(run["fault"]) for run in runs] == [True, False]
    taken = read_recording(recording)
    force = taken.rows[:, taken.columns.places["force"]]
    assert len(taken.records) >= calm
    assert np.abs(force).max() > 0.1, "the wall was felt"
    assert not force[-1].any(), "and let go at the end"
