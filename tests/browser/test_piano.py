"""The piano on the page: a computer key presses the action's key, the hammer strikes, and that is heard as it was."""

import pytest

pytestmark = pytest.mark.browser

LATE = "for (const until = performance.now() + 800; performance.now() < until; );"  # the page does nothing else
NOTES = "fsmDyn.sound.played.filter((one) => one.name === 'string')"


def press(page, key, attempts=5):
    """Press a computer key until a strike is heard: a sound that would be late by more than a second is left out."""
    for _ in range(attempts):
        page.evaluate("fsmDyn.sound.played.length = 0")
        page.keyboard.down(key)
        for _ in range(40):
            page.wait_for_timeout(100)
            if page.evaluate(f"{NOTES}.length"):
                break
        page.keyboard.up(key)
        if page.evaluate(f"{NOTES}.length"):
            return
        page.wait_for_timeout(1000)
    raise AssertionError(f"'{key}' strikes no string")


def test_a_key_strikes_and_is_heard(viewed):
    """As loud as the hammer was fast in the transition, put off from its instant, soft or loud by the key pressed."""
    _, page = viewed("piano_action")
    page.running()
    assert page.evaluate("document.querySelector('#playing').hidden") is False
    page.keyboard.press("o")
    page.evaluate("fsmDyn.logged = []; fsmDyn.panels.push({ transitions: ({ news }) => fsmDyn.logged.push(...news) })")
    speeds = {}
    for key in "jk":
        page.evaluate(LATE)  # a late page stays engaged: a press that is not is soft
        press(page, key)
        note = page.evaluate(f"{NOTES}[0]")
        assert note["note"] is True
        assert note["loud"] == pytest.approx(min(1.0, note["speed"] / 4.0))
        assert 0.0 <= note["sent"] <= note["age"] + 0.002 <= note["latency"] + 0.004
        assert note["latency"] >= 0.03 - 1e-9
        assert note["when"] > 0.0
        speeds[key] = note["speed"]
        # the log tells of the same transition: its guard's slope is the speed of the hammer
        logged = f"""fsmDyn.logged.find(({{ t, guards }}) => t === {note["t"]!r}
            && guards.some(([text, , slope]) => text === 'string closes' && -slope === {note["speed"]!r}))"""
        page.wait(f"Boolean({logged})")
        page.wait("!document.querySelector('#playing [aria-pressed=true]')")
        # the action has come to rest: in the model's time, which may lag behind that of the clock
        released = page.evaluate("fsmDyn.last.t")
        page.wait(f"fsmDyn.last.t > {released} + 0.4")
    assert 1.0 < speeds["j"] < speeds["k"] < 6.0
    page.expect("#playing-heard").to_contain_text(f"{speeds['k']:.2f} m/s")
    page.expect("#latency").to_contain_text("ms after the contact")

    # the buttons do the same, and the pointer may take the key instead
    page.evaluate("fsmDyn.sound.played.length = 0")
    page.locator("#press-medium").hover()
    page.mouse.down()
    page.wait(f"{NOTES}.length")
    page.mouse.up()
    assert page.complaints == []


def test_models_without_a_key_have_none(viewed):
    _, page = viewed("bouncing_ball")
    page.running()
    assert page.evaluate("document.querySelector('#playing').hidden") is True
    page.keyboard.press("j")
    assert page.complaints == []
