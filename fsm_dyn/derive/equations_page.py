"""The equations of one mode as a page in the form of a paper: HTML with MathML, or LaTeX."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy

from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.equations import KaneEquations, VectorForm
from fsm_dyn.derive.printing import escaped, latex, latex_name, mathml, width
from fsm_dyn.language.model import Mechanism
from fsm_dyn.language.values import units
from fsm_dyn.programs.program import Counts

LONGEST = 120  # operations of a section, shared ones once; beyond it intermediate symbols are kept

_STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font-family: serif; line-height: 1.45; color: #222; }
table { border-collapse: collapse; margin: .6rem 0; }
th, td { padding: .2rem .8rem; text-align: left; border-bottom: 1px solid #ccc; vertical-align: baseline; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
.equation, .wide { overflow: auto hidden; }
.equation { margin: .1rem 0; padding: .45rem 0; }
math { font-size: 1.05em; }
"""


@dataclass(frozen=True)
class Left:
    """The left side of an equation: a letter with index, mark above (``dot`` or ``tilde``) and perhaps a star."""

    letter: str
    index: str = ""
    above: str = ""
    star: bool = False

    def latex(self) -> str:
        """Return it as LaTeX."""
        base = latex_name(self.letter)
        base = rf"\{self.above}{{{base}}}" if self.above else base
        index = rf"_{{\mathrm{{{escaped(self.index)}}}}}" if self.index else ""
        return base + index + ("^{*}" if self.star else "")

    def mathml(self) -> str:
        """Return it as MathML."""
        base = mathml(sympy.Symbol(self.letter))
        mark = {"dot": "˙", "tilde": "~"}.get(self.above)
        base = f"<mover>{base}<mo>{mark}</mo></mover>" if mark else base
        index = f"<mi>{html.escape(self.index)}</mi>"
        if self.star:
            return f"<msubsup>{base}{index}<mo>*</mo></msubsup>"
        return f"<msub>{base}{index}</msub>" if self.index else base


Equation = tuple[Left, sympy.Expr]
Cell = str | Left | VectorForm


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, equations; or a table, whose cells may be symbols and vectors."""

    title: str
    text: str = ""
    equations: tuple[Equation, ...] = ()
    table: tuple[tuple[Cell, ...], ...] = ()


@dataclass(frozen=True)
class EquationsPage:
    """The content of a page of equations, independent of the format."""

    title: str
    lead: str
    sections: tuple[Section, ...]


def page_of(
    equations: KaneEquations, ways_out: Sequence[tuple[str, str, str]] = (), *, compact: bool = False
) -> EquationsPage:
    """Return the page of a mode.

    ``ways_out``, sequence of (guard, next mode, reset): the transitions out of the mode; ``compact``: whether the
    equations of motion are in compact form (:meth:`KaneEquations.compact`).
    """
    mechanism = equations.mechanism
    counts = equations.counts
    shorter = (_count("together, compact", equations.compact_program().counts()),) if compact else ()
    sections = [
        Section("Symbols", "SI units; a dot is a rate, σ a slip direction.", table=tuple(_symbols(mechanism))),
        *_kinematics(equations),
        *_forces(equations),
        *_dynamics(equations, compact),
        _outward(equations, ways_out),
        Section(
            "Operations",
            "One evaluation; what occurs more than once is computed once.",
            table=(
                ("", "multiply, divide", "add, subtract", "sine, cosine", "others"),
                _count("kinematics", counts.kinematics),
                _count("dynamics", counts.dynamics),
                _count("together", counts.together),
                *shorter,
            ),
        ),
    ]
    lead = " ".join(
        part
        for part in (mechanism.summary, f"Source: {mechanism.source.strip().rstrip('.')}." if mechanism.source else "")
        if part
    )
    return EquationsPage(f"{mechanism.name}: mode {equations.mode}", lead, tuple(sections))


def _symbols(mechanism: Mechanism) -> Iterator[tuple[Cell, ...]]:
    kinds = units(mechanism)
    yield ("symbol", "unit", "meaning")
    for name in mechanism.coordinate_names:
        yield (Left(name), kinds.get(name, ""), "coordinate")
    for name, text in mechanism.speeds.items():
        yield (Left(name), kinds.get(name, ""), f"generalized speed, {text}")
    for name, parameter in mechanism.parameters.items():
        value = ", ".join(str(text) for text in parameter.values)
        yield (Left(name), kinds.get(name, kinds.get(f"{name}[0]", "")), f"parameter, {value}")
    for name in mechanism.inputs:
        yield (Left(name), kinds.get(name, ""), "input")


def _definitions(equations: KaneEquations) -> Iterator[Section]:
    """Yield the definitions of the speeds by the rates of the coordinates, rows of Y and Z."""
    if any(frame.euler_names for frame in equations.mechanism.frames.values()):
        return  # Y then has columns of spins
    if equations.part("Y", "Z").counts().total > LONGEST:
        return
    rates = sympy.Matrix([sympy.Symbol(f"{name}_dot") for name in equations.mechanism.coordinate_names])
    values = equations["Y"] * rates + equations["Z"]
    kinematic = [name for name, item in equations.mechanism.constraints.items() if item.kinematic]
    left = [*(Left(name) for name in equations.speeds), *(Left("c", name) for name in kinematic)]
    text = "Rows of Y and Z (1)" + (f"; zero: {', '.join(kinematic)}." if kinematic else ".")
    yield Section("Definitions of the speeds", text, tuple(zip(left, values, strict=True)))


def _constrained_velocities(equations: KaneEquations) -> Iterator[Section]:
    """Yield the partial velocities by the independent speeds, unless they are long."""
    if not equations.rows or equations.part("T").counts().total > LONGEST // 2:
        return
    velocities = equations.partial_velocities(constrained=True)
    spins = equations.partial_angular_velocities(constrained=True)
    table: tuple[tuple[Cell, ...], ...] = (
        ("", *map(Left, equations.independent)),
        *_rows(velocities, "v({})"),
        *_rows(spins, "ω({})"),
    )
    yield Section("Constrained partial velocities", "By the independent speeds, on the rows.", table=table)


def _kinematics(equations: KaneEquations) -> Iterator[Section]:
    yield from _definitions(equations)
    definitions, (q_dot,) = _read(equations, "q_dot")
    left = [Left(name, above="dot") for name in equations.coordinates]
    yield Section("Kinematics", "", (*definitions, *zip(left, q_dot, strict=True)))
    symbols, velocities, spins = equations.read_velocities(LONGEST)
    yield Section(
        "Partial velocities",
        "Of points where forces act and of centres of bodies; partial angular velocities of frames (ω).",
        tuple((Left(symbol.name), value) for symbol, value in symbols),
        table=(("", *map(Left, equations.speeds)), *_rows(velocities, "v({})"), *_rows(spins, "ω({})")),
    )


def _rows(table: Mapping[str, Mapping[str, VectorForm]], name: str) -> Iterator[tuple[Cell, ...]]:
    for key, row in table.items():
        yield (name.format(key), *row.values())


def _forces(equations: KaneEquations) -> Iterator[Section]:
    definitions, (F, F_star, M) = _read(equations, "F", "F_star_0", "M")
    inertia = sympy.Matrix(F_star) - sympy.Matrix(len(F), len(F), M) * equations.accelerations
    yield Section(
        "Generalized forces",
        "Active forces F, known contact forces included, and inertia forces F*.",
        (*definitions, *_each("F", equations.speeds, F), *_each("F", equations.speeds, inertia, star=True)),
    )
    if not equations.rows:
        return
    definitions, (A, b, D, E) = _read(equations, "A", "b", "D", "E")
    speeds = sympy.Matrix([sympy.Symbol(name) for name in equations.speeds])
    n, p = len(speeds), len(equations.independent)
    rows = sympy.Matrix(len(equations.rows), n, A) * speeds + sympy.Matrix(b)
    independent = sympy.Matrix(p, 1, [sympy.Symbol(name) for name in equations.independent])
    followers = sympy.Matrix(n - p, p, D) * independent + sympy.Matrix(n - p, 1, E)
    yield Section(
        "Constraints",
        f"Active rows, each zero: {', '.join(equations.rows)}; and the dependent speeds (3).",
        (
            *definitions,
            *((Left("c", name), value) for name, value in zip(equations.rows, rows, strict=True)),
            *((Left(name), value) for name, value in zip(equations.dependent, followers, strict=True)),
        ),
    )
    yield from _constrained_velocities(equations)
    definitions, (F, F_star, M) = _read(equations, "F_tilde", "F_star_tilde_0", "M_tilde")
    rates = sympy.Matrix(p, 1, [sympy.Symbol(f"{name}_dot") for name in equations.independent])
    inertia = sympy.Matrix(p, 1, F_star) - sympy.Matrix(p, p, M) * rates
    names = equations.independent
    yield Section(
        "Recombination",
        "Constrained generalized forces (44), (45); their sum is zero (46).",
        (*definitions, *_each("F", names, F, "tilde"), *_each("F", names, inertia, "tilde", star=True)),
    )


def _dynamics(equations: KaneEquations, compact: bool) -> Iterator[Section]:
    left = [Left(name, above="dot") for name in equations.speeds]
    if compact:
        found = equations.compact("u_dot")
        symbols = [(Left(symbol.name), value) for symbol, value in (*found.once, *found.definitions)]
        text = "In compact form; parameters alone give k." if found.once else "In compact form."
        yield Section("Equations of motion", text, (*symbols, *zip(left, found.results["u_dot"], strict=True)))
    else:
        definitions, (u_dot,) = _read(equations, "u_dot")
        yield Section("Equations of motion", "", (*definitions, *zip(left, u_dot, strict=True)))
    if equations.rows:
        definitions, (values,) = _read(equations, "multipliers")
        names = equations.row_names
        forces = [(Left("lambda", name), value) for name, value in zip(names, values, strict=True)]
        yield Section("Forces of constraints and contacts", "", (*definitions, *forces))


def _outward(equations: KaneEquations, ways_out: Sequence[tuple[str, str, str]]) -> Section:
    if not equations.guards:
        return Section("Guards", "Nothing ends this mode.")
    definitions, (values,) = _read(equations, "guards")
    named = [(Left("h", str(k)), value) for k, value in enumerate(values, start=1)]
    listed = "; ".join(f"h{k}: {text}" for k, text in enumerate(equations.guards, start=1))
    table = (("guard", "next mode", "reset"), *ways_out) if ways_out else ()
    return Section(
        "Guards and resets", f"Positive in the mode; its zero crossing ends the mode. {listed}.",
        (*definitions, *named), table,
    )  # fmt: skip


def _count(name: str, counts: Counts) -> tuple[str, ...]:
    return (name, *(str(number) for number in (counts.multiply_divide, counts.add, counts.trig, counts.other)))


def _each(
    letter: str, names: Sequence[str], values: Sequence[sympy.Expr], above: str = "", *, star: bool = False
) -> list[Equation]:
    return [(Left(letter, name, above, star), value) for name, value in zip(names, values, strict=True)]


def _read(equations: KaneEquations, *names: str) -> tuple[list[Equation], list[list[sympy.Expr]]]:
    """Return the intermediate symbols of a section, none if it is short, and the entries of each output."""
    found = equations.read(*names)
    if equations.part(*names).counts().total <= LONGEST:
        whole = equations.read(*names, expand_symbols=True)
        if sum(int(value.count_ops()) for table in whole.results.values() for value in table) <= 2 * LONGEST:
            found = whole
    definitions = [(Left(symbol.name), value) for symbol, value in found.definitions]
    return definitions, [list(found.results[name]) for name in names]


# -- HTML --------------------------------------------------------------------------------------------------


def to_html(page: EquationsPage, picture: str = "") -> str:
    """Return a whole HTML document, independent of the network; `picture` is SVG, as text."""
    body = [f"<h1>{html.escape(page.title)}</h1>", f"<p>{html.escape(page.lead)}</p>"]
    if picture:
        body.append(f"<figure>{picture[picture.index('<svg') :]}</figure>")
    for section in page.sections:
        body.append(f"<h2>{html.escape(section.title)}</h2>")
        if section.text:
            body.append(f"<p>{html.escape(section.text)}</p>")
        body += [_html_equation(left, right) for left, right in section.equations]
        if section.table:
            body.append(_html_table(section.table))
    head = f'<meta charset="utf-8"/>\n<title>{html.escape(page.title)}</title>\n<style>{_STYLE}</style>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n'
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _html_equation(left: Left, right: sympy.Expr) -> str:
    formula = f"<mrow>{left.mathml()}<mo>=</mo>{mathml(right)}</mrow>"
    return f'<div class="equation"><math displaystyle="true">{formula}</math></div>'


def _html_table(table: Sequence[Sequence[Cell]]) -> str:
    head = "".join(f"<th>{_html_cell(cell)}</th>" for cell in table[0])
    rows = ["<tr>" + "".join(f"<td>{_html_cell(cell)}</td>" for cell in row) + "</tr>" for row in table[1:]]
    return '<div class="wide"><table>\n<tr>' + head + "</tr>\n" + "\n".join(rows) + "\n</table></div>"


def _html_cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return html.escape(cell)
    return f"<math><mrow>{cell.mathml()}</mrow></math>"


# -- LaTeX -------------------------------------------------------------------------------------------------

_HEAD = r"""\documentclass[a4paper]{article}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath, array, longtable}
\setlength{\parindent}{0pt}
\setlength{\LTleft}{0pt}
\newenvironment{equations}{%
  \begin{list}{}{\leftmargin=3em \itemindent=-2em \labelwidth=0pt \labelsep=0pt \parsep=0pt}%
  \raggedright\binoppenalty=0 \relpenalty=9999}{\end{list}}
"""
_WIDEST_TABLE = 90  # characters


def to_latex(page: EquationsPage, picture: str = "") -> str:
    """Return a whole LaTeX document (article, amsmath); `picture` is a file next to it (graphicx)."""
    lines = [
        _HEAD + r"\usepackage{graphicx}" * bool(picture),
        r"\begin{document}",
        rf"\section*{{{escaped(page.title)}}}",
        escaped(page.lead),
    ]
    if picture:
        lines += [
            "",
            rf"\begin{{center}}\includegraphics[width=0.6\linewidth]{{{picture}}}\end{{center}}",
        ]
    for section in page.sections:
        lines += ["", rf"\subsection*{{{escaped(section.title)}}}"]
        lines += [escaped(section.text), ""] if section.text else []
        if section.equations:
            lines += [r"\begin{equations}", *itertools.starmap(_latex_equation, section.equations), r"\end{equations}"]
        if section.table:
            lines += _latex_table(section.table)
    return "\n".join([*lines, r"\end{document}", ""])


def _latex_equation(left: Left, right: sympy.Expr) -> str:
    return rf"\item $\displaystyle {left.latex()} = {_breakable(latex(right))}$"


def _breakable(formula: str) -> str:
    """Return a formula whose lines may also end behind the sign of a quotient."""
    return formula.replace(r"\big/", r"\big/\allowbreak")


def _latex_table(table: Sequence[Sequence[Cell]]) -> list[str]:
    """Return a table over pages; formulas too wide for it as a list of the nonzero ones."""
    rows = [[_latex_cell(cell) for cell in row] for row in table]
    widest = sum(max(width(row[k]) for row in rows) + 3 for k in range(len(rows[0])))
    last = "l"
    if widest > _WIDEST_TABLE:
        if any(isinstance(cell, VectorForm) for row in table for cell in row):
            head, *below = rows
            entries = [(row[0], name, cell) for row in below for name, cell in zip(head[1:], row[1:], strict=True)]
            rows = [["", "", "zero unless listed"], *([*entry] for entry in entries if entry[2] != "$0$")]
        last = r">{\raggedright\arraybackslash}p{0.6\linewidth}"
    columns = "l" * (len(rows[0]) - 1) + last
    return [
        rf"\begin{{longtable}}{{{columns}}}", *(" & ".join(row) + r" \\" for row in rows), r"\end{longtable}"
    ]  # fmt: skip


def _latex_cell(cell: Cell) -> str:
    return escaped(cell) if isinstance(cell, str) else f"${_breakable(cell.latex())}$"


def to_sympy_source(equations: KaneEquations, names: Sequence[str], *, compact: bool = False) -> str:
    """Return Python source with a dict ``equations`` of outputs as SymPy matrices, intermediate symbols first."""
    found = equations.compact(*names) if compact else equations.read(*names, motion=True)
    definitions = (*found.once, *found.definitions)
    intermediate = {symbol for symbol, _ in definitions}
    values: list[Any] = [value for _, value in definitions] + [found.results[name] for name in names]
    free = sorted(
        {symbol for value in values for symbol in value.free_symbols} - intermediate, key=lambda s: str(s.name)
    )
    renamed = {symbol: sympy.Symbol(re.sub(r"\W+", "_", symbol.name)) for symbol in free}
    lines = [f'"""{equations.mechanism.name}, mode \'{equations.mode}\'."""', "", "from sympy import *", ""]
    lines += [f'{new} = Symbol("{old.name}")' for old, new in renamed.items()]
    lines += [f"{symbol} = {value.xreplace(renamed)}" for symbol, value in definitions]
    tables = [f'    "{name}": {sympy.Matrix(found.results[name]).xreplace(renamed)},' for name in names]
    return "\n".join([*lines, "equations = {", *tables, "}"]) + "\n"
