"""Parameter panel: parameters on sliders, inputs on buttons, initial mode."""

import pytest

from tests.browser.conftest import tabbed

pytestmark = pytest.mark.browser


def value(page, name):
    return page.evaluate(f"fsmDyn.setup.rows.get('{name}').number.valueAsNumber")


def test_parameters_inputs_and_initial_mode(viewed):
    """Wall: stiffness at once, mass on reset, push while a button is pressed."""
    _, page = viewed("virtual_wall")
    page.running()
    page.keyboard.press("x")
    page.expect("#setup").to_be_visible()
    assert {"initial-mode", "k, slider", "m, kg", "push +", "setup-close", "map", "picture"} <= set(tabbed(page))

    # at once, by the slider alone and by keys
    stiffness = value(page, "k")
    page.locator("input[aria-label='k, slider']").focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    page.wait(f"fsmDyn.setup.rows.get('k').number.valueAsNumber > 1.2 * {stiffness}")
    assert page.evaluate("document.querySelector('#waiting').textContent") == ""

    # at the reset
    mass = page.locator("input[aria-label='m, kg']")
    mass.fill("2.5")
    mass.press("Enter")
    page.wait("/m: applied at the next reset/.test(document.querySelector('#waiting').textContent)")
    page.evaluate("window.before = fsmDyn.model")
    page.locator("#waiting button").click()
    page.wait("fsmDyn.model !== window.before")
    page.wait("document.querySelector('#waiting').textContent === ''")
    page.wait("fsmDyn.last?.t < 5 && fsmDyn.setup.rows.get('m').number.valueAsNumber === 2.5")

    # a drive
    push = page.evaluate("fsmDyn.charts.names.indexOf('push')")
    page.evaluate(f"fsmDyn.charts.chosen = [{push}]")
    latest = f"fsmDyn.charts.values[{push}].at(-1)"
    button = page.locator("button[aria-label='push +']")
    button.focus()
    page.keyboard.down("Space")
    page.wait(f"{latest} > 0.5")
    page.keyboard.up("Space")
    page.wait(f"{latest} === 0")
    assert page.phase == "running", "the key was the button's"

    # begun anew in another mode
    run = page.evaluate("fsmDyn.model.number")
    page.locator("#initial-mode").select_option("sliding")
    page.wait(f"fsmDyn.model.number > {run}")
    assert page.evaluate("fsmDyn.model.setup.mode") == "sliding"
    page.running()
    page.keyboard.press("Escape")
    page.expect("#setup").to_be_hidden()
    assert page.complaints == []
