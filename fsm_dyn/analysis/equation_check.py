"""A check of an equation worked by hand against the derivations of the package, term by term."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fsm_dyn.analysis.verification import INERTIA, derived_terms
from fsm_dyn.automaton.compilation import compile as compile_model
from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.core.arguments import typed
from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.derive.symbols import NodeAlgebra
from fsm_dyn.language.builder import Model
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import Mechanism
from fsm_dyn.programs.functions import cos, sin
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.traversal import evaluate, substitute

if TYPE_CHECKING:
    from fsm_dyn.derive.equations import KaneEquations
    from fsm_dyn.derive.printing import Finding


SEED: Final = 20030818
STATES: Final = 12
EQUAL: Final = 1e-12  # of the sum of the sizes of the terms


@dataclass(frozen=True)
class EquationCheck:
    """The verdict on an equation.

    Attributes
    ----------
    name : str
        Its left side, in the names of the package.
    correct : bool
    verdict : str
        One sentence.
    findings : tuple of Finding
        Differences term by term, empty if the verdict covers all.
    basis : str
        Number of states, and the agreement of the two derivations the equation was compared with.
    parts : tuple of EquationCheck
        The verdict on each of several equations, empty for one; the others are then those on all together.
    """

    name: str
    correct: bool
    verdict: str
    findings: tuple[Finding, ...] = ()
    basis: str = ""
    parts: tuple[EquationCheck, ...] = ()

    @classmethod
    def of_several(cls, parts: tuple[EquationCheck, ...]) -> EquationCheck:
        """Return the verdict on several equations together."""
        right = sum(part.correct for part in parts)
        findings = tuple(finding for part in parts for finding in part.findings)
        verdict = f"{right} of {len(parts)} equations right"
        names = ", ".join(part.name for part in parts)
        return cls(names, right == len(parts), verdict, findings, parts[0].basis, parts)

    def __str__(self) -> str:
        if self.parts:
            return "\n".join([*map(str, self.parts), self.verdict])
        return "\n".join([f"{self.name}: {self.verdict}", *map(str, self.findings), f"  [{self.basis}]"])


@typed
def check_equation(
    model: str | os.PathLike[str] | Mapping[str, object] | Model | Mechanism | ModeGraph,
    mode: str,
    equation: str | tuple[str, Any],
    *,
    seed: int = SEED,
) -> EquationCheck:
    """Compare an equation worked by hand with the package's derivations.

    Parameters
    ----------
    model : str, Mechanism or ModeGraph
    mode : str
        Name of the mode.
    equation : str or pair of str and sympy.Expr
        ``left = right``; lines ``Z1 = ...`` before it define symbols; or the left side and a SymPy expression.  Of
        several equations each is judged.  Left
        sides are ``F_u1``, ``F_u1_star``, these with ``_tilde``, dependent speeds, ``q1_dot`` and ``u1_dot``; ``F1``
        is the force of the first speed.  Right sides are in the language of model files, with ``s4``, ``c4`` for
        sine and cosine of ``q4`` and ``u1_dot`` for accelerations.
    seed : int
        Of the states.

    Returns
    -------
    EquationCheck

    Raises
    ------
    InputError
        There is no such mode or left side, or Kane's and Lagrange's terms disagree at the states.
    ExpressionError
        The text is not an expression, or has unknown names.

    Notes
    -----
    Texts are parsed by the package's own language: nothing in them is executed.
    """
    graph = model if isinstance(model, ModeGraph) else compile_model(model)
    if mode not in graph.modes:
        raise InputError(f"no mode '{mode}'", allowed=", ".join(graph.modes), remedy=did_you_mean(mode, graph.modes))
    return _Check(graph, mode, seed).judge(equation)


# -- Texts to nodes ------------------------------------------------------------------------------------------

_ALIAS = re.compile(r"F(\d+)((?:_star)?(?:_tilde)?)")
_LIKE_AN_EQUATION = re.compile(r"F\d|F_|\w+(_dot|')$")  # left sides that are no definitions
_MOST_SIGNS: Final = 150  # of one equation that are tried the other way round


def _written(right: Any) -> str:
    """Return a right side as text: the language has no cotangent, secant and cosecant, which SymPy may introduce."""
    if not isinstance(right, str) and hasattr(right, "replace"):
        from fsm_dyn.derive.printing import without_reciprocals  # for expressions of SymPy, loaded already

        right = without_reciprocals(right)
    return str(right)


def _split(equation: str | tuple[str, Any]) -> list[tuple[str, str]]:
    """Return left and right sides of the lines."""
    if isinstance(equation, tuple):
        return [(equation[0], _written(equation[1]))]
    lines = [line.split("#")[0].strip() for line in re.split(r"[;\n]", equation)]
    sides = [line.split("=", 1) for line in lines if line]
    if not sides or any(len(side) != 2 for side in sides):
        raise InputError("an equation is 'left = right'", found=repr(equation)[:200])
    return [(left.strip(), right.replace("^", "**").strip()) for left, right in sides]


# -- The check -----------------------------------------------------------------------------------------------


@dataclass
class _Reference:
    """An equation known to the package: its right side, and whether the dependent speeds follow the rows."""

    node: Node
    on_rows: bool


class _Check:
    """Equations of one mode, at seeded states."""

    def __init__(self, graph: ModeGraph, mode: str, seed: int) -> None:
        self._graph, self._seed = graph, seed
        self._kane: KaneEquations = graph.modes[mode].kane_equations
        program = self._kane.formulas
        self._nodes, _, known = program.graph()
        self._layout = program.layout
        matrices = self._kane.matrices.nodes(self._nodes)[1]
        self._speeds, self._rates = self._kane.followers(self._nodes, matrices)
        places = {f"{name}_dot": j for j, name in enumerate(self._kane.speeds)}
        self._without_drift = {
            symbol: rate - matrices["c"][places[symbol.name]] for symbol, rate in self._rates.items()
        }
        self._references = self._known(known, matrices)
        self._inertia = (known["F_star"], matrices["S"])
        self._values = self._states()

    def _known(self, known: Mapping[str, Any], matrices: Mapping[str, Any]) -> dict[str, _Reference]:
        kane = self._kane
        found = {}
        for i, name in enumerate(kane.speeds):
            found[f"F_{name}"] = _Reference(known["F"][i], False)
            found[f"F_{name}_star"] = _Reference(known["F_star"][i], False)
        for a, name in enumerate(kane.independent):
            found[f"F_{name}_tilde"] = _Reference(known["F_tilde"][a], True)
            found[f"F_{name}_star_tilde"] = _Reference(known["F_star_tilde"][a], True)
        for symbol, node in self._speeds.items():
            found[symbol.name] = _Reference(node, True)
        for name, node in zip(kane.coordinates, matrices["q_dot"], strict=True):
            found[f"{name}_dot"] = _Reference(node, False)
        for name, node in zip(kane.speeds, known["u_dot"], strict=True):
            found[f"{name}_dot"] = _Reference(node, True)
        return found

    def _states(self) -> dict[str, Floats]:
        """Return seeded values of all symbols; slip directions are signs."""
        layout, generator = self._layout, np.random.default_rng(self._seed)
        rates = {f"{name}_dot" for name in self._kane.speeds}
        values = {}
        for name in layout.arguments:
            value = generator.uniform(0.3, 1.3, STATES)
            signed = name in layout.x or name in layout.w or name in rates
            values[name] = value * generator.choice((-1.0, 1.0), STATES) if signed else value
            if name.endswith(".sigma"):
                values[name] = generator.choice((-1.0, 1.0), STATES)
        return values

    def canonical(self, left: str) -> str:
        """Return a left side in the package's names."""
        if found := _ALIAS.fullmatch(left):
            names = self._kane.independent if found[2].endswith("_tilde") else self._kane.speeds
            if 1 <= int(found[1]) <= len(names):
                left = f"F_{names[int(found[1]) - 1]}{found[2]}"
        left = left.replace("'", "_dot")
        if left not in self._references:
            known = [*self._references, *self._aliases()]
            remedy = did_you_mean(left, known)
            if left in self._kane.independent and self._speeds:
                dependent = ", ".join(symbol.name for symbol in self._speeds)
                remedy = f"{left} is independent in this mode: solve the rows for {dependent}"
            raise InputError(f"no equation '{left}'", allowed=", ".join(known), remedy=remedy)
        return left

    def _aliases(self) -> list[str]:
        """Return the left sides by the numbers of the speeds."""
        whole = [f"F{i + 1}{star}" for i in range(len(self._kane.speeds)) for star in ("", "_star")]
        return whole + [f"F{a + 1}{star}_tilde" for a in range(len(self._kane.independent)) for star in ("", "_star")]

    def _is_equation(self, left: str) -> bool:
        return left.replace("'", "_dot") in self._references or _LIKE_AN_EQUATION.match(left) is not None

    def _parsed(self, equation: str | tuple[str, Any]) -> list[tuple[str, Node]]:
        """Return the names and right sides of the equations; a last line is one in any case."""
        nodes = self._nodes
        names = {name: nodes.symbol(name) for name in self._layout.arguments if "." not in name}
        for name in self._kane.coordinates:
            digits = re.sub(r"^\D+", "", name)
            if digits:
                names.setdefault(f"s{digits}", sin(nodes.symbol(name)))
                names.setdefault(f"c{digits}", cos(nodes.symbol(name)))
        found, lines = [], _split(equation)
        for number, (left, text) in enumerate(lines, start=1):
            right = NodeAlgebra(nodes, names).scalar(Text(text.replace("'", "_dot")))
            if number == len(lines) or self._is_equation(left):
                found.append((self.canonical(left), right))
            else:
                names[left] = right
        return found

    def judge(self, equation: str | tuple[str, Any]) -> EquationCheck:
        """Return the verdict on an equation, or on each of several."""
        found = tuple(self._verdict(left, student) for left, student in self._parsed(equation))
        return found[0] if len(found) == 1 else EquationCheck.of_several(found)

    def _verdict(self, left: str, student: Node) -> EquationCheck:
        reference = self._references[left]
        basis = f"{STATES} states, seed {self._seed}; Kane's and Lagrange's terms differ by {self._disagreement():.0e}"
        difference = self._difference(student, reference)
        if difference <= EQUAL:
            return EquationCheck(left, True, f"right (largest difference {difference:.0e})", (), basis)
        if whole := self._as_a_whole(left, student, reference):
            return EquationCheck(left, False, whole, (), basis)
        findings, total = self._apart(left, student, reference)
        if not total:
            verdict = f"wrong (largest difference {difference:.1e}); no polynomial in speeds and loads to take apart"
        else:
            verdict = f"wrong in {len(findings)} of {total} terms"
        if reversed_ := self._reversed(student, reference):
            verdict += f": the sign of {reversed_} is wrong"
            findings = _of_sign(findings, reversed_)
        return EquationCheck(left, False, verdict, tuple(findings), basis)

    # -- equality --------------------------------------------------------------------------------------------

    def _disagreement(self) -> float:
        """Return the largest relative difference of Kane's and Lagrange's terms of inertia at the states."""
        derived, worst = derived_terms(self._graph.automaton.mechanism), 0.0
        for k in range(2):
            values = {name: float(value[k]) for name, value in self._values.items()}
            kane, lagrange = derived.compare(values)[INERTIA]
            worst = max(worst, float(np.abs(kane - lagrange).max() / max(np.abs(kane).max(), 1e-300)))
        if worst > 1e-9:
            raise InputError("the derivations of this model disagree", found=f"{worst:.0e}", remedy="fsm-dyn verify")
        return worst

    def _bound(self, node: Node) -> Node:
        """Return a node with the dependent speeds and their rates by the independent ones."""
        return substitute(substitute([node], self._rates), self._speeds)[0]

    def _numbers(self, nodes: Sequence[Node]) -> Floats:
        found = evaluate(nodes, self._values)
        return np.array([np.broadcast_to(value, (STATES,)) for value in found])

    def _difference(self, student: Node, reference: _Reference) -> float:
        """Return the largest difference at the states, relative to the sum of the sizes of the terms."""
        right = reference.node
        if reference.on_rows:
            student, right = self._bound(student), self._bound(right)
        a, b, *parts = self._numbers([student, right, *_addends(right)])
        size = np.maximum(np.abs(parts).sum(axis=0), np.abs(a)) + 1e-300
        worst = np.abs(a - b) / size
        return float(worst.max()) if np.isfinite(worst).all() else np.inf

    def _as_a_whole(self, left: str, student: Node, reference: _Reference) -> str:
        """Return a verdict on the equation as a whole, nothing if it has to be taken apart."""
        if self._difference(-student, reference) <= EQUAL:
            return "wrong: all of it has the wrong sign"
        for name, other in self._references.items():
            if name == left or other.node.is_zero:
                continue
            for sign, candidate in (("", student), ("-", -student)):
                if self._difference(candidate, other) <= EQUAL:
                    return f"wrong: this is {sign}{name}"
        speeds = ", ".join(symbol.name for symbol in self._speeds)
        if not speeds:
            return ""
        if not reference.on_rows and self._difference(student, _Reference(reference.node, True)) <= EQUAL:
            rows = ", ".join(self._kane.rows)
            what = "rate holds" if left.endswith("_dot") else "force is"
            return f"equal only where the rows hold ({rows}): this {what} without them, so keep {speeds}"
        if reference.on_rows and left.endswith("_star_tilde"):
            raw = substitute([self._recombined(left)], self._without_drift)[0]
            if self._difference(student, _Reference(raw, True)) <= EQUAL:
                return f"wrong: the rates of {speeds} were taken as D u_I_dot; the term D_dot u_I is missing"
        return ""

    def _reversed(self, student: Node, reference: _Reference) -> str:
        """Return the addend, as it is written, with whose other sign the equation is right; nothing without one."""
        for node, changed, addend in _signs(student)[:_MOST_SIGNS]:
            if self._difference(substitute([student], {node: changed})[0], reference) <= EQUAL:
                # brings SymPy along
                from fsm_dyn.derive.printing import to_sympy

                return str(to_sympy([addend])[0])
        return ""

    def _recombined(self, left: str) -> Node:
        """Return a constrained inertia force as ``Sᵀ F*``, with the rates of all speeds."""
        F_star, S = self._inertia
        a = self._kane.independent.index(left.removeprefix("F_").removesuffix("_star_tilde"))
        total = self._nodes.zero
        for i, force in enumerate(F_star):
            total = total + S[i, a] * force
        return total

    # -- term by term ----------------------------------------------------------------------------------------

    def _apart(self, left: str, student: Node, reference: _Reference) -> tuple[list[Finding], int]:
        """Return differences by monomials, of the form with fewer of them, and the number of monomials."""
        forms = [(student, reference.node)]
        if reference.on_rows:
            forms = [(self._bound(student), self._bound(reference.node))]
            if left.endswith("_star_tilde") and self._speeds:
                one, other = substitute([student, self._recombined(left)], self._rates)
                forms.append((one, other))
        found = [apart for apart in (self._monomials(*form) for form in forms) if apart[1]]
        return min(found, key=lambda apart: len(apart[0]), default=([], 0))

    def _monomials(self, student: Node, reference: Node) -> tuple[list[Finding], int]:
        # brings SymPy along
        from fsm_dyn.derive.printing import compare_terms

        names = [f"{name}_dot" for name in self._kane.speeds] + [*self._layout.u, *self._layout.w, "g"]
        return compare_terms(student, reference, names, self._values, (self._layout.p, self._kane.coordinates))


def _signs(node: Node) -> list[tuple[Node, Node, Node]]:
    """Return the signs in an expression: a sum or negative, the same with one sign reversed, and the addend."""
    found: list[tuple[Node, Node, Node]] = []
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop(0)
        if top.op in ("add", "sub"):
            a, b = top.operands
            found.append((top, a - b if top.op == "add" else a + b, b))
            if a.op not in ("add", "sub"):
                found.append((top, b - a if top.op == "add" else -a - b, a))
        elif top.op == "neg":
            found.append((top, top.operands[0], top))
        for operand in top.operands:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return found


def _of_sign(findings: Sequence[Finding], addend: str) -> list[Finding]:
    """Return findings that name a reversed sign; others of terms that both sides have follow from it."""
    kept = [finding for finding in findings if finding.kind == "sign" or finding.text.startswith("there is no term")]
    if len(kept) == len(findings):
        return list(findings)
    terms = ", ".join(finding.term for finding in findings)
    return [replace(findings[0], term=terms, kind="sign", text=f"the sign of {addend} is wrong")]


def _addends(node: Node) -> list[Node]:
    """Return the addends of a sum."""
    found, stack = [], [node]
    while stack:
        top = stack.pop()
        if top.op in ("add", "sub", "neg"):
            stack.extend(top.operands)
        else:
            found.append(top)
    return found
