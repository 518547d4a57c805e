"""What the page says when something is the matter: no connection, an error in the file, a run that has ended."""

import asyncio
import http.server
import itertools
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.page.broadcast import LiveBroadcast
from fsm_dyn.page.live_view import LiveOptions
from fsm_dyn.page.server import LOOPBACK, Server, address, configured, listen

pytestmark = pytest.mark.browser

BALL = """\
fsm_dyn: 1
name: {name}
summary: "{summary}"
parameters: {{m: 1 kg, e: 0.8}}
coordinates: {{y: m}}
points: {{P: {{from: O, at: y*N.y}}}}
bodies: {{ball: {{center: P, mass: m}}}}
contacts: {{ground: {{gap: y, restitution: e}}}}
loads: [{{gravity: -9.81 m/s^2*N.y}}]
modes: {{flight: {{ground: open}}, resting: {{ground: closed}}}}
transitions:
  - {{from: flight, to: flight, when: "y - 0.9 m", crossing: falling, because: "{because}"}}
initial: {{mode: flight, y: 1 m}}
view: {{ball: [{{circle: 0.05}}, {{text: "{label}"}}]}}
"""


def ball(path, name="ball", summary="A ball.", because="it has begun to fall", label="ball"):
    path.write_text(BALL.format(name=name, summary=summary, because=because, label=label), encoding="utf-8")
    return path


class Theatre:
    """A page's server in this process that can be taken away and put up again under the same address."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.show = LiveBroadcast(LiveOptions())
        self.playing = asyncio.run_coroutine_threadsafe(self.show.play(), self.loop)
        self.socket = listen(0)
        self.port = self.socket.getsockname()[1]
        self.server = None

    def do(self, work, timeout=120):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def open(self):
        self.socket = self.socket if self.socket.fileno() >= 0 else listen(self.port)
        self.server = Server(configured(self.show, "token", self.port))
        self.serving = asyncio.run_coroutine_threadsafe(self.server.serve([self.socket]), self.loop)

    def shut(self):
        self.server.should_exit = True
        self.serving.result(20)
        self.socket.close()

    def close(self):
        if self.socket.fileno() >= 0:
            self.shut()
        self.playing.cancel()
        self.do(self.show.close())
        self.loop.call_soon_threadsafe(self.loop.stop)


@pytest.fixture
def theatre():
    theatre = Theatre()
    yield theatre
    theatre.close()


def test_a_lost_connection_is_reported_and_comes_back_by_itself(theatre, new_page):
    theatre.do(theatre.show.start(fsm_dyn.compile("bouncing_ball")))
    theatre.open()
    page = new_page(address(theatre.port, "token")).open().running()
    tick = page.evaluate("fsmDyn.last.tick")
    theatre.shut()
    page.wait("document.querySelector('#link').dataset.state === 'lost'")
    page.expect("#banner").to_contain_text("Connection lost")
    page.expect("#run").to_be_disabled()
    page.wait_for_timeout(600)
    theatre.open()
    page.wait("document.querySelector('#link').dataset.state === 'open'")
    page.running()
    page.wait(f"fsmDyn.last.tick > {tick} + 100")
    page.expect("#run").to_be_enabled()
    # the log holds what happened meanwhile, and nothing twice
    numbers = page.evaluate("[...document.querySelectorAll('#entries details')].map((d) => +d.dataset.number)")
    assert numbers == sorted(set(numbers), reverse=True)


def test_a_fault_stays_until_the_operator_clears_it(theatre, new_page):
    theatre.open()
    page = new_page(address(theatre.port, "token")).open()
    page.wait("document.querySelector('#link').dataset.state === 'open'")
    starting = asyncio.run_coroutine_threadsafe(theatre.show.start(fsm_dyn.compile("bouncing_ball")), theatre.loop)
    # what is being done meanwhile is reported
    page.wait("/Starting bouncing_ball/.test(document.querySelector('#banner').textContent)")
    starting.result(120)
    page.running()
    # no hand moves a kilometre in no time
    for y in (1.0, 1000.0):
        page.evaluate(f"fsmDyn.connection.send({{do: 'point', port: 'hand', x: 0, y: {y}, turn: 0, held: true}})")
        page.wait_for_timeout(60)
    page.wait("document.body.dataset.phase === 'fault'")
    page.expect("#banner").to_contain_text("faster than its limit")
    boxes = "['#banner', '#mechanism'].map((one) => document.querySelector(one).getBoundingClientRect())"
    assert page.evaluate(f"(([bar, stage]) => bar.height > 0 && bar.bottom <= stage.top)({boxes})"), "covers the stage"
    page.expect("#banner .close").to_have_text("Close")
    page.keyboard.press("Space")
    page.wait_for_timeout(300)
    assert page.phase == "fault"
    # a handle that is still out there would be the next fault
    page.evaluate("fsmDyn.connection.send({do: 'point', port: 'hand', x: 0, y: 1, turn: 0, held: false})")
    page.locator("#banner button:not(.close)").click()
    page.wait("document.body.dataset.phase === 'paused'")
    page.expect("#banner").to_be_hidden()  # else the space bar presses its button, which has the focus
    page.keyboard.press("Space")
    page.wait("document.body.dataset.phase === 'running'")
    page.expect("#banner").to_be_hidden()


def test_a_page_of_another_origin_gets_no_socket(viewed, new_page):
    _, page = viewed("bouncing_ball")
    page.running()
    live = page.address.replace("http", "ws", 1) + "live"

    class Blank(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>foreign</title>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer((LOOPBACK, 0), Blank) as foreign:
        threading.Thread(target=foreign.serve_forever, daemon=True).start()
        stranger = new_page(f"http://{LOOPBACK}:{foreign.server_port}/").open()
        attempt = """(address) => new Promise((done) => {
            const socket = new WebSocket(address);
            socket.onopen = () => done("open");
            socket.onclose = () => done("refused");
        })"""
        assert stranger.evaluate(attempt, live) == "refused"
        assert page.evaluate(attempt, live) == "open"  # the same address, from its own page
        foreign.shutdown()


def test_what_a_model_says_is_text(viewed, tmp_path):
    bad = "<img src=x onerror='window.hacked=1'><script>window.hacked=2</script>"
    _, page = viewed(ball(tmp_path / "text.yaml", summary=bad, because=bad, label=bad))
    page.running()
    page.wait("document.querySelector('#entries .cause')")
    page.expect("#summary").to_have_text(bad)
    assert bad in {entry[3] for entry in page.entries()}
    assert page.evaluate("document.querySelector('#overlay .label').textContent") == bad
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('img').length") == 0


def test_many_modes_stay_readable_and_infeasible_ones_are_grey(viewed):
    """Of the piano's modes a dozen are drawn, none smaller than can be read; the active one is among them, in sight."""
    _, page = viewed("piano_action", "--schedule")
    page.running()
    page.wait("fsmDyn.map.totals.transitions > 30")
    page.click("#graph-kind")  # from the phases to the modes
    page.wait_for_timeout(1500)
    page.click("#run")
    page.wait("document.body.dataset.phase === 'paused'")
    page.wait_for_timeout(2000)
    shown = page.evaluate("fsmDyn.map.cy.nodes('[mode]').length")
    assert 2 < shown <= 13
    assert page.evaluate("12 * fsmDyn.map.cy.zoom()") >= 10.0, "the height of letters, px"
    page.evaluate("fsmDyn.map.cy.nodes('[mode]').forEach((n) => fsmDyn.map.join(n.data('name'), n.data('name'), {}))")
    ends = page.evaluate(
        """fsmDyn.map.cy.edges().filter((edge) => edge.isLoop()).map((loop) => {
            const { wide, high } = loop.source().data(), way = fsmDyn.map.down ? wide : high;
            return loop.numericStyle("control-point-step-size") - way / 2;
        })"""
    )
    assert len(ends) == shown
    assert min(ends) > 0.0, "a loop added between layouts leaves its box too: inside it could not be drawn"
    assert page.evaluate(
        """(() => {
            const box = fsmDyn.map.lit.renderedBoundingBox(), panel = document.querySelector("#map");
            return box.x1 > -5 && box.y1 > -5 && box.x2 < panel.clientWidth + 5 && box.y2 < panel.clientHeight + 5;
        })()"""
    )
    page.evaluate("document.querySelector('#pruned').checked || document.querySelector('#pruned').click()")
    names = page.evaluate("fsmDyn.map.cy.nodes('.pruned').map((node) => node.data('reason'))")
    assert len(names) == min(60, page.evaluate("fsmDyn.map.data.pruned_count"))
    assert all(names)
    assert page.complaints == []


def test_errors_in_the_file_are_shown_with_their_line_and_what_runs_goes_on(viewed, tmp_path):
    path = ball(tmp_path / "ball.yaml", name="<script>window.hacked=1</script>")
    _, page = viewed(path, "--watch")
    page.wait("!document.querySelector('#banner .where')?.hidden && document.querySelector('#banner .where')")
    page.expect("#banner .where").to_have_text(f"{path}:2:7")
    page.expect("#banner").to_contain_text("<script>window.hacked=1</script>")
    assert page.evaluate("window.hacked") is None

    ball(path)
    page.running()
    page.expect("#name").to_have_text("ball")
    path.write_text(path.read_text().replace("gap: y,", "gap: y + z,"), encoding="utf-8")
    page.wait("document.querySelector('#banner .where')")
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "y + z" in text)
    page.expect("#banner .where").to_have_text(re.compile("^" + re.escape(f"{path}:{line}:")))
    page.expect("#banner").to_contain_text("z")
    tick = page.evaluate("fsmDyn.last.tick")
    page.wait(f"fsmDyn.last.tick > {tick} + 100")

    ball(path, summary="Corrected.")
    page.wait("document.querySelector('#summary').textContent === 'Corrected.'")
    page.running()
    page.expect("#banner").to_be_hidden()


def test_a_model_file_is_reloaded_when_it_is_saved(viewed, tmp_path):
    path = ball(tmp_path / "ball.yaml")
    _, page = viewed(path)
    page.running()
    ball(path, summary="Saved again.")
    page.wait("document.querySelector('#summary').textContent === 'Saved again.'")
    page.running()


def test_a_run_whose_process_is_killed_is_started_again_and_ctrl_c_ends_all(viewed):
    run, page = viewed("bouncing_ball")
    page.running()
    tick = next(pid for pid in descendants(run.process.pid) if "fsm_dyn.live.tick_process" in command(pid))
    os.kill(tick, signal.SIGKILL)
    page.wait("/ended/.test(document.querySelector('#banner').textContent)")
    page.locator("#banner button:not(.close)").click()
    page.running()
    assert page.evaluate("fsmDyn.model.number") == 2

    # and Ctrl-C ends it all, with the page still open
    began, processes = time.monotonic(), descendants(run.process.pid)
    code, reports = run.end()
    assert code == 0
    assert time.monotonic() - began < 10
    assert [report["ticks"] > 20 for report in reports] == [True, True]
    assert not [pid for pid in processes if "fsm_dyn" in command(pid)]


def descendants(pid):
    """The processes that a process has started, and those that these have."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid:
            found += [int(entry.name), *descendants(int(entry.name))]
    return found


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def test_edges_are_dashed_until_a_run_has_taken_them(viewed):
    _, page = viewed("bouncing_ball")
    page.running()
    page.wait("fsmDyn.map.cy.edges('.seen[label != \"\"]').nonempty()")  # the first rebound
    page.evaluate("fsmDyn.map.cy.add({data: {id: 'untaken', source: 'm:resting', target: 'm:flight', label: ''}})")
    styles = page.evaluate("fsmDyn.map.cy.edges().map((e) => [e.style('line-style'), e.data('label')])")
    assert {style for style, label in styles if label} == {"solid"}
    assert {style for style, label in styles if not label} == {"dashed"}


def test_a_narrow_page_has_one_column_with_the_mechanism_first(viewed):
    _, page = viewed("bouncing_ball")
    for width in (360, 639):
        page.set_viewport_size({"width": width, "height": 640})
        page.open().running()
        boxes = page.evaluate(
            """[...document.querySelectorAll("main > .panel")].filter((one) => one.checkVisibility())
            .map((one) => ({ id: one.id, ...one.getBoundingClientRect().toJSON() })).sort((a, b) => a.top - b.top)"""
        )
        assert boxes[0]["id"] == "mechanism"
        assert boxes[0]["height"] >= 240.0
        assert all(above["bottom"] <= below["top"] for above, below in itertools.pairwise(boxes)), "panels overlap"
        assert all(box["left"] >= 0.0 and box["right"] <= width for box in boxes), "wider than the page"
        assert page.evaluate("(({ scrollHeight, clientHeight }) => scrollHeight > clientHeight)"
                             "(document.querySelector('main'))")  # fmt: skip
