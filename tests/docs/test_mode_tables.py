"""The tables of modes in the gallery are what the models give."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# the first counts by itself, the second is to be played with, the others vary a model or list loads
UNCOUNTED = ("models", "play", "will_it_latch", "what_breaks")
PAGES = [page for page in sorted((ROOT / "docs" / "gallery").glob("*.md")) if page.stem not in UNCOUNTED]


@pytest.fixture(scope="module")
def tables():
    return importlib.import_module("mechanisms.mode_tables")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_counts_modes(tables, page):
    marks = tables.MARKED.findall(page.read_text(encoding="utf-8"))
    assert len(marks) == 1
    rows = [
        line for line in marks[0][0].splitlines() + page.read_text(encoding="utf-8").splitlines() if "runs |" in line
    ]
    for name in marks[0][1].split():
        assert any(line.startswith(f"| `{name}` |") for line in rows)


@pytest.mark.parametrize(
    ("name", "page"),
    [("toggle_switch", "latches_and_switches"), ("compass_gait", "index"), ("cart_on_ramp", "wheels")],
)
def test_rows_are_up_to_date(tables, name, page):
    text = (ROOT / "docs" / "gallery" / f"{page}.md").read_text(encoding="utf-8")
    assert tables.row(name) in text.splitlines()
