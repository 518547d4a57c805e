"""Pictures of the live page for the documentation: the cart dragged by its handle, a key of the piano action pressed.

``python mechanisms/page_pictures.py FOLDER`` writes them; it takes the extra ``browser`` and a quiet machine.
"""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1280, "height": 720}


@contextmanager
def served(model: str) -> Iterator[str]:
    """Serve a model live; yield the address of its page."""
    command = [sys.executable, "-m", "fsm_dyn", "view", model, "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] not in ("}\n", ""):
            lines.append(process.stdout.readline())
        yield json.loads("".join(lines))["address"]
        process.send_signal(signal.SIGINT)
        process.communicate()


def until(page: Any, expression: str) -> None:
    """Wait until a JavaScript expression is true: the page's policy forbids Playwright's own way."""
    while not page.evaluate(expression):
        page.wait_for_timeout(30)


def drag_cart(page: Any) -> None:
    """Drag the handle of the cart back and forth until the caster has stuck and slipped; keep it held."""
    knob = page.locator(".handle .knob").first.bounding_box()
    x, y = knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    begin = time.monotonic()
    while (s := (time.monotonic() - begin) / 6.0) < 1.0:
        page.mouse.move(x + 170.0 * math.sin(4.0 * math.pi * s), y - 60.0 * math.sin(2.0 * math.pi * s))
        page.wait_for_timeout(20)


def play_notes(page: Any) -> None:
    """Strike two notes and press the key once more, until the hammer has left the string."""
    for _ in range(2):
        page.keyboard.press("j")
        page.wait_for_timeout(1500)
    page.keyboard.down("j")
    page.wait_for_timeout(600)


def main(folder: Path) -> None:
    """Write both pictures."""
    from playwright.sync_api import sync_playwright

    own = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=own, args=["--no-sandbox"])
        for model, act, name in (
            ("shopping_cart", drag_cart, "view_shopping_cart"),
            ("piano_action", play_notes, "piano_page"),
        ):
            with served(model) as address:
                page = browser.new_page(viewport=SIZE)
                page.goto(address)
                until(page, "fsmDyn.last?.tick > 20 && document.querySelector('#banner').hidden")
                act(page)
                page.screenshot(path=str(folder / f"{name}.png"))
                page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
