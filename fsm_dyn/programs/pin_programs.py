"""Programs of the forces in all connections of a mechanism, derived when they are first asked for, then kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import decode, encode
from fsm_dyn.programs import functions
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.kernels import Kernel, compile_programs
from fsm_dyn.programs.program import Program, StoredProgram

QUANTITIES: Final = (*(f"{part}{axis}" for part in ("force", "torque") for axis in ("", "_x", "_y", "_z")), "drive")
FORMAT: Final = "fsm_dyn pins 2"


class PinInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A connection, or a contact between two segments."""

    name: str  # of the joint, contact or constraint, else ``<parent>_<child>``
    # ``weld pin universal ball guide joint`` of a connection of the tree, ``rows`` of one held by constraints,
    # ``contact``
    kind: str
    # parent, child: segments: their frames, or bodies without one, or ``N``. The force is exerted by the parent.
    parent: str
    child: str
    at: str  # its point; empty if no point is named, as for most contacts
    frames: tuple[str, str]  # frames of parent and child, ``N`` for those without
    rows: tuple[int, ...] = ()  # constraint rows whose multipliers are a part of it
    freedoms: tuple[int, ...] = ()  # which of the twists are its own motions
    left_out: tuple[int, ...] = ()  # components that rows left out as redundant could take over in part


class PinPrograms:
    """The connections of a mechanism and the programs for their forces.

    ``program``: arguments: those of the model, after the speeds their rates and the multipliers of all rows.  Gives
    ``wrench`` (n_pins, 6): force (N), then moment (N m) about the place, in N; ``place`` (n_pins, 3); ``freedom``
    (n_freedoms, 6): unit twists of own motions. ``impulse``: gives ``impulse`` (n_pins, 6) with jumps of speeds and
    impulses of rows in place of rates and multipliers; ``pushed`` (n_transitions, n_pins, 6): additions by impulses of
    user-defined transitions. ``share``: gives ``share`` (n_rows, n_pins, 6): addition by a unit multiplier. ``slip``:
    gives ``slip`` (n_pins, 6): velocity (m/s) and angular velocity (rad/s) of the child against the parent at the
    place. ``placeless_rows``, ``placeless_loads``: rows and loads written in coordinates: they have no place, and are a
    part of the drive of the connections.
    """

    def __init__(
        self,
        pins: Sequence[PinInfo],
        program: Program,
        impulse: Program,
        share: Program,
        slip: Program,
        placeless_rows: Sequence[str],
        placeless_loads: Sequence[str],
    ) -> None:
        self.pins = tuple(pins)
        self.program, self.impulse, self.share, self.slip = program, impulse, share, slip
        self.placeless_rows, self.placeless_loads = tuple(placeless_rows), tuple(placeless_loads)

    @cached_property
    def kernel(self) -> Kernel:
        """Machine code of ``program``, for many rows."""
        return compile_programs([self.program])[0]

    def outputs(self, columns: Sequence[str]) -> Program:
        """Return the program of some quantities, ``outputs`` (n,), with the arguments of ``program``.

        ``columns``: names of columns, ``pin.<name>.<quantity>``. Raises InputError: there is no such connection, or it
        does not have one motion of its own along which something drives it.
        """
        _, _, nodes = self.program.graph()
        return Program.from_nodes(self.program.layout, {"outputs": self.quantities(columns, nodes)})

    def quantities(self, columns: Sequence[str], nodes: Mapping[str, Any]) -> list[Node]:
        """Return quantities as nodes of the graph of ``program``, of which `nodes` are the outputs; see `outputs`."""
        numbers = {pin.name: i for i, pin in enumerate(self.pins)}
        found = []
        for column in columns:
            name, quantity = column.removeprefix("pin.").rsplit(".", 1)
            if quantity not in QUANTITIES:
                raise InputError(f"a connection has no {quantity!r}", found=column, allowed=", ".join(QUANTITIES))
            if name not in numbers:
                raise InputError(f"there is no connection {name!r}", found=name, allowed=", ".join(numbers))
            wrench, own = nodes["wrench"][numbers[name]], self.pins[numbers[name]].freedoms
            if quantity == "drive" and len(own) != 1:
                raise InputError(
                    f"the connection {name!r} has {len(own)} motions, so no drive of its own", found=column
                )
            found.append(_quantity(wrench, quantity, nodes["freedom"][own[0]] if own else ()))
        return found

    def unit(self, column: str) -> str:
        """Return the unit of a column, ``pin.<name>.<quantity>``; the drive of a guide is a force."""
        name, quantity = column.removeprefix("pin.").rsplit(".", 1)
        slides = any(pin.name == name and pin.kind == "guide" for pin in self.pins)
        return "N" if quantity.startswith("force") or (quantity == "drive" and slides) else "N*m"

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return encode(
            {
                "format": FORMAT,
                "pins": [msgspec.to_builtins(pin) for pin in self.pins],
                "programs": [p.to_data() for p in (self.program, self.impulse, self.share, self.slip)],
                "placeless": [list(self.placeless_rows), list(self.placeless_loads)],
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> PinPrograms:
        """Return the programs from their stored form; raise InputError if that is inconsistent."""
        stored = decode(data, _StoredPins, "kept programs of pins")
        main, impulse, share, slip = (Program.from_stored(program) for program in stored.programs)
        return cls(stored.pins, main, impulse, share, slip, *stored.placeless)


def _quantity(wrench: Sequence[Node], quantity: str, twist: Sequence[Node]) -> Node:
    """Return a component or magnitude of a wrench, or its part along a motion."""
    if quantity == "drive":
        return _inner(wrench, twist)
    part, _, axis = quantity.partition("_")
    vector = wrench[:3] if part == "force" else wrench[3:]
    return vector["xyz".index(axis)] if axis else functions.sqrt(_inner(vector, vector))


def _inner(a: Sequence[Node], b: Sequence[Node]) -> Node:
    products = [x * y for x, y in zip(a, b, strict=True)]
    return sum(products[1:], products[0])


class _StoredPins(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    pins: tuple[PinInfo, ...]
    programs: tuple[StoredProgram, StoredProgram, StoredProgram, StoredProgram]
    placeless: tuple[tuple[str, ...], tuple[str, ...]]
