"""Data of a tick: setup, arrays shared with the runtime, columns of its row; shared memory of the processes."""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.core.arrays import Floats, Integers
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.core.records import dataclass
from fsm_dyn.language.elements import CoupledPort, PortAxis
from fsm_dyn.language.evaluate import ParameterValue, evaluate_expression
from fsm_dyn.language.model import Mechanism
from fsm_dyn.live.device_map import DeviceMap, Limits
from fsm_dyn.live.driver_protocol import VELOCITY_LAG
from fsm_dyn.run.structures import Bundle, Packed
from fsm_dyn.runtime.abi import BINS, LATEST, MovedBy, Sizes, TickCounts, TickNumbers, TickPlaces
from fsm_dyn.runtime.layouts import Tables, Tick

# -- Shared memory: ring buffers, a mailbox and counters -------------------------------------------------------


HEADER: Final = 64  # words of the header, more than ``LiveHeader.COUNT``


ROW_SLOTS: Final = 4096
RECORD_SLOTS: Final = 512
EVENT_SLOTS: Final = 256
COMMAND_SLOTS: Final = 64
TEXT_BYTES: Final = 2048
PART_BYTES: Final = TEXT_BYTES - 2  # of a text in a slot, between head byte and final zero
MAX_EVENT_SLOTS: Final = 128  # slots: room for the states and names of thousands of contacts
_HEAD: Final = 128  # begins a slot with the first part of a text, plus the number of later parts
POINTER_SLOTS: Final = 8
POINTER_WIDTH: Final = 16  # time, position (6), velocity (6), buttons


def anonymous() -> int | None:
    """Return a descriptor of memory, or of a file, without a name; None on Windows."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("fsm_dyn_live")
    if os.name == "posix":
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
    return None


@dataclass(frozen=True)
class BlockLayout:
    """Model-dependent lengths: columns of a row, columns of a record of a transition."""

    row: int
    record: int

    @property
    def sections(self) -> dict[str, tuple[int, str, tuple[int, ...]]]:
        """Offset, type and shape of every section."""
        wanted = {
            "header": ("<i8", (HEADER,)),
            "rows": ("<f8", (ROW_SLOTS, self.row)),
            "records": ("<f8", (RECORD_SLOTS, self.record)),
            "events": ("u1", (EVENT_SLOTS, TEXT_BYTES)),
            "mail": ("u1", (COMMAND_SLOTS, TEXT_BYTES)),
            "pointer": ("<f8", (POINTER_SLOTS, POINTER_WIDTH)),
            "durations": ("<i8", (BINS,)),
            "processor": ("<i8", (BINS,)),
            "latenesses": ("<i8", (BINS,)),
        }
        sections, at = {}, 0
        for name, (kind, shape) in wanted.items():
            sections[name] = (at, kind, shape)
            at += -(-np.dtype(kind).itemsize * int(np.prod(shape)) // 64) * 64
        return sections

    @property
    def size(self) -> int:
        """Length of the block in bytes."""
        at, kind, shape = self.sections["latenesses"]
        return at + np.dtype(kind).itemsize * int(np.prod(shape))


class SharedBlock:
    """A block of shared memory: anonymous, so nothing is ever left behind; on Windows a file.

    ``descriptor``: of the memory; closed with the block. ``path``: the file, if any.
    """

    def __init__(self, shape: BlockLayout, descriptor: int, path: str = "") -> None:
        self.shape, self.descriptor, self.path = shape, descriptor, path
        self._map: mmap.mmap | None = mmap.mmap(descriptor, shape.size)
        self._views: dict[str, NDArray[Any]] = {
            name: np.frombuffer(self._map, kind, int(np.prod(lengths)), at).reshape(lengths)
            for name, (at, kind, lengths) in shape.sections.items()
        }
        self.header: Integers = self._views["header"]
        self.rows: Floats = self._views["rows"]
        self.records: Floats = self._views["records"]
        self.events: NDArray[np.uint8] = self._views["events"]
        self.mail: NDArray[np.uint8] = self._views["mail"]
        self.pointer: Floats = self._views["pointer"]
        self.durations: Integers = self._views["durations"]
        self.processor: Integers = self._views["processor"]
        self.latenesses: Integers = self._views["latenesses"]

    @classmethod
    def create(cls, shape: BlockLayout) -> SharedBlock:
        """Make a block full of zeros."""
        descriptor, path = anonymous(), ""
        if descriptor is None:
            descriptor, path = tempfile.mkstemp(prefix="fsm_dyn_live_")
        os.ftruncate(descriptor, shape.size)
        return cls(shape, descriptor, path)

    @property
    def address(self) -> str:
        """Argument of :meth:`open` in another process: an inherited descriptor, or a path."""
        return self.path or str(self.descriptor)

    @classmethod
    def open(cls, shape: BlockLayout, address: str) -> SharedBlock:
        """Open a block made by another process."""
        if address.isdigit():
            return cls(shape, int(address))
        return cls(shape, os.open(address, os.O_RDWR), address)

    def close(self, *, remove: bool = False) -> None:
        """Close the block; the memory is freed with the last reference."""
        if self._map is None:
            return
        # existing views keep the memory mapped
        self._views.clear()
        self._map = None
        os.close(self.descriptor)
        if remove and self.path:
            with contextlib.suppress(OSError):  # some systems keep mapped files
                os.unlink(self.path)


def plain(array: NDArray[Any]) -> Any:
    """Return a view of an array with plain numbers as entries: reading NumPy's scalars takes as long as a step."""
    view: Any = array
    return memoryview(view)


def put_row(ring: NDArray[Any], header: Integers, counter: int, row: NDArray[Any]) -> None:
    """Append a row to a ring; the oldest one goes."""
    count = header[counter]
    ring[count % len(ring)] = row
    header[counter] = count + 1


def take_rows(ring: NDArray[Any], header: Integers, counter: int, since: int) -> tuple[NDArray[Any], int, int]:
    """Return copies of the rows from number ``since`` on, the next number, and the number of rows lost meanwhile."""
    count = int(header[counter])
    first = max(since, count - len(ring) + 1)
    rows = ring[np.arange(first, count) % len(ring)]
    # drop rows the writer may have begun to overwrite during the copy
    kept = max(first, int(header[counter]) - len(ring) + 1)
    return rows[min(kept - first, len(rows)) :], count, kept - since


def _with_words(value: Any) -> Any:
    """Return data with texts instead of numbers that are not finite."""
    if isinstance(value, dict):
        return {key: _with_words(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_words(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def put_text(
    ring: NDArray[np.uint8], header: Integers, counter: int, value: dict[str, Any], most_slots: int = 1
) -> None:
    """Append a mapping, as JSON, to a ring of texts, in one or more slots.

    Raises ValueError: it takes more than ``most_slots``.
    """
    try:
        data = json.dumps(value, allow_nan=False).encode()
    except ValueError:  # JSON has no word for such numbers, and readers of a recording refuse it
        data = json.dumps(_with_words(value)).encode()
    parts = [data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES)]
    if len(parts) > most_slots:
        raise ValueError(f"a message has at most {most_slots * PART_BYTES} bytes, this one has {len(data)}")
    for k, part in enumerate(parts):
        count = int(header[counter])
        slot = ring[count % len(ring)]
        slot[0] = len(parts) - 1 - k + (0 if k else _HEAD)
        slot[1 : 1 + len(part)] = np.frombuffer(part, np.uint8)
        slot[1 + len(part)] = 0
        header[counter] = count + 1


def take_texts(ring: NDArray[np.uint8], header: Integers, counter: int, since: int) -> tuple[list[dict[str, Any]], int]:
    """Return the complete mappings from slot ``since`` on, and the slot after the last of them.

    A mapping with an overwritten first part is left out.
    """
    rows, count, _ = take_rows(ring, header, counter, since)
    found: list[dict[str, Any]] = []
    parts: list[bytes] = []  # of an incomplete text
    for row in rows:
        begins, to_come = divmod(int(row[0]), _HEAD)
        if begins:
            parts = []
        elif not parts:
            continue  # the beginning is lost
        parts.append(bytes(row[1:]).split(b"\0", 1)[0])
        if not to_come:
            found.append(json.loads(b"".join(parts)))
            parts = []
    return found, count - len(parts)


# -- Data of a tick: numbers, counts and arrays that Python and the compiled functions share -----------------

TICK: Final = Bundle(Tick)


# -- Setup of the data of a tick from ports, limits and settings ---------------------------------------------

WORK_PER_TICK: Final = 30  # of a model with many contacts, see :func:`usual_work`
WORK_PER_SUBSTEP: Final = 4  # for each: two trial steps, with guards evaluated at their end and middle
MANY_CONTACTS: Final = 12
BANDWIDTH: Final = 20.0  # Hz, of smooth inputs without one declared by a port
MOST_PER_TICK: Final = 3.0  # rad: stability limit of the filter
MOST_SUBSTEPS: Final = 1000
PASSIVITY_WORDS: Final = ("off", "observe", "control")
FARTHEST: Final = 1e3  # m or rad, beyond any device
_GUARDS_EACH: Final = 6  # most guards of a contact or a user-defined transition


def usual_work(contacts: int) -> int:
    """Return the default work limit of a tick, by the number of contacts of the model.

    A unit of work, such as a trial step (docs/theory.md, "The work of a tick"), takes longer with more contacts.
    """
    return round(WORK_PER_TICK * min(4.0, max(1.0, MANY_CONTACTS / max(1, contacts))))


def usual_substeps(mechanism: Mechanism, values: Mapping[str, ParameterValue], period: float) -> int:
    """Return the default number of steps of the integrator in a tick of this length (s).

    None is longer than the ``step`` of any port of the model; without one there is a single step.
    """
    steps = [evaluate_expression(port.step, values) for port in mechanism.ports.values() if port.step is not None]
    found = max((math.ceil(period / step * (1.0 - 1e-9)) for step in steps), default=1)  # 1 ms are 8 of 0.125 ms
    return min(max(found, 1), MOST_SUBSTEPS)


def new_tick(
    automaton: Automaton, tables: Tables, axes: Sequence[PortAxis], smooth: Sequence[str], n_device: int
) -> tuple[Tick, Packed]:
    """Return the data of a tick, with the indices of the ports' inputs and rows, and their bundle."""
    layout = automaton.terms.layout
    n_a, n_w, n_s = len(axes), len(layout.w), len(smooth)
    switches = [k for k, name in enumerate(layout.w) if automaton.mechanism.inputs[name].is_boolean]
    lengths = [
        TickNumbers.COUNT,
        TickCounts.COUNT,
        TickPlaces.COUNT,
        *3 * [n_w],
        n_s,
        *2 * [2 * n_s],
        *2 * [n_s],
        len(switches),
    ]
    lengths += [
        *2 * [2 * n_device],
        n_a,
        3 * n_a,
        *3 * [n_a],
        3 * n_a,
        *11 * [n_device],
        (LATEST + 2) * n_device,
        n_device,
    ]
    lengths += [4 * n_a, n_a, n_device, 4 * n_device, n_device, n_device]
    lengths += [2 * n_a, n_a, 2 * n_a, _full_length(tables), layout.n_c]
    tick, packed = TICK.allocate(*lengths)
    rows = [row.name for row in automaton.rows]
    tick.switches[:] = switches
    tick.smooth[:] = [layout.w.index(name) for name in smooth]
    tick.slot[:] = np.transpose([_slots(axis, layout.w, smooth) for axis in axes]).ravel()
    tick.law[:] = [_law(axis, name, layout.p) for name in ("stiffness", "damping") for axis in axes]
    tick.row[:] = [_row(axis, rows) for axis in axes]
    return tick, packed


def _row(axis: PortAxis, rows: Sequence[str]) -> int:
    """Return the constraint by which a device prescribes an axis, or how else it moves it."""
    if axis.is_applied_force:
        return MovedBy.APPLIED
    return rows.index(axis.constraint) if axis.prescribed_coordinate else -1


def _slots(axis: PortAxis, inputs: Sequence[str], smooth: Sequence[str]) -> tuple[int, int, int]:
    """Return the inputs for position, rate and engagement of an axis, see :class:`~fsm_dyn.runtime.layouts.Tick`."""
    if axis.is_applied_force:
        return inputs.index(axis.applied_force), -1, -1
    if axis.prescribed_coordinate:
        return inputs.index(axis.device), smooth.index(axis.device), -1
    return inputs.index(axis.device), inputs.index(axis.rate), inputs.index(axis.engagement)


def _law(axis: PortAxis, name: str, parameters: Sequence[str]) -> int:
    """Return the index of a parameter of an axis's coupler in the context, -1 without a coupler."""
    return -1 if axis.prescribed_coordinate or axis.is_applied_force else parameters.index(getattr(axis, name))


def _full_length(tables: Tables) -> int:
    """Return the longest output of a mode's kernel, including modes embedded online later."""
    s = tables.sizes
    guards = max(int(s[Sizes.MAX_GUARDS]), _GUARDS_EACH * int(s[Sizes.N_CONTACTS] + s[Sizes.N_TRANSITIONS]))
    return int(s[Sizes.N_Q] + 2 * s[Sizes.N_U] + 1 + 2 * guards + s[Sizes.N_ROWS])


def set_limits(tick: Tick, limits: Limits, period: float, admittance: bool = False) -> None:
    """Write the limits of a device into a tick of this length (s); with ``admittance`` of an admittance device."""
    numbers = tick.numbers
    numbers[TickNumbers.PERIOD] = period
    numbers[TickNumbers.ENGAGEMENT_STEP] = min(period / limits.ramp, 1.0) if limits.ramp > 0.0 else 1.0
    numbers[TickNumbers.FORCE_LIMIT], numbers[TickNumbers.SLEW_LIMIT] = limits.force, limits.slew * period
    numbers[TickNumbers.TORQUE_LIMIT], numbers[TickNumbers.TORQUE_SLEW_LIMIT] = (
        limits.torque,
        limits.torque_slew * period,
    )
    numbers[TickNumbers.VELOCITY_LIMIT], numbers[TickNumbers.ANGULAR_VELOCITY_LIMIT] = (
        limits.velocity,
        limits.angular_velocity,
    )
    if admittance:  # commands to the device are velocities
        numbers[TickNumbers.FORCE_LIMIT], numbers[TickNumbers.SLEW_LIMIT] = (
            limits.speed,
            limits.acceleration * period,
        )
        numbers[TickNumbers.TORQUE_LIMIT] = limits.angular_speed
        numbers[TickNumbers.TORQUE_SLEW_LIMIT] = limits.angular_acceleration * period
    numbers[TickNumbers.HAND_FORCE_LIMIT], numbers[TickNumbers.HAND_FORCE_RATE] = (
        limits.hand_force,
        limits.hand_force_rate,
    )
    numbers[TickNumbers.HAND_TORQUE_LIMIT], numbers[TickNumbers.HAND_TORQUE_RATE] = (
        limits.hand_torque,
        limits.hand_torque_rate,
    )
    numbers[TickNumbers.VELOCITY_LAG] = VELOCITY_LAG if limits.velocity_lag is None else limits.velocity_lag
    tick.counts[TickCounts.ADMITTANCE] = admittance
    tick.low[:], tick.high[:] = limits.low or -FARTHEST, limits.high or FARTHEST
    tick.counts[TickCounts.OUTLIERS] = limits.outliers
    tick.fastest[:] = limits.velocities or np.inf


def couple_ports(
    tick: Tick,
    ports: Sequence[CoupledPort],
    maps: Sequence[DeviceMap],
    parts: Sequence[int],
    values: Mapping[str, ParameterValue],
) -> None:
    """Write the mapping from the axes of the devices to the ports into a tick.

    ``ports``: all of the model, in the order of its axes. ``maps``: of each device; a map without a port name gets the
    port of the device's number. Raises InputError: there are more or fewer maps than devices, no such port, or two
    devices at one; axes do not fit; the devices differ in settings required to be common.
    """
    if len(maps) != len(parts):
        raise InputError(
            "device maps of a live run", found=str(len(maps)), allowed=f"{len(parts)}, one for each device"
        )
    if len({(bool(one.offset), one.force_scale) for one in maps}) != 1:
        raise InputError(
            "device maps of several devices", remedy="give all of them offsets or none, and the same force_scale"
        )
    if tick.counts[TickCounts.ADMITTANCE] and maps[0].force_scale == 0.0:
        raise InputError("force_scale of a device that measures forces", found="0", allowed="above 0")
    coupled = [_port_at(ports, one.port, k) for k, one in enumerate(maps)]
    tick.source[:], tick.scale[:], tick.offset[:] = -1, 1.0, 0.0
    for k, (one, port) in enumerate(zip(maps, coupled, strict=True)):
        if port in coupled[:k]:
            raise InputError(f"two devices at port '{port.name}'", allowed="a port for each device")
        first = sum(len(other.axes) for other in ports[: ports.index(port)])
        own = slice(first, first + len(port.axes))
        tick.source[own] = [sum(parts[:k]) + i if i >= 0 else -1 for i in one.device_axes(port, parts[k])]
        tick.scale[own], tick.offset[own] = one.scales(port), one.offsets(port) or 0.0
        if one.offset:  # a prescribed coordinate counts from its initial value
            tick.offset[own] -= [
                float(np.sum(values[axis.initial])) if axis.prescribed_coordinate else 0.0 for axis in port.axes
            ]
    tick.counts[TickCounts.ABSOLUTE_OFFSET] = bool(maps[0].offset)
    tick.numbers[TickNumbers.FORCE_SCALE] = maps[0].force_scale


def _port_at(ports: Sequence[CoupledPort], name: str, place: int) -> CoupledPort:
    """Return the port of this name, or without a name the port of this number; raise InputError if there is none."""
    names = [port.name for port in ports]
    if not name and place >= len(ports):
        raise InputError(f"there is no port for device {place + 1}", found=", ".join(names))
    if name and name not in names:
        raise InputError(f"no port '{name}'", allowed=", ".join(names), remedy=did_you_mean(name, names))
    return ports[names.index(name) if name else place]


def bandwidths(
    smooth: Sequence[str], axes: Sequence[PortAxis], values: Mapping[str, ParameterValue], period: float
) -> list[float]:
    """Return the bandwidth of the filter of each smooth input, rad per tick.

    Raises InputError: one is too large for the period, or not positive.
    """
    declared = {axis.device: axis.bandwidth for axis in axes if axis.bandwidth is not None}
    found = {name: evaluate_expression(declared[name], values) if name in declared else BANDWIDTH for name in smooth}
    for name, value in found.items():
        if not 0.0 < 2.0 * np.pi * period * value <= MOST_PER_TICK:
            raise InputError(
                f"the bandwidth of '{name}'",
                found=f"{value:g} Hz",
                allowed=f"above 0, up to {MOST_PER_TICK / (2.0 * np.pi * period):.4g} Hz at this period",
            )
    return [2.0 * np.pi * period * value for value in found.values()]


def watch_port(tick: Tick, passivity: str, damping: float | None, delay: float = 0.0) -> None:
    """Set the passivity observer of the port: ``off``, ``observe`` or ``control``.

    ``damping`` is the damping of the device along its straight axes, N s/m, None if unknown; ``delay`` is the time
    from a motion to the resulting force, beyond the loop's own, s.
    """
    tick.numbers[TickNumbers.DELAY] = min(delay / tick.numbers[TickNumbers.PERIOD], LATEST)
    tick.shown[:] = 0.0
    tick.counts[TickCounts.PASSIVITY] = PASSIVITY_WORDS.index(passivity)
    tick.balance[:] = tick.back[:] = tick.distrust[:] = 0.0
    tick.device_damping[:] = np.where(tick.turns != 0, 0.0, damping or 0.0)


# -- The columns of a row of a live run ----------------------------------------------------------------------
#
# The columns of a row of a live run: the data of one tick for viewers, recordings and replays.

FIXED: Final = (
    "tick", "t", "wall", "execution_time", "wakeup_latency", "mode", "status", "phase", "fault", "advanced",
    "incomplete", "transitions", "engagement", "buttons",
)  # fmt: skip
ADVANCED: Final = FIXED.index("advanced")
MODE_COLUMN: Final = FIXED.index("mode")
STATUS_COLUMN: Final = FIXED.index("status")
INCOMPLETE_COLUMN: Final = FIXED.index("incomplete")


@dataclass(frozen=True)
class TickColumns:
    """Names of the columns of a row after the fixed ones.

    These are inputs, state, device, force shown, ports, discrete, motion.  ``ports`` are the axes of all ports; each
    has three columns: force of the port on the model, position, rate.  ``discrete`` are the slip directions and
    discrete variables, by their names in the kernels' context. With them a row determines all forces and guards.
    ``smooth`` are the inputs that run as cubics, with two columns each: rate and second rate.  ``execution_time`` (of
    the tick before) and ``wakeup_latency`` are in s.
    """

    inputs: tuple[str, ...]
    state: tuple[str, ...]
    device: int
    ports: tuple[str, ...]
    discrete: tuple[str, ...] = ()
    smooth: tuple[str, ...] = ()

    @cached_property
    def places(self) -> dict[str, slice]:
        """Columns of each group."""
        lengths = {
            "fixed": len(FIXED), "inputs": len(self.inputs), "state": len(self.state), "position": self.device,
            "velocity": self.device, "force": self.device, "ports": 3 * len(self.ports),
            "discrete": len(self.discrete), "motion": 2 * len(self.smooth),
        }  # fmt: skip
        places, at = {}, 0
        for name, length in lengths.items():
            places[name] = slice(at, at + length)
            at += length
        return places

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.places["motion"].stop)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of every column."""
        device = [f"device_{what}_{i + 1}" for what in ("position", "velocity", "force") for i in range(self.device)]
        ports = [f"{axis}_{what}" for what in ("force", "position", "velocity") for axis in self.ports]
        motion = [f"input_{name}_{what}" for what in ("rate", "rate2") for name in self.smooth]
        return (
            *FIXED,
            *(f"input_{name}" for name in self.inputs),
            *self.state,
            *device,
            *ports,
            *self.discrete,
            *motion,
        )

    def as_dict(self, row: Floats, modes: tuple[str, ...]) -> dict[str, Any]:
        """Return a row as a mapping, with the mode by its name."""
        found: dict[str, Any] = dict(zip(FIXED, row[: len(FIXED)].tolist(), strict=True))
        for name in ("tick", "status", "phase", "fault", "transitions", "buttons"):
            found[name] = int(found[name])
        number = int(found["mode"])
        found["mode"] = modes[number] if 0 <= number < len(modes) else f"mode {number}"
        found["inputs"] = dict(zip(self.inputs, row[self.places["inputs"]].tolist(), strict=True))
        found["discrete"] = dict(zip(self.discrete, row[self.places["discrete"]].tolist(), strict=True))
        found["state"] = dict(zip(self.state, row[self.places["state"]].tolist(), strict=True))
        for name in ("position", "velocity", "force"):
            found[name] = row[self.places[name]].tolist()
        n = len(self.ports)
        ports = row[self.places["ports"]].tolist()
        found["ports"] = {
            axis: {"force": ports[i], "position": ports[n + i], "velocity": ports[2 * n + i]}
            for i, axis in enumerate(self.ports)
        }
        return found
