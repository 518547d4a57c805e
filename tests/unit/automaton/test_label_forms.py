"""Labels within a length, from the full one to numbers and a mark."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fsm_dyn.automaton.labels import LONGEST, Closed, brief_label, full_label
from fsm_dyn.draw.graph_layout import elided

LONG = [Closed(f"contact_of_the_door_with_stop_{k}", "stick") for k in range(3)]


def brief(pattern, parts):
    return brief_label(pattern, parts, full_label(pattern, parts))


def test_a_short_label_names_everything():
    assert brief("", [Closed("a", "slide"), Closed("b", "closed")]) == "a_slide; b_closed"
    assert brief("latched", [Closed("a", "slide")]) == "latched; a_slide"


def test_contacts_of_one_state_are_named_together():
    parts = [Closed(name, "slide") for name in ("capstan_heel", "jack_knuckle_end", "lever_knuckle")]
    assert brief("checked", parts) == "checked; capstan_heel, jack_knuckle_end, lever_knuckle slide"


def test_numbers_replace_the_longest_names():
    text, mark = brief("", [*LONG, Closed("brake", "slide")]).split(" ·")
    assert text == "brake slide; 3 more stick"
    assert len(mark) == 3


def test_numbers_alone_are_all_there_is():
    parts = [Closed(f"contact_of_the_door_with_the_stop_{'x' * 30}_{k}", "stick") for k in range(3)]
    assert brief("", parts).startswith("3 stick ·")


def test_features_of_shapes_are_counted_by_entry():
    parts = [
        *LONG,
        Closed("foot: corner 1 on ground", "slide", True, "foot", corner=True),
        Closed("foot: corner 2 on ground", "slide", True, "foot", corner=True),
        Closed("head: face1 flat on roof", "stick", True, "head", flat=True),
    ]
    assert brief("", parts).startswith("foot on 2 corners, slide; head flat, stick; 3 stick ·")
    pin = Closed("pin: P on the long slot of the door", "closed", True, "pin")
    assert brief("", [pin, *LONG, Closed("brake", "slide")]).startswith("brake slide; pin, closed; 3 more stick ·")


def test_a_pattern_of_any_length_keeps_its_ends():
    text = brief("a" * 50 + "z" * 50, LONG)
    assert len(text) <= LONGEST
    assert text.startswith("aaa")
    assert "zzz; 3 stick ·" in text


def test_marks_distinguish_modes():
    """All states of eight contacts whose names do not fit."""
    found = set()
    for states in itertools.product(("stick", "slide", "slide_opposite"), repeat=6):
        found.add(brief("", [Closed(f"contact_of_the_door_{k}", state) for k, state in enumerate(states)]))
    assert len(found) > 0.95 * 3**6  # the labels of a mechanism have longer marks if these are equal


@given(
    st.text("abc_", max_size=90),
    st.lists(st.tuples(st.text("xyz_", min_size=1, max_size=40), st.sampled_from(["stick", "slide", "closed"]))),
)
def test_no_label_is_longer(pattern, closed):
    parts = [Closed(*item) for item in closed]
    assert len(brief(pattern, parts)) <= LONGEST


def test_the_middle_is_left_out():
    assert elided("abcdefghij", 10) == "abcdefghij"
    assert elided("abcdefghijk", 10) == "abcde…hijk"
