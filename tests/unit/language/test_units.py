"""Numbers with units: extent of a unit, and agreement of the table with pint."""

import itertools
import math
import subprocess
import sys

import pint
import pytest

from fsm_dyn.core.errors import ExpressionError, Location
from fsm_dyn.language.expression_tree import Binary, Call, Compare, Name, Number, Unary, parse_unit
from fsm_dyn.language.expressions import parse
from fsm_dyn.language.loader import load
from fsm_dyn.language.units import DIMENSIONLESS, TABLE, dimension, dimension_text, multiply, power

NEWTON = dimension(1, 1, -2)


def number(text: str) -> Number:
    node = parse(text)
    assert isinstance(node, Number)
    return node


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "value", "unit"),
        [
            ("20 kg", 20.0, dimension(0, 1)),
            ("20kg", 20.0, dimension(0, 1)),
            ("0.35 m", 0.35, dimension(1)),
            ("809 mm", 0.809, dimension(1)),
            ("1.5e9 N/m^2.5", 1.5e9, dimension(-1.5, 1, -2)),
            ("2.5 kg*m^2", 2.5, dimension(2, 1)),
            ("2.5 kg*m**2", 2.5, dimension(2, 1)),
            ("9.81 m/s^2", 9.81, dimension(1, 0, -2)),
            ("9.81 m*s^-2", 9.81, dimension(1, 0, -2)),
            ("3 m^(1/2)", 3.0, dimension(0.5)),
            ("3 m^(-2)", 3.0, dimension(-2)),
            ("5 W/(m*K)", 5.0, dimension(1, 1, -3, 0, -1)),
            ("5 N/(m)", 5.0, dimension(0, 1, -2)),
            ("5 N/(m/s)^2", 5.0, dimension(-1, 1, 0)),
            ("12 deg", math.pi / 15, DIMENSIONLESS),
            ("1 rad", 1.0, DIMENSIONLESS),
            ("2 rpm", math.pi / 15, dimension(s=-1)),
            ("3 min", 180.0, dimension(s=1)),
            ("2 µm", 2e-6, dimension(1)),
            ("2 μm", 2e-6, dimension(1)),
            ("5 lbf*ft", 6.7790897, dimension(2, 1, -2)),
            ("1 km/h", 1 / 3.6, dimension(1, 0, -1)),
        ],
    )
    def test_value_and_dimension(self, text: str, value: float, unit: tuple[float, ...]) -> None:
        found = number(text)
        assert found.value == pytest.approx(value, rel=1e-7)
        assert found.dimension == unit
        assert found.text == text

    def test_bare_numbers_have_no_dimension(self) -> None:
        assert number("3").dimension is None
        assert number("3 rad").dimension == DIMENSIONLESS


class TestReach:
    def test_a_unit_binds_tighter_than_any_operator(self) -> None:
        two = Number(2.0, NEWTON, "2 N")
        assert parse("2 N*sin(x)") == Binary("*", two, Call("sin", (Name("x"),)))
        assert parse("-2 N") == Unary("-", two)
        assert parse("2 N/2") == Binary("/", two, Number(2.0, None, "2"))
        assert parse("x/2 N") == Binary("/", Name("x"), two)

    def test_pi_times_a_unit(self) -> None:
        assert parse("pi*2 rad/s") == Binary("*", Number(math.pi, None, "pi"), Number(2.0, dimension(s=-1), "2 rad/s"))

    def test_in_comparisons(self) -> None:
        assert parse("t > 10 s") == Compare(">", Name("t"), Number(10.0, dimension(s=1), "10 s"))
        assert parse("t > 10 s and x < 2 m")

    def test_axes_and_calls_end_a_unit(self) -> None:
        assert parse("30 N*N.x").left == Number(30.0, NEWTON, "30 N")  # type: ignore[union-attr]
        assert parse("30 N*m.x").left == Number(30.0, NEWTON, "30 N")  # type: ignore[union-attr]
        assert parse("30 N*s[0]").left == Number(30.0, NEWTON, "30 N")  # type: ignore[union-attr]

    def test_names_that_are_no_units_end_a_unit(self) -> None:
        assert parse("2 N*L1").right == Name("L1")  # type: ignore[union-attr]
        assert parse("2 kg*g").right == Name("g")  # type: ignore[union-attr]
        assert parse("2 N/(m + x)").right == Binary("+", Name("m"), Name("x"))  # type: ignore[union-attr]
        assert parse("2 N*h").right == Name("h")  # type: ignore[union-attr]
        assert parse("2 N*t").right == Name("t")  # type: ignore[union-attr]
        assert parse("2 N*(L1)").right == Name("L1")  # type: ignore[union-attr]

    def test_known_units_go_on(self) -> None:
        assert number("0.4 N*m").dimension == dimension(2, 1, -2)
        assert parse("(0.4 N)*m") == Binary("*", Number(0.4, NEWTON, "0.4 N"), Name("m"))

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("2 x", "unknown unit 'x'"),
            ("2x", "put an operator between"),
            ("2 metr", "unknown unit 'metr'"),
            ("2 kgg", "did you mean 'kg'?"),
            ("3 Nm", "N*m"),
            ("3 mil", "thou for a thousandth of an inch, mrad for an angle"),
            ("3 degC", "unknown unit"),
            ("3 dB", "unknown unit"),
            ("3 t", "unknown unit 't'"),
            ("3 m**n", "power of a unit must be a number"),
            ("3 m^n", "power of a unit must be a number"),
            ("3 m^(1", "do not match"),
            ("3 m^(1/0)", "power of a unit too large"),
            ("3 m^99", "power of a unit too large"),
            ("3 N.x", "write 3*N.x"),
            ("3 m(2)", "write 3*m("),
            ("1e999 m", "number too large"),
            ("1e308 km", "number too large"),
            ("3 if", "unknown unit 'if'"),
        ],
    )
    def test_refused(self, text: str, says: str) -> None:
        with pytest.raises(ExpressionError) as caught:
            parse(text)
        assert says in str(caught.value)


class TestUnitTexts:
    def test_accepted(self) -> None:
        assert parse_unit("N*m", Location()) == (1.0, dimension(2, 1, -2))
        assert parse_unit("mm", Location()) == (pytest.approx(1e-3), dimension(1))
        assert parse_unit("1", Location()) == (1.0, DIMENSIONLESS)
        assert parse_unit("furlong/fortnight", Location())[1] == dimension(1, 0, -1)

    @pytest.mark.parametrize("text", ["metr", "2 m", "m +", "m m", "", "sin(m)", "m*", "N.x", "__class__", "m**q"])
    def test_refused(self, text: str) -> None:
        with pytest.raises(ExpressionError, match="is not a unit"):
            parse_unit(text, Location())

    def test_written_back(self) -> None:
        assert dimension_text(DIMENSIONLESS) == "1"
        assert dimension_text(NEWTON) == "N"
        assert dimension_text(dimension(2, 1)) == "kg*m^2"
        assert dimension_text(dimension(1, 0, -2)) == "m/s^2"
        assert dimension_text(dimension(0, 0, -1)) == "1/s"
        assert dimension_text(dimension(-1.5, 1, -2)) == "kg/(m^1.5*s^2)"
        for text in ("N", "N*m", "kg*m^2", "m/s^2", "N*s/m", "W", "Pa"):
            assert dimension_text(parse_unit(text, Location())[1]) == text

    def test_every_written_unit_is_read(self) -> None:
        """Also inverses, and after a number: ``3 1/s``."""
        for exponents in itertools.product((-2, -1.5, 0, 1), repeat=3):
            of = dimension(*exponents)
            assert parse_unit(dimension_text(of), Location()) == (1.0, of)
            if of != DIMENSIONLESS:
                found = number(f"3 {dimension_text(of)}")
                assert (found.value, found.dimension) == (3.0, of)
        product = parse("2 1/s*x")
        assert isinstance(product, Binary)
        assert (product.op, product.right) == ("*", Name("x"))
        for text in ("2 1", "2 1/3", "2 1/x", "x 1/s"):
            with pytest.raises(ExpressionError):
                parse(text)


def test_half_exponents_come_back_to_whole_ones() -> None:
    root = power(dimension(1), 0.1)
    total = DIMENSIONLESS
    for _ in range(10):
        total = multiply(total, root)
    assert total == dimension(1)


@pytest.mark.parametrize("symbol", sorted(TABLE))
def test_table_agrees_with_pint(symbol: str, registry: "pint.UnitRegistry[float]") -> None:
    factor, exponents = TABLE[symbol]
    theirs = registry.Quantity(1.0, symbol).to_base_units()
    assert factor == pytest.approx(theirs.magnitude, rel=1e-12)
    names = ("[length]", "[mass]", "[time]", "[current]", "[temperature]", "[substance]", "[luminosity]")
    assert exponents == tuple(float(theirs.dimensionality.get(name, 0)) for name in names)


@pytest.fixture(scope="module")
def registry() -> "pint.UnitRegistry[float]":
    return pint.UnitRegistry()


def test_common_units_do_not_import_pint() -> None:
    code = (
        "import sys; from fsm_dyn.language.expressions import parse\n"
        "for text in ('2 kg', '1.5e9 N/m^2.5', '3 mm', '5 lbf*ft', '2 N*L1', '12 deg'): parse(text)\n"
        "assert 'pint' not in sys.modules and 'sympy' not in sys.modules and 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_input_has_an_inverse_unit_or_a_number_as_its_value() -> None:
    text = """
fsm_dyn: 1
name: m
inputs: {slow: 1/s, pace: 2 1/s, half: 1/2}
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {b: {center: P, mass: 1 kg}}
loads: [{force: -1 kg*(slow + half*pace)*vel(P), at: P}]
"""
    found = load(text=text).inputs
    assert {name: found[name].schedule is None for name in found} == {"slow": True, "pace": False, "half": False}
    assert found["slow"].unit == "1/s"
