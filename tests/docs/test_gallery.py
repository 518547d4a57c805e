"""The page of all models: every model is on it, with its pictures; what makes it is run as a whole by `.ci/run`."""

import importlib
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from fsm_dyn.language import models

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def gallery():
    return importlib.import_module("mechanisms.gallery")


def test_every_model_has_its_entry_and_its_pictures():
    page = (DOCS / "gallery" / "models.md").read_text(encoding="utf-8")
    themes = models.by_theme()
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == list(themes)
    names = [name for own in themes.values() for name in own]
    assert sorted(names) == models.names()
    assert re.findall(r'<figure id="(\w+)">', page) == names
    sources = re.findall(r'<img src="\.\./([^"]+)"', page)
    with_contacts = {name for name in names if models.find(name).read_text(encoding="utf-8").count("\ncontacts:")}
    assert sources == [
        f"pictures/models/{name}{end}"
        for name in names
        for end in (".png", "_modes.svg", *(["_score.png"] if name in with_contacts else []))
    ]
    there = {path.name for path in (DOCS / "pictures" / "models").iterdir()}
    assert there == {Path(source).name for source in sources}, "nothing is missing, nothing left from before"
    assert sum(path.stat().st_size for path in (DOCS / "pictures" / "models").iterdir()) < 4.5e6
    for source in sources:
        if source.endswith(".svg"):
            ElementTree.parse(DOCS / source)
    for name in re.findall(r'<a href="(\w+)\.html">', page):
        assert (DOCS / "gallery" / f"{name}.md").is_file()


def test_entries_are_made_and_what_shows_nothing_is_refused(gallery, tmp_path, monkeypatch):
    one = gallery.entry("bouncing_ball", tmp_path)
    assert one.modes == "2 modes; 2 in this run"
    assert one.command == "fsm-dyn run bouncing_ball --motion"
    assert (DOCS / "pictures" / "models" / "bouncing_ball_modes.svg").read_bytes() == (
        tmp_path / "bouncing_ball_modes.svg"
    ).read_bytes()
    page = gallery.page([one], {"bouncing_ball": "wheels"})
    assert '<a href="wheels.html">' in page
    monkeypatch.setattr(gallery, "LEAST_DRAWN", 1.0)
    with pytest.raises(RuntimeError, match="next to nothing"):
        gallery.entry("bouncing_ball", tmp_path)
    assert gallery._command("x", {"until": 2.0, "inputs": {"push": 3}}) == (
        "fsm-dyn run x --until 2.0 --input push=3 --motion"
    )
