"""Visits of a finished run on its page: what happened, the roll, the graph, the pace, a run before."""

import pytest

import fsm_dyn
from fsm_dyn.page import report
from fsm_dyn.page.report import write_report
from tests.browser.test_widths import CLEAN, OUTSIDE, OVERLAPS, SPILLED

pytestmark = pytest.mark.browser

WIDTHS = {360: 740, 390: 844, 640: 800, 800: 600, 1280: 800, 1920: 1080}
ROWS = """[...document.querySelectorAll("#story-list .visit")].map((row) =>
    [".when", "strong", "small", ".long"].map((part) => row.querySelector(part).textContent))"""
SCROLLED = """[document.documentElement.scrollWidth - innerWidth,
    document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth]"""
COLUMNS = "[...document.querySelectorAll('#roll .column > rect:first-of-type')].map((one) => one.getAttribute('width'))"
FORCES = """[...document.querySelectorAll(".lane-name")].filter((row) => row.querySelector(".force"))
    .map((row) => [row.querySelector(".what").textContent, row.querySelector(".force").textContent])"""
SMALL = """[...document.querySelectorAll("header button, #story-list button")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 35.5)
    .map((one) => one.id || one.textContent)"""
PANELS = "[...document.querySelectorAll('main > .panel')].filter((one) => one.checkVisibility()).map((one) => one.id)"


@pytest.fixture(scope="module")
def latch(tmp_path_factory):
    run = fsm_dyn.simulate(fsm_dyn.compile("latch_door"))
    return run, write_report(run, tmp_path_factory.mktemp("story") / "latch.html")


@pytest.fixture
def page(latch, new_page):
    page = new_page(latch[1].as_uri()).open()
    page.wait("fsmDyn.last && document.querySelectorAll('#roll-scroll svg').length === 1")
    return page


def test_rows_are_the_visits_and_a_click_goes_there(latch, page):
    run, _ = latch
    cells = [(f"{time} s", *rest) for time, *rest in run.visits.cells()]
    assert [tuple(row) for row in page.evaluate(ROWS)] == cells
    for number in (3, 1):
        visit = run.visits[number]
        page.locator("#story-list .visit").nth(number).click()
        page.expect("#mode").to_have_text(visit.name)
        page.expect("#say").to_have_text(visit.text or visit.cause)
        page.wait(f"Math.abs(fsmDyn.last.t - {visit.begin}) < 2e-3")
        assert page.evaluate("document.querySelectorAll('#story-list .on').length") == 1
        assert page.evaluate("document.querySelector('.run-box.on').dataset.name") == visit.name
    page.keyboard.press("n")
    page.expect("#mode").to_have_text(run.visits[2].name)
    page.keyboard.press("b")
    page.expect("#mode").to_have_text(run.visits[1].name)
    assert page.complaints == []


def test_columns_are_equally_wide_and_the_playhead_is_in_the_present_one(latch, page):
    run, _ = latch
    widths = page.evaluate(COLUMNS)
    assert len(widths) == len(run.visits)
    assert len(set(widths)) == 1
    visit = run.visits[4]
    page.evaluate(f"fsmDyn.playback.seek({0.5 * (visit.begin + visit.end)})")
    inside = f"fsmDyn.playback.clock > {visit.begin} && fsmDyn.playback.clock < {visit.end}"
    page.wait(f"!fsmDyn.playback.waits && {inside}")  # the clock is that of the display frame before the time asked for
    page.wait_for_timeout(200)
    x = page.evaluate("+document.querySelector('#roll .playhead').getAttribute('d').match(/^M([\\d.]+)/)[1]")
    column = page.evaluate("fsmDyn.roll.column")
    assert x / column == pytest.approx(4.5, abs=0.05)


def test_forces_at_the_playhead(latch, page):
    run, _ = latch
    words, time = run.reading.words, 0.5
    force = {
        words.entry(entry): float(run.reading.normal_force(entry)[run.t.searchsorted(time)]) for entry in words.entries
    }
    page.evaluate(f"fsmDyn.playback.seek({time})")
    page.wait("Math.abs(fsmDyn.last.t - 0.5) < 1e-2")
    page.wait_for_timeout(100)
    shown = page.evaluate(FORCES)
    assert len(shown) >= 3
    for name, text in shown:
        assert (float(text.split()[0]) if text else 0.0) == pytest.approx(force[name], rel=0.01, abs=1e-3), name


def test_a_visit_plays_in_the_same_time_however_short(latch, page):
    """The nine milliseconds of the snap take 1.6 s, as any visit."""
    run, _ = latch
    snap = run.visits[2]
    page.locator("#story-list .visit").nth(2).click()
    page.wait(f"fsmDyn.playback.clock >= {snap.begin}")
    page.click("#run")
    page.wait_for_timeout(500)
    page.click("#run")
    clock = page.evaluate("fsmDyn.playback.clock")
    assert snap.begin < clock < snap.end
    assert page.text("#slowed").startswith("slowed 1")


def test_visits_fit_from_telephone_to_wall(page):
    found = {}
    for width, height in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(400)
        stage = page.locator("#mechanism").bounding_box()
        checks = {
            "overlaps": page.evaluate(OVERLAPS),
            "outside": page.evaluate(OUTSIDE),
            "spilled": page.evaluate(SPILLED),
        }
        found[width] = (
            checks,
            max(page.evaluate(SCROLLED)) <= 0,
            stage["height"] >= 200,
            page.locator("#roll svg").count(),
        )
        if width <= 390:
            small = page.evaluate(SMALL)
            assert small == []
    assert found == dict.fromkeys(WIDTHS, (CLEAN, True, True, 1))
    assert page.complaints == []


def test_tabs_show_their_panels(page):
    panels = {
        "story": {"mechanism", "story", "roll", "run-graph"}, "charts": {"mechanism", "charts", "log"},
        "guards": {"mechanism", "guards", "graph"},
    }  # fmt: skip
    for key, (tab, expected) in enumerate(panels.items(), start=1):
        page.keyboard.press(str(key))
        assert page.get_attribute(f"#tab-{tab}", "aria-selected") == "true"
        assert set(page.evaluate(PANELS)) == expected


def test_a_changed_parameter_runs_again_with_the_first_run_behind_it(viewed):
    _, page = viewed("latch_door", "--run")
    page.wait("fsmDyn.last && fsmDyn.tabs.chosen === 'story'")
    assert page.locator(".ghost").count() == 0
    page.keyboard.press("4")
    mass = page.locator("#setup .parameter", has_text="m_bolt").locator("input[type=number]")
    mass.fill("0.2")
    mass.press("Enter")
    page.wait("fsmDyn.model.number === 2 && fsmDyn.last.run === 2")
    after = fsm_dyn.simulate(fsm_dyn.compile("latch_door"), parameters={"m_bolt": 0.2})
    page.keyboard.press("1")
    assert [row[1] for row in page.evaluate(ROWS)] == [visit.name for visit in after.visits]
    assert page.locator(".ghost").count() == 1
    before = fsm_dyn.simulate(fsm_dyn.compile("latch_door")).visits[1].begin
    assert page.evaluate("fsmDyn.story.story.visits[1].before") == before
    assert page.locator(".shift").first.get_attribute("title") == f"In the run before: {before:.5g} s"
    assert page.complaints == []


def test_a_live_page_offers_the_visits_of_a_finished_run_and_goes_back(viewed):
    _, page = viewed("bouncing_ball")
    page.running()
    page.click("#tab-story")
    page.wait("fsmDyn.tabs.chosen === 'story' && fsmDyn.last?.run === 1 && fsmDyn.story.story")
    names = [visit.name for visit in fsm_dyn.simulate(fsm_dyn.compile("bouncing_ball")).visits]
    assert [row[1] for row in page.evaluate(ROWS)] == names
    page.click("#tab-live")
    page.wait("!fsmDyn.playback.run && document.body.dataset.phase === 'paused'")
    page.click("#run")
    page.wait("document.body.dataset.phase === 'running'")
    assert page.complaints == []


MARKED = """(() => {
    const line = document.querySelector("#editor .wrong");
    const box = document.querySelector("#editor-text").getBoundingClientRect();
    const { top, bottom } = line?.getBoundingClientRect() ?? {};
    return document.querySelector("#editor-error").checkVisibility() && top >= box.top && bottom <= box.bottom + 8;
})()"""


def test_the_editor_shows_errors_as_one_types_and_saves(viewed, tmp_path):
    path = tmp_path / "ball.yaml"
    path.write_text(fsm_dyn.load("bouncing_ball").text, encoding="utf-8")
    _, page = viewed(path, "--edit")
    page.running()
    page.wait("!document.querySelector('#editor').hidden")  # open from the start, as there is room
    page.wait("fsmDyn.editor.text")
    page.evaluate("(({ text }) => { text.focus(); text.setCursor(text.lastLine() + 1, 0); })(fsmDyn.editor)")
    page.keyboard.type("\nbodyes: {}")
    page.expect("#editor-error").to_contain_text("did you mean 'bodies'?")
    page.wait(MARKED)
    page.keyboard.type("\npha")
    page.wait("document.querySelector('.CodeMirror-hint strong')?.textContent === 'phases'")
    page.keyboard.press("Escape")
    text = fsm_dyn.load("bouncing_ball").text.replace("name: bouncing_ball", "name: edited")
    page.evaluate(f"fsmDyn.editor.text.setValue({text!r})")
    page.click("#editor-save")
    page.expect("#editor-name").to_have_text("saved")
    assert path.read_text(encoding="utf-8") == text
    assert page.complaints == []


RENDER = """async (source) => {
    const { default: widget } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
    const known = { page: "<p>first</p>", error: "", values: { m: 2 },
                    sliders: [{ name: "e", value: 0.8, low: 0, high: 1.6, unit: "" }] };
    const heard = {};
    const model = { get: (name) => known[name], set: (name, value) => { known[name] = value; }, save_changes: () => {},
                    on: (event, act) => { heard[event] = act; } };
    widget.render({ model, el: document.body });
    const slider = document.querySelector("input[type=range]");
    slider.value = 0.4;
    slider.dispatchEvent(new Event("change"));
    known.page = "<p>second</p>";
    heard["change:page"]();
    return [known.values, document.querySelector("iframe").srcdoc];
}"""


def test_a_slider_of_the_notebook_widget_sends_its_value_and_shows_the_page_that_follows(new_page):
    page = new_page("about:blank").open()
    values, shown = page.evaluate(RENDER, report._WIDGET_SCRIPT)
    assert values["m"] == 2
    assert values["e"] == pytest.approx(0.4, abs=0.01)
    assert shown == "<p>second</p>"


PLACE = "(() => { const p = fsmDyn.pins.pins.find((pin) => pin.name === NAME); return [p.x, p.y]; })()"
ARROW = "[document.querySelector('.pin-force .shaft').getAttribute('d'), fsmDyn.mechanism.view.scale]"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_a_click_on_a_pin_shows_its_force(latch, new_page, width, height):
    """Arrow, value, peak and course of a connection's force as the run has them; clicks go through all in a place."""
    run, path = latch
    page = new_page(path.as_uri())
    page.set_viewport_size({"width": width, "height": height})
    page.open()
    page.wait("fsmDyn.last && fsmDyn.pins.pins.length === 2")
    page.locator("#story-list .visit").nth(3).click()  # shut: the frame stops the door
    page.expect("#mode").to_have_text("shut")
    page.evaluate("fsmDyn.playback.seek(0.5)")
    page.wait("Math.abs(fsmDyn.last.t - 0.5) < 5e-2")
    box = page.locator("#picture").bounding_box()
    order = [pin["name"] for pin in page.evaluate("fsmDyn.pins.pins.map(({ name, words }) => ({ name, words }))")]
    for name in order:
        x, y = page.evaluate(PLACE.replace("NAME", repr(name)))
        page.mouse.click(box["x"] + x, box["y"] + y)
        assert page.evaluate("fsmDyn.pins.chosen.name") == name
        pin = run.sample([page.evaluate("fsmDyn.last.t")]).pins[name]
        value = float(page.text("#pin-value").split()[0])
        assert value == pytest.approx(float(pin.magnitude[0]), rel=5e-3, abs=1e-3)
        peak = run.extremes(f"pin.{name}.force")
        words = page.text("#pin-peak").split()
        assert float(words[1]) == pytest.approx(peak.maximum, rel=5e-3)
        assert float(words[4]) == pytest.approx(peak.maximum_time, abs=1e-3)
        assert page.evaluate("document.querySelector('#pin-course .course').getAttribute('d').length > 50")
        inside = page.evaluate("""(() => { const card = document.querySelector("#pin").getBoundingClientRect(),
            panel = document.querySelector("#mechanism").getBoundingClientRect();
            return card.left >= panel.left && card.right <= panel.right && card.bottom <= panel.bottom; })()""")
        assert inside
        if name == "N_door":  # 15 N of the frame, to the left
            d, _ = page.evaluate(ARROW)
            (x0, y0), (x1, y1) = (map(float, part.split(" ")) for part in d.removeprefix("M").split("L"))
            force = pin.force[0]
            assert force[0] == pytest.approx(-15.0, rel=1e-3)
            assert x1 - x0 < -10.0
            assert abs(y1 - y0) < 0.5
    page.locator("#pin-name").select_option("")
    assert page.evaluate("fsmDyn.pins.chosen") is None
    page.locator("#pin-name").select_option(order[0])
    page.locator("#pin-peak").click()
    page.wait(f"Math.abs(fsmDyn.last.t - {run.extremes(f'pin.{order[0]}.force').maximum_time}) < 2e-3")
    assert page.complaints == []
    assert page.evaluate(SCROLLED)[0] <= 0
