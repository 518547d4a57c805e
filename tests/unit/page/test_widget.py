"""The widget of notebooks runs again when a value changes, and reports values without a run."""

import pytest

import fsm_dyn
from fsm_dyn.core import errors
from fsm_dyn.core.errors import InputError
from fsm_dyn.page import report as module
from fsm_dyn.page.report import RunWidget


@pytest.fixture(scope="module")
def ball():
    return fsm_dyn.compile("bouncing_ball")


def test_a_changed_value_runs_again_with_the_first_run_behind_it(ball):
    pytest.importorskip("anywidget")
    shown = RunWidget(ball, until=1.0, sliders=("e",))
    (slider,) = shown.widget.sliders
    assert (slider["name"], slider["value"]) == ("e", 0.8)
    assert slider["low"] <= slider["value"] <= slider["high"]
    first = shown.widget.page
    shown.set(e=0.3)
    again = fsm_dyn.simulate(ball, 1.0, parameters={"e": 0.3})
    assert [item.time for item in shown.run.transitions] == [item.time for item in again.transitions]
    assert shown.widget.page != first
    assert "ghost" in shown.widget.page
    with pytest.raises(InputError, match="no free parameter 'nothing'"):
        shown.set(nothing=1.0)
    with pytest.raises(InputError, match="no free parameter 'f'"):
        RunWidget(ball, until=1.0, sliders=("f",))
    shown.widget.values = {"m": -1.0}  # as a slider may
    assert "m" in shown.widget.error
    assert [item.time for item in shown.run.transitions] == [item.time for item in again.transitions]


def test_without_the_extra_the_error_names_it(ball, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(errors.importlib, "import_module", missing)
    with pytest.raises(InputError, match=r"fsm-dyn\[notebook\]"):
        module._widget_class()
