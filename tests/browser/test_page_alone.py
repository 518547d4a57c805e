"""A page that simulates alone, opened from disk: its requests, the pointer, the buttons, its speed."""

import pytest

import fsm_dyn
from tests.browser.conftest import Page

pytestmark = pytest.mark.browser

MOST_BYTES = 1_700_000
READ = "[...document.querySelectorAll('#entries .cause')].map((item) => item.textContent)"


@pytest.fixture
def opened(chromium, tmp_path):
    pages = []

    def open_page(name):
        file = fsm_dyn.export(fsm_dyn.compile(name), tmp_path, target="html")
        assert file.stat().st_size < MOST_BYTES
        page = Page(chromium.new_page(), file.as_uri())
        pages.append(page)
        page.open()
        page.wait("fsmDyn.last?.tick > 20 && document.querySelector('#banner').hidden")
        return page

    yield open_page
    for page in pages:
        assert page.requests == [page.address], "nothing but the file itself"
        assert not page.complaints
        page.page.close()


def handle(page):
    """Return where the first handle is on the page, px."""
    box = page.locator(".handle").first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_door_is_pulled_open(opened):
    """The latch is dragged until its seat opens; the log has the cause, the graph the mode, the chip a phase."""
    page = opened("latch")
    before = page.evaluate("document.querySelector('#mode').title")
    x, y = handle(page)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 200, y, steps=5)
    page.wait("fsmDyn.last.handles[4] === 1")
    causes = page.wait(f"{READ}.length && {READ}")
    page.mouse.up()
    assert any("opens" in cause or "leaves" in cause for cause in causes), causes
    page.wait("fsmDyn.last.handles[4] === 0")
    assert page.evaluate("document.querySelector('#map').dataset.active") != ""
    assert before in page.evaluate("fsmDyn.model.phases.map((phase) => phase.name)")


PHASE = "[...document.querySelectorAll('.badge > :not(#phase)')].map((part) => part.textContent)"  # name, text

SMALL = """(() => {
    const { plot } = fsmDyn.charts.plots[0], [times, ...rest] = plot.data;
    plot.setData([times, ...rest.map((list) => list.map((_, k) => 3e-4 * Math.sin(k)))]);
    plot.redraw();
})()"""


def test_phases_are_named_while_the_door_shuts(opened):
    """The chip goes through the phases of a run of the schedule, in their order, with the texts of the model."""
    page = opened("latch_door")
    texts = {name: phase.text for name, phase in fsm_dyn.load("latch_door").phases.items()}
    expected = [visit.name for visit in fsm_dyn.simulate(fsm_dyn.compile("latch_door")).visits]
    page.click("#schedule")
    page.wait("fsmDyn.last.t < 0.5 && fsmDyn.last.tick > 1")
    seen = {}
    while page.evaluate("fsmDyn.last.t") < 2.2:
        name, text = page.evaluate(PHASE)
        seen[name] = text
        page.wait_for_timeout(5)
    assert list(seen) == [name for name in expected if name in seen]
    assert {"shut", "held", "unlatch", "open"} <= set(seen), "those that last"
    assert seen == {name: texts[name] for name in seen}
    page.click("#run")
    page.wait("document.body.dataset.phase === 'paused'")
    page.set_viewport_size({"width": 1280, "height": 1200})
    page.wait("fsmDyn.charts.plots[0].plot.height > 80")
    page.evaluate(SMALL)
    shown = page.wait("fsmDyn.charts.plots[0].plot.texts[1].filter(Boolean)")
    assert 2 <= len(set(shown)) == len(shown), "values at grid lines"


def test_pause_step_parameter_schedule_and_reset(opened):
    page = opened("shopping_cart")
    page.click("#run")
    page.wait("document.body.dataset.phase === 'paused'")
    tick = page.evaluate("fsmDyn.last.tick")
    page.click("#step")
    page.wait(f"fsmDyn.last.tick === {tick + 1}")
    assert page.evaluate("fsmDyn.last.t") == pytest.approx((tick + 1) * 1e-3, abs=1e-12)
    page.click("#setup-button")
    first = page.evaluate("fsmDyn.model.setup.parameters[0]")
    number = page.locator(".parameter input[type=number]").first
    number.fill(str(2 * first["value"]))
    number.blur()
    at = f"fsmDyn.connection.machine.c[{first['index']}]"
    assert page.evaluate(at) == pytest.approx(2 * first["value"], rel=1e-3)  # the panel shows four digits
    page.click("#setup-close")
    page.click("#reset")
    page.wait("fsmDyn.last.t === 0")
    assert page.evaluate(at) == pytest.approx(2 * first["value"], rel=1e-3), "a reset keeps it"
    page.click("#next")
    page.wait(f"{READ}.length >= 1 && document.body.dataset.phase === 'paused'")


def test_the_piano_is_played_into_modes_that_are_not_in_the_page(opened):
    """Wild presses of the key for 4 s; the mode graph grows."""
    page = opened("piano_action")
    known, grown, phase = page.evaluate(
        "(() => { const source = fsmDyn.connection, { modes } = source.data, before = modes.length;"
        " source.send({ do: 'pause' }); source.hands[0].held = true; source.phase = 0;"
        " const [up, down] = fsmDyn.model.ports[0].press;"
        " for (let i = 0; i < 4000 && source.phase === 0; i++) { source.hands[0].target[0] = i % 300 < 120 ? down : up;"
        " source.advance(1e-3); } return [before, modes.length, source.phase]; })()"
    )
    assert phase == 0
    assert grown > known
    page.evaluate("fsmDyn.connection.phase = 1")
    page.evaluate(  # the graph complains of a colour that it cannot draw
        "(() => { const box = fsmDyn.map.cy.nodes()[0], { modes } = fsmDyn.model.graph;"
        " modes.forEach(({ colour }) => box.style('background-color', colour)); })()"
    )


def test_the_piano_is_faster_than_life(opened):
    """The schedule in ticks of 1 ms; the first second also compiles.  An idle processor makes it five times as fast."""
    page = opened("piano_action")
    seconds = page.evaluate(
        "(() => { const source = fsmDyn.connection; source.send({ do: 'pause' });"
        " source.follows = true; source.reset(); source.phase = 0; const begin = performance.now();"
        " for (let i = 0; i < 3000 && source.phase === 0; i++) source.advance(1e-3);"
        " source.phase = 1; return source.machine.time / ((performance.now() - begin) / 1000); })()"
    )
    assert seconds > 1.0
    assert page.evaluate("fsmDyn.connection.log.number") > 20, "keys were struck"
