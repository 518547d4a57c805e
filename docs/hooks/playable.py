"""Writes the pages that simulate alone beside those of the gallery; one script with the runtime for all of them."""

from pathlib import Path

import fsm_dyn
from fsm_dyn.exports.export import prepared
from fsm_dyn.exports.html_page import RUNTIME_SCRIPT, for_page, page, runtime_script

FOLDER = "play"
MODELS = ("latch", "shopping_cart", "bouncing_ball", "rocking_block", "push_button", "geneva_drive", "piano_action")


def on_post_build(config):
    """Write the pages after those of the documentation."""
    folder = Path(config["site_dir"]) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUNTIME_SCRIPT).write_bytes(runtime_script())
    for name in MODELS:
        graph, parameters = for_page(fsm_dyn.compile(name), None)
        (folder / f"{name}.html").write_bytes(page(prepared(graph, parameters=parameters), graph, shared=True))
