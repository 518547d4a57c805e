"""No texts of the figures overlap, in runs with many transitions, long names and many modes."""

import importlib
from pathlib import Path

import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.language import models
from fsm_dyn.plot import style
from tests.docs.overlaps import overlaps

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "cookbook"
SHIPPED = {
    "bouncing_ball": {},
    "cart_on_ramp": {"until": 1.9},
    "cam_flat_follower": {},
    "geneva_drive": {"until": 1.0},
    "gripper": {"until": 2.5},
    "ratchet": {"until": 2.5},
    "shopping_cart": {},
}
FIGURES = ("states", "motion", "modes", "energy", "film_strip")


@pytest.mark.parametrize("name", SHIPPED)
def test_no_texts_of_a_model_overlap(name):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), **SHIPPED[name])
    assert {kind: overlaps(getattr(plot, kind)(run)) for kind in FIGURES} == {kind: [] for kind in FIGURES}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(models.names()) - set(SHIPPED)))
def test_no_texts_of_any_shipped_model_overlap(name):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), until=2.0)
    assert {kind: overlaps(getattr(plot, kind)(run)) for kind in FIGURES} == {kind: [] for kind in FIGURES}


@pytest.mark.parametrize("name", ["ball_point_pen", "ratchet_teeth", "stack_of_boxes"])
def test_no_texts_of_the_cookbook_overlap(name):
    until, columns = importlib.import_module("mechanisms.cookbook").SHOWN[name]
    run = fsm_dyn.simulate(fsm_dyn.compile(RECIPES / f"{name}.yaml"), until=until)
    assert overlaps(plot.states(run, columns)) == [], name
    assert overlaps(plot.modes(run)) == [], name


def test_weights_of_the_escapements_stay_inside_the_frame(monkeypatch):
    escapements = importlib.import_module("mechanisms.escapements")
    amplitudes = {"escapement_anchor": (4.5, 8.0), "escapement_deadbeat": (5.9, 9.2)}  # degrees, as the cycles have

    def rates(name):
        low, high = amplitudes[name]
        swings = [(low + (high - low) * i / 5) * 0.01745 for i in range(6)]
        return swings, [1.0 / (1.0 + (0.003 * swing if name.endswith("anchor") else 0.0)) for swing in swings]

    monkeypatch.setattr(escapements, "rates", rates)
    figure = escapements.figure()
    assert overlaps(figure) == []
    axes = figure.axes[0]
    frame = axes.get_window_extent()
    for text in axes.texts:
        box = text.get_window_extent()
        assert frame.y0 < box.y0 < box.y1 < frame.y1


def test_what_overlaps_is_found():
    figure = style.new_figure(6.0, 4.0)
    figure.text(0.5, 0.5, "one text")
    figure.text(0.52, 0.5, "another")
    figure.text(0.99, 0.2, "too long for the figure")
    assert overlaps(figure) == ["'one text' overlaps 'another'", "'too long for the figure' is cut off"]
