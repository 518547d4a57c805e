"""Assembly of a start: values given are held, the rest follows from the rows, in the declared order."""

import numpy as np
import pytest

from fsm_dyn.automaton.initial_values import initial_state
from fsm_dyn.core.errors import InputError, ModelError
from fsm_dyn.derive.assembly import PrescribedValues
from fsm_dyn.derive.elimination import dependent_columns
from fsm_dyn.language.values import parameter_values

HELD, SLIDING = 1, 2


@pytest.fixture
def assemble(mode_graph, context):
    """Return a function: model, contact states, coordinates, speeds to (x, terms there)."""

    def run(model, states=(), coordinates=None, speeds=None, inputs=0.0, **parameters):
        graph = model if hasattr(model, "automaton") else mode_graph(model, **parameters)
        c = context(graph, inputs)
        x = graph.automaton.assemble(states, PrescribedValues(coordinates or {}, speeds or {}, 0.0, c))
        return x, graph.automaton.terms.evaluate(0.0, x, c)

    return run


def rates(terms, u):
    return terms["A"][:, : len(u)] @ u + terms["b"]


@pytest.mark.parametrize("crank", np.linspace(-np.pi, np.pi, 9))
def test_a_loop_is_closed_from_the_crank(assemble, four_bar, crank):
    """The crank given, coupler and rocker follow: against the cosine rule."""
    x, terms = assemble(four_bar, coordinates={"a": crank}, speeds={"a_dot": 2.0}, gx=1.8, gy=0.4)
    assert x[0] == crank
    assert x[3] == 2.0
    assert np.abs(terms["residual"]).max() < 1e-13
    assert np.abs(rates(terms, x[3:])).max() < 1e-12
    gap = np.array([1.8 - np.cos(crank), 0.4 - np.sin(crank)])
    inner = (gap @ gap - 2.0**2 - 1.5**2) / (2 * 2.0 * 1.5)
    assert np.cos(x[2]) == pytest.approx(inner, abs=1e-12)


def test_what_is_declared_first_stays_zero_first(assemble, four_bar):
    """Nothing given: the crank is free and stays at zero, the later coordinates are solved; speeds likewise."""
    x, _ = assemble(four_bar)
    assert x[0] == 0.0
    assert x[1] != 0.0
    assert x[3:].tolist() == [0.0, 0.0, 0.0]
    x, _ = assemble(four_bar, coordinates={"b": 1.0})
    assert x[1] == 1.0
    assert x[0] != 0.0  # two rows, two left to solve
    x, terms = assemble(four_bar, coordinates={"a": 0.3}, speeds={"c_dot": 1.0})
    assert x[5] == 1.0
    assert np.abs(rates(terms, x[3:])).max() < 1e-12


@pytest.mark.parametrize("gx", [1.6, 1.8, 2.0, 2.5, 3.5])
def test_from_links_in_one_line(assemble, four_bar, gx):
    """All at zero with F on the line of the links: no derivative leads away, yet the loop can be closed."""
    x, terms = assemble(four_bar, gx=gx, gy=0.0)
    assert x[0] == 0.0
    assert np.abs(terms["residual"]).max() < 1e-12
    assert np.abs(x).max() < 2 * np.pi


@pytest.mark.parametrize("crank", np.linspace(-np.pi, np.pi, 24))
def test_no_leaps_by_many_turns(assemble, four_bar, crank):
    x, _ = assemble(four_bar, coordinates={"a": crank}, gx=2.4, gy=0.4)
    assert np.abs(x).max() < 2 * np.pi


def test_a_start_that_closes_already_is_kept(assemble, four_bar, ends):
    q = (0.3, 0.7, -1.1)
    gx, gy = ends(q)
    x, _ = assemble(four_bar, coordinates=dict(zip("abc", q, strict=True)), gx=gx, gy=gy)
    assert tuple(x[:3]) == q


def test_what_cannot_be_reached_names_the_row(assemble, four_bar):
    with pytest.raises(ModelError, match=r"cannot be assembled: 'loop_[xy]' is not satisfied") as failure:
        assemble({**four_bar, "initial": {"a": 0.1, "b": 0.2, "c": 0.3}})
    assert "a = 0.1" in failure.value.found
    with pytest.raises(ModelError, match="loop_x"):
        assemble(four_bar, gx=50.0)


def test_contradicting_speeds_name_the_row(assemble, four_bar):
    with pytest.raises(ModelError, match=r"speeds given at the start contradict 'loop_[xy]'"):
        assemble(four_bar, coordinates={"a": 0.5}, speeds={"a_dot": 1.0, "b_dot": 0.0})
    with pytest.raises(ModelError, match="contradict 'caster_axis'"):
        assemble("shopping_cart", (HELD,), speeds={"u2": 1.0, "u3": 2.0})


def test_speeds_of_a_mode(assemble):
    """The cart rolling and sticking, the disk rolling: (60), (65), (7)."""
    x, _ = assemble("shopping_cart", (SLIDING,), {"q4": 0.4}, {"u1": 0.5, "u2": 0.3})
    assert x[6] == pytest.approx((-np.sin(0.4) * 0.5 + 0.7 * np.cos(0.4) * 0.3) / 0.12, rel=1e-13)
    x, _ = assemble("shopping_cart", (HELD,), {"q4": 0.4}, {"u1": 0.5})
    assert x[5] == pytest.approx(np.sin(0.4) * 0.5 / (0.7 * np.cos(0.4) - 0.12), rel=1e-13)
    assert x[6] == pytest.approx(x[5], rel=1e-13)
    x, terms = assemble("rolling_disk", (HELD,), {}, {"u1": 0.7})
    assert x[4] == pytest.approx(-0.7)
    assert x[1] == pytest.approx(0.1)  # the gap of a mode with the contact closed is closed
    assert terms["residual"][0] == pytest.approx(0.0, abs=1e-15)
    x, _ = assemble("rolling_disk", (0,), {"y": 0.5}, {"u3": -1.0})
    assert x[1] == 0.5


def test_redundant_rows_do_no_harm(assemble, four_bar):
    """The loop said three times: once as it is, once scaled, once as a sum."""
    constraints = {
        **four_bar["constraints"],
        "again": {"position": "3*dot(pos(R, F), N.x)"},
        "sum": {"position": "dot(pos(R, F), N.x + N.y)"},
    }
    plain, _ = assemble(four_bar, coordinates={"a": 0.4}, speeds={"a_dot": 1.5})
    given = {"a": 0.4, "b": plain[1]}
    x, terms = assemble({**four_bar, "constraints": constraints}, coordinates=given, speeds={"a_dot": 1.5})
    np.testing.assert_allclose(np.exp(1j * x[:3]), np.exp(1j * plain[:3]), atol=1e-12)
    np.testing.assert_allclose(x[3:], plain[3:], atol=1e-11)
    assert np.abs(rates(terms, x[3:])).max() < 1e-12
    x, terms = assemble({**four_bar, "constraints": constraints}, coordinates={"a": 0.4})
    assert np.abs(terms["residual"]).max() < 1e-12


def test_contradicting_rows_are_named(assemble, four_bar):
    constraints = {**four_bar["constraints"], "elsewhere": {"position": "dot(pos(R, F), N.x) - 0.2"}}
    with pytest.raises(ModelError, match=r"'(loop_x|elsewhere)' is not satisfied"):
        assemble({**four_bar, "constraints": constraints})


def test_inputs_that_drive_rows(assemble, mode_graph):
    """A row with an input: the configuration follows its value, the speed its rate."""
    model = {
        "fsm_dyn": 1,
        "name": "lift",
        "coordinates": ["z", "s"],
        "points": {"P": {"from": "O", "at": "z*N.y + s*N.x"}},
        "bodies": {"cage": {"center": "P", "mass": 1}},
        "inputs": {"height": None},
        "constraints": {"cable": {"position": "z - height"}},
    }
    graph = mode_graph(model)
    layout = graph.automaton.terms.layout
    c = np.zeros(layout.n_c)
    c[layout.w_slice], c[layout.w_rate_slice], c[layout.w_rate2_slice] = 2.0, 0.5, -3.0
    x = graph.automaton.assemble((), PrescribedValues({}, {"s_dot": 4.0}, 0.0, c))
    assert x.tolist() == [2.0, 0.0, 0.5, 4.0]
    (mode,) = graph.automaton.modes
    full = mode.programs.full.evaluate(0.0, x, c)
    assert full["x_dot"].tolist() == [0.5, 4.0, -3.0, 0.0]
    assert full["multipliers"].tolist() == [-3.0]


# -- Euler parameters ------------------------------------------------------------------------------------------

PENDULUM = {
    "fsm_dyn": 1,
    "name": "ball_joint",
    "coordinates": ["x", "y", "z"],
    "frames": {"B": {"parent": "N", "euler_parameters": "e"}},
    "points": {
        "G": {"from": "O", "at": "x*N.x + y*N.y + z*N.z"},
        "P": {"from": "G", "at": "B.x + 2*B.y + 2*B.z"},
    },
    "bodies": {"body": {"center": "G", "frame": "B", "mass": 1, "inertia": {"xx": 1, "yy": 1, "zz": 1}}},
    "speeds": {
        **{f"v{k}": f"dot(vel(G), N.{k})" for k in "xyz"},
        **{f"w{k}": f"dot(omega(B), B.{k})" for k in "xyz"},
    },
    "constraints": {f"ball_{k}": {"position": f"dot(pos(P), N.{k})"} for k in "xyz"},
}


def test_bodies_are_turned_into_place(assemble):
    """The centre given on the sphere of radius 3 about the ball: only turns remain, the norm stays 1."""
    x, terms = assemble(PENDULUM, coordinates={"x": 1.0, "y": -2.0, "z": 2.0})
    assert x[:3].tolist() == [1.0, -2.0, 2.0]
    assert np.linalg.norm(x[3:7]) == pytest.approx(1.0, abs=1e-15)
    assert np.abs(terms["residual"]).max() < 1e-12
    with pytest.raises(ModelError, match="ball_"):
        assemble(PENDULUM, coordinates={"x": 1.0, "y": 1.0, "z": 1.0})


def test_without_a_turn_given_there_is_none(assemble):
    """Nothing given: first the coordinates declared first stay zero, but the ball cannot be in the centre."""
    x, terms = assemble(PENDULUM)
    assert x[:2].tolist() == [0.0, 0.0]
    assert abs(x[2]) == pytest.approx(3.0)
    assert np.linalg.norm(x[3:7]) == pytest.approx(1.0, abs=1e-15)
    assert np.abs(terms["residual"]).max() < 1e-12


def test_euler_parameters_given(assemble):
    free = {**PENDULUM, "constraints": {}}
    half = np.sqrt(0.5)
    x, _ = assemble(free)
    assert x[3:7].tolist() == [1.0, 0.0, 0.0, 0.0]
    x, _ = assemble(free, coordinates={"e3": half})  # the first completes the norm
    np.testing.assert_allclose(x[3:7], [half, 0, 0, half], rtol=1e-15)
    x, _ = assemble(free, coordinates={"e0": 1.0, "e1": 1.0})  # and given values are brought to unit norm
    np.testing.assert_allclose(x[3:7], [half, half, 0, 0], rtol=1e-15)
    with pytest.raises(ModelError, match="cannot all be zero"):
        assemble(free, coordinates={"e0": 0.0})
    x, _ = assemble(PENDULUM, coordinates={"e0": half, "e1": half})
    np.testing.assert_allclose(x[:7], [-1, 2, -2, half, half, 0, 0], atol=1e-13)


# -- which columns ---------------------------------------------------------------------------------------------


def test_dependent_columns_are_as_few_as_needed_and_the_last():
    matrix = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    assert dependent_columns(matrix, range(4)) == [1, 3]
    assert dependent_columns(matrix, [0, 1, 2]) == [1, 2]
    assert dependent_columns(matrix, [0, 1]) == [1]
    assert dependent_columns(matrix, []) == []
    assert dependent_columns(np.zeros((2, 3)), range(3)) == []
    assert dependent_columns(np.ones((3, 3)), range(3)) == [2]


# -- the start of a run ----------------------------------------------------------------------------------------


def test_start_of_a_run(mode_graph):
    """The values under ``initial`` with overrides; the mode given or deduced; slip directions."""
    graph = mode_graph("rolling_disk")
    sigma = graph.automaton.terms.layout.sigma_slice

    def initial_start(overrides=None):
        values = parameter_values(graph.automaton.mechanism)
        return initial_state(graph.automaton, values, graph.parameters, overrides)

    begin = initial_start()
    assert begin.states == (SLIDING,)
    assert begin.context[sigma].tolist() == [-1.0]
    rolling = initial_start({"mode": "rolling", "u1": 1.0, "u2": -1.0})
    assert (rolling.states, rolling.context[sigma].tolist()) == ((HELD,), [0.0])
    flying = initial_start({"mode": "flying", "y": "0.5 m"})
    assert (flying.states, flying.x[1]) == ((0,), 0.5)
    with pytest.raises(ModelError, match="contradict 'ramp'"):
        initial_start({"mode": "rolling", "u1": 1.0})
    with pytest.raises(ModelError, match="'ramp' is not satisfied"):
        initial_start({"y": 0.5})
    with pytest.raises(InputError, match="no mode 'roling'") as failure:
        initial_start({"mode": "roling"})
    assert "rolling" in failure.value.remedy
    with pytest.raises(InputError, match="'u9' is no coordinate or speed"):
        initial_start({"u9": 1})


@pytest.mark.parametrize(
    ("given", "states"),
    [
        ({"y": 0.1, "u1": 1.0, "u2": -1.0}, HELD),
        ({"y": 0.1, "u1": 1.0}, SLIDING),
        ({"y": 0.2}, 0),
        ({"y": 0.1, "u3": 1.0}, 0),  # touching, but leaving
    ],
)
def test_a_missing_mode_is_deduced(mode_graph, given, states):
    from fsm_dyn.automaton.initial_state import find_initial_state

    graph = mode_graph("rolling_disk")
    layout = graph.automaton.terms.layout
    c = np.zeros(layout.n_c)
    c[layout.p_slice] = graph.parameters
    assert find_initial_state(graph.automaton, given, None, 0.0, c).states == (states,)
