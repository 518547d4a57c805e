"""Writes the pages of finished runs that the first page of the documentation shows, next to those of the gallery."""

from pathlib import Path

import fsm_dyn
from fsm_dyn.page.report import write_report

FOLDER = "play"
UNTIL = {"latch_door": None, "piano_action": 1.2, "escapement_anchor": 2.0}  # s; None: the end that the model names


def on_post_build(config):
    """Write the pages after those of the documentation."""
    folder = Path(config["site_dir"]) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, until in UNTIL.items():
        graph = fsm_dyn.compile(name)
        write_report(fsm_dyn.simulate(graph, until=until), folder / f"{name}_visits.html", graph)
