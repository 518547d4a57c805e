"""A person takes a linkage apart on the page: two clicks impose a constraint, a button releases it."""

import pytest

from tests.browser.test_widths import CLEAN, WIDTHS, checked

pytestmark = pytest.mark.browser

RODS = """
fsm_dyn: 1
name: two_rods
coordinates: {q1: rad, q2: rad}
frames: {A: {rotate: {z: q1}}, B: {rotate: {z: q2}}}
points:
  Ca: {from: O, at: 0.2 m*A.x}
  J: {from: O, at: 0.4 m*A.x}
  Cb: {from: J, at: 0.2 m*B.x}
bodies:
  upper: {frame: A, center: Ca, mass: 1 kg, inertia: {zz: 0.01 kg*m^2}}
  lower: {frame: B, center: Cb, mass: 1 kg, inertia: {zz: 0.01 kg*m^2}}
loads:
  - {gravity: -9.81 m/s^2*N.y}
  - {damper: {coordinate: q1, damping: 2 N*m*s}}
  - {damper: {coordinate: q2, damping: 2 N*m*s}}
ports: {handle: {coordinate: q1}}
imposable: 2
initial: {q1: -60 deg, q2: -20 deg}
view:
  upper: {polygon: [[-0.2, -0.03], [0.2, -0.03], [0.2, 0.03], [-0.2, 0.03]]}
  lower: {polygon: [[-0.2, -0.03], [0.2, -0.03], [0.2, 0.03], [-0.2, 0.03]]}
"""


def click(page, x, y, body=None):
    """Click the picture at a point (m): of a body, along its axes from its centre, or of the ground."""
    matrix = f"fsmDyn.last.shapes.slice(6 * {body}, 6 * {body} + 6)" if body is not None else "[1, 0, 0, 1, 0, 0]"
    px, py = page.evaluate(
        f"""(() => {{
            const [a, b, c, d, e, f] = {matrix}, box = document.querySelector("#picture").getBoundingClientRect();
            const [px, py] = fsmDyn.mechanism.view.screen(a * {x} + c * {y} + e, b * {x} + d * {y} + f);
            return [px + box.left, py + box.top];
        }})()"""
    )
    page.mouse.click(px, py)


def angle(page, body):
    return page.evaluate(f"Math.atan2(fsmDyn.last.shapes[6 * {body} + 1], fsmDyn.last.shapes[6 * {body}])")


def wait_for_cause(page, text):
    causes = "[...document.querySelectorAll('#entries .cause')]"
    page.wait(f"{causes}.some((one) => one.textContent.includes('{text}'))")


def test_a_rod_is_pinned_and_released(viewed, tmp_path):
    path = tmp_path / "two_rods.yaml"
    path.write_text(RODS)
    view, page = viewed(path)
    page.running()
    bodies = page.evaluate("fsmDyn.model.picture.shapes.map((shape) => shape.body)")
    upper, lower = bodies.index("upper"), bodies.index("lower")

    # the ground first is no body; then the end of the lower rod on the ground
    page.locator("#hand").click()
    click(page, 0.3, -0.1)
    assert "click a point of a body first" in page.text("#hand-note")
    click(page, 0.15, 0.0, lower)
    page.wait("document.querySelector('#hand-note').textContent.startsWith('Now')")
    page.wait("document.querySelector('.grasp').getAttribute('visibility') === 'visible'")
    click(page, 0.3, -0.1)
    page.wait("document.querySelector('#hand-release').textContent === 'Release 1'")
    wait_for_cause(page, "imposes: pin")
    held = angle(page, upper)
    page.wait_for_timeout(400)
    assert abs(angle(page, upper) - held) < 1e-4  # two rods and a pinned end do not move

    # refused, without an effect: a body with itself; another pin far away
    page.locator("#hand").click()
    click(page, 0.0, 0.0, upper)
    click(page, 0.1, 0.0, upper)
    page.wait("document.querySelector('#hand-note').textContent.includes('too far apart')")
    assert page.text("#hand-release") == "Release 1"

    page.locator("#hand-release").click()
    page.wait("document.querySelector('#hand-release').disabled")
    wait_for_cause(page, "releases")
    page.wait(
        f"Math.abs(Math.atan2(fsmDyn.last.shapes[6 * {lower} + 1], fsmDyn.last.shapes[6 * {lower}]) + 1.57) < 0.2"
    )

    # an angle on the other kind of constraint
    page.locator("#hand-kind").select_option("Hold the angle")
    page.locator("#hand").click()
    click(page, 0.0, 0.0, lower)
    click(page, 0.3, -0.1)
    page.wait("document.querySelector('#hand-release').textContent === 'Release 1'")
    wait_for_cause(page, "imposes: angle")
    assert page.phase == "running"
    assert page.complaints == []
    code, runs = view.end()
    assert code == 0
    assert runs[0]["fault"] == ""
    assert runs[0]["failure"] == ""


def test_a_line_ahead_shows_the_next_transition(viewed):
    """The ball's impacts are foreseen: a thin line to the right of the present, and the time until then."""
    _, page = viewed("bouncing_ball")
    page.running()
    assert page.evaluate("fsmDyn.model.look_ahead") == 0.0
    page.click("#ahead")
    page.wait("fsmDyn.model.look_ahead === 0.1 && document.querySelector('#ahead').checked")
    seen = page.wait(
        """(() => {
            const line = document.querySelector(".strip .head.next"), charts = fsmDyn.charts;
            if (!line || line.hidden) return null;
            const { plot } = charts.plots[0], now = plot.valToPos(charts.times.at(-1), "x");
            const right = plot.bbox.left / devicePixelRatio + now;
            return { left: parseFloat(line.style.left), right, text: line.textContent };
        })()"""
    )
    assert seen["left"] >= seen["right"] - 2.0
    assert 0 <= int(seen["text"].removesuffix(" ms")) <= 100
    page.click("#ahead")
    page.wait("fsmDyn.model.look_ahead === 0")
    page.running()
    assert page.evaluate("[...document.querySelectorAll('.strip .head.next')].every((line) => line.hidden)")
    assert page.complaints == []


CARTS = """
fsm_dyn: 1
name: two_discs
coordinates: {a: m, b: m}
points:
  A: {from: O, at: a*N.x}
  B: {from: O, at: b*N.x}
bodies:
  left: {center: A, mass: 1 kg}
  right: {center: B, mass: 3 kg}
shapes:
  striker: {circle: {frame: N, center: A, radius: 0.05 m}}
  target: {circle: {frame: N, center: B, radius: 0.05 m}}
ports: {handle: {coordinate: b}}
imposable: 1
initial: {a: -0.2 m, a_dot: 0.2 m/s}
"""
PLACES = "[fsmDyn.last.t, ...[0, 1].map((k) => fsmDyn.last.shapes[6 * k + 4])]"  # s, m, m


def speeds(page):
    """Return the speeds of the first two shapes, m/s."""
    before = page.evaluate(PLACES)
    page.wait(f"fsmDyn.last.t > {before[0]} + 0.2")
    after = page.evaluate(PLACES)
    return [(there - here) / (after[0] - before[0]) for here, there in zip(before[1:], after[1:], strict=True)]


def test_two_bodies_that_are_clicked_touch_from_then_on(viewed, tmp_path):
    """Unclicked, one disc passes through the other; clicked, both move on with the momentum of the first."""
    path = tmp_path / "two_discs.yaml"
    path.write_text(CARTS)
    view, page = viewed(path)
    page.running()
    page.wait("fsmDyn.last.t > 2")  # past the place of the other
    assert speeds(page) == pytest.approx([0.2, 0.0], abs=1e-4)

    page.click("#run")
    page.click("#reset")
    page.wait("fsmDyn.last.t < 0.1 && document.body.dataset.phase === 'paused'")
    page.locator("#hand-kind").select_option("Let touch")
    page.locator("#hand").click()
    click(page, 0.0, 0.0, 0)
    click(page, 0.0, 0.0, 1)
    page.click("#run")
    page.wait("document.querySelector('#hand-release').textContent === 'Release 1'")
    wait_for_cause(page, "touch each other")
    page.wait("fsmDyn.last.t > 1")
    assert speeds(page) == pytest.approx([0.05, 0.05], abs=1e-4)  # 1 kg with 0.2 m/s now moves 4 kg
    _, left, right = page.evaluate(PLACES)
    assert right - left == pytest.approx(0.1, abs=1e-4)
    page.click("#hand-release")
    page.wait("document.querySelector('#hand-release').disabled")
    assert page.evaluate("document.querySelector('#schedule-label').hidden"), "no input has a course"
    found = {width: checked(page, width) for width in WIDTHS}
    assert found == dict.fromkeys(WIDTHS, CLEAN)
    assert page.complaints == []
    code, runs = view.end()
    assert code == 0
    assert runs[0]["failure"] == ""
