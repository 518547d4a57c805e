"""The page of all shipped models: search, start by a click, and back to start another."""

import pytest

pytestmark = pytest.mark.browser


def test_a_model_is_found_started_and_left_for_another(viewed):
    process, page = viewed(None)
    count = page.wait("document.querySelectorAll('#cards li').length")
    assert page.text("#count") == f"{count} models"
    page.fill("#search", "ball floor")
    shown = page.evaluate(
        "[...document.querySelectorAll('#cards li:not([hidden]) strong')].map((one) => one.textContent)"
    )
    assert "bouncing_ball" in shown
    assert len(shown) < count
    page.click("#cards li:not([hidden]) button:has(strong:text-is('bouncing_ball'))")
    page.wait_for_url("**/?from=models")
    page.wait("window.fsmDyn?.model?.name === 'bouncing_ball'")
    page.running()
    page.click("#models")
    page.wait_for_url("**/models.html")
    page.wait("document.querySelectorAll('#cards li').length")
    assert page.evaluate("[...document.images].filter((one) => one.complete && !one.naturalWidth).length") == 0
    page.click("#cards button:has(strong:text-is('latch'))")
    page.wait_for_url("**/?from=models")
    page.wait("window.fsmDyn?.model?.name === 'latch'")
    page.running()
    assert not page.complaints
    code, runs = process.end()
    assert code == 0
    assert len(runs) == 2
