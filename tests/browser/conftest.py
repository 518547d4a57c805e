"""A headless Chromium, and `fsm-dyn view` as its user starts it."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120.0  # s: a busy machine takes long to start a run


@contextlib.contextmanager
def browser():
    """Start Chromium; until it is closed, no other event loop runs in this thread."""
    # imported here, so that the tests can be listed where no browser is wanted
    from playwright.sync_api import sync_playwright

    own = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=own, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium():
    with browser() as one:
        yield one


class Page:
    """A page with what it asked for and what it complained of."""

    def __init__(self, page, address):
        self.page, self.address = page, address
        self.requests, self.complaints = [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("websocket", lambda socket: self.requests.append(socket.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def __getattr__(self, name):
        return getattr(self.page, name)

    def open(self):
        self.page.goto(self.address)
        return self

    def wait(self, expression, timeout=PATIENCE):
        """Wait until an expression is true. The page's policy forbids what Playwright itself would do for that."""
        until = time.monotonic() + timeout
        while not (found := self.page.evaluate(expression)):
            assert time.monotonic() < until, f"waited in vain for {expression}; {self.complaints}"
            self.page.wait_for_timeout(30)
        return found

    def running(self):
        self.wait("fsmDyn.last?.tick > 20 && document.querySelector('#banner').hidden")
        return self

    def expect(self, selector):
        """Return Playwright's assertions about an element, which wait: a message and what it is about come apart."""
        from playwright.sync_api import expect

        expect.set_options(timeout=1e3 * PATIENCE)
        return expect(self.page.locator(selector))

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    @property
    def phase(self):
        return self.page.evaluate("document.body.dataset.phase")

    def entries(self):
        """The log as it stands on the page, oldest first: time, source, target, cause."""
        found = self.page.evaluate(
            """[...document.querySelectorAll('#entries summary')].map((entry) => [
                entry.querySelector('.when').textContent,
                ...[...entry.querySelectorAll('.chip')].map((chip) => chip.textContent),
                entry.querySelector('.cause').textContent,
            ])"""
        )
        return found[::-1]


@pytest.fixture
def new_page(chromium):
    """Return a function that gives a page for an address, not yet opened."""
    with contextlib.ExitStack() as contexts:

        def make(address):
            context = chromium.new_context(viewport={"width": 1280, "height": 720})
            contexts.callback(context.close)
            return Page(context.new_page(), address)

        yield make


CONTROLS = """(() => {
    const inside = document.querySelector("dialog[open]") ?? document.body;
    const all = [...inside.querySelectorAll("button, input, select, summary, [tabindex='0']")];
    const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest("[inert]");
    return all.filter((one) => !one.disabled && shown(one));
})()"""
FOCUSED = """(() => {
    const one = document.activeElement, box = one.getBoundingClientRect(), css = getComputedStyle(one);
    const x = Math.min(Math.max(box.x + box.width / 2, 0), innerWidth - 1), y = box.y + box.height / 2;
    const seen = box.width > 0 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
    const on_top = document.elementFromPoint(x, Math.min(Math.max(y, 0), innerHeight - 1));
    return {
        at: CONTROLS.indexOf(one), name: one.id || one.getAttribute("aria-label") || one.textContent.slice(0, 30), seen,
        outline: css.outlineStyle === "none" ? 0 : parseFloat(css.outlineWidth),
        covered: !(on_top && (one.contains(on_top) || on_top.contains(one))),
    };
})()""".replace("CONTROLS", CONTROLS)


def tabbed(page):
    """Press Tab through the page; return the names of all controls that were met, each of them to be seen in focus."""
    count = page.evaluate(f"{CONTROLS}.length")
    page.evaluate("document.activeElement.blur()")
    met = {}
    for _ in range(count + 12):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED)
        if found["at"] < 0:  # beyond the last, or a list that scrolls
            continue
        assert found["seen"], f"out of sight: {found}"
        assert found["outline"] >= 2.0, f"nothing shows that it has the focus: {found}"
        assert not found["covered"], found
        met[found["at"]] = found["name"]
    assert sorted(met) == list(range(count)), "some are never reached"
    return list(met.values())


class Viewed:
    """`fsm-dyn view` under way, or another command with a page."""

    def __init__(self, model, *options, command="view"):
        named = [] if model is None else [str(model)]
        words = [sys.executable, "-m", "fsm_dyn", command, *named, "--no-browser", "--json", *map(str, options)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = []
        while not lines or lines[-1] != "}\n":
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            lines.append(line)
        self.address = json.loads("".join(lines))["address"]

    def end(self):
        """Press Ctrl-C; return the exit code and the report of the runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        out, _ = self.process.communicate(timeout=30)
        return self.process.returncode, json.loads(out)["runs"] if out.strip() else []


@pytest.fixture
def viewed(new_page):
    """Return a function that starts `fsm-dyn view` and gives it with its page, opened."""
    started = []

    def start(model, *options, command="view"):
        viewed = Viewed(model, *options, command=command)
        started.append(viewed)
        return viewed, new_page(viewed.address).open()

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGINT)
        try:
            one.process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.communicate()
        except ValueError:
            pass  # it was ended, and its output read
