"""The cart in the browser: loaded from this machine alone, dragged, and the same on page, graph and recording."""

import math
import re
import time

import pytest

import fsm_dyn
from fsm_dyn.live.recording import read_recording
from fsm_dyn.live.replay import replay

pytestmark = pytest.mark.browser


def drag(page, seconds, swing=170.0, turns=2.0):
    """Drag the handle back and forth."""
    knob = page.locator(".handle .knob").first.bounding_box()
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    begin = time.monotonic()
    while (s := (time.monotonic() - begin) / seconds) < 1.0:
        page.mouse.move(x + swing * math.sin(2 * math.pi * turns * s), y - 60 * math.sin(2 * math.pi * s))
        page.wait_for_timeout(20)
    held = page.evaluate("document.querySelector('.handle').classList.contains('held')")
    page.mouse.up()
    return held


def test_the_page_loads_from_its_server_alone_and_without_complaints(viewed):
    _, page = viewed("shopping_cart")
    page.running()
    page.wait_for_timeout(500)
    own = (page.address, page.address.replace("http", "ws", 1))
    assert page.requests
    assert [url for url in page.requests if not url.startswith(own)] == []
    assert page.complaints == []
    size = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert size == [1280, 720]


def test_dragged_by_its_handle_it_sticks_and_slips_and_all_agree(viewed, tmp_path):
    path = tmp_path / "cart.mcap"
    run, page = viewed("shopping_cart", "--record", path)
    page.running()
    for _ in range(6):
        assert drag(page, 3.0), "the handle was not held"
        entries = page.entries()
        met = {tuple(entry[1:3]) for entry in entries}
        if {("rolling", "sticking"), ("sticking", "rolling")} <= met and len(entries) >= 3:
            break
    page.keyboard.press("Space")
    page.wait("document.body.dataset.phase === 'paused'")
    # counts come twice a second, and later on a machine that is full
    page.wait("Math.abs(Object.values(fsmDyn.map.totals.seconds).reduce((a, b) => a + b, 0) - fsmDyn.last.t) < 2e-3")
    entries = page.entries()
    causes = {entry[3] for entry in entries}
    assert {"caster grips its axis", "caster slips on its axis"} <= causes
    totals = page.evaluate("fsmDyn.map.totals")
    active = page.evaluate("document.querySelector('#map').dataset.active")
    assert active == entries[-1][2]
    assert page.text("#mode") in fsm_dyn.load("shopping_cart").phases

    code, reports = run.end()
    assert code == 0
    recorded = read_recording(path)
    assert recorded.complete
    modes = recorded.settings.modes
    there = [[f"{r[1]:.4f}", modes[int(r[2])], modes[int(r[3])]] for r in recorded.records]
    assert [entry[:3] for entry in entries] == there
    assert len(there) == totals["transitions"] == reports[0]["transition_count"]
    for (a, b), count in {(a, b): sum(t[1:] == [a, b] for t in there) for _, a, b in there}.items():
        assert [a, b, count] in totals["crossings"]
    times = recorded.rows[:, 1]
    assert sum(totals["seconds"].values()) == pytest.approx(times[-1], abs=2e-3)  # to the tick
    for name, spent in totals["seconds"].items():
        own = recorded.rows[1:, 5] == modes.index(name)
        assert spent == pytest.approx((times[1:] - times[:-1])[own].sum(), abs=2e-3 * (1 + len(there)))
    records, _ = replay(recorded)
    assert records.tobytes() == recorded.records.tobytes()


def test_everything_goes_by_keys(viewed):
    _, page = viewed("shopping_cart")
    page.running()
    page.keyboard.press("Space")
    page.wait("document.body.dataset.phase === 'paused'")
    page.wait_for_timeout(100)
    t = page.evaluate("fsmDyn.last.t")
    page.keyboard.press("s")
    assert page.wait(f"fsmDyn.last.t > {t} && fsmDyn.last.t") == pytest.approx(t + 1e-3, abs=1e-9)
    page.keyboard.press("r")
    page.wait("fsmDyn.last.t === 0")
    page.keyboard.press("n")
    page.wait("document.body.dataset.phase === 'paused' && fsmDyn.last.t > 0")
    page.expect("#mode").to_have_text("caster stuck")
    assert len(page.entries()) >= 1
    page.keyboard.press("-")
    page.wait("document.querySelector('#speed-text').textContent === '1/2'")
    page.keyboard.press("0")
    page.wait("document.querySelector('#speed-text').textContent === '1×'")
    page.keyboard.press("Space")
    page.wait("document.body.dataset.phase === 'running'")
    page.keyboard.down("ArrowLeft")
    page.wait("document.querySelector('.handle').classList.contains('held')")
    page.wait_for_timeout(600)
    page.keyboard.up("ArrowLeft")
    place = "fsmDyn.last.handles"
    x, target = page.evaluate(f"[{place}[0], {place}[2]]")
    assert target < x, "the spring should pull to the left"
    page.keyboard.press("g")
    page.wait("!document.querySelector('.handle').classList.contains('held')")
    page.keyboard.press("]")
    page.expect("#detail").to_have_text(re.compile("^" + re.escape("rolling caster_axis slide")))
    page.keyboard.press("m")
    graph, mechanism = (page.locator(f"#{name}").bounding_box() for name in ("graph", "mechanism"))
    assert graph["width"] > mechanism["width"]
    page.keyboard.press("m")
    bars = page.evaluate("[...document.querySelectorAll('.guard-bar')].map((row) => row.title)")
    assert len(bars) == page.evaluate("fsmDyn.last.guardCount") > 0
    assert any(title.startswith("caster_axis") for title in bars)
    page.keyboard.press("?")
    page.expect("#keys").to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    page.expect("#quantities").to_be_visible()
    page.locator("#quantities label", has_text="total energy").locator("input").check()
    page.keyboard.press("Escape")
    page.expect("#strips").to_contain_text("total energy")
    assert page.complaints == []


def test_strips_show_one_span_of_time(viewed):
    """Bands of the modes are above one another in all strips, in every display frame of a running model."""
    _, page = viewed("shopping_cart")
    page.running()
    ends = page.evaluate(
        """async () => {
            const found = [];
            for (let k = 0; k < 40; k++) {
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done))); // after it is drawn
                found.push(fsmDyn.charts.plots.map(({ plot }) => [plot.scales.x.min, plot.scales.x.max]));
            }
            return found;
        }"""
    )
    assert ends[0][0] != ends[-1][0], "the strips do not move"
    assert len(ends[0]) >= 2
    for strips in ends:
        assert all(strip == strips[0] for strip in strips)


def test_a_long_name_of_a_mode_loses_its_middle_and_has_a_tooltip(viewed):
    _, page = viewed("shopping_cart")
    page.running()
    long = "+".join(f"shank_edge{k}_closed" for k in range(12))
    shown, short = page.evaluate(
        """async (name) => {
            const { elided } = await import("./js/dom.js");
            return [elided(name), elided(name.slice(0, 60))];
        }""",
        long,
    )
    assert len(shown) == 60
    head, tail = shown.split("…")
    assert long.startswith(head)
    assert long.endswith(tail)
    assert short == long[:60]
    assert page.get_attribute("#mode", "title") == page.text("#mode")


# Edges (px) and colours of the bands that each strip drew last, compared in every display frame: number, or -1.
BANDS = """(() => {
    const { fillRect, clearRect } = CanvasRenderingContext2D.prototype, drawn = new Map();
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
        drawn.set(this.canvas, []);
        return clearRect.apply(this, box);
    };
    CanvasRenderingContext2D.prototype.fillRect = function (...box) {
        if (this.globalAlpha < 0.5) drawn.get(this.canvas)?.push(`${box[0]} ${box[2]} ${this.fillStyle}`);
        return fillRect.apply(this, box);
    };
    window.compared = [];
    const look = () => {
        const found = [...document.querySelectorAll(".strip canvas")].map((canvas) => (drawn.get(canvas) ?? []).join());
        if (found.length > 1) window.compared.push(new Set(found).size === 1 ? found[0].split(",").length : -1);
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})()"""


def test_the_bands_of_all_strips_are_the_same_while_running(viewed):
    _, page = viewed("shopping_cart")
    page.page.add_init_script(BANDS)
    page.open().running()
    page.locator("#schedule").check()
    page.wait("Math.max(...window.compared) >= 3")
    counts = page.evaluate("window.compared")
    assert -1 not in counts, "strips show transitions at different places"
