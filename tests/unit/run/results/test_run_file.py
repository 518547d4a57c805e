"""Runs as files: they read back as written, and inconsistent ones are refused."""

import json

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError


@pytest.fixture(scope="module")
def cart():
    return fsm_dyn.simulate(fsm_dyn.compile("shopping_cart"), 4.0, parameters={"mB": 22.0})


@pytest.fixture(scope="module")
def path(cart, tmp_path_factory):
    return cart.save(tmp_path_factory.mktemp("runs") / "cart.run.json")


def test_a_saved_run_reads_back_exactly(cart, path):
    again = fsm_dyn.open_run(path)
    for name in ("t", "q", "u", "modes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(cart, name))
    for name, values in cart.multipliers.items():
        np.testing.assert_allclose(again.multipliers[name], values, rtol=1e-9, atol=1e-9)
    assert [str(item) for item in again.transitions] == [str(item) for item in cart.transitions]
    assert [item.selection for item in again.transitions] == [item.selection for item in cart.transitions]
    assert again.outcome == cart.outcome
    assert again.model.parameters[0] == 22.0


def test_between_the_rows_it_is_the_same_too(cart, path):
    """The schedule of the cart is made of lines and steps, which cubics through values and rates meet exactly."""
    again = fsm_dyn.open_run(path)
    times = np.linspace(0.0, 4.0, 1001)
    np.testing.assert_array_equal(again.sample(times).x, cart.sample(times).x)
    for name, values in cart.sample(times).inputs.items():
        np.testing.assert_allclose(again.sample(times).inputs[name], values, atol=1e-9)
    assert again.energy.relative_residual == pytest.approx(cart.energy.relative_residual, abs=1e-9)


def test_a_run_that_failed_can_be_saved(tmp_path):
    graph = fsm_dyn.compile("sliding_rod")
    failed = fsm_dyn.simulate(graph, 5.0, max_steps=20, on_failure="return")
    assert failed.outcome.failed
    again = fsm_dyn.open_run(failed.save(tmp_path / "rod.run.json"))
    assert again.outcome == failed.outcome
    assert len(again) == len(failed)


def altered(path, tmp_path, **changes):
    data = json.loads(path.read_text())
    data.update(changes)
    other = tmp_path / "other.run.json"
    other.write_text(json.dumps(data))
    return other


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "fsm_dyn run 0"},
        {"x": [[1.0]]},
        {"t": [0.0, "soon"]},
        {"mode": [99999]},
        {"modes": [[7]]},
        {"outcome": 4711},
        {"parameters": []},
        {"transitions": [{}]},
        {"text": "fsm_dyn: 1"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_inconsistent_is_refused(path, tmp_path, changes):
    with pytest.raises(InputError):
        fsm_dyn.open_run(altered(path, tmp_path, **changes))


def test_what_is_no_run_is_refused(tmp_path):
    other = tmp_path / "other.json"
    for text in ("", "[]", "{}", "[" * 100_000):
        other.write_text(text)
        with pytest.raises(InputError, match="not a saved run"):
            fsm_dyn.open_run(other)
    with pytest.raises(InputError, match="no such file"):
        fsm_dyn.open_run(tmp_path / "nothing.json")
