"""Raised letters of formulas are whole in a browser that has no mathematical font."""

import importlib
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn.derive.equations_page import page_of, to_html

pytestmark = pytest.mark.browser

DOCS = Path(__file__).parents[2] / "docs"
WITHOUT_FONT = "<style>math { font-family: 'DejaVu Sans', sans-serif !important; }</style>"
CUT = """[...document.querySelectorAll(".equation, .wide")].filter((one) => one.scrollHeight > one.clientHeight)
    .map((one) => one.textContent)"""
FORMULAS = (r"\dot{\mathbf{r}}^{PQ^2}_3 = \sum_i \frac{\partial T}{\partial u_i}^T", r"A^{T^2} u = b^\top",
            r"{}^N\boldsymbol\omega^B \cdot {}^N\mathbf{v}_r^{B^*}")  # fmt: skip


def test_formulas_of_the_documentation_and_of_modes_are_not_cut(new_page, tmp_path, monkeypatch):
    pytest.importorskip("latex2mathml")
    monkeypatch.syspath_prepend(DOCS / "hooks")
    hook = importlib.import_module("mathml")
    style = (DOCS / "stylesheets/extra.css").read_text(encoding="utf-8")
    blocks = "".join(rf'<div class="arithmatex">\[{formula} \tag{{1}}\]</div>' for formula in FORMULAS)
    documentation = f"<!doctype html><style>{style}</style>{hook.on_page_content(blocks)}"
    mode = next(iter(fsm_dyn.compile("double_pendulum_with_stop").modes.values()))
    for number, text in enumerate((documentation, to_html(page_of(mode.kane_equations)))):
        path = tmp_path / f"{number}.html"
        path.write_text(text + WITHOUT_FONT, encoding="utf-8")
        page = new_page(path.as_uri()).open()
        assert page.evaluate("document.querySelectorAll('.equation').length") >= 3
        assert page.evaluate(CUT) == []
