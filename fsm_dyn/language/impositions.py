"""The section ``imposed``, and the constraints of a hand: rows that a schedule, a command or a force switches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import ClassVar, Final, Self, TypeVar

from fsm_dyn.core.errors import Location, ModelError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.contact_forms import FRICTION, Friction
from fsm_dyn.language.contacts import FeatureContact, LawContact
from fsm_dyn.language.dimensions import uses_units
from fsm_dyn.language.elements import BOOLEAN, EulerFrame, ExpressionSchedule, Input, RotatedFrame, Schedule
from fsm_dyn.language.expression_tree import MadeText, Text
from fsm_dyn.language.form import pair_of_names
from fsm_dyn.language.keyed import NamedEntry, exactly_one, only_with
from fsm_dyn.language.keys import NAME, POSITIVE, TEXT, expression, key, leaf, list_of, reference
from fsm_dyn.language.laws import LIMITED_LOCK
from fsm_dyn.language.model import Body, DiscreteVariable, Mechanism, TransitionSpec
from fsm_dyn.language.units import DIMENSIONLESS, LENGTH, TIME
from fsm_dyn.language.yaml import LocatedStr, where_of
from fsm_dyn.runtime.abi import Event

# -- The section ``imposed`` ---------------------------------------------------------------------------------

GROUND: Final = "ground"
_COMPANIONS: Final = {
    "pin": ("holds_to", "within", "draw_in"), "line": ("holds_to", "along", "within", "draw_in"),
    "contact": ("friction", "restitution"),
}  # fmt: skip
KINDS: Final = ("pin", "weld", "angle", "distance", "line", "coordinate")  # of rows that hold, by their numbers
CONTACT: Final = "contact"

_POINTS: Final = leaf(pair_of_names, list_of(NAME, 2, 2), "two points", example=["O", "P"])
_PLACES: Final = leaf(
    pair_of_names, list_of(NAME, 2, 2), "a point, and a point, a body or `ground`", example=["P", GROUND]
)
_SHAPES: Final = leaf(
    pair_of_names, list_of(NAME, 2, 2), "two shapes that no contact lists", example=["ball", "ground"]
)
_SEGMENTS: Final = leaf(pair_of_names, list_of(NAME, 2, 2), "two bodies, or a body and `ground`", example=["b", GROUND])


@dataclass(frozen=True, kw_only=True)
class Imposition(NamedEntry):
    """A constraint that holds while the boolean input of its name is true."""

    what: ClassVar[str] = "a constraint to impose"
    example: ClassVar[str] = "catch: {pin: [P, ground], holds_to: 20 N}"

    pin: tuple[str, str] | None = key(_PLACES, "a point stays on a point, or at its coordinates in a body", None)
    weld: tuple[str, str] | None = key(_SEGMENTS, "two bodies move as one", None)
    angle: tuple[str, str] | None = key(_SEGMENTS, "the angle between two bodies in the plane stays", None)
    distance: tuple[str, str] | None = key(_POINTS, "the distance of two points stays", None)
    line: tuple[str, str] | None = key(_POINTS, "the first point stays on a line through the second", None)
    along: str | None = key(TEXT, "axis of a frame, the direction of `line`", None, example="N.x")
    coordinate: str | None = reference("a coordinate", "it stays at its value", None)
    contact: tuple[str, str] | None = key(
        _SHAPES, "two shapes touch that pass through each other otherwise", None, later=True
    )
    friction: Friction | None = key(FRICTION, "of a `contact`", None, later=True)
    restitution: Text | None = expression(
        "of a `contact`", None, unit=DIMENSIONLESS, scope="logic", usual="0", example=0.3, later=True
    )
    at: Text | None = expression("from this time on", None, unit=TIME)
    until: Text | None = expression("up to this time", None, unit=TIME, usual="the end")
    holds_to: Text | None = expression(
        "largest force of each of its rows", None, scope="logic", unit=lambda entry, found: None
    )
    within: Text | None = expression(
        "largest distance, held as it is, of what a `pin` or a `line` joins", None, unit=LENGTH, bounds=POSITIVE,
        usual="1 mm",
    )  # fmt: skip
    draw_in: Text | None = expression(
        "time in which a distance goes to zero, however large, instead of being refused", None, unit=TIME,
        bounds=POSITIVE,
    )  # fmt: skip

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"imposed constraint {str(self.name)!r}"

    def checked(self) -> Self:
        """Return the entry, with one of the keys of its kind.

        Raises ModelError: it has none of them, or several; a key belongs to another one.
        """
        kind = exactly_one(self, (*KINDS, CONTACT))
        only_with(self, kind, ("at", "until", *_COMPANIONS.get(kind, ("holds_to",))))
        return self

    @property
    def kind(self) -> str:
        """The key of its kind."""
        return next(kind for kind in (*KINDS, CONTACT) if getattr(self, kind) is not None)

    @property
    def schedule(self) -> Schedule | None:
        """The schedule of its input by its times; None without times."""
        if self.at is None and self.until is None:
            return None
        begins = "" if self.at is None else f"t >= ({self.at.text})"
        ends = "" if self.until is None else f"t < ({self.until.text})"
        text = " and ".join(filter(None, (begins, ends)))
        return ExpressionSchedule(value=Text(text, self.where), where=self.where)

    @property
    def between(self) -> tuple[str, ...]:
        """The two names that it joins, or its coordinate."""
        joined: str | tuple[str, str] = getattr(self, self.kind)
        return (joined,) if isinstance(joined, str) else joined

    @property
    def sentence(self) -> str:
        """Its effect as a text."""
        first, *second = self.between
        other = second[0] if second else ""
        return {
            "pin": f"{first} is pinned to {other}", "weld": f"{first} is welded to {other}",
            "angle": f"the angle between {first} and {other} is held",
            "distance": f"the distance from {first} to {other} is held",
            "line": f"{first} is held on a line through {other}", "coordinate": f"{first} is held",
            "contact": f"{first} and {other} touch each other",
        }[self.kind]  # fmt: skip


# -- Places and rows as texts --------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextAxes:
    """Axes of the mechanism's space, and the unit of length in its texts."""

    letters: str
    metre: str
    second: str

    @classmethod
    def of(cls, mechanism: Mechanism) -> TextAxes:
        """Return that of a mechanism."""
        units = uses_units(mechanism)
        letters = "xyz" if is_spatial(mechanism) else "xy"
        return cls(letters, "1 m" if units else "1", "1 s" if units else "1")

    def products(self, first: Mapping[str, str], second: Mapping[str, str]) -> str:
        """Return the text of a sum of products of components."""
        return " + ".join(f"({first[e]})*({second[e]})" for e in self.letters)


def is_spatial(mechanism: Mechanism) -> bool:
    """Whether anything of a mechanism turns or moves out of the plane of N.x and N.y."""
    for frame in mechanism.frames.values():
        if isinstance(frame, EulerFrame):
            return True
        if isinstance(frame, RotatedFrame) and any(axis != "z" for axis, _ in frame.rotations):
            return True
    return any(f"{frame}.z" in point.at.text.replace(" ", "") for point in mechanism.points.values()
               for frame in ("N", *mechanism.frames))  # fmt: skip


def in_body(space: TextAxes, body: Body | None, local: Mapping[str, str]) -> dict[str, str]:
    """Return the components along N of a point of a body (None: the ground), from those along the body's axes."""
    if body is None:
        return {e: f"{local[e]}*{space.metre}" for e in space.letters}
    frame = body.frame or "N"
    return {
        e: f"dot(pos({body.center}), N.{e}) + {space.metre}*("
        + " + ".join(f"{local[a]}*dot({frame}.{a}, N.{e})" for a in space.letters) + ")"
        for e in space.letters
    }  # fmt: skip


def place_in_body(space: TextAxes, body: Body | None, at: Mapping[str, str]) -> dict[str, str]:
    """Return the components along a body's axes, in metres, of a place given along N."""
    if body is None:
        return {e: f"({at[e]})/({space.metre})" for e in space.letters}
    frame = body.frame or "N"
    arm = {e: f"{at[e]} - dot(pos({body.center}), N.{e})" for e in space.letters}
    return {
        a: "(" + " + ".join(f"({arm[e]})*dot({frame}.{a}, N.{e})" for e in space.letters) + f")/({space.metre})"
        for a in space.letters
    }


def heading(body: Body | None) -> tuple[str, str]:
    """Return cosine and sine of a body's angle in the plane."""
    if body is None or body.frame is None:
        return "1", "0"
    return f"dot({body.frame}.x, N.x)", f"dot({body.frame}.x, N.y)"


def turn_between(first: tuple[str, str], second: tuple[str, str]) -> tuple[str, str]:
    """Return cosine and sine of an angle less another."""
    (ca, sa), (cb, sb) = first, second
    return f"({ca})*({cb}) + ({sa})*({sb})", f"({sa})*({cb}) - ({ca})*({sb})"


# -- Entries of the mechanism --------------------------------------------------------------------------------
#
# A constraint to impose is written out, as joints are: locks on rows whose reference is memory, an input, and the
# transitions that take the reference, engage and release. Rows are held as they are at that instant, so nothing jumps
# but the speeds, by the impulse of the rows (docs/theory.md, "Imposed constraints").

EntryT = TypeVar("EntryT")
_NEAR: Final = "1e-3"  # m


@dataclass
class _Rows:
    """The rows of one imposition: texts by suffix, memory of their references, condition of refusal."""

    rows: dict[str, str] = field(default_factory=dict)  # on coordinates
    rates: dict[str, str] = field(default_factory=dict)  # on speeds
    memory: dict[str, str] = field(default_factory=dict)  # by name the value taken
    refused_if: str = ""


class ImpositionWriter:
    """Adds imposed constraints to a mechanism."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism, self.space = mechanism, TextAxes.of(mechanism)
        self.contacts, self.inputs = dict(mechanism.contacts), dict(mechanism.inputs)
        self.memory, self.transitions = dict(mechanism.memory), list(mechanism.transitions)

    def done(self) -> Mechanism:
        """Return the mechanism with all that was added."""
        return replace(
            self.mechanism, contacts=self.contacts, inputs=self.inputs, memory=self.memory,
            transitions=tuple(self.transitions),
        )  # fmt: skip

    # -- a written entry -----------------------------------------------------------------------------------

    def impose(self, entry: Imposition) -> None:
        """Add one entry of the section."""
        name, where = str(entry.name), entry.where
        on = f"{name}_on"
        self.remember(on, where, boolean=True)
        if entry.kind == CONTACT:
            self._let_touch(entry, on)
            return
        made = getattr(self, f"_{entry.kind}")(entry)
        for word in made.memory:
            self.remember(word, where)
        for suffix, text in (*made.rows.items(), *made.rates.items()):
            limit = entry.holds_to if suffix != "turn" or entry.kind == "angle" else None
            self.lock(name, suffix, Text(text, where), limit, suffix in made.rates)
        if made.refused_if:
            self.transition(
                f"{name}_refused", where, f"{name} and not {on} and {made.refused_if}", stop=True,
                because=f"{name} cannot be imposed: {' and '.join(entry.between)} are too far apart",
            )  # fmt: skip
        self.transition(
            f"{name}_placed", where, name, set={on: "true", **made.memory},
            because=f"{name} takes its references",
        )  # fmt: skip
        self._switch(name, where, on, [*made.rows, *made.rates], f"{name} is imposed: {entry.sentence}")
        for suffix in (*made.rows, *made.rates) if entry.holds_to is not None else ():
            others = [other for other in (*made.rows, *made.rates) if other != suffix]
            if others and (suffix != "turn" or entry.kind == "angle"):
                self.transition(
                    f"{name}_{suffix}_breaks", where, on=(f"{name}_{suffix}", LIMITED_LOCK.verbs[Event.OPENS]),
                    switches={f"{name}_{other}": "released" for other in others},
                    because=f"{name} gives way: its force has reached the limit",
                )  # fmt: skip

    def _let_touch(self, entry: Imposition, on: str) -> None:
        """Let two shapes touch while ``on``, by which their contacts close; what is closed opens with the release."""
        name, where = str(entry.name), entry.where
        own = [str(contact.name) for contact in self.contacts.values()
               if isinstance(contact, FeatureContact) and contact.imposed == name]  # fmt: skip
        self.transition(
            f"{name}_imposed", where, name, set={on: "true"}, because=f"{name} is imposed: {entry.sentence}"
        )
        self.transition(
            f"{name}_released", where, f"where({name}, 1, 0) - 0.5", set={on: "false"}, crossing="falling",
            switches=dict.fromkeys(own, "open"), because=f"{name} is released",
        )  # fmt: skip

    def _pin(self, entry: Imposition) -> _Rows:
        first, second = self._place(entry, 0), entry.between[1]
        if self._is_point(second):
            return self._joined(entry, first, self._point(second), [f"N.{e}" for e in self.space.letters])
        return self._held_in(entry, first, self._body(entry, second))

    def _held_in(self, entry: Imposition, at: Mapping[str, str], body: Body | None) -> _Rows:
        """Hold a point at its present coordinates in a body."""
        local = {e: f"{entry.name}_{e}0" for e in self.space.letters}
        there = in_body(self.space, body, local)
        taken = place_in_body(self.space, body, at)
        return _Rows(
            {e: f"{at[e]} - ({there[e]})" for e in self.space.letters},
            memory={local[e]: taken[e] for e in self.space.letters},
        )

    def _joined(
        self, entry: Imposition, first: Mapping[str, str], second: Mapping[str, str], axes: Sequence[str]
    ) -> _Rows:
        """Keep the distance of two places along some axes, as it is or drawn in."""
        space, name, made = self.space, entry.name, _Rows()
        apart = {e: f"{first[e]} - ({second[e]})" for e in space.letters}
        shares = []
        for axis in axes:
            frame, letter = axis.split(".")
            at = apart[letter] if frame == "N" else space.products(
                apart, {e: f"dot({axis}, N.{e})" for e in space.letters}
            )  # fmt: skip
            left, share = f"{name}_{letter}0", self._share(entry, made)
            made.rows[letter] = f"{at} - {left}*{space.metre}{share}"
            made.memory[left] = f"({at})/({space.metre})"
            shares.append(f"({at})**2")
        if entry.draw_in is None:
            near = f"({entry.within.text})" if entry.within is not None else self._near()
            made.refused_if = f"{' + '.join(shares)} > {near}**2"
        return made

    def _near(self) -> str:
        return f"({_NEAR} m)" if self.space.metre != "1" else _NEAR

    def _share(self, entry: Imposition, made: _Rows) -> str:
        """Return the factor of a distance that is drawn in: from 1 to 0, with two continuous rates."""
        if entry.draw_in is None:
            return ""
        since = f"{entry.name}_since"
        made.memory[since] = f"t/({self.space.second})"
        s = f"((t - {since}*{self.space.second})/({entry.draw_in.text}))"
        return f"*where({s} < 1, (1 - {s})**3*(1 + 3*{s} + 6*{s}**2), 0)"

    def _weld(self, entry: Imposition) -> _Rows:
        first, second = (self._body(entry, word) for word in entry.between)
        if first is None:
            raise ModelError(
                f"{entry.label}: only a body is welded", entry.key("weld"), found=GROUND,
                remedy=f"[body, {GROUND}]",
            )  # fmt: skip
        made = self._held_in(entry, self._point(str(first.center)), second)
        if first.frame is None:
            return made
        if self.space.letters == "xyz":
            frames = [f"omega({body.frame})" for body in (first, second) if body is not None and body.frame]
            turning = " - ".join(frames)
            made.rates |= {f"turn_{e}": f"dot({turning}, {first.frame}.{e})" for e in "xyz"}
            return made
        angle = self._angle_between(entry, first, second)
        made.rows |= angle.rows
        made.memory |= angle.memory
        return made

    def _angle(self, entry: Imposition) -> _Rows:
        first, second = (self._body(entry, word) for word in entry.between)
        if self.space.letters == "xyz":
            raise ModelError(
                f"{entry.label}: an angle is held in the plane", entry.key("angle"),
                remedy="`weld` the bodies, or hold a `coordinate`",
            )  # fmt: skip
        return self._angle_between(entry, first, second)

    def _angle_between(self, entry: Imposition, first: Body | None, second: Body | None) -> _Rows:
        cosine, sine = turn_between(heading(first), heading(second))
        if (cosine, sine) == turn_between(heading(None), heading(None)):
            raise ModelError(
                f"{entry.label}: neither of them turns", entry.key(entry.kind), found=", ".join(entry.between),
                allowed="bodies with frames",
            )  # fmt: skip
        c0, s0 = f"{entry.name}_cos0", f"{entry.name}_sin0"
        return _Rows({"turn": f"({sine})*{c0} - ({cosine})*{s0}"}, memory={c0: cosine, s0: sine})

    def _distance(self, entry: Imposition) -> _Rows:
        first, second = (self._place(entry, k) for k in (0, 1))
        apart = {e: f"{first[e]} - ({second[e]})" for e in self.space.letters}
        square, left, m = self.space.products(apart, apart), f"{entry.name}_length0", self.space.metre
        return _Rows(
            {"row": f"({square})/(2*{left}*{m}) - {left}*{m}/2"},
            memory={left: f"sqrt({square})/({m})"}, refused_if=f"{square} < (1e-6*{m})**2",
        )  # fmt: skip

    def _line(self, entry: Imposition) -> _Rows:
        frame, _, letter = (entry.along or "").replace(" ", "").partition(".")
        if frame not in {"N", *self.mechanism.frames} or letter not in tuple("xyz"):
            raise ModelError(
                f"{entry.label} lacks the direction of its line", entry.key("along" if entry.along else "line"),
                found=entry.along or "", allowed="an axis of a frame", remedy="`along: N.x`",
            )  # fmt: skip
        across = [f"{frame}.{other}" for other in self.space.letters if other != letter]
        return self._joined(entry, self._place(entry, 0), self._place(entry, 1), across)

    def _coordinate(self, entry: Imposition) -> _Rows:
        name = entry.between[0]
        if name not in self.mechanism.coordinates:
            raise self._unknown(entry, name, "coordinate", self.mechanism.coordinates)
        left, one = f"{entry.name}_value0", self.one_of(name)
        return _Rows({"row": f"{name} - {left}*{one}"}, memory={left: f"{name}/({one})"})

    def one_of(self, coordinate: str) -> str:
        """Return the unit of a coordinate as a value."""
        unit = self.mechanism.coordinates[coordinate].unit
        return "1" if self.space.metre == "1" or unit in ("", "1") else "1 rad" if unit == "deg" else f"1 {unit}"

    # -- names ---------------------------------------------------------------------------------------------

    def _is_point(self, name: str) -> bool:
        return name == "O" or name in self.mechanism.points

    def _point(self, name: str) -> dict[str, str]:
        return {e: f"dot(pos({name}), N.{e})" for e in self.space.letters}

    def _place(self, entry: Imposition, number: int) -> dict[str, str]:
        name = entry.between[number]
        if not self._is_point(name):
            raise self._unknown(entry, name, "point", self.mechanism.points)
        return self._point(name)

    def _body(self, entry: Imposition, name: str) -> Body | None:
        if name == GROUND:
            return None
        if name not in self.mechanism.bodies:
            raise self._unknown(entry, name, "body", [*self.mechanism.bodies, GROUND])
        return self.mechanism.bodies[name]

    def _unknown(
        self, entry: Imposition, name: str, what: str, allowed: Mapping[str, object] | list[str]
    ) -> ModelError:
        return ModelError(
            f"{entry.label} names no {what} of the model", where_of(name), found=str(name),
            allowed=", ".join(allowed), remedy=did_you_mean(name, allowed),
        )  # fmt: skip

    # -- added entries -------------------------------------------------------------------------------------

    def put(self, section: dict[str, EntryT], name: str, value: EntryT, where: Location) -> None:
        """Add an entry to a section. Raises ModelError: its name is taken."""
        if name in section:
            raise ModelError(
                f"an imposed constraint makes {name!r}, which already exists", where, remedy="rename the constraint"
            )
        section[LocatedStr(name, where)] = value

    def remember(self, name: str, where: Location, *, boolean: bool = False, start: int = 1) -> None:
        """Add memory; a boolean begins as false."""
        self.put(self.memory, name, DiscreteVariable(name, 0 if boolean else start, boolean, where), where)

    def lock(self, name: str, suffix: str, row: Text, limit: Text | None, on_speeds: bool) -> None:
        """Add one row of a constraint, with the largest force that it holds to, if there is one."""
        own = LocatedStr(f"{name}_{suffix}", row.where)
        law = "lock" if limit is None else "limited_lock"
        contact = LawContact(
            name=own, law=law, gap=None if on_speeds else row, slip=row if on_speeds else None, static=limit,
            imposed=name, where=row.where,
        )  # fmt: skip
        self.put(self.contacts, own, contact, row.where)

    def _switch(self, name: str, where: Location, when: str, suffixes: Sequence[str], because: str) -> None:
        """Engage rows when a condition of memory becomes true, and release them when the input falls."""
        own = [f"{name}_{suffix}" for suffix in suffixes]
        self.transition(
            f"{name}_imposed", where, when, switches=dict.fromkeys(own, "engaged"), because=because
        )  # fmt: skip
        self.transition(
            f"{name}_released", where, f"where({name}, 1, 0) - 0.5", set={when: "false"}, crossing="falling",
            switches=dict.fromkeys(own, "released"), because=f"{name} is released",
        )  # fmt: skip

    def transition(
        self, name: str, where: Location, when: str = "", *, set: Mapping[str, str] | None = None, **more: object
    ) -> None:
        """Add a transition from any mode; ``more`` are fields of it."""
        self.transitions.append(
            TransitionSpec(
                name, "*", when=Text(when, where) if when else None, where=where,
                set={word: MadeText(value, where) for word, value in (set or {}).items()},
                **more,  # type: ignore[arg-type]
            )
        )  # fmt: skip


def imposed_inputs(entries: Mapping[str, Imposition]) -> dict[str, Input]:
    """Return the inputs of constraints to impose: each holds while its input is true."""
    return {name: Input(name, BOOLEAN, entry.schedule, entry.where) for name, entry in entries.items()}


def with_imposed(mechanism: Mechanism, entries: Mapping[str, Imposition]) -> Mechanism:
    """Return the mechanism with its constraints to impose written out: locks, memory, transitions.

    ``mechanism``: with the inputs of these constraints. Raises ModelError: an entry has an unknown name, or makes a
    name that exists.
    """
    if not entries:
        return mechanism
    writer = ImpositionWriter(replace(mechanism, imposed=entries))
    for entry in entries.values():
        writer.impose(entry)
    return writer.done()


def imposed_contacts(mechanism: Mechanism) -> Iterator[str]:
    """Yield the names of the locks and contacts of constraints to impose."""
    for name, contact in mechanism.contacts.items():
        if isinstance(contact, LawContact | FeatureContact) and contact.imposed:
            yield str(name)


# -- Constraints between any places of any bodies, imposed by a person in a live run ---------------------------


MOST_AT_ONCE: Final = 8
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

    ``mechanism``: with its joints as coordinates; ``count``: how many at once. Raises ModelError: a name is taken.
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
