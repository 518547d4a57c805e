"""Constraints between any places of any bodies, which a person imposes in a live run.

A model with ``imposable: n`` has room for n of them at once. A point follows from memory: the number of a
body and its components along the axes of the body. A request is written to inputs common to all; the input ``hand_1``
above 0.5 takes it into the memory of the first constraint and engages its rows, as the input of an entry of
``imposed`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fsm_dyn.core.errors import Location
from fsm_dyn.language.elements import Input
from fsm_dyn.language.expression_tree import MadeText
from fsm_dyn.language.impositions import GROUND, KINDS, ImpositionWriter
from fsm_dyn.language.model import Body, Mechanism

MOST_AT_ONCE: Final = 8
LEAST_DISTANCE: Final = 1e-3  # m, that a hand may hold
_STEM: Final = "hand"


def slot_name(number: int) -> str:
    """Return the input of a constraint of a hand, counted from 1."""
    return f"{_STEM}_{number}"


def request_inputs(letters: str) -> tuple[str, ...]:
    """Return the inputs of a request: kind, bodies or coordinate, places along their axes, direction of a line."""
    places = [f"{side}{e}" for side in "abd" for e in letters]
    return tuple(f"{_STEM}_{word}" for word in ("kind", "a", "b", *places))


def bodies_by_number(mechanism: Mechanism) -> list[str]:
    """Return the names of bodies by number: the ground is 0."""
    return [GROUND, *map(str, mechanism.bodies)]


def with_hand(mechanism: Mechanism, count: int) -> Mechanism:
    """Return the mechanism with room for constraints of a hand.

    Parameters
    ----------
    mechanism : Mechanism
        With its joints as coordinates.
    count : int
        How many at once.

    Raises
    ------
    ModelError
        A name is taken.
    """
    if not count:
        return mechanism
    writer = _HandWriter(mechanism)
    for name in request_inputs(writer.space.letters):
        writer.add_input(name, mechanism.where)
    for number in range(1, count + 1):
        writer.add(slot_name(number), mechanism.where)
    return writer.done()


def _is(number: str, k: int) -> str:
    """Return the text of a factor that is 1 for a number, and else 0."""
    return f"where({number} > {k}.5 - 1 and {number} < {k}.5, 1, 0)"


class _HandWriter(ImpositionWriter):
    """Adds constraints whose bodies are chosen by numbers: a place is a sum over all bodies, with one factor of 1."""

    def __init__(self, mechanism: Mechanism) -> None:
        super().__init__(mechanism)
        self._bodies: list[Body | None] = [None, *mechanism.bodies.values()]

    def add_input(self, name: str, where: Location) -> None:
        """Add an input of a request."""
        self.put(self.inputs, name, Input(name, "1", None, where), where)

    def add(self, name: str, where: Location) -> None:
        """Add one constraint: its input, memory, rows and transitions."""
        self.add_input(name, where)
        words = [word.removeprefix(f"{_STEM}_") for word in request_inputs(self.space.letters)]
        for word in words:
            self.remember(f"{name}_{word}", where, start=0)
        for word, start in (("cos", 1), ("sin", 0), ("ref", 1)):
            self.remember(f"{name}_{word}", where, start=start)
        rows = self._rows(name)
        for suffix, (text, on_speeds) in rows.items():
            self.lock(name, suffix, MadeText(text, where), None, on_speeds)
        self.transition(
            f"{name}_placed", where, f"{name} > 0.5", set=self._taken(name, words), because="a hand chooses two points"
        )
        straight = [suffix for suffix in rows if suffix in self.space.letters]
        turns = [suffix for suffix in rows if suffix.startswith("turn")]
        engaged = {"pin": straight, "weld": [*straight, *turns], "angle": turns}
        for number, kind in enumerate(KINDS, 1):
            states = {f"{name}_{suffix}": "engaged" for suffix in engaged.get(kind, [kind]) if suffix in rows}
            self.transition(
                f"{name}_{kind}", where, f"{name}_kind == {number}", switches=states, because=f"a hand imposes: {kind}"
            )
        self.transition(
            f"{name}_released", where, f"{name} - 0.5", crossing="falling", set={f"{name}_kind": "0"},
            switches={f"{name}_{suffix}": "released" for suffix in rows}, because="a hand releases a constraint",
        )  # fmt: skip

    # -- vectors of chosen bodies -------------------------------------------------------------------------

    def _axis(self, number: str, letter: str) -> str:
        """Return an axis of the chosen body."""
        frames = [(body.frame or "N") if body else "N" for body in self._bodies]
        return "(" + " + ".join(f"{_is(number, k)}*{frame}.{letter}" for k, frame in enumerate(frames)) + ")"

    def _centre(self, number: str) -> str:
        """Return the position of the centre of the chosen body; that of the ground is the origin."""
        return "(" + " + ".join(
            f"{_is(number, k)}*pos({body.center})" for k, body in enumerate(self._bodies) if body is not None
        ) + ")"  # fmt: skip

    def _chosen_place(self, name: str, side: str) -> str:
        """Return the position of the chosen point of the chosen body."""
        number = f"{name}_{side}"
        arm = " + ".join(f"{number}{e}*{self._axis(number, e)}" for e in self.space.letters)
        return f"({self._centre(number)} + {self.space.metre}*({arm}))"

    def _turn(self, name: str) -> tuple[str, str]:
        """Return cosine and sine of the angle of the first body relative to the second, in the plane."""
        first = self._axis(f"{name}_a", "x")
        return tuple(f"dot({first}, {self._axis(f'{name}_b', e)})" for e in "xy")  # type: ignore[return-value]

    def _spin(self, number: str) -> str:
        """Return the angular velocity of the chosen body."""
        spins = [f"{_is(number, k)}*omega({body.frame})" for k, body in enumerate(self._bodies) if body and body.frame]
        return "(" + " + ".join(spins or ["0*N.z" if self.space.metre == "1" else "0 rad/s*N.z"]) + ")"

    def _off_line(self, name: str) -> str:
        """Return the distance of the first place from a line in the second body, in the plane."""
        along, across = (self._axis(f"{name}_b", e) for e in "xy")
        return f"dot({self._apart(name)}, {name}_dx*{across} - {name}_dy*{along})"

    def _apart(self, name: str) -> str:
        return f"({self._chosen_place(name, 'a')} - {self._chosen_place(name, 'b')})"

    def _value(self, name: str) -> str:
        """Return the chosen coordinate, divided by its unit."""
        named = enumerate(self.mechanism.coordinates)
        return "(" + " + ".join(f"{_is(f'{name}_a', k)}*{word}/({self.one_of(word)})" for k, word in named) + ")"

    # -- rows and their memory -----------------------------------------------------------------------------

    def _rows(self, name: str) -> dict[str, tuple[str, bool]]:
        """Return the rows by suffix, and whether each is on speeds."""
        apart, m, ref = self._apart(name), self.space.metre, f"{name}_ref"
        rows = {e: (f"dot({apart}, N.{e})", False) for e in self.space.letters}
        if self.space.letters == "xyz":
            spin = f"({self._spin(f'{name}_a')} - {self._spin(f'{name}_b')})"
            rows |= {f"turn_{e}": (f"dot({spin}, N.{e})", True) for e in "xyz"}
        else:
            cosine, sine = self._turn(name)
            rows["turn"] = f"({sine})*{name}_cos - ({cosine})*{name}_sin", False
            rows["line"] = f"{self._off_line(name)} - {ref}*{m}", False
        rows["distance"] = f"dot({apart}, {apart})/(2*{ref}*{m}) - {ref}*{m}/2", False
        rows["coordinate"] = f"{self._value(name)} - {ref}", False
        return rows

    def _taken(self, name: str, words: Sequence[str]) -> dict[str, str]:
        """Return the new values of the memory of a constraint, from the inputs of the request."""
        found = {f"{name}_{word}": f"{_STEM}_{word}" for word in words}
        m, kind, second = self.space.metre, f"{_STEM}_kind", f"{_STEM}_b"
        arm = f"({self._chosen_place(_STEM, 'a')} - {self._centre(second)})"
        for e in self.space.letters:
            found[f"{name}_b{e}"] = f"where({kind} < 2.5, dot({arm}, {self._axis(second, e)})/({m}), {second}{e})"
        apart = self._apart(_STEM)
        length = f"max(sqrt(dot({apart}, {apart}))/({m}), 1e-6)"
        line = f"({self._off_line(_STEM)})/({m})" if self.space.letters == "xy" else "0"
        if self.space.letters == "xy":
            found[f"{name}_cos"], found[f"{name}_sin"] = self._turn(_STEM)
        found[f"{name}_ref"] = f"where({kind} < 4.5, {length}, where({kind} < 5.5, {line}, {self._value(_STEM)}))"
        return found


def hand_slots(mechanism: Mechanism) -> int:
    """Return how many constraints a hand can impose at once."""
    return sum(slot_name(number) in mechanism.inputs for number in range(1, MOST_AT_ONCE + 1))


def hand_inputs(mechanism: Mechanism) -> tuple[str, ...]:
    """Return the inputs that the constraints of a hand use."""
    count = hand_slots(mechanism)
    if not count:
        return ()
    return (*request_inputs("xy" if is_planar(mechanism) else "xyz"), *map(slot_name, range(1, count + 1)))


def is_planar(mechanism: Mechanism) -> bool:
    """Whether the places of a hand have two components."""
    return f"{_STEM}_az" not in mechanism.inputs
