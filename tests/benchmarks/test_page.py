"""How long the page's scripts take for a frame, measured in the page while the cart is dragged."""

import math

import pytest

from tests.browser.conftest import *  # noqa: F403 - the fixtures of the browser

pytestmark = pytest.mark.benchmark
MOST = 4.0  # ms


@pytest.mark.parametrize("name", ["shopping_cart", "piano_action"])
def test_script_time_of_a_frame(viewed, name):
    """With every panel open, the one for parameters too; of the piano eighty modes are met meanwhile."""
    _, page = viewed(name)
    page.running()
    page.keyboard.press("x")
    page.evaluate("fsmDyn.scriptTimes.length = 0")
    knob = page.locator(".handle .knob").first.bounding_box()
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(400):
        page.mouse.move(x + 150.0 * math.sin(0.03 * k), y)
        page.wait_for_timeout(20)
    page.mouse.up()
    times = sorted(page.evaluate("fsmDyn.scriptTimes"))
    middle, high, worst = times[len(times) // 2], times[int(0.95 * len(times))], times[-1]
    print(f"\n{name}: script per frame of {len(times)}: p50 {middle:.2f}, p95 {high:.2f}, worst {worst:.2f} ms")
    assert len(times) > 200
    assert high <= MOST
