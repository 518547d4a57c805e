"""Equations worked by hand: right ones in any spelling are right, each mistake is found, with its kind and its term."""

import pytest
import sympy as sp
from typer.testing import CliRunner

import fsm_dyn
from fsm_dyn.cli.console import app
from fsm_dyn.core.errors import ExpressionError, InputError

F1 = (
    "F1_star_tilde = (L1*mB + L2*mC*c4^2)*u2^2 - L3*mC*c4*u3^2 - mC*s4*c4*u1*u2"
    " - (mB + mC*c4^2)*u1_dot - L2*mC*s4*c4*u2_dot"
)
F2 = (
    "F2_star_tilde = mC*L2^2*s4*c4*u2^2 - L2*L3*mC*s4*u3^2 - (L1*mB + L2*mC*s4^2)*u1*u2"
    " - L2*mC*s4*c4*u1_dot - (IB + mB*L1^2 + mC*L2^2*s4^2)*u2_dot"
)
PRINTED = """Z1 = 0; Z2 = L3 - L2*c4; Z3 = L2*mC*(L2 - L3*c4); Z4 = L1*mB + L2*mC; Z5 = IB + Z3 + mB*L1^2
F1_star_tilde = (Z4 - L2*L3*mC*s4^2/Z2)*u2^2 - L3*mC*(c4 - L2*s4^2/Z2)*u3^2 - s4*(Z4 - L3*mC*c4)/Z2*u1*u2
""".replace("u1*u2\n", "u1*u2 - (mB + Z5*s4^2/Z2^2 + mC*(1 - L3*s4^2/Z2))*u1_dot")


@pytest.fixture(scope="module")
def graphs():
    return {name: fsm_dyn.compile(name) for name in ("shopping_cart", "rolling_disk", "spherical_wrist")}


RIGHT = [
    ("shopping_cart", "rolling", F1),
    ("shopping_cart", "rolling", F2),
    ("shopping_cart", "rolling", F1.replace("c4^2", "(1 - sin(q4)**2)").replace("u3^2", "(L2*c4*u2 - s4*u1)^2/L3^2")),
    ("shopping_cart", "rolling", "u3 = -s4/L3*u1 + L2*c4/L3*u2"),
    ("shopping_cart", "rolling", "q1' = c3*u1"),
    ("shopping_cart", "sticking", PRINTED.replace("- s4*(Z4", "+ s4*(Z4")),
    ("shopping_cart", "sticking", "F1_tilde = push - s4*turn/(L3 - L2*c4)"),
    ("rolling_disk", "rolling", "F1_star_tilde = -(m + J/r^2)*u1_dot"),
    ("rolling_disk", "flying", "F2 = 0"),
    ("spherical_wrist", "motion", "u3_dot = (T3 + (I1 - I2)*u1*u2)/I3"),
]


@pytest.mark.parametrize(("model", "mode", "equation"), RIGHT)
def test_right_equations(graphs, model, mode, equation):
    found = fsm_dyn.check_equation(graphs[model], mode, equation)
    assert found.correct, str(found)
    assert found.findings == ()


CART = ("shopping_cart", "rolling")
WRONG = [
    (*CART, F1.replace("c4*u3^2", "s4*u3^2"), "u3^2", "swapped"),
    (*CART, F2.replace("(IB + mB*L1^2 +", "(IB +"), "u2_dot", "missing"),
    (*CART, F1.replace("- mC*s4*c4*u1*u2", "+ mC*s4*c4*u1*u2"), "u1*u2", "sign"),
    (*CART, F1.replace(" - L2*mC*s4*c4*u2_dot", ""), "u2_dot", "missing"),
    (*CART, F1 + " + mB*u1^2", "u1^2", "extra"),
    (*CART, F1.replace("L3*mC*c4*u3^2", "2*L3*mC*c4*u3^2"), "u3^2", "factor"),
    (*CART, F1.replace("L3*mC*c4*u3^2", "L2*mC*c4*u3^2"), "u3^2", "factor"),
    (*CART, F1.replace("(mB + mC*c4^2)", "(mB + mC*s4^2)"), "u1_dot", "swapped"),
    ("shopping_cart", "sticking", PRINTED, "u1^2", "extra"),
    ("spherical_wrist", "motion", "F1_star = -(I1 + M*L^2)*u1_dot - (I3 - I2 + M*L^2)*u2*u3", "u2*u3", "sign"),
    ("rolling_disk", "rolling", "F1_tilde = -m*g*cos(phi) + push", "g", "swapped"),
    (*CART, "u3 = (s4*u1 + L2*c4*u2)/L3", "u1", "sign"),
]


@pytest.mark.parametrize(("model", "mode", "equation", "term", "kind"), WRONG)
def test_wrong_equations(graphs, model, mode, equation, term, kind):
    found = fsm_dyn.check_equation(graphs[model], mode, equation)
    assert not found.correct
    assert [(finding.term, finding.kind) for finding in found.findings] == [(term, kind)], str(found)


SIGNS = [
    (*CART, F1.replace("(L1*mB + L2*mC*c4^2)*u2^2", "(L1*mB - L2*mC*c4^2)*u2^2"), "L2*mC*cos(q4)**2"),
    (*CART, F1.replace("(mB + mC*c4^2)", "(mB - mC*c4^2)"), "mC*cos(q4)**2"),
    (*CART, F1.replace("mC*c4^2)*u1_dot", "mC*(1 + s4^2))*u1_dot"), "sin(q4)**2"),
    (*CART, F2.replace("IB + mB*L1^2 + mC*L2^2*s4^2", "IB - mB*L1^2 + mC*L2^2*s4^2"), "L1**2*mB"),
    (*CART, F2.replace("IB + mB*L1^2 + mC*L2^2*s4^2", "IB + mB*L1^2 + mC*L2^2*(1 + c4^2)"), "cos(q4)**2"),
    ("shopping_cart", "sticking", "F1_tilde = push - s4*turn/(L3 + L2*c4)", "L2*cos(q4)"),
    ("rolling_disk", "rolling", "Z1 = m - J/r^2; F1_star_tilde = -Z1*u1_dot", "J/r**2"),
]


@pytest.mark.parametrize(("model", "mode", "equation", "addend"), SIGNS)
def test_one_sign_is_named_as_it_is_written(graphs, model, mode, equation, addend):
    """Also in a factor, in a denominator, in a definition, and where the rest of the coefficient hides it."""
    found = fsm_dyn.check_equation(graphs[model], mode, equation)
    assert f"the sign of {addend} is wrong" in found.verdict
    assert {finding.kind for finding in found.findings} == {"sign"}, str(found)


def test_two_signs_are_not_one(graphs):
    found = fsm_dyn.check_equation(
        graphs["shopping_cart"], "rolling", F1.replace("- L3", "+ L3").replace("- L2", "+ L2")
    )
    assert "the sign of" not in found.verdict
    assert [(finding.term, finding.kind) for finding in found.findings] == [("u2_dot", "sign"), ("u3^2", "sign")]


def test_each_of_several_equations_is_judged(graphs):
    """A mistake in the first of three lines with a definition among them does not hide behind the last."""
    wrong = F1.replace("- mC*s4*c4*u1*u2", "+ mC*s4*c4*u1*u2")
    lines = [wrong, "Z1 = s4/L3", "u3 = -Z1*u1 + L2*c4/L3*u2", F2]
    found = fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", "\n".join(lines))
    assert [(part.name, part.correct) for part in found.parts] == [
        ("F_u1_star_tilde", False), ("u3", True), ("F_u2_star_tilde", True)
    ]  # fmt: skip
    assert (found.correct, found.verdict, len(found.findings)) == (False, "2 of 3 equations right", 1)
    assert str(found).count("\n") >= 6
    both = fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", f"{F1}\n{F2}")
    assert both.correct
    with pytest.raises(InputError, match="no equation 'F1_stra_tilde'") as refused:
        fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", f"F1_stra_tilde = 0\n{F2}")
    assert "did you mean 'F1_star_tilde'" in str(refused.value)


def test_the_print_of_67(graphs):
    """The term that would give the stuck cart energy, as a sentence."""
    (finding,) = fsm_dyn.check_equation(graphs["shopping_cart"], "sticking", PRINTED).findings
    assert finding.text.startswith("there is no term in u1^2; yours is 2*(L1*mB + L2*mC - L3*mC*cos(q4))*sin(q4)**2/(")


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        ("q4_dot = u3", "wrong: this is u3"),
        ("q4_dot = u2 - u3", "wrong: all of it has the wrong sign"),
        ("q4_dot = u2*(L2*c4/L3 - 1) - s4*u1/L3", "equal only where the rows hold (front_wheel): this rate"),
        ("F1 = -push", "wrong: all of it has the wrong sign"),
        (F1.replace("= ", "= -(") + ")", "wrong: all of it has the wrong sign"),
        (
            "F1_star_tilde = -(mB+mC)*u1_dot + (mB*L1+mC*L2)*u2^2 - mC*L3*(s4*u3_dot + c4*u3^2)",
            "wrong: this is F_u1_star",
        ),
    ],
)
def test_verdicts_on_the_whole(graphs, equation, verdict):
    found = fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", equation)
    assert found.verdict.startswith(verdict), str(found)


def test_rows_that_are_forgotten_or_assumed(graphs):
    kane = graphs["shopping_cart"].modes["rolling"].kane_equations
    u1, u2 = sp.symbols("u1 u2")
    held = {sp.Symbol("u3"): kane["D"][0, 0] * u1 + kane["D"][0, 1] * u2}
    unconstrained = kane.generalized_inertia_forces[0]
    found = fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", ("F1_star", unconstrained.subs(held)))
    assert found.verdict.startswith("equal only where the rows hold (front_wheel)")
    wheel = fsm_dyn.compile("rimless_wheel")
    kane = wheel.modes["rolling"].kane_equations
    rates = {sp.Symbol(f"{name}_dot"): kane["D"][k] * sp.Symbol("vx_dot") for k, name in enumerate(kane.dependent)}
    tilde = (kane["S"].T * kane.generalized_inertia_forces)[0].subs(rates)
    found = fsm_dyn.check_equation(wheel, "rolling", ("F1_star_tilde", tilde))
    assert "D_dot u_I is missing" in found.verdict


@pytest.mark.parametrize(
    ("equation", "error", "message"),
    [
        ("F9 = 0", InputError, "no equation 'F9'"),
        ("F9 = 0", InputError, "F3_star, F1_tilde, F1_star_tilde"),
        ("F1 = mass*u1", ExpressionError, "mass"),
        ("F1 = __import__('os').system('true')", ExpressionError, "__import__"),
        ("u2 = 0", InputError, "u2 is independent in this mode: solve the rows for u3"),
        ("F1", InputError, "left = right"),
    ],
)
def test_what_is_no_equation(graphs, equation, error, message):
    with pytest.raises(error, match=message):
        fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", equation)


def test_command(tmp_path):
    call = ["check-equation", "rolling_disk", "--mode", "rolling"]
    right = CliRunner().invoke(app, [*call, "F1_star_tilde = -(m + J/r^2)*u1_dot"])
    assert (right.exit_code, "right" in right.output) == (0, True)
    (tmp_path / "mine.txt").write_text("Z1 = J/r\nF1_star_tilde = -(m + Z1)*u1_dot\n", encoding="utf-8")
    wrong = CliRunner().invoke(app, [*call, str(tmp_path / "mine.txt")])
    assert (wrong.exit_code, "factor r too many" in wrong.output) == (1, True)


def test_a_force_of_the_opposite_sign_is_no_other_force(graphs):
    """Without rows the force after them is the same one."""
    found = fsm_dyn.check_equation(fsm_dyn.compile("bouncing_ball"), "flight", "F1 = m*g")
    assert found.verdict == "wrong: all of it has the wrong sign"


def test_functions_of_sympy_that_the_language_does_not_have(graphs):
    q4, u1, u2, reach, length = sp.symbols("q4 u1 u2 L2 L3", real=True)
    rest = reach * sp.cos(q4) / length * u2
    for sine in (1 / sp.csc(q4), sp.cos(q4) / sp.cot(q4), sp.tan(q4) / sp.sec(q4)):
        assert fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", ("u3", rest - sine / length * u1)).correct
        assert not fsm_dyn.check_equation(graphs["shopping_cart"], "rolling", ("u3", rest + sine / length * u1)).correct
