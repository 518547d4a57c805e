"""Figures hold what they should: panels by unit, bands by mode, marks at transitions; they save and stay pure."""

import dataclasses

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

import fsm_dyn
from fsm_dyn.core.errors import InputError
from fsm_dyn.plot import style
from fsm_dyn.plot.forces import energy
from fsm_dyn.plot.timelines import phase, states
from fsm_dyn.run.run_timeline import visits_timeline
from fsm_dyn.run.trajectory import Trajectory


def test_one_panel_per_unit_under_the_strip_of_modes(block):
    picture = states(block)
    assert [axes.get_ylabel() for axes in picture.axes] == ["", "m", "m/s", "N"]


def test_lines_show_the_recorded_rows(block):
    panel = states(block).axes[2]
    line = panel.lines[0]
    t, v = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert set(block.t) <= set(t)
    assert np.allclose(v[np.searchsorted(t, 0.25)], 1.5, atol=5e-3)


def test_bands_cover_the_run_once(block):
    strip = states(block).axes[0]
    pieces = [path.vertices for band in strip.collections for path in band.get_paths()]
    lengths = sum(np.ptp(vertices[:, 0]) for vertices in pieces)
    assert lengths == pytest.approx(2.0)


def test_transitions_are_listed_with_their_causes(block):
    texts = [text.get_text() for text in states(block).texts]
    assert "sliding → sticking" in texts
    assert "floor sticks (slip velocity zero)" in texts


def test_of_many_transitions_the_first_are_listed_and_the_rest_counted(block):
    many = tuple(dataclasses.replace(block.transitions[0], time=0.05 * i, cause="a" * 100) for i in range(39))
    figure = states(Trajectory(block.model, dataclasses.replace(block.record, read_transitions=lambda: many)))
    texts = [text.get_text() for text in figure.texts]
    assert any(text.startswith("and ") and text.endswith(" more") for text in texts)
    assert any(text.startswith("aaa") and len(text) < 100 for text in texts), "a cause that does not fit is shortened"
    assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in figure.texts)


def test_columns_are_chosen_by_name_and_a_wrong_name_is_refused(block):
    picture = states(block, columns=["lambda.floor.tangent", "x"])
    assert len(picture.axes) == 3
    with pytest.raises(InputError, match="no column"):
        states(block, columns=["y"])


@pytest.mark.parametrize("suffix", style.FORMATS)
def test_the_same_run_writes_the_same_file(block, tmp_path, suffix):
    before = matplotlib.rcParams["font.size"]
    first, second = (style.save(states(block), tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
    assert first == second
    assert matplotlib.rcParams["font.size"] == before


def test_an_unknown_format_is_refused(block, tmp_path):
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        style.save(states(block), tmp_path / "a.gif")


def test_the_meaning_of_a_coordinate_follows_its_name():
    graph = fsm_dyn.compile(
        {
            "fsm_dyn": 1, "name": "sled", "points": {"P": {"from": "O", "at": "q1*N.x + q2*N.y"}},
            "coordinates": {"q1": {"unit": "m", "meaning": "along the slope of the hill"}, "q2": "m"},
            "bodies": {"sled": {"center": "P", "mass": "1 kg"}},
        }
    )  # fmt: skip
    run = fsm_dyn.simulate(graph, until=0.1)
    words = [text.get_text() for text in states(run, ["q1", "q2"]).axes[1].get_legend().get_texts()]
    assert words[0].startswith("q1: along")
    assert words[0].endswith("…")  # no wider than there is room
    assert words[1] == "q2"
    assert run.to_xarray()["q1"].attrs["long_name"] == "coordinate q1 (along the slope of the hill)"
    assert run.to_xarray()["q2"].attrs["long_name"] == "coordinate q2"


@pytest.fixture(scope="module")
def dropped():
    """A ball with phases: it falls, rises, and stops at its second impact."""
    return fsm_dyn.simulate(fsm_dyn.compile({
        "fsm_dyn": 1, "name": "ball", "coordinates": ["y"], "points": {"P": {"from": "O", "at": "y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": 1}}, "contacts": {"ground": {"gap": "y", "restitution": 0.5}},
        "loads": [{"gravity": "-9.81*N.y"}], "initial": {"y": 1},
        "phases": {"drop": {"when": "y_dot < 0"}, "rise": {"when": "otherwise"}},
    }), until=0.9)  # fmt: skip


def test_bands_headings_and_lists_are_of_phases(dropped):
    for figure in (states(dropped), energy(dropped), phase(dropped)):
        texts = {text.get_text() for text in figure.findobj(Text)}
        assert {"drop", "rise"} <= texts
        assert not any("all_free" in text for text in texts)
    assert "drop → rise" in {text.get_text() for text in states(dropped).texts}


def test_a_time_at_the_end_of_a_band_has_both_names(dropped):
    timeline = visits_timeline(dropped.reading)
    first = timeline.bands[0][1]
    assert timeline.names_at([first], after=False) + timeline.names_at([first]) == ["drop", "rise"]
