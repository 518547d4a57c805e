"""What the documentation says works: its models load, its parts of models fit, its Python runs, its links lead."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import fsm_dyn.core.errors
from fsm_dyn.language.describe_keys import json_schema
from fsm_dyn.language.loader import load
from tests.exports.building import quick_units

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


SNIPPET = re.compile(r'^--8<-- "(.*)"$', re.MULTILINE)


def blocks(page, language):
    text = SNIPPET.sub(lambda found: (ROOT / found[1]).read_text(encoding="utf-8"), page.read_text(encoding="utf-8"))
    return [text for kind, text in FENCE.findall(text) if kind == language]


def is_model(text):
    return text.startswith("fsm_dyn: 1")


def plain(text):
    """Read YAML by the core rules of 1.2 as far as these pages need them: ``on`` is a text."""

    def core(value):
        if isinstance(value, dict):
            return {key: core(item) for key, item in value.items()}
        if isinstance(value, list):
            return [core(item) for item in value]
        if value in ("true", "false"):
            return value == "true"
        if value == "null":
            return None
        return float(value) if re.fullmatch(r"[-+]?\d+\.\d+", value) else int(value) if value.isdigit() else value

    return core(yaml.load(text, Loader=yaml.BaseLoader))  # noqa: S506 - it makes texts only


def merged(base, part):
    """Add the keys of a section to those of the model's; lists and single values are appended or replaced."""
    whole = dict(base)
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            whole[key] = {**base[key], **value}
        elif isinstance(value, list) and isinstance(base.get(key), list):
            whole[key] = base[key] + value
        else:
            whole[key] = value
    return whole


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_models_load_and_parts_fit_the_model_before_them(page):
    base = None
    for text in blocks(page, "yaml"):
        if is_model(text):
            base = plain(text)
            assert load(base).name == base["name"]
        else:
            assert base is not None, f"a part of a model without a model before it:\n{text}"
            load(merged(base, plain(text)))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.stem != "extending"],  # test_extending.py runs it, in separate processes
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quick_units(monkeypatch)  # of units for FMI
    for number, text in enumerate(blocks(page, "yaml")):
        if is_model(text):
            name = plain(text)["name"]
            Path(f"{name}.yaml").write_text(text, encoding="utf-8")
            assert number >= 0
    namespace = {"__name__": "__main__"}
    for text in blocks(page, "python"):
        exec(compile(text, str(page), "exec"), namespace)  # noqa: S102 - the pages are ours
    assert fsm_dyn.core.errors


def test_every_section_of_the_language_is_described():
    text = (DOCS / "language.md").read_text(encoding="utf-8")
    headings = " ".join(re.findall(r"^## (.*)$", text, re.MULTILINE))
    sections = json_schema()["properties"]
    for key in sections:
        assert key in ("fsm_dyn", "name", "summary", "source") or f"`{key}`" in headings


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the site that `make docs` has built, if it is newer than all that it is made of; else build it."""
    made = ROOT / "site" / "search" / "search_index.json"  # written last
    sources = [ROOT / "mkdocs.yml", *DOCS.rglob("*"), *(ROOT / "fsm_dyn").rglob("*.py")]
    times = [path.stat().st_mtime for path in sources if path.is_file() and path.suffix != ".pyc"]
    if made.exists() and made.stat().st_mtime > max(times):
        return made.parents[1]
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    subprocess.run(build, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=280)
    return folder


def test_the_site_fetches_nothing_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 10
    fetched = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(https?:)?//[^>]*")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert [found.group() for found in fetched.finditer(text)] == []
        assert "arithmatex" not in text, f"{page} holds a formula that was not turned into MathML"


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda page: page.stem)
def test_the_site_has_what_a_tutorial_prints_and_displays(page, site):
    text = (site / "tutorials" / f"{page.stem}.html").read_text(encoding="utf-8")
    cells = blocks(page, "python")
    printed = sum("print(" in code for code in cells)
    assert printed > 0
    assert text.count('<div class="highlight"') == len(cells) + len(blocks(page, "text")) + printed
    assert ('class="output"' in text) == ("plot." in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [DOCS / "five_minutes.md", *sorted(DOCS.glob("tutorials/*.md")), *sorted(DOCS.glob("course/*.md"))]
)
def test_code_for_beginners_fits_the_page(page):
    """The site shows 84 characters of a line on a screen of 1280 px."""
    lines = [line for kind in ("python", "yaml", "bash") for text in blocks(page, kind) for line in text.splitlines()]
    assert max(map(len, lines), default=0) <= 84


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda page: page.stem)
def test_jupytext_opens_the_tutorials_as_notebooks(page):
    jupytext = pytest.importorskip("jupytext")
    notebook = jupytext.read(page)
    assert notebook.metadata.kernelspec["language"] == "python"
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert code == [text.rstrip("\n") for text in blocks(page, "python")]
    assert len(notebook.cells) > len(code) > 1  # code and text are cells apart


def test_the_first_page_leads_to_every_page():
    """All but single decisions and what the gallery's first page lists."""
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)", (docs / "index.md").read_text(encoding="utf-8")))
    listed = set(re.findall(r"\]\(([\w/.-]+\.md)", (docs / "gallery" / "index.md").read_text(encoding="utf-8")))
    left = pages - linked - {f"gallery/{name}" for name in listed} - {"index.md"}
    assert {name for name in left if not name.startswith(("decisions/", "cookbook/"))} == set()
