"""A mechanism that leaves the plane: drawn in three dimensions, looked at from elsewhere, held nevertheless."""

import re
import shutil

import pytest

import fsm_dyn
from fsm_dyn.language import models
from fsm_dyn.page.report import write_report
from tests.browser.conftest import NAMES, Page

pytestmark = pytest.mark.browser


@pytest.fixture
def in_software(chromium):
    """A page in a browser that draws three dimensions without a graphics card."""
    own = next(filter(None, map(shutil.which, NAMES)), None)
    browser = chromium.browser_type.launch(
        executable_path=own, args=["--no-sandbox", "--enable-unsafe-swiftshader", "--use-angle=swiftshader"]
    )
    yield lambda address: Page(browser.new_page(viewport={"width": 1280, "height": 720}), address)
    browser.close()


COLOURS = """(() => {
    const { renderer, scene, camera } = fsmDyn.space, gl = renderer.getContext();
    renderer.render(scene, camera);
    const [w, h] = [gl.drawingBufferWidth, gl.drawingBufferHeight], data = new Uint8Array(4 * w * h);
    gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, data);
    let drawn = 0;
    for (let i = 3; i < data.length; i += 4) drawn += data[i] > 100;
    return drawn / (w * h);
})()"""


# px between where the flat picture has the origin of the first outline and where space has it
APART = """(() => {
    const { placed, three, camera } = fsmDyn.space, { view } = fsmDyn.mechanism, frame = fsmDyn.last;
    const p = new three.Vector3().setFromMatrixPosition(placed[0].matrix).project(camera);
    const [x, y] = view.screen(frame.shapes[4], frame.shapes[5]);
    return Math.hypot((p.x + 1) / 2 * view.width - x, (1 - p.y) / 2 * view.height - y);
})()"""


def test_a_ball_in_three_dimensions(viewed, in_software):
    run, _ = viewed("billiard_ball")
    page = in_software(run.address).open().running()
    page.wait("document.body.classList.contains('in-space') && fsmDyn.space.placed")
    page.wait_for_timeout(300)
    assert page.evaluate(COLOURS) > 0.02
    own = (page.address, page.address.replace("http", "ws", 1))
    assert [url for url in page.requests if not url.startswith(own)] == []

    # what is flat on the page and what is in space are the same: the ball's centre is where its handle is
    apart = """(() => {
        const { placed, three, camera } = fsmDyn.space, { view } = fsmDyn.mechanism, frame = fsmDyn.last;
        const p = new three.Vector3().setFromMatrixPosition(placed[0].matrix).project(camera);
        const [x, y] = view.screen(frame.handles[0], frame.handles[1]);
        return Math.hypot((p.x + 1) / 2 * view.width - x, (1 - p.y) / 2 * view.height - y);
    })()"""
    page.keyboard.press("Space")
    page.wait("document.body.dataset.phase === 'paused'")
    page.wait_for_timeout(200)
    assert page.evaluate(apart) < 1.0, "px"

    # looked at from elsewhere, by dragging and by keys
    before = page.evaluate("[...fsmDyn.last.space.subarray(0, 6)]")
    page.mouse.move(60, 300)
    page.mouse.down()
    page.mouse.move(160, 270, steps=4)
    page.mouse.up()
    page.wait(f"Math.abs(fsmDyn.last.space[0] - {before[0]}) > 0.1")
    page.keyboard.press("PageUp")
    page.wait_for_timeout(300)
    right, up = (page.evaluate(f"[...fsmDyn.last.space.subarray({k}, {k + 3})]") for k in (0, 3))
    assert sum(a * b for a, b in zip(right, up, strict=True)) == pytest.approx(0.0, abs=1e-9)
    assert sum(a * a for a in up) == pytest.approx(1.0)
    assert page.evaluate(apart) < 1.0
    assert [text for text in page.complaints if "GL Driver Message" not in text] == []


def test_a_report_in_three_dimensions_opens_from_disk_alone(in_software, tmp_path):
    run = fsm_dyn.simulate(fsm_dyn.compile("billiard_ball"), until=0.3)
    path = write_report(run, tmp_path / "ball.html")
    page = in_software(path.as_uri()).open()
    page.wait("globalThis.fsmDyn?.last && document.body.classList.contains('in-space') && fsmDyn.space.placed")
    page.wait_for_timeout(300)
    assert page.requests == [path.as_uri()]
    assert page.evaluate(COLOURS) > 0.02
    assert page.evaluate(APART) < 1.0, "px"
    box, before = page.locator("#mechanism").bounding_box(), page.evaluate("[...fsmDyn.last.space.subarray(0, 6)]")
    page.mouse.move(box["x"] + 60, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 160, box["y"] + 170, steps=4)
    page.mouse.up()
    page.wait(f"Math.abs(fsmDyn.last.space[0] - {before[0]}) > 0.1")
    page.keyboard.press("PageUp")
    page.keyboard.press("End")
    page.wait("fsmDyn.last.t === 0.3")
    # the outline, laid out anew here, is where what is drawn in space is
    assert page.evaluate(APART) < 1.0, "px"
    assert [text for text in page.complaints if "GL Driver Message" not in text] == []


def test_the_first_view_of_a_model_without_drawing_has_the_whole_ball(viewed, in_software, tmp_path):
    """Spheres are no outlines: the first view is fitted to them as well."""
    model = tmp_path / "ball.yaml"
    text = models.find("billiard_ball").read_text(encoding="utf-8")
    model.write_text(re.sub(r"^view:\n(?: .*\n)+", "", text, flags=re.MULTILINE), encoding="utf-8")
    run, _ = viewed(model)
    page = in_software(run.address).open().running()
    page.wait("document.body.classList.contains('in-space') && fsmDyn.space.placed")
    radius, left, top, right, bottom = page.evaluate(
        """(() => {
            const { view, about } = fsmDyn.mechanism, frame = fsmDyn.last, [x, y] = frame.handles;
            const { radius } = about.picture.solids.find(({ kind }) => kind === "sphere"), [px, py] = view.screen(x, y);
            const half = radius * view.scale;
            return [half, px - half, py - half, view.width - px - half, view.height - py - half];
        })()"""
    )
    assert min(left, top, right, bottom) >= 0.0, "px inside of the stage"
    assert radius > 20.0, "px: it is not lost in it either"
