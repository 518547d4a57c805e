"""The contact laws: states, forces, guards, events, words and keys of each.

A law is data.  Python derives guards, draws edges and names causes from it, and the library gets its properties as bits
of ``contact_flags`` (``fsm_dyn/runtime/codes.h``); no other module asks for the law of a contact, only for its
properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Final, Literal, Protocol, TypeAlias

from fsm_dyn.core.records import dataclass
from fsm_dyn.runtime.abi import ContactState, Event, GuardQuantity

# -- Declaration of a law ------------------------------------------------------------------------------------

FREE: Final = int(ContactState.FREE)
HELD: Final = int(ContactState.HELD)
SLIDING: Final = int(ContactState.SLIDING)
SLIDING_UNDER: Final = int(ContactState.SLIDING_UNDER)


Normal: TypeAlias = Literal["constraint", "force law", "switched", "none"]


class Traits(Protocol):
    """Properties of a contact that, with its state, decide which guards it has; a part of ``ContactInfo``."""

    @property
    def frictional(self) -> bool:
        """Whether it has a friction force."""

    @property
    def sticks_always(self) -> bool:
        """Whether its friction is infinite."""

    @property
    def in_space(self) -> bool:
        """Whether it slips in two directions."""

    @property
    def bounded_face(self) -> bool:
        """Whether a face of it ends."""

    @property
    def lossy(self) -> bool:
        """Whether its force may vanish before the gap opens."""

    @property
    def crossing(self) -> bool:
        """Whether it is of two edges of polyhedra."""

    @property
    def outlined(self) -> bool:
        """Whether the other faces of a convex polygon share its guard for closing."""


def always(_: Traits) -> bool:
    """Return True, for all contacts."""
    return True


@dataclass(frozen=True)
class Watched:
    """A guard of some states of a contact.

    Attributes
    ----------
    states : tuple of int
        Codes of the states with this guard.
    quantity : GuardQuantity
    event : Event
    leads_to : tuple of int
        Codes of the possible new states, without the present one.
    text : str
        The measured quantity as text; followed by "of" and the contact's name.
    sign : float
        The guard is the quantity times this.
    directions : tuple of float
        Slip directions, or signs of a force, with a guard each.
    when : callable
        Whether a contact of the law has it.
    """

    states: tuple[int, ...]
    quantity: GuardQuantity
    event: Event
    leads_to: tuple[int, ...]
    text: str
    sign: float = 1.0
    directions: tuple[float, ...] = (0.0,)
    when: Callable[[Traits], bool] = always


@dataclass(frozen=True)
class Option:
    """A key of the entry of a law in a model file, an expression.

    ``field``: of :class:`fsm_dyn.language.contacts.Contact`, its field: ``gap`` (of coordinates), ``slip`` (of speeds),
    ``static`` or ``kinetic`` (bounds of a force); ``loaded_by``: no expression, but the name of a contact.
    """

    key: str
    field: Literal["gap", "slip", "across", "static", "kinetic", "loaded_by"]


@dataclass(frozen=True)
class Entry:
    """Form of a contact with a law in a model file: ``key: {option: expression, ...}``.

    Attributes
    ----------
    key : str
        Laws may share a key: the law is the one with all of its required options given.
    what : str
        Noun for the entry, in messages.
    needs : tuple of Option
    one_of : tuple of Option
        Alternatives: exactly one is given.
    summary : str
        For the JSON Schema.
    """

    key: str
    what: str
    summary: str
    needs: tuple[Option, ...] = ()
    one_of: tuple[Option, ...] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        """All options."""
        return (*self.one_of, *self.needs)


@dataclass(frozen=True)
class Law:
    """One contact law.

    Attributes
    ----------
    name : str
        Kind of its contacts.
    normal : str
        Origin of the normal force: a constraint force of the contact problem, a force law of the state, a constraint
        switched by transitions, or none, with given bounds of friction.
    states : callable
        Names of the states by code, empty for unused codes; arguments: whether there is friction, whether it is
        infinite.
    guards : tuple of Watched
        In the order of a mode's list.
    events : callable
        Words of the events for user-defined transitions; arguments: whether there is friction, whether it is infinite,
        whether a face ends.
    verbs, signs : mapping
        Verb of the event and its criterion, by event.
    became : mapping
        Verb for a change of state without a guard of its own, by new state; if missing, the name of the state.
    bilateral : bool
        Always closed, and its normal force may have either sign.
    has_gap : bool
        Whether there is a gap; else the law is on the level of speeds.
    force_limit : bool
        Whether its constraint releases at a force, the term ``static``.
    loaded : bool
        Whether its bounds are coefficients of the resultant force of constraint rows, or of a normal force.
    normal_noun, bound_noun : str
        Names of the expressions of its normal row and of its bound in messages.
    entry : Entry or None
        Its entry in a model file, if it has one.
    """

    name: str
    normal: Normal
    states: Callable[[bool, bool], tuple[str, ...]]
    guards: tuple[Watched, ...] = ()
    events: Callable[[bool, bool, bool], tuple[str, ...]] = field(default=lambda frictional, infinite, limited: ())
    verbs: Mapping[Event, str] = field(default_factory=dict)
    signs: Mapping[Event, str] = field(default_factory=dict)
    became: Mapping[str, str] = field(default_factory=dict)
    bilateral: bool = False
    has_gap: bool = False
    force_limit: bool = False
    loaded: bool = False
    normal_noun: str = "gap of"
    bound_noun: str = "static friction"
    entry: Entry | None = None

    @property
    def rigid(self) -> bool:
        """Whether its normal force is a constraint force of the contact problem."""
        return self.normal == "constraint"

    @property
    def compliant(self) -> bool:
        """Whether its normal force is a function of the state."""
        return self.normal == "force law"

    @property
    def switched(self) -> bool:
        """Whether transitions switch its constraint."""
        return self.normal == "switched"

    @property
    def friction_only(self) -> bool:
        """Whether it is a friction force with given bounds."""
        return self.normal == "none"

    def guards_of(self, contact: Traits, code: int) -> Iterator[Watched]:
        """Yield the guards of a contact in one of its states.

        Parameters
        ----------
        contact : Traits
        code : int
            Of the state.
        """
        for guard in self.guards:
            if code in guard.states and guard.when(contact):
                yield guard

    def ends_in(self, contact: Traits, code: int, event: Event) -> tuple[int, ...]:
        """Return the codes of the possible states after an event, of a contact in one of its states.

        Parameters
        ----------
        contact : Traits
        code : int
            Of the state.
        event : Event

        Returns
        -------
        tuple of int
            Empty if no guard of the state has this event.
        """
        return next((guard.leads_to for guard in self.guards_of(contact, code) if guard.event is event), ())

    def event_named(self, word: str) -> Event:
        """Return the event of a word of :attr:`events`."""
        return next(event for event, verb in {**WORDS, **self.verbs}.items() if verb == word)

    @property
    def words(self) -> tuple[str, ...]:
        """All possible words of its events, for any properties of the contact."""
        both = (False, True)
        return tuple({word: None for a in both for b in both for c in both for word in self.events(a, b, c)})

    def word(self, event: Event) -> str:
        """Return the word of an event in model files."""
        return self.verbs.get(event, WORDS[event])

    def verb(self, event: Event) -> str:
        """Return the verb of an event, for messages."""
        return self.verbs.get(event, VERBS[event])

    def sign(self, event: Event) -> str:
        """Return the criterion of an event."""
        return self.signs.get(event, SIGNS[event])


VERBS: Final[Mapping[Event, str]] = {
    Event.CLOSES: "closes",
    Event.OPENS: "opens",
    Event.SLIDES: "slides",
    Event.STICKS: "sticks",
    Event.LEAVES: "leaves its face",
}
WORDS: Final[Mapping[Event, str]] = {**VERBS, Event.LEAVES: "leaves_face"}
SIGNS: Final[Mapping[Event, str]] = {
    Event.CLOSES: "gap zero",
    Event.OPENS: "normal force zero",
    Event.SLIDES: "friction limit reached",
    Event.STICKS: "slip velocity zero",
    Event.LEAVES: "end of its face",
}


# -- The laws ------------------------------------------------------------------------------------------------

# -- Coulomb friction ----------------------------------------------------------------------------------------
#
# Shared by several laws: its guards, along one line or in space (docs/theory.md).


def _along_a_line(contact: Traits) -> bool:
    return contact.frictional and not contact.sticks_always and not contact.in_space


def _in_space(contact: Traits) -> bool:
    return contact.frictional and not contact.sticks_always and contact.in_space


def _limited(contact: Traits) -> bool:
    return contact.bounded_face


#: of sticking along one line: the friction force opposes the coming slip, so there is one guard for each direction
LIMIT: Final = Watched(
    (HELD,), GuardQuantity.FRICTION_LIMIT, Event.SLIDES, (SLIDING,), "friction limit", directions=(-1.0, 1.0),
    when=_along_a_line,
)  # fmt: skip
CIRCLE: Final = Watched(
    (HELD,), GuardQuantity.FRICTION_CIRCLE, Event.SLIDES, (SLIDING,), "friction limit", when=_in_space
)
REST: Final = Watched((SLIDING, SLIDING_UNDER), GuardQuantity.SLIP, Event.STICKS, (HELD,), "slip speed")
END_OF_FACE: Final = Watched((HELD, SLIDING), GuardQuantity.REACH, Event.LEAVES, (0,), "end of the face", when=_limited)


#: verbs for a change of state without a guard of its own, by new state
BECAME: Final = {
    "open": "opens", "closed": "closes", "compressed": "closes", "stick": "sticks", "slide": "slides",
    "slide_opposite": "slides",
}  # fmt: skip


def events_of_faces(frictional: bool, infinite: bool, limited: bool) -> tuple[str, ...]:
    """Words of the events of a closing contact, with or without friction, on a face with or without ends.

    Parameters
    ----------
    frictional : bool
        Whether there is friction.
    infinite : bool
        Whether it never slides.
    limited : bool
        Whether the face has ends.

    Returns
    -------
    tuple of str
    """
    closing = ("closes", "opens", *(("leaves_face",) if limited else ()))
    if not frictional:
        return closing
    return (*closing, "sticks") if infinite else (*closing, "sticks", "slides")


# -- The rigid unilateral contact: ``0 ≤ gap ⊥ λ ≥ 0``, with Coulomb friction or without ---------------------


def _gap_states(frictional: bool, infinite: bool) -> tuple[str, ...]:
    if frictional:
        return ("open", "stick") if infinite else ("open", "stick", "slide")
    return ("open", "closed")


def _outlined(contact: Traits) -> bool:
    return contact.outlined


def _alone(contact: Traits) -> bool:
    return not contact.outlined and not contact.crossing


def _crossing(contact: Traits) -> bool:
    return contact.crossing


GAP: Final = Law(
    name="gap",
    normal="constraint",
    has_gap=True,
    states=_gap_states,
    guards=(
        Watched((FREE,), GuardQuantity.GAP, Event.CLOSES, (HELD, SLIDING), "gap", when=_alone),
        Watched((FREE,), GuardQuantity.LARGEST_GAP, Event.CLOSES, (HELD, SLIDING), "gap", when=_outlined),
        Watched((FREE,), GuardQuantity.MEETING, Event.CLOSES, (HELD, SLIDING), "gap", when=_crossing),
        Watched((HELD, SLIDING), GuardQuantity.NORMAL_FORCE, Event.OPENS, (FREE,), "normal force"),
        LIMIT,
        END_OF_FACE,
        CIRCLE,
        REST,
    ),
    events=events_of_faces,
    became=BECAME,
)


# -- The slot, a gap with ``bilateral ------------------------------------------------------------------------
#
# Always closed; its normal force may have either sign, so it has two faces.


def _slot_states(frictional: bool, infinite: bool) -> tuple[str, ...]:
    if not frictional:
        return ("", "closed")
    return ("", "stick") if infinite else ("", "stick", "slide", "slide_opposite")


SLOT: Final = Law(
    name="gap",
    normal="constraint",
    bilateral=True,
    has_gap=True,
    states=_slot_states,
    guards=(
        # the other face takes over
        Watched((SLIDING,), GuardQuantity.NORMAL_FORCE, Event.OPENS, (SLIDING_UNDER,), "normal force"),
        Watched((SLIDING_UNDER,), GuardQuantity.NORMAL_FORCE, Event.OPENS, (SLIDING,), "normal force", sign=-1.0),
        LIMIT,
        REST,
    ),
    events=events_of_faces,
    became=BECAME,
)


# -- Compliant contact ---------------------------------------------------------------------------------------
#
# Normal force as a function of penetration and its rate (Hunt and Crossley 1975).


def _compliant_states(frictional: bool, infinite: bool) -> tuple[str, ...]:
    if frictional:
        return ("open", "stick") if infinite else ("open", "stick", "slide")
    return ("open", "compressed")


def _lossy(contact: Traits) -> bool:
    return contact.lossy


def _lossless(contact: Traits) -> bool:
    return not contact.lossy


COMPLIANT: Final = Law(
    name="compliant",
    normal="force law",
    has_gap=True,
    states=_compliant_states,
    guards=(
        # a body that left faster than the surface follows may meet it again, open, before the gap closes
        Watched((FREE,), GuardQuantity.GAP, Event.CLOSES, (HELD, SLIDING), "gap", when=_lossless),
        Watched((FREE,), GuardQuantity.MEETING, Event.CLOSES, (HELD, SLIDING), "gap", when=_lossy),
        Watched((HELD, SLIDING), GuardQuantity.GAP, Event.OPENS, (FREE,), "depth", sign=-1.0),
        Watched((HELD, SLIDING), GuardQuantity.FIRMNESS, Event.OPENS, (FREE,), "force", when=_lossy),
        LIMIT,
        END_OF_FACE,
        CIRCLE,
        REST,
    ),
    events=events_of_faces,
    became=BECAME,
)


# -- The lock: a bilateral row, engaged and released by transitions ------------------------------------------

POSITION: Final = Option("position", "gap")
VELOCITY: Final = Option("velocity", "slip")

LOCK: Final = Law(
    name="lock",
    normal="switched",
    states=lambda frictional, infinite: ("released", "engaged"),
    normal_noun="position of lock",
    entry=Entry(
        "lock",
        "a lock",
        "A row that transitions engage and release.",
        one_of=(POSITION, VELOCITY),
    ),
)


# -- The lock with a limit -----------------------------------------------------------------------------------
#
# It releases by its own force, as magnets, detents and break-away couplings do. Engaged, it holds as a lock while its
# force is within ``±holds_to``; at the limit it is released, until a transition engages it again. The limit is on
# forces, and an impact exceeds any of them: an impact load releases it, except for the impact of its engagement.

LIMITED_LOCK: Final = Law(
    name="limited_lock",
    normal="switched",
    force_limit=True,
    states=lambda frictional, infinite: ("released", "engaged"),
    guards=(
        Watched((HELD,), GuardQuantity.HOLDING_LIMIT, Event.OPENS, (FREE,), "holding limit", directions=(-1.0, 1.0)),
    ),
    events=lambda frictional, infinite, limited: ("lets go",),
    verbs={Event.OPENS: "lets go"},
    signs={Event.OPENS: "force limit reached"},
    normal_noun="position of lock",
    bound_noun="holding force",
    entry=Entry(
        "lock", "a lock", "A row that transitions engage and release, or that lets go at a force.",
        needs=(Option("holds_to", "static"),), one_of=(POSITION, VELOCITY),
    ),
)  # fmt: skip


# -- The one-way clutch --------------------------------------------------------------------------------------
#
# A unilateral contact on the level of speeds, ``0 ≤ speed ⊥ λ ≥ 0``, as of freewheels and ratchets: free while the
# speed is positive, locked while its force keeps it at zero. If other impulses would make the speed negative at once,
# an impact without rebound locks it.

ONE_WAY: Final = Law(
    name="one_way",
    normal="constraint",
    states=lambda frictional, infinite: ("free", "locked"),
    guards=(
        Watched((FREE,), GuardQuantity.SPEED, Event.CLOSES, (HELD,), "speed"),
        Watched((HELD,), GuardQuantity.NORMAL_FORCE, Event.OPENS, (FREE,), "locking force"),
    ),
    events=lambda frictional, infinite, limited: ("locks", "frees"),
    verbs={Event.CLOSES: "locks", Event.OPENS: "frees"},
    signs={Event.CLOSES: "velocity zero", Event.OPENS: "locking force zero"},
    became={"free": "frees", "locked": "locks"},
    normal_noun="coordinate of one-way clutch",
    entry=Entry(
        "one_way", "a one-way clutch", "A speed that cannot become negative.",
        one_of=(Option("coordinate", "gap"), Option("velocity", "slip")),
    ),
)  # fmt: skip


# -- Dry friction on a speed: a friction force with given bounds, and no normal force ------------------------

_BOUNDED: Final = (Option("speed", "slip"), Option("static", "static"), Option("kinetic", "kinetic"))

DRY_FRICTION: Final = Law(
    name="dry_friction",
    normal="none",
    states=lambda frictional, infinite: ("", "stick", "slide"),
    guards=(LIMIT, REST),
    events=lambda frictional, infinite, limited: ("sticks", "slides"),
    became=BECAME,
    entry=Entry("dry_friction", "dry friction", "Dry friction on a speed.", needs=_BOUNDED),
)


# -- Friction in proportion to a load ------------------------------------------------------------------------
#
# On a speed, bounded in proportion to the resultant of the forces of a joint's rows, or to the normal force of a
# contact, as the resistance of a wheel to rolling and of a foot to turning on the spot.
#
# ``static`` and ``kinetic`` are coefficients of the load; in a journal bearing they contain the radius. In an
# impact there is no impulse of it (docs/theory.md, "Friction of joints").

BEARING: Final = Law(
    name="bearing",
    normal="none",
    loaded=True,
    states=lambda frictional, infinite: ("", "stick", "slide"),
    guards=(LIMIT, REST),
    events=lambda frictional, infinite, limited: ("sticks", "slides"),
    became=BECAME,
    entry=Entry(
        "dry_friction", "dry friction", "Dry friction on a speed, of given forces or in proportion to a normal force.",
        needs=(*_BOUNDED, Option("load", "loaded_by")),
    ),
)  # fmt: skip

RESISTANCE: Final = Law(
    name="resistance",
    normal="none",
    loaded=True,
    states=lambda frictional, infinite: ("", "stick", "slide"),
    guards=(CIRCLE, REST),
    events=lambda frictional, infinite, limited: ("sticks", "slides"),
    became=BECAME,
    entry=Entry(
        "dry_friction", "dry friction", "Dry friction on a speed, of given forces or in proportion to a normal force.",
        needs=(*_BOUNDED, Option("load", "loaded_by"), Option("across", "across")),
    ),
)  # fmt: skip


# -- Contact laws, one file each; other modules use only their declarations ----------------------------------

#: all laws; those of one kind differ by being bilateral
LAWS: Final = (GAP, SLOT, COMPLIANT, DRY_FRICTION, BEARING, RESISTANCE, LOCK, LIMITED_LOCK, ONE_WAY)

_BY_KIND: Final[Mapping[tuple[str, bool], Law]] = {(law.name, law.bilateral): law for law in LAWS}


def law_of(kind: str, bilateral: bool) -> Law:
    """Return the law of contacts of a kind; KeyError if there is none.

    Parameters
    ----------
    bilateral : bool
        Whether the contact also pulls.
    """
    return _BY_KIND[kind, bilateral]
