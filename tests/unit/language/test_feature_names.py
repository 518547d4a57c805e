"""Names of faces, corners and ends: in names of contacts, and so in formulas, labels and causes."""

import numpy as np
import pytest

import fsm_dyn
from fsm_dyn.core.errors import ModelError

BOX = {
    "fsm_dyn": 1,
    "name": "box",
    "coordinates": ["x", "y", "q"],
    "frames": {"B": {"parent": "N", "rotate": {"z": "q"}}},
    "points": {"C": {"from": "O", "at": "x*N.x + y*N.y"}},
    "bodies": {"box": {"frame": "B", "center": "C", "mass": 4, "inertia": {"zz": 0.11}}},
    "shapes": {
        "outline": {
            "polygon": {"frame": "B", "points": [[-0.15, -0.25], [0.15, -0.25], [0.15, 0.25], [-0.15, 0.25]]},
            "features": {"heel": "corner 1", "toe": "corner 2", "sole": "face 1"},
        },
        "ground": {"line": {"along": "N.x"}, "side": "N.y"},
        "peg": {"circle": {"center": "O", "radius": 0.01}},
    },
    "contacts": {"rubs": {"between": ["outline", "ground"], "friction": 0.5, "restitution": 0.3},
                 "meets": {"between": ["outline", "peg"]}},
    "memory": {"steps": 0},
    "transitions": [{"from": "*", "on": "rubs_toe closes", "set": {"steps": "steps + 1"}}],
    "loads": [{"gravity": "-9.81*N.y"}],
    "requirements": {"light": "peak(rubs_toe.normal) < 1", "never": "never rubs_toe closes twice within 10"},
    "phases": {"on the toe": {"when": "rubs_toe is not open"}, "other": {"when": "otherwise"}},
    "initial": {"y": 0.5, "x": 1, "q": 0.35},
}  # fmt: skip


def with_features(**features):
    """Return the box with other features of its outline."""
    return {**BOX, "shapes": {**BOX["shapes"], "outline": {**BOX["shapes"]["outline"], "features": features}}}


@pytest.fixture(scope="module")
def graph():
    return fsm_dyn.compile(BOX)


def test_contacts_of_features_have_their_names(graph):
    contacts = [*graph.automaton.mechanism.contacts]
    assert contacts[:4] == ["rubs_heel", "rubs_toe", "rubs_3", "rubs_4"]
    assert {"meets_sole", "meets_toe", "meets_face2"} <= {*contacts}


def test_the_names_change_no_motion(graph):
    plain = {key: item for key, item in BOX.items() if key not in ("transitions", "requirements", "phases", "memory")}
    plain["shapes"] = {**BOX["shapes"], "outline": {"polygon": BOX["shapes"]["outline"]["polygon"]}}
    one, other = (fsm_dyn.simulate(found, until=1.0) for found in (graph, fsm_dyn.compile(plain)))
    assert np.array_equal(one.q[-1], other.q[-1])


def test_causes_labels_and_formulas_use_them(graph):
    run = fsm_dyn.simulate(graph, until=1.0)
    assert any(visit.cause.startswith("toe ") for visit in run.visits)
    assert any("toe on ground" in label for label in run.model.labels)
    assert "on the toe" in {visit.name for visit in run.visits}
    assert run["steps"][-1] > 0
    assert {found.verdict for found in run.judge().values()} == {"violated"}


@pytest.mark.parametrize(
    ("features", "found", "remedy"),
    [
        ({"toe": "corner 5"}, "corner 5", ""),
        ({"toe": "edge 1"}, "edge 1", ""),
        ({"toe": "face 2", "foot": "face 2"}, "two names", "keep one"),
        ({"face1": "face 2"}, "another feature", "call it"),
    ],
)
def test_wrong_features_are_refused(features, found, remedy):
    with pytest.raises(ModelError, match=f"(?s){found}.*{remedy}"):
        fsm_dyn.load(with_features(**features))


def test_a_shape_with_one_feature_has_no_names_of_features():
    shapes = {**BOX["shapes"], "peg": {**BOX["shapes"]["peg"], "features": {"tip": "face"}}}
    with pytest.raises(ModelError, match="one feature"):
        fsm_dyn.load({**BOX, "shapes": shapes})
