"""Pages of equations: well-formed, complete, without network; sources that run and give the mode's own numbers."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import sympy
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.app import app
from fsm_dyn.cli.equations import SOURCE_OUTPUTS
from fsm_dyn.symbolic.equations_page import page_of, to_html, to_latex, to_sympy_source

MODELS = ["rolling_disk", "shopping_cart", "spherical_wrist", "four_bar", "felt_drop", "rolling_coin"]
ENTITIES = re.compile(r"&(?!amp;|lt;|gt;|quot;|#)")


@pytest.fixture(scope="module", params=MODELS)
def graph(request):
    return fsm_dyn.compile(request.param)


def test_html_is_well_formed_and_complete(graph):
    for mode in graph.modes.values():
        text = to_html(page_of(mode.kane_equations))
        assert not ENTITIES.search(text)
        tree = ElementTree.fromstring(text.partition("\n")[2])  # without the line <!DOCTYPE html>
        heads = [element.text for element in tree.iter("h2")]
        assert {"Symbols", "Kinematics", "Partial velocities", "Generalized forces", "Operations"} <= set(heads)
        assert ("Recombination" in heads) == bool(mode.active_rows)
        symbols = {row[0].text for row in tree.iter("tr")}
        assert {*graph.automaton.terms.layout.x, *graph.automaton.mechanism.parameters} <= symbols
        assert sum(1 for _ in tree.iter("math")) > len(graph.automaton.terms.layout.x)
        # nothing is fetched
        assert not [e for e in tree.iter() if {"src", "href"} & set(e.attrib)]


def test_latex_is_balanced(graph):
    for mode in graph.modes.values():
        text = to_latex(page_of(mode.kane_equations))
        begun, ended = (re.findall(rf"\\{word}\{{(\w+\*?)\}}", text) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended)
        plain = re.sub(r"\\[{}]", "", text)
        assert plain.count("{") == plain.count("}")
        assert text.isascii(), set(re.sub(r"[\x00-\x7f]", "", text))


def test_sympy_source_gives_the_numbers_of_the_mode(graph):
    layout = graph.automaton.terms.layout
    rng = np.random.default_rng(5)
    c = rng.uniform(0.5, 1.0, layout.n_c)
    x = graph.start.x + 0.1 * rng.uniform(-1, 1, layout.n_x)
    c[layout.p_slice] = graph.parameters
    numbers = {sympy.Symbol(name): value for name, value in zip(layout.arguments, [0.0, *x, *c], strict=True)}
    for mode in graph.modes.values():
        kane = mode.kane_equations
        space = {}
        exec(to_sympy_source(kane, SOURCE_OUTPUTS), space)  # noqa: S102 - source that the package made
        expected = kane.part(*SOURCE_OUTPUTS).evaluate(0.0, x, c)
        for name, table in space["equations"].items():
            found = np.array(table.subs(numbers).evalf(), dtype=float).ravel()
            # SymPy sums in another order: rounding of terms that may cancel
            scale = 1e-11 * (1.0 + np.abs(expected[name]).max(initial=0.0))
            np.testing.assert_allclose(found, expected[name].ravel(), rtol=1e-10, atol=scale, err_msg=name)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_c_source_compiles_without_a_warning(tmp_path):
    target = tmp_path / "cart.c"
    result = CliRunner().invoke(app, ["equations", "shopping_cart", "--format", "c", "--out", str(target)])
    assert result.exit_code == 0, result.output
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-fsyntax-only", str(target)]
    subprocess.run(command, check=True)


def test_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner()
    assert (
        run.invoke(app, ["equations", "rolling_disk", "--mode", "rolling"]).stdout
        == "wrote rolling_disk_rolling.html\n"
    )
    page = (tmp_path / "rolling_disk_rolling.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "next mode" in page
    printed = run.invoke(app, ["equations", "rolling_disk", "--format", "numpy", "--out", "-"])
    assert printed.stdout.startswith("# rolling_disk, mode 'sliding'; SI units\n# x = x, y, theta, u1, u2, u3\n")
    for arguments, message in (
        (["--format", "word"], "unknown format 'word'"),
        (["--mode", "jumping"], "no mode 'jumping'"),
    ):
        refused = run.invoke(app, ["equations", "rolling_disk", *arguments])
        assert refused.exit_code == 2
        assert message in refused.stderr
