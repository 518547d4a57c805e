"""Reading expressions: their meaning, and the refusal of everything else."""

import math

import pytest

from fsm_dyn.core.errors import ExpressionError, Location
from fsm_dyn.language.expression_tree import (
    RESERVED_NAMES,
    Axis,
    Binary,
    Boolean,
    Call,
    Compare,
    Index,
    Name,
    Number,
    Text,
    Unary,
    fold,
    free_names,
    is_name,
    walk,
)
from fsm_dyn.language.expressions import FloatAlgebra, parse

VALUES = {"a": 2.0, "b": 3.0, "x": -0.5, "lambda": 7.0, "lip": (10.0, 20.0)}


def value(text: str) -> float:
    return fold(parse(text), FloatAlgebra(VALUES))


def message(text: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    return str(caught.value)


class TestTree:
    def test_numbers_and_names(self) -> None:
        assert parse("2") == Number(2.0, None, "2")
        assert parse("a") == Name("a")
        assert parse("t") == Name("t")
        assert parse("pi") == Number(math.pi, None, "pi")
        assert parse("true") == Number(1.0, None, "true")

    def test_axes_and_elements(self) -> None:
        assert parse("B.x") == Axis("B", "x")
        assert parse("lip[1]") == Index("lip", 1)
        assert parse("lambda.y") == Axis("lambda", "y")

    def test_operators(self) -> None:
        a, b = Name("a"), Name("b")
        for op in ("+", "-", "*", "/", "**"):
            assert parse(f"a {op} b") == Binary(op, a, b)
        for op in ("<", "<=", ">", ">=", "==", "!="):
            assert parse(f"a {op} b") == Compare(op, a, b)
        assert parse("-a") == Unary("-", a)
        assert parse("not a") == Unary("not", a)
        assert parse("a and b and a") == Boolean("and", (a, b, a))

    def test_precedence_is_that_of_python(self) -> None:
        assert parse("-a**b") == Unary("-", Binary("**", Name("a"), Name("b")))
        assert parse("a - b - a") == Binary("-", Binary("-", Name("a"), Name("b")), Name("a"))
        assert value("2**3**2") == 512

    def test_chained_comparison(self) -> None:
        assert parse("1 < a < 2") == Boolean(
            "and", (Compare("<", Number(1.0, None, "1"), Name("a")), Compare("<", Name("a"), Number(2.0, None, "2")))
        )

    def test_min_and_max_nest(self) -> None:
        assert parse("min(a, b, x)") == Call("min", (Call("min", (Name("a"), Name("b"))), Name("x")))

    def test_reference_functions_keep_names(self) -> None:
        assert parse("vel(P, B)") == Call("vel", (Name("P"), Name("B")))

    def test_line_breaks_are_spaces(self) -> None:
        assert parse("a +\n  b") == parse("a+b")

    def test_keywords_of_python_are_ordinary_names(self) -> None:
        assert parse("lambda*None") == Binary("*", Name("lambda"), Name("None"))

    def test_free_names(self) -> None:
        node = parse("dot(vel(P, B), C.x)*a + lip[0] + sin(t) + 2 N")
        assert free_names(node) == {"P", "B", "C", "a", "lip", "t"}
        assert sum(isinstance(part, Call) for part in walk(node)) == 3

    def test_trees_are_values(self) -> None:
        assert hash(parse("a + 2 m")) == hash(parse("a+2 m"))


class TestFloats:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a + b*2", 8.0),
            ("a/b", 2 / 3),
            ("a**-1", 0.5),
            ("lip[0] + lip[1]", 30.0),
            ("lambda", 7.0),
            ("where(x > 0, 1, 2)", 2.0),
            ("where(x < 0 and not a > b or a == 2, 1, 2)", 1.0),
            ("max(a, b, 1) - min(a, b, 1)", 2.0),
            ("abs(x) + sign(x) + floor(x)", 0.5 - 1 - 1),
            ("sign(0)", 0.0),
            ("mod(x, 2)", 1.5),
            ("mod(-x, -2)", -1.5),
            ("atan2(1, -1)", 3 * math.pi / 4),
            ("sqrt(b)*exp(x)*log(b)", math.sqrt(3) * math.exp(-0.5) * math.log(3)),
            ("sin(x)**2 + cos(x)**2", 1.0),
            ("tan(x) - sinh(x) - cosh(x) - tanh(x)", math.tan(-0.5) - math.exp(-0.5) - math.tanh(-0.5)),
            ("asin(x) + acos(x) - atan(1)", math.pi / 4),
            ("pi/2", math.pi / 2),
            ("+a - -b", 5.0),
        ],
    )
    def test_values(self, text: str, expected: float) -> None:
        assert value(text) == pytest.approx(expected, rel=1e-15, abs=1e-15)

    @pytest.mark.parametrize("text", ["1/0", "0/0", "sqrt(x)", "log(0)", "x**0.5", "mod(1, 0)", "asin(2)"])
    def test_no_real_value_gives_nan(self, text: str) -> None:
        assert math.isnan(value(text))

    def test_a_branch_not_taken_does_not_matter(self) -> None:
        assert value("where(x > 0, sqrt(x), 0)") == 0.0

    def test_overflow_gives_infinity(self) -> None:
        assert value("exp(1000)") == math.inf

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("c", "unknown name 'c'"),
            ("lamda", "did you mean 'lambda'?"),
            ("lip", "is a vector"),
            ("a[0]", "is not a vector"),
            ("lip[2]", "no element 2"),
            ("N.x", "the vector N.x"),
            ("rate(a)", "rate(...) stands where only numbers may"),
        ],
    )
    def test_refused(self, text: str, says: str) -> None:
        with pytest.raises(ExpressionError) as caught:
            value(text)
        assert says in str(caught.value)


class TestRefused:
    @pytest.mark.parametrize(
        "text",
        [
            "__import__('os').system('ls')",
            "().__class__.__bases__",
            "a.__class__",
            "a.real",
            "(a + b).x",
            "pos(P).x",
            "B.x.y",
            "f(a)",
            "eval(a)",
            "sin(a)(b)",
            "B.x(a)",
            "sin(*a)",
            "sin(a, b)",
            "sin()",
            "sin",
            "vel(P+Q)",
            "vel(2)",
            "pos()",
            "min(a)",
            "lambda: a",
            "[a, b]",
            "a, b",
            "(a, b)",
            "{a}",
            "[a for a in b]",
            "a if b else c",
            "a := b",
            "a = b",
            "a[b]",
            "a[0:1]",
            "a[-1]",
            "a[1.5]",
            "a[1 m]",
            "a[1][2]",
            "a[1000]",
            "2[0]",
            "'a'",
            '"a"',
            "f'a'",
            "a % b",
            "a // b",
            "a @ b",
            "a & b",
            "a | b",
            "~a",
            "!a",
            "a << b",
            "a is b",
            "a in b",
            "a not in b",
            "a b",
            "a +",
            "* a",
            "()",
            "(a",
            "a)",
            "(a]",
            "a;b",
            "a # b",
            "a \\\n b",
            "_a",
            "a._x",
            "`a`",
            "$a",
            "é",
            "a…",
            "yield a",
            "await a",
            "a^2",
            "x^(2)",
            "0x10",
            "1_000",
            "1j",
            "1e",
            "...",
            ".",
            "",
            "   ",
            "\0",
            "µ",
            "3 µ",
        ],
    )
    def test_not_in_the_language(self, text: str) -> None:
        assert message(text)

    def test_place(self) -> None:
        where = Location("model.yaml", 7, 3)
        with pytest.raises(ExpressionError) as caught:
            parse(Text("a +", where))
        assert caught.value.where == where
        assert str(caught.value).startswith("model.yaml:7:3: ")
        with pytest.raises(ExpressionError) as caught:
            parse("a +", where)
        assert caught.value.where == where

    def test_found_is_what_was_written(self) -> None:
        assert "found: f(3 m, lambda)" in message("2 N + f(3 m,lambda)")

    def test_bounds(self) -> None:
        assert "too long" in message("a+" * 2000 + "a")
        assert "nested too deeply" in message("(" * 61 + "a" + ")" * 61)
        assert "nested too deeply" in message("+".join("a" * 202))
        assert parse("(" * 60 + "a" + ")" * 60) == Name("a")
        assert free_names(parse("+".join("a" * 200))) == {"a"}

    @pytest.mark.parametrize("text", ["a**65", "a**-65", "a**(8*9)", "a**1e99", "9**9**9", "a**(1/0)", "2**(0/0)"])
    def test_constant_exponents_are_bounded(self, text: str) -> None:
        assert "exponent too large" in message(text)

    def test_exponents_may_be_names(self) -> None:
        assert value("a**b") == 8.0

    def test_nearest_function(self) -> None:
        assert "did you mean 'atan2'?" in message("atn2(a, b)")


class TestNames:
    def test_form(self) -> None:
        for name in ("a", "A1", "tau_stick", "beta", "E", "I", "S", "lambda"):
            assert is_name(name)
        for name in ("", "_a", "1a", "a-b", "é", "a b", "a" * 65, "a\n"):
            assert not is_name(name)

    def test_reserved(self) -> None:
        assert {"N", "O", "t", "pi", "sin", "dot", "rate", "where", "and", "true"} <= RESERVED_NAMES
        assert not {"beta", "gamma", "E", "I", "S", "u", "lambda", "zeta"} & RESERVED_NAMES
