"""Declaration of a contact law: states, forces, guards, events and their words.

A law is data.  Python derives guards, draws edges and names causes from it, and the library gets its properties as bits
of ``contact_flags`` (``fsm_dyn/runtime/codes.h``); no other module asks for the law of a contact, only for its
properties.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from fsm_dyn.runtime.abi import ContactState, Event, GuardQuantity

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
    field: Literal["gap", "slip", "static", "kinetic", "loaded_by"]


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
