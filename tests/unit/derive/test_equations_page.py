"""Pages of equations: well-formed, complete, without network; executable sources with the mode's own numbers."""

import ctypes
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
import sympy
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.derive.equations import OUTPUTS
from fsm_dyn.derive.equations_page import Left, page_of, to_html, to_latex, to_sympy_source
from fsm_dyn.derive.printing import latex, width

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
        symbols = {"".join(row[0].itertext()) for row in tree.iter("tr")}
        names = (*graph.automaton.terms.layout.x, *graph.automaton.mechanism.parameters)
        assert {"".join(ElementTree.fromstring(Left(name).mathml()).itertext()) for name in names} <= symbols
        assert sum(1 for _ in tree.iter("math")) > len(graph.automaton.terms.layout.x)
        # nothing is fetched
        assert not [e for e in tree.iter() if {"src", "href"} & set(e.attrib)]


def test_page_of_the_cart_has_definitions_constrained_velocities_and_the_compact_form():
    page = page_of(fsm_dyn.compile("shopping_cart").modes["sticking"].kane_equations, compact=True)
    sections = {section.title: section for section in page.sections}
    assert [left.letter for left, _ in sections["Definitions of the speeds"].equations] == ["u1", "u2", "u3", "c"]
    assert [str(cell) for cell in sections["Constrained partial velocities"].table[1][1:]] == ["B.x"]
    assert sections["Equations of motion"].text == "In compact form; parameters alone give k."
    assert sections["Operations"].table[-1][0] == "together, compact"
    assert sum(map(int, sections["Operations"].table[-1][1:])) <= 38


def test_latex_is_balanced(graph):
    for mode in graph.modes.values():
        text = to_latex(page_of(mode.kane_equations))
        begun, ended = (re.findall(rf"\\{word}\{{(\w+\*?)\}}", text) for word in ("begin", "end"))
        assert sorted(begun) == sorted(ended)
        plain = re.sub(r"\\[{}]", "", text)
        assert plain.count("{") == plain.count("}")
        assert text.isascii(), set(re.sub(r"[\x00-\x7f]", "", text))


LONG_NAMES = ["piano_action_simple", "planetary_gear", "gripper", "rattleback"]  # words for names, wide tables
LINE = 100  # characters, as `width` counts them


def unbroken(formula):
    """Yield the parts of a formula between possible line breaks of TeX."""
    depth, part = 0, ""
    for word in re.findall(r"\\\\|\\[a-z]+|\\.|.", formula.replace(r"\left", "{").replace(r"\right", "}")):
        depth += (word == "{") - (word == "}")
        part += word
        if depth == 0 and word in ("+", "-", "=", r"\allowbreak"):
            yield part
            part = ""
    yield part


@pytest.mark.parametrize("name", [*MODELS, *LONG_NAMES])
def test_lines_of_latex_can_be_broken(name):
    mode = next(iter(fsm_dyn.compile(name).modes.values()))
    text = to_latex(page_of(mode.kane_equations))
    assert "Source: " in text
    assert not re.search(r"\.\s*\.", text)
    formulas = re.findall(r"\$(.*)\$", "\n".join(line for line in text.splitlines() if line.startswith(r"\item")))
    assert len(formulas) > len(mode.kane_equations.speeds)
    assert max(width(part) for formula in formulas for part in unbroken(formula)) <= LINE


@pytest.mark.parametrize("name", LONG_NAMES)
def test_vectors_in_html_have_one_sign_between_their_terms(name):
    kane = next(iter(fsm_dyn.compile(name).modes.values())).kane_equations
    vectors = [vector for row in kane.partial_velocities().values() for vector in row.values()]
    assert any(" - " in str(vector) for vector in vectors) or name != "piano_action_simple"
    for vector in vectors:
        text = "".join(ElementTree.fromstring(f"<math>{vector.mathml()}</math>").itertext()).replace(
            "\N{INVISIBLE TIMES}", ""
        )
        assert text.count("\N{MINUS SIGN}") + text.count("+") == len(re.findall("[+-]", str(vector)))
        assert not re.search("[+\N{MINUS SIGN}]{2}", text)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX")
@pytest.mark.parametrize("name", [*MODELS, *LONG_NAMES])
def test_latex_fits_its_pages(name, tmp_path):
    mode = next(iter(fsm_dyn.compile(name).modes.values()))
    (tmp_path / "page.tex").write_text(to_latex(page_of(mode.kane_equations)), encoding="ascii")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "page.tex"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    beyond = [float(length) for length in re.findall(r"Overfull \\[hv]box \((\S+)pt", made.stdout)]
    assert max(beyond, default=0.0) < 12.0  # points; the margins have 57


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
        exec(to_sympy_source(kane, OUTPUTS), space)  # noqa: S102 - source that the package made
        expected = kane.part(*OUTPUTS).evaluate(0.0, x, c)
        for name, table in space["equations"].items():
            found = np.array(table.subs(numbers).evalf(), dtype=float).ravel()
            # SymPy sums in another order: rounding of possibly cancelling terms
            scale = 1e-11 * (1.0 + np.abs(expected[name]).max(initial=0.0))
            np.testing.assert_allclose(found, expected[name].ravel(), rtol=1e-10, atol=scale, err_msg=name)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_c_and_numpy_sources_give_the_numbers_of_the_mode(graph, tmp_path, monkeypatch):
    """The command's output, compiled or run, at random states against the named arrays of the mode."""
    monkeypatch.chdir(tmp_path)
    layout, rng = graph.automaton.terms.layout, np.random.default_rng(7)
    for mode in graph.modes.values():
        for name, target in (("c", "mode.c"), ("numpy", "mode.py")):
            arguments = ["equations", graph.name, "--mode", mode.name, "--format", name, "--out", target]
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, result.output
        space = {}
        exec(Path("mode.py").read_text(encoding="utf-8"), space)  # noqa: S102 - source that the package made
        library = str(tmp_path / f"{mode.name}.so")
        warnings = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror"]
        subprocess.run(["gcc", *warnings, "-shared", "-fPIC", "mode.c", "-lm", "-o", library], check=True)
        evaluate = ctypes.CDLL(library).evaluate
        evaluate.restype = None
        evaluate.argtypes = [ctypes.c_double, *[np.ctypeslib.ndpointer(np.float64)] * 3]
        for _ in range(3):
            x = graph.start.x + 0.1 * rng.uniform(-1, 1, layout.n_x)
            c = np.zeros(layout.n_c)
            c[layout.p_slice], c[layout.w_slice] = graph.parameters, rng.uniform(0.5, 1.0, len(layout.w))
            q, u, w = x[: len(layout.q)], x[len(layout.q) :], c[layout.w_slice]
            known = space["evaluate"](0.0, x, c)  # T and e, for speeds on the constraints
            u[:] = known["T"] @ u[[layout.u.index(name) for name in mode.independent_speeds]] + known["e"]
            c[layout.sigma_slice] = mode._directions(0.0, x, c, {})  # slip directions are arguments of the sources
            found = space["evaluate"](0.0, x, c)
            assert set(found) == set(OUTPUTS)
            out = np.zeros(sum(table.size for table in found.values()))
            evaluate(0.0, x, c, out)
            parts = np.split(out, np.cumsum([table.size for table in found.values()])[:-1])
            for (name, table), part in zip(found.items(), parts, strict=True):
                np.testing.assert_allclose(part, table.ravel(), rtol=1e-12, atol=1e-12, err_msg=name)
            numbers = {
                "M": mode.mass_matrix(q, w=w), "f": mode.forcing(0.0, q, u, w), "T": mode.orthogonal_complement(q, w=w),
                "A": mode.constraint_matrix(q, w=w), "partial_velocities": mode.partial_velocities(q, w=w),
                "partial_angular_velocities": mode.partial_angular_velocities(q, w=w),
            }  # fmt: skip
            for name, table in numbers.items():
                np.testing.assert_allclose(found[name], np.asarray(table), rtol=1e-12, atol=1e-12, err_msg=name)
            size = 1e-9 * (1.0 + np.abs(found["F"]).max() + np.abs(found["F_star_0"]).max())
            np.testing.assert_allclose(found["F_tilde"] + found["F_star_tilde"], 0.0, atol=size)  # (46)


def test_fractions_brackets_and_names_in_latex():
    a, b, e_felt, finger = sympy.symbols("a b e_felt finger")
    assert latex((a + b) / finger) == r"\frac{a + b}{\mathrm{finger}}"
    assert latex(a * ((a + b) / e_felt + 1)) == r"a \, \bigl(1 + \frac{a + b}{e_{\mathrm{felt}}}\bigr)"
    long = sum(sympy.symbols("word_1:9"))
    assert latex(a / long) == rf"a \big/ \bigl({latex(long)}\bigr)"
    assert latex(long / a) == rf"\bigl({latex(long)}\bigr) \big/ a"
    assert latex(a * sympy.Symbol("tau_slip") * sympy.Symbol("what.rate")) == (
        r"a \, \tau_{\mathrm{slip}} \, \dot{\mathrm{what}}"
    )


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
    written = run.invoke(app, ["equations", "rolling_disk", "--mode", "rolling", "--format", "latex"])
    assert written.stdout == "wrote rolling_disk_rolling_figure.pdf\nwrote rolling_disk_rolling.tex\n"
    assert (tmp_path / "rolling_disk_rolling_figure.pdf").read_bytes().startswith(b"%PDF")
    document = (tmp_path / "rolling_disk_rolling.tex").read_text(encoding="utf-8")
    assert r"\includegraphics[width=0.6\linewidth]{rolling_disk_rolling_figure.pdf}" in document
    printed = run.invoke(app, ["equations", "rolling_disk", "--mode", "rolling", "--format", "latex", "--out", "-"])
    assert "includegraphics" not in printed.stdout
    assert printed.stdout.startswith(r"\documentclass[a4paper]{article}")
    printed = run.invoke(app, ["equations", "rolling_disk", "--format", "numpy", "--out", "-"])
    assert printed.stdout.startswith("# rolling_disk, mode 'sliding'; SI units\n# x = x, y, theta, u1, u2, u3\n")
    for arguments, message in (
        (["--format", "word"], "unknown format 'word'"),
        (["--mode", "jumping"], "no mode 'jumping'"),
    ):
        refused = run.invoke(app, ["equations", "rolling_disk", *arguments])
        assert refused.exit_code == 2
        assert message in refused.stderr
