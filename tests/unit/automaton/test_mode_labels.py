"""Labels of modes for the user: faces flat on faces, corners on faces; a handover is an event, not a change of mode."""

import itertools
import re

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn import plot
from fsm_dyn.automaton.compilation import compile as compile_mechanism
from fsm_dyn.automaton.labels import LONGEST
from fsm_dyn.automaton.mode_graph import diagram_of
from fsm_dyn.cli.run import describe as described
from fsm_dyn.draw.graph_layout import abridged
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.page.frames import mode_map
from fsm_dyn.page.playback import PlaybackFrames, from_trajectory
from fsm_dyn.plot.drawing import diagram
from fsm_dyn.run.run_timeline import timeline_of
from fsm_dyn.run.transitions import counted

SQUARE = [["-a/2", "-a/2"], ["a/2", "-a/2"], ["a/2", "a/2"], ["-a/2", "a/2"]]
TILES = {
    "t1": {"polygon": {"points": [["-2 m", "-0.5 m"], ["0 m", "-0.5 m"], ["0 m", "0 m"], ["-2 m", "0 m"]]}},
    "t2": {"polygon": {"points": [["0 m", "-0.5 m"], ["2 m", "-0.5 m"], ["2 m", "0 m"], ["0 m", "0 m"]]}},
}


def block(shapes, contacts, parameters=None, **more):
    """Return a square block on a fixed shape, as a mapping."""
    return {
        "fsm_dyn": 1,
        "name": "block",
        "summary": "A block on something fixed.",
        "parameters": {"m": "2 kg", "a": "0.2 m", "mu": "0.1", **(parameters or {})},
        "coordinates": {"x": "m", "y": "m", "q": "rad"},
        "frames": {"B": {"rotate": {"z": "q"}}},
        "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"blk": {"frame": "B", "center": "C", "mass": "m", "inertia": {"zz": "m*a**2/6"}}},
        "shapes": {"s": {"polygon": {"frame": "B", "points": SQUARE}}, **shapes},
        "contacts": contacts,
        "loads": [{"gravity": "-9.81 m/s^2*N.y"}],
        "initial": {"y": "a/2", **more},
    }


def on(*shapes, **more):
    return {f"c{i + 1}": {"between": ["s", shape], "friction": "mu", **more} for i, shape in enumerate(shapes)}


@pytest.fixture(scope="module")
def graph():
    """Return the graph of a model by its mapping; each is compiled once."""
    known = {}

    def compiled(data):
        key = repr(data)
        if key not in known:
            known[key] = compile_mechanism(fsm_dyn.load(data))
        return known[key]

    return compiled


def label(graph, **states):
    """Return the full label of the mode with these contact states, and all other contacts open."""
    codes = [contact.codes[0] for contact in graph.automaton.contacts]
    names = [contact.name for contact in graph.automaton.contacts]
    for name, state in states.items():
        at = names.index(name)
        codes[at] = graph.automaton.contacts[at].states.index(state)
    full = graph.automaton.labels.in_full(codes)
    assert graph.automaton.labels.of(codes) == full or len(full) > LONGEST >= len(graph.automaton.labels.of(codes))
    return full


NUMBERED = r"_(\d+|face\d+)(_|$)"


@pytest.mark.parametrize("name", fsm_dyn.language.models.names())
def test_no_label_of_a_single_contact_numbers_its_features(name):
    """``pushes_3_face_closed`` is the name of a mode; the label tells the touching parts."""
    automaton = fsm_dyn.compile(name).automaton
    names = {pattern.name for pattern in automaton.patterns}
    for k, contact in enumerate(automaton.contacts):
        entry = automaton.mechanism.contacts.get(contact.name)
        codes = [one.codes[0] for one in automaton.contacts]
        codes[k] = contact.codes[-1]
        found = automaton.labels.of(codes)
        generated = isinstance(entry, FeatureContact) and contact.name != entry.entry
        if generated and re.search(NUMBERED, contact.name) and found not in names:
            assert not re.search(NUMBERED, found), found
            assert " on " in found


def test_faces_and_corners(graph):
    model = graph(block({"table": TILES["t1"]}, {"mid": {"between": ["s", "table"], "friction": "mu"}}))
    flat = "mid: face1 flat on face3, stick"
    assert label(model, mid_1_face3="stick", mid_2_face3="stick") == flat
    assert label(model, mid_face1_3="stick", mid_face1_4="stick") == flat
    assert label(model, mid_face1_3="stick", mid_1_face3="stick") == flat
    assert label(model, mid_2_face3="stick", mid_3_face3="stick") == "mid: face2 flat on face3, stick"
    assert label(model, mid_1_face3="stick", mid_2_face3="slide") == "mid: face1 flat on face3, stick/slide"
    assert label(model, mid_face1_3="slide") == "mid: corner 3 on face1 of s, slide"
    assert label(model, mid_1_face3="slide") == "mid: corner 1 on face3 of table, slide"
    # corners 1 and 3 lie across the block: no face joins them
    assert label(model, mid_1_face3="slide", mid_3_face2="stick") == (
        "mid: corner 1 on face3 of table, slide; mid: corner 3 on face2 of table, stick"
    )
    assert label(model) == "all_free"
    # corners 1 and 2 on the floor, 2 and 3 on the wall
    assert label(model, mid_1_face3="slide", mid_2_face3="slide", mid_2_face2="stick", mid_3_face2="stick") == (
        "mid: face1 flat on face3, slide; mid: face2 flat on face2, stick"
    )


def test_single_pairs_never_share_a_label(graph):
    """Two convex polygons: the labels of single contacts tell all of them apart, and so do those of flat faces."""
    model = graph(block({"table": TILES["t1"]}, {"mid": {"between": ["s", "table"], "friction": "mu"}}))
    names = [contact.name for contact in model.automaton.contacts]
    assert len({label(model, **{name: "slide"}) for name in names}) == len(names) == 32
    flat = {
        label(model, **{f"mid_{i}_face{j}": "slide", f"mid_{i % 4 + 1}_face{j}": "slide"})
        for i, j in itertools.product(range(1, 5), repeat=2)
    }
    assert len(flat) == 16
    assert all(" flat on " in text for text in flat)


def test_segments_lines_and_points(graph):
    shapes = {
        "table": {"segment": {"points": [["-a/2", 0], ["a/2", 0]]}, "side": "N.y"},
        "ground": {"line": {"along": "N.x"}, "side": "N.y"},
    }
    contacts = {
        "mid": {"between": ["table", "s"], "friction": "mu"},
        "foot": {"between": ["s", "ground"], "friction": "mu"},
        "middle": {"point": "C", "on": "ground"},
    }
    model = graph(block(shapes, contacts))
    flat = "mid: face1 flat on table, slide"
    assert label(model, mid_face_1="slide", mid_face_2="slide") == flat
    assert label(model, mid_start_face1="slide", mid_end_face1="slide") == flat
    assert label(model, mid_end_face1="slide", mid_face_1="slide") == flat
    assert label(model, mid_end_face1="slide") == "mid: end of table on face1, slide"
    assert label(model, mid_start_face1="slide") == "mid: start of table on face1, slide"
    assert label(model, mid_face_3="slide") == "mid: corner 3 on table, slide"
    assert label(model, foot_3="stick", foot_4="stick") == "foot: face3 flat on ground, stick"
    assert label(model, foot_4="stick", middle="closed") == "foot: corner 4 on ground, stick; middle_closed"
    assert label(model, middle="closed") == "middle_closed"  # of one pair: its name says all


def test_arcs(graph):
    """Two corners in a hollow do not lie flat; an arc's ends are corners."""
    shapes = {"hollow": {"arc": {"radius": "1 m", "angles": ["180 deg", "360 deg"]}, "side": "inside"}}
    model = graph(block(shapes, {"c": {"between": ["s", "hollow"], "friction": "mu"}}))
    assert label(model, c_1_face="slide", c_2_face="slide") == (
        "c: corner 1 on hollow, slide; c: corner 2 on hollow, slide"
    )
    assert label(model, c_face1_start="slide") == "c: start of hollow on face1, slide"


def test_copies(graph):
    pegs = {"pegs": {**TILES["t2"], "repeat": {"count": 3, "about": "O"}}}
    model = graph(block(pegs, {"c": {"between": ["s", "pegs"], "friction": "mu"}}))
    assert label(model, c_1_2_face3="slide") == "c: corner 1 on face3 (copy 2) of pegs, slide"
    assert label(model, c_face1_3_4="slide") == "c: corner 4 (copy 3) on face1 of s, slide"
    assert label(model, c_1_2_face3="slide", c_2_2_face3="slide") == "c: face1 flat on face3 (copy 2), slide"
    # faces of two copies are two faces
    assert "flat" not in label(model, c_1_2_face3="slide", c_2_3_face3="slide")


def test_named_patterns_stay(graph):
    data = block({"ground": {"line": {"along": "N.x"}, "side": "N.y"}}, on("ground"))
    data["modes"] = {"standing": {"c1_1": "stick", "c1_2": "stick"}, "left": {"c1_1": "stick"}}
    model = graph(data)
    assert label(model, c1_1="stick", c1_2="stick") == "standing"
    assert label(model, c1_1="stick", c1_3="slide") == "left; c1: corner 3 on ground, slide"


def test_tiles_that_continue_each_other_are_one_surface(graph):
    model = graph(block(TILES, on("t1", "t2")))
    flat = "c1/c2: face1 flat on t1/t2, slide"
    assert label(model, c1_1_face3="slide", c1_2_face3="slide") == flat
    assert label(model, c1_1_face3="slide", c2_2_face3="slide") == flat
    assert label(model, c2_1_face3="slide", c2_2_face3="slide") == flat
    one = "c1/c2: corner 2 on t1/t2, slide"
    assert label(model, c1_2_face3="slide") == label(model, c2_2_face3="slide") == one
    assert label(model, c1_2_face3="slide", c2_2_face3="slide") == one  # at the seam itself
    # the two corners in the seam are one place
    assert label(model, c1_face1_3="slide") == label(model, c2_face1_4="slide")
    # opposite sides in the seam, and other faces, do not continue each other
    assert label(model, c1_2_face2="slide") == "c1: corner 2 on face2 of t1, slide"


@pytest.mark.parametrize(
    ("second", "more"),
    [
        ([["0 m", "-0.5 m"], ["2 m", "-0.5 m"], ["2 m", "1e-8 m"], ["0 m", "1e-8 m"]], {}),  # a step
        ([["0 m", "-0.5 m"], ["2 m", "-0.5 m"], ["2 m", "0.1 m"], ["0 m", "0 m"]], {}),  # a slope
        ([["1 mm", "-0.5 m"], ["2 m", "-0.5 m"], ["2 m", "0 m"], ["1 mm", "0 m"]], {}),  # a gap
        (TILES["t2"]["polygon"]["points"], {"friction": "2*mu"}),  # other laws
    ],
)
def test_what_is_not_one_surface(graph, second, more):
    contacts = on("t1", "t2")
    contacts["c2"] |= more
    model = graph(block({"t1": TILES["t1"], "t2": {"polygon": {"points": second}}}, contacts))
    assert label(model, c1_2_face3="slide") == "c1: corner 2 on face3 of t1, slide"
    assert label(model, c2_2_face3="slide") == "c2: corner 2 on face3 of t2, slide"


def test_faces_of_one_polygon_that_continue_each_other(graph):
    split = [["-2 m", "-1 m"], ["2 m", "-1 m"], ["2 m", "0 m"], ["0 m", "0 m"], ["-2 m", "0 m"]]
    model = graph(
        block({"table": {"polygon": {"points": split}}}, {"mid": {"between": ["s", "table"], "friction": "mu"}})
    )
    text = "mid: face1 flat on face3/face4, slide"
    assert label(model, mid_1_face4="slide", mid_2_face4="slide") == text
    assert label(model, mid_1_face4="slide", mid_2_face3="slide") == text
    assert label(model, mid_1_face4="slide") == "mid: corner 1 on face3/face4 of table, slide"


@pytest.mark.parametrize("turned", [False, True])
def test_segments_of_either_sense_continue_each_other(graph, turned):
    ends = [["0 m", "0 m"], ["2 m", "0 m"]]
    shapes = {
        "t1": {"segment": {"points": [["-2 m", "0 m"], ["0 m", "0 m"]]}, "side": "N.y"},
        "t2": {"segment": {"points": ends[::-1] if turned else ends}, "side": "N.y"},
    }
    model = graph(block(shapes, on("t1", "t2")))
    assert label(model, c1_1_face="slide", c2_2_face="slide") == "c1/c2: face1 flat on t1/t2, slide"
    at_seam = "end" if turned else "start"
    assert label(model, **{f"c2_face1_{at_seam}": "slide"}) == "c1/c2: end of t1 on face1, slide"


def test_labels_do_not_depend_on_how_polygons_are_written(graph):
    """Corners in the other sense and entries the other way round: faces and corners are renumbered, seams stay."""
    shapes = {name: {"polygon": {"points": shape["polygon"]["points"][::-1]}} for name, shape in TILES.items()}
    contacts = {"c1": {"between": ["t1", "s"], "friction": "mu"}, "c2": {"between": ["s", "t2"], "friction": "mu"}}
    model = graph(block(shapes, contacts))
    # of the tiles, points 1 and 2 are now those of the top
    flat = {label(model, c1_face1_1="slide", c1_face1_2="slide"), label(model, c1_face1_1="slide", c2_2_face1="slide")}
    assert flat == {"c1/c2: t1/t2 flat on face1, slide"}


TABLES = {
    "polygon": {"polygon": {"points": [["-a/2", "-a"], ["a/2", "-a"], ["a/2", "0 m"], ["-a/2", "0 m"]]}},
    "segment": {"segment": {"points": [["-a/2", 0], ["a/2", 0]]}, "side": "N.y"},
}


@pytest.mark.parametrize(
    ("kind", "face", "corner"),
    [("polygon", "face3", "corner 3 on face1 of s"), ("segment", "table", "end of table on face1")],
)
def test_corners_that_coincide_swap_unseen(graph, kind, face, corner):
    """A block on one of its own width is pushed until it slides; corners at one place share a label."""
    data = block({"table": TABLES[kind]}, {"mid": {"between": ["s", "table"], "friction": "0.3"}})
    data |= {"inputs": {"push": "N"}, "schedule": {"push": {"linear": [["0 s", "0 N"], ["3 s", "30 N"]]}}}
    data["loads"].append({"force": "push*N.x", "at": "C"})
    model = graph(data)
    run = fsm_dyn.simulate(model, 1.1)
    states = [f"mid: face1 flat on {face}, stick", f"mid: face1 flat on {face}, slide", f"mid: {corner}, slide"]
    assert list(dict.fromkeys(run.labels)) == states
    slides, tips = run.transitions
    assert not slides.is_handover  # though corners swap in this instant
    assert [slides.time, tips.time] == pytest.approx([0.5886, 1.026552], abs=1e-6)
    assert len({*run.modes}) == 3
    assert "passes on to" in slides.cause
    assert "passes on" not in tips.cause
    # the label is the same for any of the coincident corners
    automaton = model.automaton
    names = [contact.name for contact in automaton.contacts]
    states = {name: chart.states for name, chart in zip(run.model.modes, run.model.charts, strict=True)}
    [(old, new)] = automaton.labels.handed_over(states[slides.source], states[slides.target])
    assert {names[old], names[new]}.isdisjoint(slides.impulse)
    assert f"{names[old]} passes on to {names[new]}" in slides.cause


@pytest.fixture(scope="module")
def run(graph):
    """Return a run of a block sliding over the seam of two tiles."""
    return fsm_dyn.simulate(graph(block(TILES, on("t1", "t2"), x="-0.5 m", x_dot="2 m/s")), 1.0)


def test_a_handover_is_an_event_and_no_change_of_mode(run):
    assert len(run.transitions) >= 2
    assert all(item.is_handover and not item.impulse for item in run.transitions)
    assert len(set(run.modes)) >= 3  # the names for the API tell them apart
    assert set(run.labels) == {"c1/c2: face1 flat on t1/t2, slide"}
    first, *_, last = run.transitions
    # closed form: the corner in front has 0.4 m to go, the one behind 0.6 m, slowed by friction
    ways = np.array([0.4, 0.6])
    assert [first.time, last.time] == pytest.approx((2.0 - np.sqrt(4.0 - 2.0 * 0.981 * ways)) / 0.981, abs=1e-9)
    assert all("passes on" in item.cause and " opens" not in item.cause for item in run.transitions)
    assert last.cause == "corner 1 of s passes on from face3 of t1 to face3 of t2"
    assert str(first) == f"{first.time:.6f} s  c1/c2: face1 flat on t1/t2, slide  {first.cause}"
    assert counted(run.transitions) == f"0 transitions, {len(run.transitions)} handovers"
    assert counted(run.transitions) in repr(run)
    assert described(run, None).count("(handover)") == run._repr_html_().count("(handover)") == len(run.transitions)


def test_a_handover_as_it_is_explained(run):
    found = run.explain(run.transitions[0].time)
    text = str(found)
    assert "c1/c2: face1 flat on t1/t2, slide\n" in text.splitlines(keepends=True)[0]
    assert "a handover" in text
    assert "passes on" in text
    assert found.as_data()["preceding_transitions"][0]["handover"]
    assert found.mode == run.transitions[0].target  # the name stays in the data


def test_a_handover_ends_no_band(run, graph):
    assert timeline_of(run.model, run.record).spans == {"c1/c2: face1 flat on t1/t2, slide": [(0.0, 1.0)]}
    texts = [text.get_text() for text in plot.modes(run).texts]
    assert any(counted(run.transitions) in text for text in texts)
    assert "passes on" in " ".join(text.get_text() for text in plot.states(run).texts)
    assert run._repr_html_().count("<title>c1/c2: face1 flat on t1/t2, slide") == 1


def test_long_labels_keep_their_ends():
    text = "foot: face1 flat on ground, stick"
    assert abridged(text, 40) == text
    assert abridged(text, 21) == "foot: face1 f…, stick", "what comes first tells contacts apart"
    assert len(abridged(text, 20)) == 20
    assert abridged("a_name_without_parts", 10) == "a_nam…arts"


def test_modes_of_one_label_are_one_box(run, graph):
    model = fsm_dyn.Simulator(graph(block(TILES, on("t1", "t2"), x="-0.5 m", x_dot="2 m/s"))).extended_graph(run)
    text = "c1/c2: face1 flat on t1/t2, slide"
    assert len(model.modes) == len(set(run.modes)) > 1  # those of the run
    for found in (diagram_of(model.automaton, model.initial), diagram(model.nx, trajectory=run)):
        assert [box.title for box in found.boxes if not box.dashed] == [text]
        assert found.boxes[0].initial
        derived = {box.key for box in found.boxes if not box.dashed}
        assert all(arrow.source == arrow.target for arrow in found.arrows if {arrow.source, arrow.target} <= derived)
    assert diagram(model.nx, trajectory=run).boxes[0].lines[-1] == "1× · 1 s"
    page = mode_map(model.automaton, model.initial)
    assert [(mode["name"], mode["initial"]) for mode in page["modes"]] == [(text, True)]


def test_a_handover_on_the_page(run):
    playback = PlaybackFrames(from_trajectory(run))
    payload = playback.payload()
    assert [mode["name"] for mode in payload["graph"]["modes"]] == ["c1/c2: face1 flat on t1/t2, slide"]
    assert payload["totals"]["visits"] == {}
    assert payload["totals"]["transitions"] == len(run.transitions)
    assert payload["totals"]["seconds"] == {"c1/c2: face1 flat on t1/t2, slide": pytest.approx(1.0)}
    words = playback.transition_details(0)
    assert len(words) == len(run.transitions)
    assert all(item["handover"] for item in words)
    assert words[0]["cause"] == "blk slides off t1"


def test_labels_of_a_saved_run(run, tmp_path):
    again = fsm_dyn.open_run(run.save(tmp_path / "block.json"))
    assert again.labels == run.labels
    assert [str(item) for item in again.transitions] == [str(item) for item in run.transitions]
    assert all(item.is_handover for item in again.transitions)


def test_a_change_of_body_is_a_change_of_mode_that_says_so(graph):
    """From one free brick to another: other bodies are in contact, though nothing strikes."""
    data = block({}, {})
    data["coordinates"] |= {"x1": "m", "y1": "m", "q1": "rad", "x2": "m", "y2": "m", "q2": "rad"}
    for k in "12":
        data["frames"][f"B{k}"] = {"rotate": {"z": f"q{k}"}}
        data["points"][f"C{k}"] = {"from": "O", "at": f"x{k}*N.x + y{k}*N.y"}
        data["bodies"][f"b{k}"] = {"frame": f"B{k}", "center": f"C{k}", "mass": "5 kg", "inertia": {"zz": "1 kg*m^2"}}
        box = [["-1 m", "-0.1 m"], ["1 m", "-0.1 m"], ["1 m", "0.1 m"], ["-1 m", "0.1 m"]]
        data["shapes"][f"s{k}"] = {"polygon": {"frame": f"B{k}", "points": box}}
    data["contacts"] = on("s1", "s2")
    model = graph(data)
    assert label(model, c1_2_face3="slide") == "c1: corner 2 on face3 of s1, slide"
    assert label(model, c2_2_face3="slide") == "c2: corner 2 on face3 of s2, slide"
    names = [contact.name for contact in model.automaton.contacts]
    codes = np.zeros((2, len(names)), dtype=int)
    codes[0, names.index("c1_2_face3")] = codes[1, names.index("c2_2_face3")] = 2
    [pair] = model.automaton.labels.handed_over(*codes)
    assert [names[k] for k in pair] == ["c1_2_face3", "c2_2_face3"]
    assert model.automaton.labels.passes_on(*pair) == "corner 2 of s passes on from face3 of s1 to face3 of s2"


@pytest.mark.parametrize("name", ["latch_door", "geneva_drive", "gripper", "piano_action_simple", "escapement_anchor"])
def test_shipped_models_read_every_mode_by_one_label(name):
    """Without alternative contacts at one place there are as many labels as modes."""
    automaton = fsm_dyn.compile(name).automaton
    single = []
    for k, contact in enumerate(automaton.contacts):
        states = [other.codes[0] for other in automaton.contacts]
        for code in contact.codes:
            states[k] = code
            single.append((tuple(states), automaton.labels.of(states)))
    found = dict(single)
    assert len(set(found.values())) == len(found)
    assert all(text and "_face_" not in text.split(":")[-1] for text in found.values() if ": " in text)


def test_the_page_has_the_full_label_of_a_mode_whose_label_is_short():
    graph = fsm_dyn.compile("piano_action")
    automaton = graph.automaton
    (start,) = [mode for mode in mode_map(automaton, graph.initial)["modes"] if mode["initial"]]
    assert start["full"] == graph.initial  # no corner is on a face: it is the name
    assert len(start["name"]) <= LONGEST < len(start["full"])
    others = [mode for mode in mode_map(automaton, graph.initial)["modes"] if len(mode["name"]) < 40]
    assert others
    assert not any("full" in mode for mode in others)
