"""The search of the documentation works in pages opened as files, with the settings of the site."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]


def test_a_page_opened_as_a_file_can_be_searched(new_page, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Start\n\nA latch.\n", encoding="utf-8")
    (docs / "theory.md").write_text("# Theory\n\nA penduline escapement.\n", encoding="utf-8")
    for folder in ("javascripts", "stylesheets"):
        shutil.copytree(ROOT / "docs" / folder, docs / folder)
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    kept = re.search(r"^theme:.*?(?=^plugins:)", text, re.MULTILINE | re.DOTALL).group()
    (tmp_path / "mkdocs.yml").write_text(
        f"site_name: test\n{kept}plugins: [search, offline]\nuse_directory_urls: false\n", encoding="utf-8"
    )
    assert "- offline" in text
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    subprocess.run(build, cwd=tmp_path, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True, capture_output=True)
    page = new_page((tmp_path / "site" / "index.html").as_uri()).open()
    page.page.keyboard.press("f")
    page.page.keyboard.type("penduline")
    page.expect(".md-search-result__link").to_contain_text("Theory")
    assert all(address.startswith("file:") for address in page.requests)
