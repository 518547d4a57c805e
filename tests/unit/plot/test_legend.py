"""Names of modes have the room there is; what has none is counted."""

import re

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.automaton.mode_graph import graph_svg
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style
from fsm_dyn.plot.scene_projection import representative_times
from fsm_dyn.plot.style import mode_legend

LONG = {f"capstan_slide+lever_knuckle_stick+number_{i}": float(i) for i in range(9)}


FEW = {"all_free": 3.0, "pushes: roller on ahead (copy 2), closed": 1.0}


@pytest.mark.parametrize("weights", [LONG, {"rest": 1.0, "moving": 2.0}, FEW])
def test_the_line_is_kept_and_what_weighs_most_is_named(weights):
    with style.settings():
        picture = style.new_figure(8.0, 1.0)
        mode_legend(picture, weights, palette.mode_colours(list(weights)), 1.0, 7.9, 0.5)
        picture.draw_without_rendering()
        box = picture.legends[0].get_window_extent().transformed(picture.dpi_scale_trans.inverted())
    assert 1.0 <= box.x0 < box.x1 <= 7.9
    texts = [text.get_text() for text in picture.legends[0].get_texts()]
    if weights is LONG:
        assert texts[-1] == f"and {9 - len(texts) + 1} more"
        assert all("…" in text for text in texts[:-1])
        assert len({*texts}) == len(texts)
    else:
        assert texts == list(weights), "in full, where there is room"


def test_no_text_of_a_run_with_many_modes_leaves_the_picture():
    run = fsm_dyn.simulate(fsm_dyn.compile("box_on_table"), 3.0)
    for figure in (plot.states(run), plot.motion(run), plot.forces(run)):
        figure.draw_without_rendering()
        inside = figure.bbox
        for text in [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]:
            box = text.get_window_extent()
            assert inside.x0 <= box.x0, text
            assert box.x1 <= inside.x1, text


def test_most_instants_of_a_strip_lie_where_most_moves():
    """The box stands for two of three seconds."""
    run = fsm_dyn.simulate(fsm_dyn.compile("box_on_table"), 3.0)
    times = representative_times(run, run.model.scene, 9)
    assert (times[0], times[-1]) == (0.0, 3.0)
    assert (np.diff(times) > 0.0).all()
    assert np.count_nonzero(times > 2.2) >= 6


def test_names_that_are_cut_keep_what_differs():
    from fsm_dyn.draw.graph_layout import distinct_labels

    stem = "a very long name of a mode in which many contacts stick or slide and others roll, "
    end = "closed, and the end of it is long too"
    names = [f"{stem}left_stop {end}", f"{stem}right_stop {end}", "short"]
    labels = distinct_labels(names, 32)
    assert len({*labels.values()}) == 3
    assert all(len(label) <= 32 for label in labels.values())
    assert "left" in labels[names[0]]
    assert "right" in labels[names[1]]
    assert labels["short"] == "short"


def test_names_at_random_stay_apart_within_their_length():
    from fsm_dyn.draw.graph_layout import distinct_labels

    rng = np.random.default_rng(5)
    parts = ["touch_face1", "corner 2 of ", "slot (copy 3) ", "stick", ", closed", "+", "; out "]
    for _ in range(2000):
        stem = "".join(rng.choice(parts, int(rng.integers(2, 20))))
        names = {stem}
        for _ in range(int(rng.integers(1, 8))):
            letters = [*stem]
            for _ in range(int(rng.integers(1, 4))):
                letters[rng.integers(len(letters))] = str(rng.choice([*"123xyz "]))
            names.add("".join(letters))
        longest = int(rng.choice([24, 32, 44, 60]))
        labels = distinct_labels(sorted(names), longest)
        flat = {" ".join(name.split()) for name in names}
        assert len({*labels.values()}) >= len(flat)
        assert max(map(len, labels.values())) <= longest


@pytest.mark.parametrize("name", ["latch_door", "gripper"])
def test_boxes_of_a_graph_have_different_titles(name):
    """Modes of many contacts, whose labels differ in the middle alone."""
    simulator = fsm_dyn.Simulator(fsm_dyn.compile(name))
    simulator.run(1.0, strategy="compiled")
    titles = re.findall(r'font-weight="bold">([^<]*)<', graph_svg(simulator.extended_graph().automaton, ""))
    assert len(titles) > 3
    assert len({*titles}) == len(titles)


def test_no_two_modes_share_a_colour():
    from fsm_dyn.draw.svg import AREAS, mode_colours

    names = [f"mode {i}" for i in range(400)]
    colours = mode_colours(names)
    assert len({*colours.values()}) == 400
    assert [colours[name] for name in names[: len(AREAS)]] == list(AREAS)
    assert mode_colours(names[:100]) == {name: colours[name] for name in names[:100]}
