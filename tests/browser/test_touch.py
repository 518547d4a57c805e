"""Fingers on a telephone: a handle is dragged, the page stays where it is, and scrolls where nothing is dragged."""

import pytest

from tests.browser.conftest import Page, Viewed

pytestmark = pytest.mark.browser

SCROLLED = "[window.scrollY, document.querySelector('main').scrollTop]"
HANDLE = "[...fsmDyn.last.handles.subarray(0, 2)]"  # m


@pytest.fixture
def telephone(chromium):
    """Return a function that opens the page of a model on a telephone."""
    contexts, runs = [], []

    def opened(model):
        run = Viewed(model)
        runs.append(run)
        context = chromium.new_context(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
        contexts.append(context)
        return Page(context.new_page(), run.address).open()

    yield opened
    for context in contexts:
        context.close()
    for run in runs:
        run.end()


def swiped(page, begin, by, steps=40):
    """Move a finger from a place (px), in steps of 20 ms, lift it; return what the page shows before it is lifted."""
    client = page.context.new_cdp_session(page.page)

    def touch(kind, *points):
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    touch("touchStart", begin)
    for step in range(1, steps + 1):
        touch("touchMove", (begin[0] + by[0] * step / steps, begin[1] + by[1] * step / steps))
        page.wait_for_timeout(20)
    page.wait_for_timeout(300)
    held = page.evaluate("document.querySelector('.handle').classList.contains('held')")
    found = page.evaluate(HANDLE)
    touch("touchEnd")
    return held, found


@pytest.mark.parametrize(("model", "by"), [("virtual_wall", (60, -50)), ("shopping_cart", (70, 0))])
def test_a_finger_drags_the_handle_and_not_the_page(telephone, model, by):
    page = telephone(model).running()
    box = page.locator(".handle .knob").first.bounding_box()
    begin = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    before = page.evaluate(HANDLE)
    held, after = swiped(page, begin, by)
    assert held
    scale = page.evaluate("fsmDyn.mechanism.view.scale")
    moved = [(b - a) * scale for a, b in zip(before, after, strict=True)]
    assert moved[0] > 0.3 * by[0], "px to the right"
    assert -moved[1] * by[1] > 0.0 or by[1] == 0, "y on the page is down; the cart's wheels choose its way"
    assert page.evaluate(SCROLLED) == [0, 0]
    page.wait("!document.querySelector('.handle').classList.contains('held')")
    assert page.complaints == []


def test_a_finger_on_a_list_scrolls_the_page(telephone):
    page = telephone("virtual_wall").running()
    box = page.locator("#charts h2").bounding_box()
    held, _ = swiped(page, (box["x"] + 20, box["y"] + 10), (0, -200), steps=10)
    assert not held
    page.wait(f"{SCROLLED}[1] > 50")
