"""Modes as Modelica: a compiler of Modelica has the accelerations and guards of our kernels."""

import re

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.exports.description_languages import identifier, modelica, unit_text
from fsm_dyn.exports.export import prepared
from fsm_dyn.run.run_options import RunOptions

#: Models whose modes have friction, conditions, square roots, dependent speeds, inputs.
MODELS = ("latch", "cart_on_ramp", "four_bar", "double_pendulum_with_stop", "magnetic_latch", "stick_slip_belt")
#: Equations that pymoca parses and does not compile.
WHEN = re.compile(r"^  when .*?^  end when;\n", re.MULTILINE | re.DOTALL)


def test_names_and_units_are_those_of_modelica():
    assert [identifier(name) for name in ("q", "time", "q[1]", "a'b")] == ["q", "'time'", "'q[1]'", r"'a\'b'"]
    assert unit_text("kg*m^2/(s*A)") == "kg.m2/(s.A)"


def test_a_mode_is_written_with_its_events(tmp_path):
    graph = fsm_dyn.compile("latch")
    path = fsm_dyn.export(graph, tmp_path / "latch.mo", "modelica", mode="riding", parameters={"k_door": 61.0})
    text = path.read_text()
    assert "Mode riding;" in text
    assert 'parameter Real k_door(unit="N/m") = 61.0;' in text
    assert 'terminate("ramp opens");' in text
    assert text.rstrip().endswith("end latch;")
    declared = set(re.findall(r"Real ('[^']*'|\w+)", text))
    assert {name for line in re.findall(r"= (.*);", text) for name in re.findall(r"\bz\d+\b", line)} <= declared
    for mode, target, words in (("rising", "modelica", "no exported mode 'rising'"), ("free", "c99", "one mode alone")):
        with pytest.raises(InputError, match=words):
            fsm_dyn.export(graph, tmp_path / "other", target, mode=mode)
    assert not (tmp_path / "other").exists()


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_a_compiler_of_modelica_has_the_same_rates(name, tmp_path):
    """Of every exported mode at random states, by the residual that pymoca makes of the text."""
    import casadi
    import pymoca.parser
    from pymoca.backends.casadi.api import transfer_model

    casadi.MX.__div__ = casadi.MX.__truediv__  # pymoca asks for the name of Python 2
    graph = fsm_dyn.compile(name)
    run, rng = prepared(graph, RunOptions()), np.random.default_rng(5)
    for number, mode in enumerate(run.names["mode"][:4]):
        folder = tmp_path / str(number)
        folder.mkdir()
        whole = modelica(run, mode).decode()
        assert run.prefix in pymoca.parser.parse(whole).classes
        text = WHEN.sub("", whole).replace("noEvent(", "(")  # which pymoca does not know
        (folder / f"{run.prefix}.mo").write_text(text)
        order = re.findall(r"^  (der\(.*?\)|'[^']*'|\w+) = ", text, re.MULTILINE)
        model = transfer_model(str(folder), run.prefix, {"cache": False})
        full = run.programs[number][1]
        for _ in range(3):
            x = run.x + rng.uniform(-0.05, 0.05, len(run.x))
            values = dict(zip(full.layout.arguments[1:], [*x, *run.c], strict=True))
            found = solved(model, {identifier(k): v for k, v in values.items()}, order, casadi)
            expected = full.evaluate(0.0, x, run.c)
            rates = [found[f"der({identifier(state)})"] for state in run.names["state"]]
            np.testing.assert_allclose(rates, expected["x_dot"].ravel(), rtol=1e-9, atol=1e-9)
            guards = [value for key, value in found.items() if key.startswith("'guard.")]
            np.testing.assert_allclose(sorted(guards), sorted(expected["guards"].ravel()), rtol=1e-9, atol=1e-9)


def solved(model, values, order, casadi):
    """Return the unknowns of a model in the order of their equations, which are explicit."""
    symbols = {v.symbol.name(): v.symbol for v in (*model.der_states, *model.alg_states)}
    assert sorted(symbols) == sorted(order)
    unknowns = [symbols[name] for name in order]
    known = [v.symbol for v in (*model.states, *model.inputs, *model.parameters)]
    arguments = [casadi.vertcat(*unknowns), casadi.vertcat(*known), model.time]
    residual = casadi.Function("r", arguments, [casadi.vertcat(*model.equations)])
    numbers, found = [values[symbol.name()] for symbol in known], casadi.DM.ones(len(unknowns))
    for k in range(len(order)):  # each follows from those before
        found[k] -= residual(found, numbers, 0.0)[k]
    return dict(zip(order, found.full().ravel().tolist(), strict=True))
