"""Numbers and sizes with which nothing can be calculated: refused with their line, before long."""

from __future__ import annotations

import pytest

import fsm_dyn
from fsm_dyn.core.errors import LONGEST_WORD, InputError, ModelError
from fsm_dyn.language.loader import load

PENDULUM = """fsm_dyn: 1
parameters: {l: 1 m, m: 1 kg}
coordinates: {q: rad, x: m}
frames: {B: {rotate: {z: q}}}
points:
  P: {from: O, at: AT}
bodies:
  b: {center: P, frame: B, mass: MASS, inertia: {zz: 1 kg*m^2}}
speeds: {u: rate(q), v: rate(x)}
initial: {q: START}
"""


def pendulum(at: str = "-l*B.y + x*N.x", mass: str = "m", start: str = "0.1 rad") -> str:
    return PENDULUM.replace("AT", at).replace("MASS", mass).replace("START", start)


def refusal(text: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        fsm_dyn.compile(load("a.yaml", text=text), cache=False)
    return caught.value


def test_the_model_itself_can_be_compiled() -> None:
    assert fsm_dyn.compile(load("a.yaml", text=pendulum()), cache=False).modes


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (pendulum(at="-l/0.0*B.y"), 6, "division by zero"),
        (pendulum(at="-l/(0*2)*B.y"), 6, "division by zero"),
        (pendulum(mass="1e308 kg"), 8, "number too large"),
        (pendulum(mass="1e99 Mg"), 8, "number too large"),
        (pendulum(start="1/0.0"), 10, "division by zero"),
        (pendulum(start="\uff11 rad"), 10, "has no meaning in an expression"),  # a one of full width
        (pendulum(mass="\u0663*m"), 8, "has no meaning in an expression"),  # a three of Arabic
        (pendulum(mass="-1e308*m"), 8, "number too large"),
        (pendulum(mass="m\x01"), 8, "a character that may not stand in a text file"),
    ],
)
def test_numbers_are_refused_with_their_line(text: str, line: int, message: str) -> None:
    error = refusal(text)
    assert message in error.message
    assert (error.where.file, error.where.line) == ("a.yaml", line)


def test_coordinates_without_bodies_are_refused_before_anything_is_derived() -> None:
    many = "".join(f"  x{i}: m\n" for i in range(500))
    body = "points: {P: {from: O, at: x0*N.x}}\nbodies: {b: {center: P, mass: 1 kg}}\n"
    text = f"fsm_dyn: 1\ncoordinates:\n{many}{body}"
    error = refusal(text)
    assert "mass matrix singular along 494 coordinates" in error.message
    assert error.where.line == 502


def test_starts_that_cannot_be_assembled_name_a_line() -> None:
    text = pendulum().replace("initial:", 'constraints: {apart: {position: "x*x + l*l"}}\ninitial:')
    error = refusal(text)
    assert "cannot be assembled" in error.message
    assert error.where.line == 11


def test_long_numbers_do_not_take_long() -> None:
    """Common divisors of definitions are looked for where the numbers in them are short alone."""
    text = pendulum().replace("u: rate(q)", "u: 123456789012345678901234567890.5*rate(q) + rate(x)/(1 m)")
    assert fsm_dyn.compile(load("a.yaml", text=text), cache=False).modes


@pytest.mark.parametrize(
    "piece", ["9" * 3000, "x" * 3000, "sin(" * 900, "+".join(["nobody"] * 500), "²" * 3000, "-22 mm+" * 500]
)
def test_messages_repeat_little(piece: str) -> None:
    for text in (
        *(pendulum(mass=piece), pendulum().replace("q: rad", f"{piece[:150]}: {piece} "), piece),
        *(
            pendulum(mass=f"[1 kg, {piece} 1 kg]"),
            pendulum(mass=f"1 kg - {piece}"),
            pendulum(mass=f"1 rad - {piece} kg"),
        ),
        *(pendulum(mass=f"{{value: 1 kg, unit: {piece}}}"), f"{pendulum()}\nnumerics: {{method: {piece}}}\n"),
    ):
        with pytest.raises(InputError) as caught:
            load("a.yaml", text=text)
        assert piece[: LONGEST_WORD + 1] not in str(caught.value)
        assert len(str(caught.value)) < 1500


IDLE = "joints: {z: {revolute: {child: A, at: P, axis: N.z}}}"


@pytest.mark.parametrize(("coordinates", "more"), [("{y: m, z: m}", ""), ("{y: m}", IDLE)])
def test_the_remedy_for_a_coordinate_without_a_body(coordinates: str, more: str) -> None:
    ball = "points: {P: {from: O, at: y*N.y}}\nbodies: {b: {center: P, mass: 1 kg}}"
    error = refusal(f"fsm_dyn: 1\ncoordinates: {coordinates}\n{ball}\n{more}\n")
    assert "no body moves with z_dot: add a body that does, or omit the coordinate" in str(error)


def test_a_model_of_components_alone_states_it() -> None:
    text = "fsm_dyn: 1\nuse: {a: {file: bouncing_ball}}\n"
    with pytest.raises(ModelError, match="a model made of components alone states it"):
        load("a.yaml", text=text)
    assert load("a.yaml", text=text + "bodies: {}\n").bodies


MEMORY = """fsm_dyn: 1
coordinates: {x: m}
points: {P: {from: O, at: x*N.x}}
bodies: {b: {center: P, mass: 1 kg}}
memory: {n: 0, on: false}
transitions: [{from: "*", when: x > 1 m and on, set: {n: n + 1}}]
"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": {"n": 0.5}}, "no value of this memory"),
        ({"initial": {"n": "1/3"}}, "no value of this memory"),
        ({"initial": {"on": 2}}, "true or false"),
        ({"step": 0}, "the step is not positive"),
        ({"step": -1.0}, "the step is not positive"),
        ({"atol": [1e-9, -1e-9]}, "one for each of 2"),
        ({"atol": [1e-9, 1e-9, 1e-9]}, "one for each of 2"),
    ],
)
def test_options_of_a_run_without_a_meaning(options: dict[str, object], message: str) -> None:
    graph = fsm_dyn.compile(load("a.yaml", text=MEMORY))
    with pytest.raises(InputError, match=message):
        fsm_dyn.simulate(graph, 0.1, **options)


def test_memory_begins_with_what_a_run_says() -> None:
    graph = fsm_dyn.compile(load("a.yaml", text=MEMORY))
    for on in (True, 1, "true"):
        run = fsm_dyn.simulate(graph, 0.1, initial={"on": on, "n": "2", "x": "1.5 m"})
        assert (run["n"][0], run["n"][-1]) == (2, 3)
