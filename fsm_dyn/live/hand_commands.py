"""Constraints and contacts that a person imposes in a live run: which there are; requests into inputs."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.build_contacts import carrier, unlisted_pairs
from fsm_dyn.language.contacts import FeatureContact
from fsm_dyn.language.impositions import (
    CONTACT,
    KINDS,
    bodies_by_number,
    hand_slots,
    is_planar,
    request_inputs,
    slot_name,
)
from fsm_dyn.language.model import Mechanism
from fsm_dyn.live.stepper import LiveStepper
from fsm_dyn.programs.kernels import Kernels, compile_programs
from fsm_dyn.programs.program import Program

# -- Contacts that a person lets two shapes make ---------------------------------------------------------------


Pair = tuple[str, str]
MOST_IN_ADVANCE: Final = 24  # pairs of features: each tick evaluates all of them


@dataclass(frozen=True)
class ContactToImpose:
    """A contact between two shapes that an input of its name lets close."""

    name: str
    shapes: Pair


def contacts_to_impose(mechanism: Mechanism) -> list[ContactToImpose]:
    """Return the contacts to impose of a mechanism, in their order."""
    return [
        ContactToImpose(str(name), (str(entry.contact[0]), str(entry.contact[1])))
        for name, entry in mechanism.imposed.items() if entry.contact is not None
    ]  # fmt: skip


def pairs_in_advance(mechanism: Mechanism) -> tuple[Pair, ...]:
    """Return the pairs of shapes whose contacts are derived at the start of a run on a page: all, if they are few."""
    found = unlisted_pairs(mechanism)
    return tuple(found) if sum(found.values()) <= MOST_IN_ADVANCE else ()


def between_bodies(mechanism: Mechanism, first: str, second: str) -> list[Pair]:
    """Return the pairs of shapes of two bodies with a contact to impose."""
    return [one.shapes for one in contacts_to_impose(mechanism)
            if {carrier(mechanism, shape) for shape in one.shapes} == {first, second}]  # fmt: skip


class HandContacts:
    """Contacts to impose in a live run, with the gaps of their features."""

    def __init__(self, stepper: LiveStepper) -> None:
        automaton = stepper.graph.automaton
        self._stepper, mechanism = stepper, automaton.mechanism
        self.all = contacts_to_impose(mechanism)
        self.inputs = [automaton.terms.layout.w.index(one.name) for one in self.all]
        known = [mechanism.contacts[str(contact.name)] for contact in automaton.contacts]
        own = [(k, one) for k, one in enumerate(known) if isinstance(one, FeatureContact) and one.imposed]
        self._features: list[tuple[int, FeatureContact]] = own
        self._kernels: Kernels | None = None
        if own:
            system, rows = automaton.system, [automaton.contacts[k].normal_row for k, _ in own]
            gaps = np.array([system.nodes["residual"][row] for row in rows], dtype=object)
            self._kernels = compile_programs([Program.from_nodes(automaton.terms.layout, {"gaps": gaps})])

    def number(self, first: Any, second: Any) -> int:
        """Return the number of the contact of two shapes, from 0.

        Raises InputError: there is none, or the shapes overlap at present.
        """
        pairs = [frozenset(one.shapes) for one in self.all]
        wanted = frozenset(map(str, (first, second)))
        if wanted not in pairs:
            raise InputError(
                f"no contact between {str(first)[:40]!r} and {str(second)[:40]!r} to impose",
                allowed=", ".join(" and ".join(one.shapes) for one in self.all) or "none is derived",
                remedy="derive it at the start: `imposed: {touch: {contact: [a, b]}}`, or LiveSettings(touching=)",
            )
        found = pairs.index(wanted)
        if self._overlap(self.all[found].name):
            raise InputError(
                f"{' and '.join(self.all[found].shapes)} overlap", allowed="shapes apart", remedy="move them apart"
            )
        return found

    def _overlap(self, name: str) -> bool:
        """Whether the shapes of a contact are within each other, beyond the tolerance of a gap.

        Of a face without ends and of round shapes the gap says it; what is behind all faces of a polygon is in it.
        """
        assert self._kernels is not None
        stepper, state = self._stepper, self._stepper.loop.state
        small = stepper.executable.numerics.tolerances.gap or 0.0
        gaps = self._kernels[0](stepper.t, state.x, state.c)
        behind: dict[tuple[object, str], list[bool]] = {}
        for (_, contact), gap in zip(self._features, gaps, strict=True):
            if contact.imposed != name:
                continue
            faces = [k for k, feature in enumerate(contact.features) if feature.part == "face"]
            if not contact.limited and gap < -small:
                return True
            if contact.limited and len(faces) == 1:
                other = contact.features[1 - faces[0]]
                behind.setdefault((other, contact.features[faces[0]].shape), []).append(bool(gap < -small))
        return any(len(found) > 1 and all(found) for found in behind.values())


def with_touching(pairs: Sequence[Pair]) -> dict[str, dict[str, list[str]]]:
    """Return entries of ``imposed`` for contacts between pairs of shapes."""
    return {f"touch_{first}_{second}": {"contact": [first, second]} for first, second in pairs}


# -- Requests into the inputs of the model, one tick after the other -------------------------------------------


FARTHEST: Final = 1e3  # m, of a point from the centre of its body
_REMEDY: Final = "start the run with LiveSettings(imposable=2), or write `imposable: 2` in the model"
_SPATIAL: Final = ("pin", "weld", "distance", "coordinate")


class HandCommands:
    """Commands ``constrain`` and ``release`` of a live run.

    Constraints are numbered from 1, those of rows first, then the contacts to impose in their order.

    A request is common to all constraints of a hand, so its inputs are constant for a whole tick before the input of
    one constraint takes it: inputs are linear in a tick, and the rows have all of them.
    """

    def __init__(self, stepper: LiveStepper) -> None:
        self._stepper = stepper
        mechanism = stepper.graph.automaton.mechanism
        self._mechanism: Mechanism = mechanism
        names = stepper.graph.automaton.terms.layout.w
        count = hand_slots(mechanism)
        self._slots = [names.index(slot_name(number)) for number in range(1, count + 1)]
        self._letters = "xy" if is_planar(mechanism) else "xyz"
        self._request = [names.index(name) for name in request_inputs(self._letters)] if count else []
        self._bodies = bodies_by_number(mechanism)
        self._contacts = HandContacts(stepper)
        self._inputs = [*self._slots, *self._contacts.inputs]  # of all constraints, by their numbers
        self._reserved: set[int] = set()
        #: requests that wait: inputs of the request, and the number of the constraint, from 0
        self.waiting: deque[tuple[list[float], int]] = deque()
        self._going = -1

    def constrain(self, message: Mapping[str, Any]) -> int:
        """Accept a request; return the number of the constraint, from 1.

        Raises InputError: the request cannot be met; nothing changes.
        """
        if message.get("kind") == CONTACT:
            return self._let_touch(message)
        if not self._slots:
            raise InputError("this run takes no constraints of a hand", remedy=_REMEDY)
        values = self._values(message)
        free = [k for k in range(len(self._slots)) if self._is_free(k)]
        if not free:
            raise InputError(
                "all constraints of the hand are in use",
                found=f"{len(self._slots)} imposed",
                remedy="release one first",
            )
        self._reserved.add(free[0])
        self.waiting.append((values, free[0]))
        return free[0] + 1

    def _let_touch(self, message: Mapping[str, Any]) -> int:
        """Let two shapes touch from the next tick on; return the number of the constraint."""
        k = len(self._slots) + self._contacts.number(message.get("a"), message.get("b"))
        if k in self._reserved:
            raise InputError("these shapes touch already", found=f"constraint {k + 1}")
        self._reserved.add(k)
        self._stepper.tick_data.targets[self._inputs[k]] = 1.0
        return k + 1

    def transition(self, number: int, what: str) -> str:
        """Return the name of the transition that imposes (``what``: its kind) or releases (``released``) one."""
        k = number - len(self._slots) - 1
        if k < 0:
            return f"{slot_name(number)}_{what}"
        return f"{self._contacts.all[k].name}_{'imposed' if what == CONTACT else what}"

    def release(self, message: Mapping[str, Any]) -> list[int]:
        """Release one constraint by its number, or all of them; return the numbers of those that held.

        Raises InputError: the number is unknown.
        """
        number = message.get("number")
        if number is not None and (
            isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(self._inputs)
        ):
            raise InputError("no constraint of the hand", found=repr(number)[:40], allowed=f"1 to {len(self._inputs)}")
        chosen = range(len(self._inputs)) if number is None else [number - 1]
        self.waiting = deque(item for item in self.waiting if item[1] not in chosen)
        held = [k + 1 for k in chosen if self._stepper.tick_data.now[self._inputs[k]] > 0.5]
        for k in chosen:
            self._stepper.tick_data.targets[self._inputs[k]] = 0.0
            self._reserved.discard(k)
            if self._going == k:
                self._going = -1
        return held

    @property
    def imposed(self) -> int:
        """Number of constraints imposed or requested."""
        return len(self._reserved)

    def forget(self) -> None:
        """Release everything before a reset."""
        self.release({})

    def follow_back(self) -> None:
        """Take the inputs of the hand as they are after a return to an earlier instant."""
        tick = self._stepper.tick_data
        self.waiting.clear()
        self._going = -1
        for k, at in enumerate(self._inputs):
            tick.targets[at] = tick.now[at]
            self._reserved.discard(k)
            if tick.now[at] > 0.5:
                self._reserved.add(k)
        for at in self._request:
            tick.targets[at] = tick.now[at]

    def step(self) -> None:
        """Bring the next request one tick further; called before a tick while one waits."""
        tick = self._stepper.tick_data
        if not self.waiting:
            return
        if any(tick.now[at] != tick.targets[at] for at in (*self._request, *self._slots)):
            return  # the inputs are on their way
        values, k = self.waiting[0]
        if self._going == k:
            tick.targets[self._slots[k]] = 1.0
            self.waiting.popleft()
            self._going = -1
            return
        for at, value in zip(self._request, values, strict=True):
            tick.targets[at] = value
        self._going = k

    # -- requests ------------------------------------------------------------------------------------------

    def _is_free(self, k: int) -> bool:
        tick, at = self._stepper.tick_data, self._slots[k]
        return k not in self._reserved and tick.targets[at] == 0.0 and tick.now[at] == 0.0

    def _values(self, message: Mapping[str, Any]) -> list[float]:
        """Return the inputs of a request."""
        kind = message.get("kind")
        possible = (*(KINDS if self._letters == "xy" else _SPATIAL), CONTACT)
        if kind not in possible:
            raise InputError(
                "unknown kind of constraint", found=repr(kind)[:40], allowed=", ".join(possible),
                remedy=did_you_mean(str(kind), possible),
            )  # fmt: skip
        n = len(self._letters)
        found: dict[str, float] = {"kind": KINDS.index(kind) + 1.0, "a": 0.0, "b": 0.0}
        places = {side: [0.0] * n for side in "abd"}
        if kind == "coordinate":
            names = [*map(str, self._mechanism.coordinates)]
            found["a"] = float(self._number(message.get("coordinate"), names, "coordinate"))
        else:
            for side in "ab":
                name, places[side] = self._place(message.get(side), side)
                found[side] = float(self._number(name, self._bodies, "body"))
            if found["a"] == found["b"]:
                raise InputError("a constraint joins two bodies", found=f"{self._bodies[int(found['a'])]} twice")
            if kind == "line":
                direction = self._numbers(message.get("along"), "along")
                length = math.hypot(*direction)
                if not length > 0.0:
                    raise InputError("a line has a direction", found=str(direction))
                places["d"] = [value / length for value in direction]
        return [*found.values(), *(value for side in "abd" for value in places[side])]

    def _place(self, given: Any, side: str) -> tuple[str, list[float]]:
        """Return body and point of one side: a name, or a name and components along the body's axes (m)."""
        if isinstance(given, str):
            return given, [0.0] * len(self._letters)
        if not isinstance(given, Sequence) or len(given) != 2 or not isinstance(given[0], str):
            raise InputError(
                f"'{side}' is no point of a body",
                found=repr(given)[:60],
                allowed="a body, or [body, [x, y]] from its centre",
            )
        return given[0], self._numbers(given[1], side)

    def _numbers(self, given: Any, what: str) -> list[float]:
        n = len(self._letters)
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != n:
            raise InputError(f"'{what}' has no {n} components", found=repr(given)[:60])
        values = [float(value) if isinstance(value, int | float) else math.nan for value in given]
        if not all(abs(value) <= FARTHEST for value in values):
            raise InputError(
                f"'{what}' is no point of a body", found=repr(given)[:60], allowed=f"numbers up to {FARTHEST:g} m"
            )
        return values

    @staticmethod
    def _number(name: Any, names: Sequence[str], what: str) -> int:
        if name not in names:
            raise InputError(
                f"no {what} '{str(name)[:40]}'", allowed=", ".join(names), remedy=did_you_mean(str(name), names)
            )
        return [*names].index(name)
