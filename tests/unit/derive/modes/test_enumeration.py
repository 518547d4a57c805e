"""Enumeration of modes, their names, and infeasible ones."""

import pytest

from fsm_dyn.core.errors import ModelError
from fsm_dyn.derive.enumeration import LARGEST_ENUMERATION, Pattern, name_mode
from fsm_dyn.derive.unconstrained_system import ContactInfo


def mass(**sections):
    """A particle in the plane with contacts of the test's choosing."""
    return {
        "fsm_dyn": 1,
        "name": "mass",
        "coordinates": ["x", "y"],
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}},
        "bodies": {"ball": {"center": "P", "mass": 1}},
        **sections,
    }


GROUND = {"gap": "y"}
ROUGH = {"gap": "y", "slip": "dot(vel(P), N.x)", "friction": {"static": 0.5, "kinetic": 0.4}}
WALLS = {"joint_stop": {"coordinate": "x", "lower": 0, "upper": 1}}
LATCH = {"lock": {"velocity": "x_dot"}}
RUB = {"dry_friction": {"speed": "x_dot", "static": 1, "kinetic": 0.5}}


# -- names -----------------------------------------------------------------------------------------------------

CONTACTS = (
    ContactInfo("tip", "gap", 0, 1, ("open", "stick", "slide")),
    ContactInfo("stop", "gap", 2, -1, ("open", "closed")),
    ContactInfo("axis", "dry_friction", -1, 3, ("", "stick", "slip")),
)


def test_codes_of_a_contact():
    assert CONTACTS[0].codes == (0, 1, 2)
    assert CONTACTS[1].codes == (0, 1)
    assert CONTACTS[2].codes == (1, 2)  # dry friction has no open state


@pytest.mark.parametrize(
    ("states", "name", "pattern"),
    [
        ((1, 0, 1), "standing", "standing"),
        ((1, 1, 2), "standing+stop_closed+axis_slip", "standing"),
        ((2, 0, 1), "tip_slide", ""),
        ((0, 1, 1), "leaning", "leaning"),  # the more specific pattern
        ((0, 1, 2), "resting+axis_slip", "resting"),
        ((0, 0, 1), "axis_stick", ""),  # sticking dry friction is not free
    ],
)
def test_names(states, name, pattern):
    """The most specific pattern names a mode; other contacts outside their first state are added."""
    patterns = [Pattern("standing", {0: 1}), Pattern("resting", {1: 1, 0: 0}), Pattern("leaning", {0: 0, 1: 1, 2: 1})]
    found = name_mode(CONTACTS, patterns, states)
    assert (found.name, found.pattern, found.states) == (name, pattern, states)


def test_of_patterns_that_say_as_much_the_first_names():
    patterns = [Pattern("first", {0: 0}), Pattern("second", {1: 0})]
    assert name_mode(CONTACTS, patterns, (0, 0, 1)).name == "first"


def test_without_contacts_there_is_one_mode(mode_graph):
    assert list(mode_graph(mass()).modes) == ["motion"]
    assert name_mode((), (), ()).name == "motion"


# -- shipped models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "modes"),
    [
        ("shopping_cart", ["rolling", "sticking"]),
        ("rolling_disk", ["rolling", "sliding", "flying"]),
        ("bouncing_ball", ["flight", "resting"]),
        ("pendulum_with_stop", ["swinging", "leaning"]),
        ("spherical_wrist", ["motion"]),
    ],
)
def test_modes_of_shipped_models(mode_graph, model, modes):
    graph = mode_graph(model)
    assert list(graph.modes) == modes  # in the order of the file
    assert not graph.infeasible
    assert graph.automaton.fully_enumerated


# -- pruning ---------------------------------------------------------------------------------------------------


def test_two_ends_of_one_travel_exclude_each_other(mode_graph):
    graph = mode_graph(mass(contacts={"walls": WALLS, "ground": GROUND}))
    assert set(graph.modes) == {
        "all_free",
        "walls_lower_closed",
        "walls_upper_closed",
        "ground_closed",
        "walls_lower_closed+ground_closed",
        "walls_upper_closed+ground_closed",
    }
    reason = "walls_lower and walls_upper exclude each other: their gaps always add up to 1 (SI units)"
    both = "walls_lower_closed+walls_upper_closed"
    assert dict(graph.infeasible) == {both: reason, f"{both}+ground_closed": reason}


@pytest.mark.parametrize(
    ("unit", "point", "contacts", "said"),
    [
        ("m", "x*N.x", {"a": "x", "b": "200 mm - x"}, "their gaps always add up to 0.2 m"),
        ("m", "x*N.x", {"a": "x", "b": "x + 200 mm"}, "-a + b of their gaps is always 0.2 m"),
        ("m", "x*N.x", {"a": "2*x - 100 mm", "b": "x"}, "-0.5*a + b of their gaps is always 0.05 m"),
        ("rad", "1 m*cos(x)*N.x + 1 m*sin(x)*N.y", {"a": "x", "b": "50 deg - x"},
         "their gaps always add up to 0.872665 rad"),
        ("m", "x*N.x", {"a": "x", "b": "0.5 - x/1 m"}, "their gaps always add up to 0.5 (SI units)"),
    ],
)  # fmt: skip
def test_gaps_that_exclude_each_other_are_listed_with_their_unit(mode_graph, unit, point, contacts, said):
    model = {
        "fsm_dyn": 1, "name": "two", "coordinates": {"x": unit}, "points": {"P": {"from": "O", "at": point}},
        "bodies": {"mass": {"center": "P", "mass": "1 kg"}},
        "contacts": {name: {"gap": gap} for name, gap in contacts.items()}, "initial": {"x": f"0.07 {unit}"},
    }  # fmt: skip
    reason = mode_graph(model).infeasible["a_closed+b_closed"].partition("exclude each other: ")[2]
    assert reason in (said, said.replace("-a + b", "a - b").replace("-0.5*a + b", "0.5*a - b"))


def belt(speed):
    return {"dry_friction": {"speed": f"rate(x) - {speed}", "static": 2, "kinetic": 1}}


def test_what_sticks_to_two_belts_of_different_speeds_contradicts_itself(mode_graph):
    graph = mode_graph(mass(contacts={"slow": belt(0.1), "fast": belt(0.3)}))
    total = "slow.friction - fast.friction is 0.2 at any speeds, and each of these rows vanishes (SI units)"
    reason = f"slow and fast exclude each other: {total}"
    assert dict(graph.infeasible) == {"slow_stick+fast_stick": reason}
    assert len(graph.modes) == 3


def test_belts_of_one_speed_or_of_speeds_that_inputs_give_do_not(mode_graph):
    assert not mode_graph(mass(contacts={"one": belt(0.3), "other": belt(0.3)})).infeasible
    driven = mass(contacts={"one": belt(0.3), "other": belt("w")}, inputs={"w": {"constant": 0.1}})
    assert not mode_graph(driven).infeasible


def test_a_belt_contradicts_a_constraint(mode_graph):
    graph = mode_graph(mass(contacts={"belt": belt(0.1)}, constraints={"led": {"velocity": "rate(x) - 0.2"}}))
    (reason,) = graph.infeasible.values()
    total = "-led + belt.friction is 0.1 at any speeds, and each of these rows vanishes (SI units)"
    assert reason == f"led and belt exclude each other: {total}"


def test_travel_of_no_length_is_possible(mode_graph):
    """Both ends at once, if they are in one place: the rows depend on each other, but do not contradict."""
    stop = {"joint_stop": {"coordinate": "x", "lower": 1, "upper": 1}}
    graph = mode_graph(mass(contacts={"walls": stop}, initial={"x": 1}))
    both = graph.modes["walls_lower_closed+walls_upper_closed"]
    assert len(both.redundant_rows) == 1
    assert both.degrees_of_freedom == 1


def test_contacts_parallel_in_one_state_only_are_not_pruned(mode_graph):
    """At the start the two gaps add up to a constant to first order; elsewhere they do not.

    A model with a loop is no exception, though its loops are closed only at the start.
    """
    tilted = {
        "fsm_dyn": 1,
        "name": "tilted",
        "coordinates": ["x", "y", "a", "b"],
        "frames": {"A": {"parent": "N", "rotate": {"z": "a"}}, "B": {"parent": "N", "rotate": {"z": "b"}}},
        "points": {"P": {"from": "O", "at": "x*N.x + y*N.y"}, "R": {"from": "P", "at": "A.y"}},
        "bodies": {
            "rod": {"center": "P", "frame": "A", "mass": 1, "inertia": {"zz": 1}},
            "disk": {"center": "P", "frame": "B", "mass": 1, "inertia": {"zz": 1}},
        },
        "contacts": {"low": {"gap": "dot(pos(R), N.y)"}, "high": {"gap": "1.1 - dot(pos(P), N.y)"}},
    }
    loop = {"constraints": {"loop": {"position": "a - b"}}}
    for model in (tilted, {**tilted, **loop}):
        graph = mode_graph(model)
        assert not graph.infeasible
        assert "low_closed+high_closed" in graph.modes


def test_velocity_level_contacts_are_never_pruned(mode_graph):
    """A lock on a velocity and a stop: redundant together, possible nevertheless."""
    graph = mode_graph(mass(contacts={"walls": WALLS, "catch": LATCH}))
    held = graph.modes["walls_lower_closed+catch_engaged"]
    assert len(held.redundant_rows) == 1
    assert len(graph.infeasible) == 2


# -- lists -----------------------------------------------------------------------------------------------------


def test_only_listed(mode_graph):
    sections = {"contacts": {"ground": ROUGH, "walls": WALLS}, "initial": {"x": 0.5, "y": 1}}
    modes = {"gliding": {"ground": "slide", "walls_lower": "open"}, "flying": {"ground": "open"}}
    graph = mode_graph(mass(**sections, modes={**modes, "only_listed": True}))
    names = set(graph.modes)
    assert {"gliding", "flying", "gliding+walls_upper_closed", "flying+walls_lower_closed"} <= names
    assert not any(graph.modes[name].states["ground"] == "stick" for name in names)
    assert graph.infeasible["ground_stick"] == "not listed, and the model says only_listed"
    with pytest.raises(ModelError, match="would begin in 'ground_stick', which is infeasible: not listed"):
        mode_graph(mass(contacts=sections["contacts"], modes={**modes, "only_listed": True}, initial={"x": 0.5}))
    everything = mode_graph(mass(**sections, modes=modes))
    assert "ground_stick" in everything.modes


def test_many_contacts_are_derived_when_reached(mode_graph):
    """Seven contacts of two states: more than are worth deriving beforehand; patterns and the start are."""
    contacts = {f"stop{i}": {"joint_stop": {"coordinate": "x", "lower": -1 - i}} for i in range(7)}
    assert LARGEST_ENUMERATION < 2**7
    modes = {"first": {"stop0": "closed"}, "last": {"stop6": "closed"}}
    graph = mode_graph(mass(contacts=contacts, modes=modes))
    assert list(graph.modes) == ["first", "last", "all_free"]
    assert not graph.automaton.fully_enumerated
    assert mode_graph(mass(contacts=dict(list(contacts.items())[:6]))).automaton.fully_enumerated


def test_a_mode_not_enumerated_is_derived_from_the_saved_terms(mode_graph, context):
    """A derivation at run time gives the same programs as an enumeration."""
    graph = mode_graph(mass(contacts={"ground": ROUGH, "rub": RUB}))
    automaton = graph.automaton
    for mode in automaton.modes:
        again = automaton.derive(mode.states, 0.0, [0.0] * 4, context(graph))
        assert again.name == mode.name
        assert again.programs.rhs.digest == mode.programs.rhs.digest


# -- inertia ---------------------------------------------------------------------------------------------------

PAD = {
    "fsm_dyn": 1,
    "name": "pad",
    "coordinates": ["x", "y"],
    "points": {"P": {"from": "O", "at": "x*N.x"}, "Q": {"from": "P", "at": "y*N.x"}},
    "bodies": {"ball": {"center": "P", "mass": 1}, "pad": {"center": "Q", "mass": 0}},
}


def test_speeds_without_inertia_are_named(mode_graph):
    with pytest.raises(ModelError, match="in 'motion', which is infeasible: mass matrix singular along y_dot"):
        mode_graph(PAD)
    two_ways = mass(points={"P": {"from": "O", "at": "(x + y)*N.x"}})
    with pytest.raises(ModelError, match="mass matrix singular along x_dot and y_dot"):
        mode_graph(two_ways)


def test_a_body_without_mass_may_be_carried(mode_graph):
    """Glued on, or held together with a contact: only the modes with the body alone are out."""
    assert list(mode_graph({**PAD, "constraints": {"glue": {"velocity": "y_dot"}}}).modes) == ["motion"]
    held = {"contacts": {"hold": {"lock": {"velocity": "y_dot"}}}, "modes": {"held": {"hold": "engaged"}}}
    graph = mode_graph({**PAD, **held, "initial": {"mode": "held"}})
    assert list(graph.modes) == ["held"]
    assert dict(graph.infeasible) == {"all_free": "mass matrix singular along y_dot"}
    assert graph.modes["held"].derivatives(0.0, [0, 0.1], [1, 0])[1].tolist() == [0, 0]


def test_singular_in_one_configuration_only_is_no_lack_of_inertia(mode_graph):
    """The wrist at q2 = 0 with the rates of its angles as speeds: a bad place, not a bad model."""
    model = mode_graph("spherical_wrist_rates").automaton.mechanism
    assert not mode_graph(model).infeasible
    pendulum = {
        "fsm_dyn": 1,
        "name": "pendulum",
        "coordinates": ["a", "b"],
        "frames": {"A": {"parent": "N", "rotate": {"z": "a"}}, "B": {"parent": "A", "rotate": {"x": "b"}}},
        "points": {"P": {"from": "O", "at": "B.z"}},
        "bodies": {"bob": {"center": "P", "mass": 1}},
    }
    assert list(mode_graph(pendulum).modes) == ["motion"]  # at b = 0, a turn about z moves nothing
