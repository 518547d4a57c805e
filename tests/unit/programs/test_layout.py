import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.programs.program import Layout, Program


def test_positions(layout):
    assert layout.arguments == (
        "t", "q1", "q2", "u1", "u2", "m", "lip[0]", "push", "push.rate", "push.rate2", "tip.sigma", "hits",
        "push.rate3",
    )  # fmt: skip
    assert layout.x == ("q1", "q2", "u1", "u2")
    assert layout.n_x == len(layout.x)
    assert layout.n_c == len(layout.c) == 8
    assert layout.position("push.rate") == 8
    x, c = layout.x, layout.c
    assert x[layout.q_slice] + x[layout.u_slice] == x
    slices = (layout.p_slice, layout.w_slice, layout.w_rate_slice, layout.w_rate2_slice)
    slices += (layout.sigma_slice, layout.memory_slice, layout.w_rate3_slice)
    assert sum((c[part] for part in slices), ()) == c
    assert c[layout.sigma_slice] == ("tip.sigma",)
    assert c[layout.w_rate2_slice] == ("push.rate2",)


def test_unknown_names_get_a_hint(layout):
    with pytest.raises(InputError, match=r"did you mean 'push\.rate'"):
        layout.position("push.rat")


@pytest.mark.parametrize(
    "names",
    [{"q": ("a",), "p": ("a",)}, {"q": ("a", "a")}, {"q": ("t",)}, {"w": ("a", "a")}, {"contacts": ("c", "c")}],
)
def test_names_are_unique(names):
    with pytest.raises(InputError, match="two arguments"):
        Layout(**names)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a*/", "a\n", "a'", 'a"', "x" * 201, 3, None, "-a"])
def test_names_are_checked(name):
    with pytest.raises(InputError, match="malformed"):
        Layout(q=(name,))


@pytest.mark.parametrize("name", ["theta", "θ", "_x", "left.lip[0]", "left-foot"])
def test_names_that_are_allowed(name):
    assert Layout(q=[name]).q == (name,)


def test_round_trip(layout):
    again = Program.from_data(Program.from_nodes(layout, {}).to_data()).layout
    assert again == layout
    assert hash(again) == hash(layout)


@pytest.mark.parametrize(
    "data", [None, [], {"q": []}, {"q": 1, "u": [], "p": [], "w": [], "contacts": [], "memory": []}]
)
def test_bad_data(layout, data):
    with pytest.raises(InputError, match="layout"):
        Program.from_data(Program.from_nodes(layout, {}).to_data() | {"layout": data})
