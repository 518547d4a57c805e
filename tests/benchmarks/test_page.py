"""How long the page's scripts take for a frame, measured in the page while the cart is dragged."""

import math
import os

import pytest

pytestmark = pytest.mark.benchmark
MOST = 4.0  # ms


# four strips of four lines: as many units as there is room for
FOUR_STRIPS = """(() => {
    const { charts } = fsmDyn, units = [...new Set(charts.about.quantities.map((q) => q.unit))].slice(0, 4);
    const of = (unit) => charts.about.quantities.map((q, i) => [q, i]).filter(([q]) => q.unit === unit).slice(0, 4);
    charts.chosen = units.flatMap((unit) => of(unit).map(([, i]) => i));
    charts.build();
    fsmDyn.scriptTimes.length = 0;
})()"""


@pytest.mark.parametrize(("name", "swing", "least"), [("shopping_cart", (150, 0), 1), ("piano_action", (30, 40), 40)])
def test_script_time_of_a_frame(viewed, name, swing, least):
    """With every panel open, that for parameters too, and four strips; of the piano dozens of modes are met meanwhile.

    Counted is what the scripts do for a picture of the screen, and for the messages that come between two of them.
    """
    _, page = viewed(name)
    page.running()
    page.keyboard.press("x")
    page.evaluate(FOUR_STRIPS)
    knob = page.locator(".handle .knob").first.bounding_box()
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(400):
        page.mouse.move(x + swing[0] * math.sin(0.03 * k), y + swing[1] * math.sin(0.12 * k))
        page.wait_for_timeout(20)
        if k == 50:
            page.evaluate("fsmDyn.scriptTimes.length = 0")
    page.mouse.up()
    times = sorted(page.evaluate("fsmDyn.scriptTimes"))
    met = page.evaluate("Object.keys(fsmDyn.map.totals.visits).length")
    middle, high, worst = times[len(times) // 2], times[int(0.95 * len(times))], times[-1]
    print(
        f"\n{name}: script per frame of {len(times)}: p50 {middle:.2f}, p95 {high:.2f}, worst {worst:.2f} ms; "
        f"{met} modes met; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
    assert len(times) > 200
    assert met >= least
    assert high <= MOST
