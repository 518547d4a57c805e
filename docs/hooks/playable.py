"""Writes a page that simulates alone for each shipped model, next to those of the gallery; they share one runtime."""

import re
from pathlib import Path

import fsm_dyn
from fsm_dyn.exports.export import prepared
from fsm_dyn.exports.html import RUNTIME_SCRIPT, for_page, page, runtime_script
from fsm_dyn.run.run_options import RunOptions

FOLDER = "play"
CATALOGUE = "gallery/models.md"


def on_page_markdown(markdown, page, **_):
    """Let every model of the catalogue have a link to its page."""
    if page.file.src_uri != CATALOGUE:
        return markdown
    link = rf'\1<br><a href="../{FOLDER}/\2.html">play with it in this browser</a>'
    return re.sub(r"(<code>fsm-dyn run (\w+)[^<]*</code>)", link, markdown)


def on_post_build(config):
    """Write the pages after those of the documentation."""
    folder = Path(config["site_dir"]) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUNTIME_SCRIPT).write_bytes(runtime_script())
    for name in fsm_dyn.language.models.names():
        compiled = fsm_dyn.compile(name)
        graph, parameters = for_page(compiled, None)
        run, own_ports = prepared(graph, RunOptions(parameters=parameters)), bool(compiled.automaton.mechanism.ports)
        (folder / f"{name}.html").write_bytes(page(run, graph, own_ports, shared=True))
