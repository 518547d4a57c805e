"""The button that writes what is shown as a GIF file: played back, in a report, live, and in space."""

import io

import numpy as np
import pytest
from PIL import Image, ImageSequence

import fsm_dyn
from fsm_dyn.page.report import write_report

pytestmark = pytest.mark.browser
BAND = 30  # pixels above the mechanism


def pictures(page, begin, end=None):
    """Return the pictures of the file that a page writes, (n, height, width, 3), and how long each is shown, s."""
    with page.expect_download(timeout=60_000) as handed:
        begin()
        if end is not None:
            page.wait("fsmDyn.animation.encoder")
            page.wait(f"performance.now() > fsmDyn.animation.begun + {1e3 * end}")
            page.locator("#gif").click()
    name = handed.value.suggested_filename
    data = Image.open(io.BytesIO(handed.value.path().read_bytes()))
    assert data.format == "GIF"
    shown = [(np.asarray(each.convert("RGB")), 1e-3 * each.info["duration"]) for each in ImageSequence.Iterator(data)]
    assert page.complaints == []
    return name, np.stack([picture for picture, _ in shown]), np.array([duration for _, duration in shown])


def check(page, found, least):
    """Check that a mechanism moves in the colours of its modes, below their band."""
    _, shown, durations = found
    assert len(shown) >= least
    assert durations.min() >= 0.05
    colours = {
        tuple(int(c[k : k + 2], 16) for k in (1, 3, 5))
        for c in page.evaluate("fsmDyn.model.graph.modes.map((m) => m.colour)")
    }
    band = {tuple(each) for each in shown[:, 2, 2].tolist()}
    assert all(min(np.abs(np.subtract(one, other)).max() for other in colours) <= 12 for one in band)
    below = shown[:, BAND:].astype(int)
    assert np.abs(below[0] - below[len(below) // 2]).max() > 60, "something moves"
    assert len(np.unique(below[0].reshape(-1, 3), axis=0)) > 3, "something is drawn"


@pytest.fixture(scope="module")
def run():
    return fsm_dyn.simulate(fsm_dyn.compile("shopping_cart"), until=2.0)


@pytest.mark.parametrize("source", ["served", "report"])
def test_a_run_that_is_played_back_is_written_to_its_end(source, run, viewed, new_page, tmp_path):
    if source == "served":
        _, page = viewed(run.save(tmp_path / "cart.run.json"))
    else:
        page = new_page(write_report(run, tmp_path / "cart.html").as_uri()).open()
    page.wait("fsmDyn.last && fsmDyn.playback.run")
    found = pictures(page, page.locator("#gif").click)
    assert found[0] == "shopping_cart.gif"
    check(page, found, 8)
    assert found[2].sum() == pytest.approx(2.0 + 0.8, abs=1.5)
    page.expect("#gif").to_have_text("GIF")


@pytest.mark.parametrize("model", ["bouncing_ball", "rolling_disk"])
def test_a_live_run_is_written_until_the_button_is_pressed_again(model, viewed):
    _, page = viewed(model)
    page.running()
    page.locator("#picture").focus()
    found = pictures(page, lambda: page.keyboard.press("a"), 1.5)
    assert found[0] == f"{model}.gif"
    check(page, found, 4)
