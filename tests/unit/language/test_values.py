"""Parameters as numbers."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from fsm_dyn.core.errors import ExpressionError, InputError, Location
from fsm_dyn.language import values
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.language.expression_tree import Text
from fsm_dyn.language.model import Mechanism

Load = Callable[..., Mechanism]


@pytest.fixture
def model(block: Load) -> Mechanism:
    return block(parameters={"m": "2 kg", "r": "10 cm", "J": "m*r**2/2", "lip": ["10 mm", "2*r"], "angle": "30 deg"})


def test_values_are_si_and_in_order(model: Mechanism) -> None:
    found = values.parameter_values(model)
    assert list(found) == ["m", "r", "J", "lip", "angle"]
    assert found == {
        "m": 2.0,
        "r": 0.1,
        "J": pytest.approx(0.01),
        "lip": (0.01, 0.2),
        "angle": pytest.approx(math.pi / 6),
    }


def test_overrides_are_followed_by_what_depends_on_them(model: Mechanism) -> None:
    found = values.parameter_values(model, {"r": 0.2, "m": "500 g"})
    assert found["J"] == pytest.approx(0.5 * 0.04 / 2)
    assert found["lip"] == (0.01, 0.4)
    assert values.parameter_values(model, {"J": 7, "lip": (1, "3 mm")})["lip"] == (1.0, 0.003)


def test_flat(model: Mechanism) -> None:
    assert values.flat_parameters(model) == ["m", "r", "J", "lip[0]", "lip[1]", "angle"]
    assert list(values.flat_values(model)) == values.flat_parameters(model)
    assert values.flat_values(model, {"lip": [1.0, 2.0]})["lip[1]"] == 2.0


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"mm": 1.0}, "no parameter 'mm'"),
        ({"angel": 1.0}, "did you mean 'angle'?"),
        ({"m": "2 m"}, "the wrong unit"),
        ({"m": "2 kg + 1 m"}, "units do not match"),
        ({"m": "r"}, "unknown name 'r'"),
        ({"m": "2 +"}, "not an expression"),
        ({"m": math.nan}, "a finite number"),
        ({"m": math.inf}, "a finite number"),
        ({"m": None}, "a finite number"),
        ({"m": [1.0]}, "wants one value"),
        ({"m": "1/0"}, ""),
        ({"lip": 1.0}, "wants 2 values"),
        ({"lip": [1.0, 2.0, 3.0]}, "wants 2 values"),
        ({"lip": [1.0, "1 kg"]}, "the wrong unit"),
    ],
)
def test_refused(model: Mechanism, overrides: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        values.parameter_values(model, overrides)
    assert says in str(caught.value)


def test_an_override_may_make_a_dependent_one_impossible(block: Load) -> None:
    model = block(parameters={"m": "2 kg", "r": "1 m", "a": "1 kg/m"})
    with pytest.raises(InputError, match="parameter 'a'"):
        values.parameter_values(block(parameters={"m": "2 kg", "r": "1 m", "a": "m/r"}), {"r": 0.0})
    assert values.parameter_values(model, {"r": 0.0})["r"] == 0.0


def test_evaluate() -> None:
    assert evaluate_expression("2*a + lip[1]", {"a": 3.0, "lip": (1.0, 2.0)}) == 8.0
    with pytest.raises(ExpressionError) as caught:
        evaluate_expression(Text("b", Location("model.yaml", 3, 4)), {"a": 1.0})
    assert str(caught.value).startswith("model.yaml:3:4: unknown name 'b'")
    with pytest.raises(ExpressionError, match="not a finite number"):
        evaluate_expression("1/0", {})


def test_numpy_numbers(model: Mechanism) -> None:
    numpy = pytest.importorskip("numpy")
    assert values.parameter_values(model, {"m": numpy.float64(3), "r": numpy.int64(1)})["J"] == 1.5
