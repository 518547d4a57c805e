"""Writes a page that simulates alone for each shipped model; they share one runtime.

The catalogue links to all of them; a line ``<!-- play: NAME -->`` in any page embeds one, loaded when it is opened.
"""

import re
from pathlib import Path

import fsm_dyn
from fsm_dyn.exports.export import prepared
from fsm_dyn.exports.html import RUNTIME_SCRIPT, for_page, page, runtime_script
from fsm_dyn.run.run_options import RunOptions

FOLDER = "play"
CATALOGUE = "gallery/models.md"
MARK = re.compile(r"(?m)^<!-- play: (\w+) -->$")
EMBEDDED = (
    "<details><summary>Run <code>{name}</code> here, in this browser</summary>"
    '<iframe src="{folder}/{name}.html" title="{name}, simulated in this browser" loading="lazy" '
    'style="width: 100%; height: 44rem; border: 0"></iframe></details>'
)


def on_page_markdown(markdown, page, **_):
    """Embed the pages that the marks name, and let every model of the catalogue have a link to its page."""
    folder = "../" * page.file.src_uri.count("/") + FOLDER
    markdown = MARK.sub(lambda found: EMBEDDED.format(name=found[1], folder=folder), markdown)
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
