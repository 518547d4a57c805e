"""Playback of a recorded run on the page: keys, strip, event log."""

import re

import pytest

import fsm_dyn
from fsm_dyn.page.report import write_report
from tests.browser.conftest import tabbed

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    trajectory = fsm_dyn.simulate(fsm_dyn.compile("shopping_cart"), until=4.5)
    return trajectory, trajectory.save(tmp_path_factory.mktemp("run") / "cart.run.json")


def check_playback(page, trajectory):
    """Check playback of the cart's run from any source."""
    page.wait("fsmDyn.last && fsmDyn.playback.run && document.querySelectorAll('#entries summary').length > 0")
    assert page.evaluate("fsmDyn.last.t") == 0.0
    page.keyboard.press("2")
    page.expect("#playback").to_be_visible()
    entries = page.entries()
    told = trajectory.reading.sentences
    assert [entry[3] for entry in entries] == [told.cause(k) for k in range(len(trajectory.transitions))]

    # a click in the log
    x = trajectory.transitions[1]
    page.locator("#entries summary").nth(len(entries) - 2).click()
    page.wait(f"Math.abs(fsmDyn.last.t - {x.time}) < 0.01")
    page.wait(f"document.querySelector('#map').dataset.active === '{x.target}'")
    page.expect("#mode").to_have_text(trajectory.visits.at(x.time).name)
    assert "now" in page.locator("#entries li").nth(len(entries) - 2).get_attribute("class")
    page.expect("#time").to_have_text(f"{page.evaluate('fsmDyn.last.t'):.4f} s")
    page.keyboard.press("Escape")

    # dragged along the strip
    box = page.locator("#playback-bands").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10, steps=5)
    page.mouse.up()
    page.wait("Math.abs(fsmDyn.last.t - 2.25) < 0.1")
    middle = page.evaluate("fsmDyn.last.t")

    # by keys alone: forth and back between transitions, to the ends, playing
    page.locator("#picture").focus()
    for key, change in (("n", x), ("b", trajectory.transitions[0])):
        page.keyboard.press(key)
        if change.time > middle or key == "b":
            page.wait(f"Math.abs(fsmDyn.playback.clock - {change.time}) < 0.02")
    page.keyboard.press("End")
    page.wait("fsmDyn.last.t > 4.4")
    page.keyboard.press("Home")
    page.wait("fsmDyn.last.t === 0")
    page.keyboard.press("Space")
    page.wait("fsmDyn.last.t > 0.2")
    assert page.phase == "running"
    page.keyboard.press("Space")
    page.wait("document.body.dataset.phase === 'paused'")
    assert page.complaints == []


def test_playback_of_a_saved_run(saved, viewed):
    trajectory, path = saved
    _, page = viewed(path)
    check_playback(page, trajectory)


def test_a_report_opens_from_disk_alone(saved, new_page, tmp_path):
    trajectory, _ = saved
    path = write_report(trajectory, tmp_path / "report.html")
    page = new_page(path.as_uri())
    check_playback(page.open(), trajectory)
    assert page.requests == [path.as_uri()], "it asks for nothing else"
    page.keyboard.press("2")
    page.keyboard.press("v")
    page.locator("#quantities label", has_text="total energy").locator("input").check()
    page.keyboard.press("Escape")
    page.expect("#strips").to_contain_text("total energy")


def test_keyboard_operation_of_all_controls(saved, new_page, tmp_path):
    trajectory, _ = saved
    page = new_page(write_report(trajectory, tmp_path / "report.html").as_uri()).open()
    page.wait("fsmDyn.last && document.querySelectorAll('#entries summary').length > 0")
    page.wait("!document.querySelector('#pin').hidden")  # forces in connections come last
    assert {"previous", "run", "following", "speed", "tab-story", "roll-scroll", "help"} <= set(tabbed(page))
    page.keyboard.press("3")
    assert {"playback-bands", "map", "enlarge", "tab-guards"} <= set(tabbed(page))
    page.keyboard.press("2")
    assert {"run", "speed", "playback-bands", "choose", "entries", "help"} <= set(tabbed(page))
    focus = "document.querySelector('#{}').focus()"

    page.evaluate(focus.format("run"))
    page.keyboard.press("Enter")
    page.wait("document.body.dataset.phase === 'running' && fsmDyn.last.t > 0.05")
    page.keyboard.press("Space")
    page.wait("document.body.dataset.phase === 'paused'")
    page.evaluate(focus.format("speed"))
    page.keyboard.press("ArrowLeft")
    page.wait("document.querySelector('#speed-text').textContent !== '1×'")
    page.evaluate(focus.format("playback-bands"))
    before = page.evaluate("fsmDyn.playback.clock")
    page.keyboard.press("ArrowRight")
    page.wait(f"fsmDyn.playback.clock > {before}")
    assert page.locator("#playback-bands").get_attribute("aria-valuemax") == "4.500"

    page.keyboard.press("3")
    page.evaluate(focus.format("map"))
    page.keyboard.press("ArrowRight")
    page.expect("#detail").to_have_text(re.compile("^" + re.escape("rolling caster_axis slide")))
    page.keyboard.press("ArrowRight")
    page.expect("#detail").to_have_text(re.compile("^" + re.escape("sticking")))
    page.keyboard.press("Escape")

    page.keyboard.press("2")
    page.keyboard.press("l")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    x = trajectory.transitions[-2]
    page.wait(f"Math.abs(fsmDyn.playback.clock - {x.time}) < 0.02")
    assert page.evaluate("document.activeElement.parentElement.open")

    page.evaluate(focus.format("choose"))
    page.keyboard.press("Enter")
    chosen = page.evaluate("fsmDyn.charts.chosen.length")
    tabbed(page)
    page.locator("#quantities input:not(:checked)").first.focus()
    page.keyboard.press("Space")
    assert page.evaluate("fsmDyn.charts.chosen.length") == chosen + 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "choose", "where one was"
    assert page.complaints == []


def test_playback_of_a_recording(viewed, tmp_path):
    from fsm_dyn.live.device_map import Limits
    from fsm_dyn.live.live_settings import LiveSettings
    from fsm_dyn.live.session import LiveSession

    path = tmp_path / "wall.mcap"
    hand = {"axes": 2, "motion": [[0, 0.05, 0.9, 0.0], [1, 0.03, 1.1, 3.0]], "stop": "watchdog"}
    how = LiveSettings(
        paced=False, realtime_privileges=False, watchdog_timeout=20.0, ticks=4000, limits=Limits(velocity=20.0)
    )
    with LiveSession.start(fsm_dyn.compile("virtual_wall"), "scripted", hand, settings=how, record=path) as session:
        assert session.wait(60)
        made, _ = session.transitions()
    _, page = viewed(path)
    page.wait("fsmDyn.last && document.querySelectorAll('#entries summary').length > 0")
    assert page.evaluate("fsmDyn.playback.when.length") == len(made) >= 4
    page.keyboard.press("n")
    page.wait(f"document.querySelector('#map').dataset.active === '{made[0]['target']}'")
    assert page.evaluate("fsmDyn.last.t") == pytest.approx(made[0]["time"], abs=1.5e-3)
    assert page.locator(".handle").count() == 1, "where it was held"
    assert page.complaints == []
