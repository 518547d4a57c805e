"""Forces, torques and impulses in the connections of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from fsm_dyn.core.arrays import Booleans, Floats, Integers
from fsm_dyn.core.errors import InputError, UnknownColumnError, did_you_mean
from fsm_dyn.language.scales import SI, Scales
from fsm_dyn.programs.kernels import ObjectCache, sources_of
from fsm_dyn.programs.pin_programs import FORMAT, PinInfo, PinPrograms
from fsm_dyn.run.tolerances import numerics_of

if TYPE_CHECKING:
    from fsm_dyn.language.model import Mechanism
    from fsm_dyn.run.record import RunModel
    from fsm_dyn.run.transitions import Transition

NEWTONIAN: Final = "N"
DERIVING: Final = ("programs", "language", "derive")
# Columns of a connection: attribute, component (None: the magnitude), unit.
_QUANTITIES: Final = {
    "force": ("force", None, "N"),
    "torque": ("torque", None, "N*m"),
    **{f"force_{axis}": ("force", i, "N") for i, axis in enumerate("xyz")},
    **{f"torque_{axis}": ("torque", i, "N*m") for i, axis in enumerate("xyz")},
}
_KEPT: Final = 32  # mechanisms whose programs stay in memory
_known: dict[str, PinPrograms] = {}
_DEPENDENT: Final = 1e-9  # singular value of unit rows that is zero
_NOTHING: Final = 1e-9  # part of the largest, below which a component does not depend on how redundant rows share


class PinRows(Protocol):
    """Rows of a run; :class:`fsm_dyn.run.samples.Samples`."""

    @property
    def model(self) -> RunModel:
        """The model."""
        ...

    @property
    def t(self) -> Floats:
        """Times (s)."""
        ...

    @property
    def x(self) -> Floats:
        """Coordinates and speeds."""
        ...

    @property
    def q(self) -> Floats:
        """Coordinates."""
        ...

    @property
    def u(self) -> Floats:
        """Speeds."""
        ...

    @property
    def u_dot(self) -> Floats:
        """Rates of the speeds."""
        ...

    @property
    def mode(self) -> Integers:
        """Mode index."""
        ...

    @property
    def context(self) -> Floats:
        """Context of the programs."""
        ...

    @property
    def multiplier_table(self) -> Floats:
        """Multipliers of all rows."""
        ...

    def __len__(self) -> int: ...
    def only(self, rows: Integers, /) -> PinRows:
        """Return some of the rows."""
        ...


def programs_of(model: RunModel) -> PinPrograms:
    """Return the programs of the connections of a model, derived when first asked for and then kept.

    Raises InputError: the run was read from a file without its model.
    """
    if model.automaton is None:
        raise InputError("forces in connections need the model of the run", found="a run without its model")
    return pin_programs(model.automaton.mechanism, [(row.owner, row.role) for row in model.rows])


def pin_programs(mechanism: Mechanism, rows: Sequence[tuple[str, str]], cache: bool = True) -> PinPrograms:
    """Return the programs of the forces in all connections, derived or from the cache.

    ``rows``: name and role of every constraint row, in order; ``cache``: whether they may be read from and kept in the
    user's cache directory.
    """
    key = hashlib.sha256(f"{FORMAT}|{sources_of(*DERIVING)}|{mechanism.digest}".encode()).hexdigest()
    if cache and key in _known:
        return _known[key]
    found = _stored(key) if cache else None
    if found is None:
        # SymPy is imported for derivations only
        from fsm_dyn.derive.pin_forces import derive_pins

        found = derive_pins(mechanism, rows)
        if cache:
            ObjectCache.default().store(key, found.to_bytes())
    if cache:
        _known[key] = found
        while len(_known) > _KEPT:
            del _known[next(iter(_known))]
    return found


def _stored(key: str) -> PinPrograms | None:
    payload = ObjectCache.default().load(key)
    try:
        return None if payload is None else PinPrograms.from_bytes(payload)
    except InputError:
        return None


class Pins(Mapping[str, "Pin"]):
    """The connections of a mechanism at some rows of a run, by name.

    A name is that of the joint or contact, else ``<parent>_<child>``.
    """

    def __init__(self, samples: PinRows) -> None:
        self.samples = samples
        self.programs = programs_of(samples.model)
        self._numbers = {pin.name: i for i, pin in enumerate(self.programs.pins)}

    def __getitem__(self, name: str) -> Pin:
        number = self._numbers.get(name)
        if number is None:
            raise _unknown(name, self._numbers)
        return Pin(self, number)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<Pins {', '.join(self._numbers) or 'none'}>"

    def columns(self) -> Iterator[tuple[str, Floats]]:
        """Yield every column by name: magnitudes and components of force and torque, and the drives."""
        for name, pin in self.items():
            for quantity in _QUANTITIES:
                if quantity != "torque":
                    yield f"pin.{name}.{quantity}", pin.quantity(quantity)
            if len(pin.info.freedoms) == 1:
                yield f"pin.{name}.drive", pin.drive

    def units(self) -> dict[str, str]:
        """Return the units of all columns by their names."""
        found: dict[str, str] = {}
        for name, pin in self.items():
            found |= {f"pin.{name}.{quantity}": unit for quantity, (_, _, unit) in _QUANTITIES.items()}
            if len(pin.info.freedoms) == 1:
                found[f"pin.{name}.drive"] = "N*m" if pin.twists[:1, 0, 3:].any() else "N"
        return found

    def column(self, name: str) -> Floats:
        """Return one of these columns, ``pin.<name>.<quantity>``; ``torque`` is the magnitude of a torque.

        Raises
        ------
        UnknownColumnError
            There is no such connection or quantity.
        """
        pin_name, _, quantity = name.removeprefix("pin.").rpartition(".")
        pin = self[pin_name]
        if quantity == "drive" and len(pin.info.freedoms) == 1:
            return pin.drive
        if quantity in _QUANTITIES:
            return pin.quantity(quantity)
        raise UnknownColumnError(
            f"the connection {pin_name!r} has no {quantity!r}",
            found=name,
            allowed=", ".join((*_QUANTITIES, "drive")),
        )

    @property
    def without_place(self) -> tuple[str, ...]:
        """Rows, gaps and loads written in coordinates, which name no place: their effect is in the drives."""
        return (*self.programs.placeless_rows, *self.programs.placeless_loads)

    @cached_property
    def table(self) -> Mapping[str, Floats]:
        """Outputs of the program at all rows: ``wrench``, ``place``, ``freedom``."""
        samples = self.samples
        x = np.hstack([samples.x, samples.u_dot, self.multipliers])
        found = self.programs.kernel.rows(samples.t, x, samples.context)
        n = len(samples)
        return {"wrench": found["wrench"].reshape(n, -1, 6), "place": found["place"].reshape(n, -1, 3),
                "freedom": found["freedom"].reshape(n, -1, 6)}  # fmt: skip

    @cached_property
    def slips(self) -> Floats:
        """Velocity (m/s) and angular velocity (rad/s) of each child against its parent, shape (n, n_pins, 6), in N."""
        samples = self.samples
        unused = np.zeros((len(samples), samples.u_dot.shape[1] + len(samples.model.rows)))
        found = self.programs.slip.evaluate(samples.t, np.hstack([samples.x, unused]), samples.context)["slip"]
        return found.reshape(len(samples), -1, 6)

    @cached_property
    def multipliers(self) -> Floats:
        """Multipliers of all rows, shape (n, n_rows), with redundant constraints shared over all connections.

        The sum of the squares of all forces is least, with torques by the length of the mechanism: shares do not
        depend on the joint that closes a loop. Those of contacts keep the contact laws, as in ``run.multipliers``.
        """
        samples, table = self.samples, self.samples.multiplier_table
        contacts = {r for c in samples.model.contacts for r in (c.normal_row, *c.tangent_rows)}
        for chosen, rows in self._redundant():
            if contacts.isdisjoint(rows):
                table = table.copy() if table is samples.multiplier_table else table
                table[chosen[:, None], rows] += self._exchanged(chosen, rows)
        return table

    @cached_property
    def undetermined(self) -> Booleans:
        """Which components of the wrenches redundant rows can share differently, shape (n, n_pins, 6)."""
        found = np.zeros((len(self.samples), len(self), 6), dtype=np.bool_)
        for number, pin in enumerate(self.programs.pins):
            found[:, number, list(pin.left_out)] = True
        for chosen, rows in self._redundant():
            for k, _, moved, largest in self._exchanges(chosen, rows):
                found[chosen[k]] |= np.abs(moved).max(axis=0, initial=0.0) > _NOTHING * max(largest, 1e-300)
        return found

    def _redundant(self) -> Iterator[tuple[Integers, list[int]]]:
        """Yield the rows of each mode with redundant constraint rows, and these."""
        samples, model = self.samples, self.samples.model
        for index in np.flatnonzero(np.bincount(samples.mode)).tolist():
            rows = list(model.indeterminate[index]) if model.indeterminate else []
            if rows:
                yield np.flatnonzero(samples.mode == index), rows

    def _exchanges(self, chosen: Integers, rows: list[int]) -> Iterator[tuple[int, Floats, Floats, float]]:
        """Yield multipliers without effect on the motion, (s, rows), what they add to the wrenches, and the largest."""
        samples, model = self.samples, self.samples.model
        t, x, context = samples.t[chosen], samples.x[chosen], samples.context[chosen]
        A = model.terms.evaluate(t, x, context, {"A": rows})["A"]
        unused = np.zeros((len(chosen), len(model.layout.u) + len(model.rows)))
        share = self.programs.share.evaluate(t, np.hstack([x, unused]), context, {"share": rows})["share"]
        for k in range(len(chosen)):
            length = np.linalg.norm(A[k], axis=1)
            scale = np.where(length > 0.0, length, 1.0)
            _, singular, right = np.linalg.svd((A[k] / scale[:, None]).T)
            free = right[int((singular > _DEPENDENT).sum()) :] / scale
            by_row = share[k].reshape(len(rows), len(self), 6)
            yield k, free, np.einsum("sr,rpc->spc", free, by_row), float(np.abs(by_row).max(initial=0.0))

    def _exchanged(self, chosen: Integers, rows: list[int]) -> Floats:
        """Return what is to be added to the multipliers of redundant rows, shape (len(chosen), len(rows))."""
        samples = self.samples
        x = np.hstack([part[chosen] for part in (samples.x, samples.u_dot, samples.multiplier_table)])
        known = self.programs.kernel.rows(samples.t[chosen], x, samples.context[chosen])["wrench"]
        by_length = np.repeat([1.0, 1.0 / self.scales.length], 3)
        added = np.zeros((len(chosen), len(rows)))
        for k, free, moved, _ in self._exchanges(chosen, rows):
            effect = (moved * by_length).reshape(len(free), -1).T
            size = np.linalg.lstsq(effect, -(known[k].reshape(-1, 6) * by_length).ravel(), rcond=_DEPENDENT)[0]
            added[k] = size @ free
        return added

    @cached_property
    def scales(self) -> Scales:
        """Length (m), mass (kg) and time (s) of the mechanism's own units."""
        model = self.samples.model
        numerics = model.numerics
        if numerics is None and model.automaton is not None:
            numerics = numerics_of(model.automaton, model.values)
        return SI if numerics is None else numerics.tolerances.scales


class Pin:
    """Load of the parent on the child in one connection, at some rows of a run."""

    def __init__(self, pins: Pins, number: int) -> None:
        self._pins, self._number = pins, number

    @property
    def info(self) -> PinInfo:
        """Name, kind, parent, child and place."""
        return self._pins.programs.pins[self._number]

    def __repr__(self) -> str:
        info = self.info
        return f"<Pin {info.name}: {info.kind}, {info.parent} on {info.child}{f' at {info.at}' if info.at else ''}>"

    @property
    def force(self) -> Floats:
        """Force, shape (n, 3), N, components in N."""
        return self.wrench()[:, :3]

    @property
    def torque(self) -> Floats:
        """Torque about the place, shape (n, 3), N·m, components in N."""
        return self.wrench()[:, 3:]

    @property
    def at(self) -> Floats:
        """The place, shape (n, 3), m, from O, components in N."""
        return self._pins.table["place"][:, self._number]

    @property
    def magnitude(self) -> Floats:
        """Magnitude of the force, shape (n,), N."""
        return self.quantity("force")

    def quantity(self, name: str) -> Floats:
        """Return the magnitude of force or torque, or a component (``force_x``) in N, shape (n,), N or N·m."""
        part, axis, _ = _QUANTITIES[name]
        vector: Floats = getattr(self, part)
        size: Floats = np.linalg.norm(vector, axis=1) if axis is None else vector[:, axis]
        return size

    @property
    def determined(self) -> Booleans:
        """Which components of force and torque no redundant rows can share differently, shape (n, 6)."""
        found: Booleans = ~self._pins.undetermined[:, self._number]
        return found

    @property
    def twists(self) -> Floats:
        """Unit twists of the motions that the connection permits, shape (n, k, 6): velocity, then angular velocity."""
        return self._pins.table["freedom"][:, list(self.info.freedoms)]

    @property
    def drive(self) -> Floats:
        """What acts along its own motions, shape (n,), of several (n, k): loads and rows on its coordinates, friction.

        N, or N·m of a motion that turns.
        """
        found: Floats = np.einsum("nkc,nc->nk", self.twists, self._own)
        return found[:, 0] if found.shape[1] == 1 else found

    @property
    def constraint(self) -> Floats:
        """Force and torque without the drive, shape (n, 6): the load of the connection itself."""
        s, w = self.twists, self._own
        if s.shape[1] == 0:
            return w
        shares = np.linalg.solve(np.einsum("nkc,njc->nkj", s, s), np.einsum("nkc,nc->nk", s, w)[:, :, None])
        found: Floats = w - np.einsum("nkc,nk->nc", s, shares[:, :, 0])
        return found

    @property
    def slip(self) -> Floats:
        """Velocity of the child against the parent at the place (m/s), and angular velocity (rad/s), (n, 6), in N."""
        return self._pins.slips[:, self._number]

    def rubbing(self, radius: float = 0.0) -> tuple[Floats, Floats]:
        """Return the sliding speed, shape (n,), m/s, and the force across it times it, shape (n,), W.

        ``radius``: at which a turning joint slides, m.
        """
        slip, force = self.slip, self.force
        speed = np.linalg.norm(slip[:, :3], axis=1) + radius * np.linalg.norm(slip[:, 3:], axis=1)
        crossed = [np.linalg.norm(np.cross(force, part), axis=1) for part in (slip[:, :3], slip[:, 3:])]
        return speed, crossed[0] + radius * crossed[1]

    @property
    def _own(self) -> Floats:
        return self._pins.table["wrench"][:, self._number]

    def wrench(self, frame: str = NEWTONIAN, on: str | None = None, about: str | None = None) -> Floats:
        """Return force and torque, shape (n, 6).

        ``frame``: components are along its axes. ``on``: the segment that the force acts on: the child, or the parent,
        on which the opposite acts. ``about``: the point that the torque is about; the place of the connection if not
        given. Raises InputError: there is no such frame or point, or it is not one of the two segments.
        """
        info, w = self.info, self._own
        if on is not None and on not in (info.child, info.parent, *info.frames):
            raise InputError(
                f"the connection {info.name!r} does not act on {on!r}", found=on,
                allowed=f"{info.parent}, {info.child}",
            )  # fmt: skip
        force, torque = w[:, :3], w[:, 3:]
        if about is not None:
            torque = torque + np.cross(self.at - _geometry(self._pins.samples, "points", about), force)
        if on is not None and on not in (info.child, info.frames[1]):
            force, torque = -force, -torque
        return np.hstack([self.in_frame(vector, frame) for vector in (force, torque)])

    def in_frame(self, vectors: Floats, frame: str) -> Floats:
        """Return the components of vectors (n, 3), or of those at the first rows, along the axes of a frame."""
        if frame == NEWTONIAN:
            return vectors
        turn = _geometry(self._pins.samples, "frames", frame)[: len(vectors)]
        found: Floats = np.einsum("nji,nj->ni", turn, vectors)
        return found


def _geometry(samples: PinRows, kind: str, name: str) -> Floats:
    """Return the position of a point (n, 3), or the matrix of a frame (n, 3, 3), in N, at some rows of a run."""
    automaton = samples.model.automaton
    assert automaton is not None  # else there were no programs
    names = list(automaton.point_names if kind == "points" else automaton.frame_names)
    if name not in names:
        raise InputError(
            f"there is no {kind[:-1]} {name!r}", found=name, allowed=", ".join(names), remedy=did_you_mean(name, names)
        )
    number = names.index(name)
    found = automaton.geometry.evaluate(samples.t, samples.x, samples.context, {kind: [number]})[kind]
    return np.broadcast_to(found, (len(samples), *found.shape[-(2 if kind == "points" else 3) :]))[:, 0]


class PinImpulses:
    """Finds the impulses in all connections at the transitions of a run."""

    def __init__(self, rows: PinRows) -> None:
        self._rows = rows

    def __call__(self, transition: Transition) -> Mapping[str, Floats]:
        """Return impulse and its moment in every connection, shape (6,) each, N·s and N·m·s.

        A reset is no impulse.  A transition that ends infinitely many impacts gives their sum, with the impulse of
        finite forces meanwhile.
        """
        model, samples = self._rows.model, self._before(transition)
        programs = programs_of(model)
        written = self._written(transition)
        jump = transition.u_after - transition.u_before
        if written is not None:
            names = model.layout.u
            jump = np.where([name in _resets(model, written) for name in names], 0.0, jump)
        rows = np.zeros(len(model.rows))
        for owner, values in transition.impulse.items():
            rows[[i for i, row in enumerate(model.rows) if row.owner == owner]] = values
        x = np.concatenate([samples.q[0], transition.u_before, jump, rows])
        found = programs.impulse.evaluate(samples.t[0], x, samples.context[0])
        total = found["impulse"].reshape(-1, 6)
        if written is not None:
            total = total + found["pushed"].reshape(-1, len(programs.pins), 6)[written]
        return {pin.name: total[i] for i, pin in enumerate(programs.pins)}

    def _before(self, transition: Transition) -> PinRows:
        """Return the row just before a transition."""
        rows = self._rows
        near = np.flatnonzero(rows.t == transition.time)
        if not len(near):
            near = np.array([np.argmin(np.abs(rows.t - transition.time))])
        # several transitions of an instant leave the speeds alone and change memory
        after = np.minimum(near + 1, len(rows) - 1)
        ends = np.hstack([rows.u[near] - transition.u_before, rows.u[after] - transition.u_after])
        best = near[np.argmin(np.abs(ends).max(axis=1, initial=0.0))]
        return rows.only(np.array([best]))

    @staticmethod
    def _written(transition: Transition) -> int | None:
        """Return the number of the user-defined transition, if it is one."""
        return None if transition.written < 0 else transition.written


_Value = TypeVar("_Value")


def of_connection(values: Mapping[str, _Value], name: str) -> _Value:
    """Return the value of one of the connections; raise UnknownColumnError if there is none of this name."""
    if name not in values:
        raise _unknown(name, values)
    return values[name]


def _unknown(name: str, known: Iterable[str]) -> UnknownColumnError:
    return UnknownColumnError(
        f"there is no connection {name!r}", found=name, allowed=", ".join(known), remedy=did_you_mean(name, known)
    )


def _resets(model: RunModel, number: int) -> Mapping[str, object]:
    assert model.automaton is not None
    return model.automaton.mechanism.transitions[number].reset
