"""Pages from the width of a telephone to that of a large screen: nothing visible overlaps or is out of reach."""

import pytest

pytestmark = pytest.mark.browser

WIDTHS = {360: 640, 390: 844, 640: 800, 800: 600, 1280: 720, 1920: 1080}  # px, with a height each
STAGE = 240  # px, least height of the mechanism

# Texts and controls that are seen, each cut to what its ancestors let through: pairs of them that share more than two
# pixels either way, of which none is inside the other.  What a picture or a chart draws is left to its own tests.
OVERLAPS = """(() => {
    const drawn = "canvas, svg, #map, .u-wrap, .strip, .visually-hidden, option";
    const seen = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
    const own = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const control = (one) => one.matches("button, input, select, [role=slider]");
    const clipped = (one) => {
        let { left, top, right, bottom } = one.getBoundingClientRect();
        for (let at = one.parentElement; at; at = at.parentElement) {
            if (getComputedStyle(at).overflow === "visible") continue;
            const box = at.getBoundingClientRect();
            left = Math.max(left, box.left); top = Math.max(top, box.top);
            right = Math.min(right, box.right); bottom = Math.min(bottom, box.bottom);
        }
        return { left, top, right, bottom };
    };
    const counts = (one) => (own(one) || control(one)) && seen(one) && !one.closest(drawn);
    const large = ([, box]) => box.right - box.left > 1 && box.bottom - box.top > 1;
    const all = [...document.body.querySelectorAll("*")].filter(counts);
    const boxes = all.map((one) => [one, clipped(one)]).filter(large);
    const words = (one) => one.id || one.textContent.trim().slice(0, 40) || one.tagName;
    const found = [];
    for (const [i, [one, a]] of boxes.entries())
        for (const [other, b] of boxes.slice(i + 1)) {
            if (one.contains(other) || other.contains(one)) continue;
            const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (wide > 2 && high > 2) found.push(`${words(one)} | ${words(other)}`);
        }
    return found;
})()"""
OUTSIDE = """[...document.querySelectorAll("button, input, select")].filter((one) => {
    const box = one.getBoundingClientRect();
    const outside = box.right > innerWidth + 1 || box.left < -1;
    return one.checkVisibility({ visibilityProperty: true }) && box.width && outside;
}).map((one) => one.id || one.textContent)"""
# Texts that are wider than their boxes and neither cut nor scrolled: they would run into what is next to them.
SPILLED = """[...document.body.querySelectorAll("*")].filter((one) => {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const free = getComputedStyle(one).overflowX === "visible" && !one.closest("svg, #map, .u-wrap, dialog");
    return own && free && one.clientWidth && one.scrollWidth > one.clientWidth + 2;
}).map((one) => one.id || one.textContent.trim().slice(0, 40))"""
CLEAN = {"overlaps": [], "outside": [], "spilled": []}


def checked(page, width):
    page.set_viewport_size({"width": width, "height": WIDTHS[width]})
    page.wait_for_timeout(400)  # panels follow a change of size with the next frames
    return {"overlaps": page.evaluate(OVERLAPS), "outside": page.evaluate(OUTSIDE), "spilled": page.evaluate(SPILLED)}


@pytest.mark.parametrize("model", ["shopping_cart", "piano_action", "billiard_ball", "double_pendulum_with_stop"])
def test_nothing_on_the_page_of_a_model_overlaps(viewed, model):
    _, page = viewed(model)
    page.running()
    page.wait_for_timeout(1000)  # some transitions in the list
    found, heights = {}, {}
    for width in WIDTHS:
        found[width] = checked(page, width)
        heights[width] = page.locator("#mechanism").bounding_box()["height"]
    assert found == dict.fromkeys(WIDTHS, CLEAN)
    assert [width for width in WIDTHS if heights[width] < min(STAGE, 0.3 * WIDTHS[width])] == []


SHARE = """(() => {
    const { mechanism: { view }, last } = fsmDyn, box = fsmDyn.mechanism.box(last);
    return Math.max(((box[2] - box[0]) * view.scale) / view.width, ((box[3] - box[1]) * view.scale) / view.height);
})()"""


@pytest.mark.parametrize("paused", [False, True])
def test_the_mechanism_fits_its_panel_after_a_change_of_its_size(viewed, paused):
    """Turned to portrait and back, a telephone shows as much as before; a view that was chosen stays."""
    _, page = viewed("four_bar")
    page.running()
    if paused:
        page.click("#run")
        page.wait("document.body.dataset.phase === 'paused'")
    for width in (1280, 360, 1280):
        checked(page, width)
        assert 0.4 < page.evaluate(SHARE) < 0.85, width
    page.evaluate("fsmDyn.mechanism.view.pan(100, 0)")
    scale = page.evaluate("fsmDyn.mechanism.view.scale")
    checked(page, 640)
    assert page.evaluate("fsmDyn.mechanism.view.scale") == scale


@pytest.mark.parametrize("model", ["piano_action", "carried_bar"])
def test_the_name_of_the_phase_or_of_the_mode_fits_with_both_its_ends(viewed, model):
    _, page = viewed(model)
    page.running()
    for width in (360, 640, 1280):
        page.set_viewport_size({"width": width, "height": 640})
        page.wait_for_timeout(400)
        room = page.evaluate(
            "(({ clientWidth, scrollWidth }) => clientWidth - scrollWidth)(document.querySelector('#mode'))"
        )
        assert room >= 0, width
        shown = page.text("#mode")
        mode = page.evaluate("fsmDyn.map.data.modes[fsmDyn.map.active]")
        phase = page.evaluate("fsmDyn.livePhases.phases && fsmDyn.livePhases.name")
        named = mode["words"] if set(";·+") & set(mode["name"]) else mode["name"]
        full = phase or mode.get("full", mode["name"])
        assert page.get_attribute("#mode", "title") == full, "the tooltip is the complete name"
        head, _, tail = shown.partition("…") if "…" in shown else (shown, "", "")
        assert (phase or named).startswith(head), width
        assert (phase or named).endswith(tail), width


def test_nothing_on_the_page_of_all_models_overlaps_and_overlaps_are_found(viewed):
    _, page = viewed(None)
    page.wait("document.querySelectorAll('#cards li').length")
    assert {width: checked(page, width) for width in WIDTHS} == dict.fromkeys(WIDTHS, CLEAN)
    page.evaluate("document.querySelector('#count').attributeStyleMap.set('margin-left', '-150px')")
    assert any("count" in pair for pair in checked(page, 1280)["overlaps"])
    for rule in ("min-width: 0", "max-width: 20px", "white-space: nowrap"):
        name, value = rule.split(": ")
        page.evaluate(f"document.querySelector('#count').attributeStyleMap.set('{name}', '{value}')")
    assert checked(page, 1280)["spilled"] == ["count"]
