"""The files of the page: those of others unchanged, ours without markup made of text and without foreign addresses."""

import hashlib
import re

import pytest

from fsm_dyn.page import frames, scene_drawing
from fsm_dyn.page import ports as port_handles
from fsm_dyn.page.server import STATIC
from fsm_dyn.run import contact_forces as forces

VENDOR = STATIC / "vendor"
OWN = [path for path in sorted(STATIC.rglob("*")) if path.is_file() and VENDOR not in path.parents]


def test_scripts_of_others_are_what_their_table_says():
    table = re.findall(r"^\| `([^`]+)` \|.*`([^`]+)` \| `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.M)
    assert {name for name, _, _ in table} == {p.name for p in VENDOR.iterdir() if p.suffix in (".js", ".css")}
    for name, licence, digest in table:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
        assert "permission" in (VENDOR / licence).read_text().lower()


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_text_never_becomes_markup_and_nothing_comes_from_elsewhere(path):
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]+", text)) - {"http://www.w3.org"}
    assert addresses == set()


def test_the_page_has_no_script_or_style_of_its_own():
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bstyle=|\son\w+=", page)


def test_frames_are_as_wide_as_the_page_reads_them():
    source = (STATIC / "js" / "frames.js").read_text(encoding="utf-8")
    assert f"export const HANDLE = {port_handles.WIDTH};" in source
    assert f"export const FORCE = {forces.WIDTH};" in source
    assert f"export const HEAD = {frames.HEAD};" in source
    assert f"export const PLACED = {scene_drawing.PLACED};" in source
