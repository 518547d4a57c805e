"""First steps with a device, one after the other: zero force, direction of each axis, a soft spring, unplugging.

The driver runs in this process at 1 kHz, without a model and without a watchdog process: forces are limited to
``force``, are removed if an axis moves by ``TRAVEL`` or faster than ``SPEED``, and are zero after each step.

An admittance device gets velocities of at most ``FOLLOWING_SPEED`` instead: it stands still, moves along each axis,
and yields to the hand as in a viscous fluid.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw import svg
from fsm_dyn.live.driver_protocol import (
    ADMITTANCE,
    NOTHING,
    SAFE_FRAME,
    BlockingReader,
    DeviceSpec,
    Sample,
    driver_class,
)
from fsm_dyn.live.live_settings import ZERO_AFTER, LiveSettings

PERIOD: Final = 1e-3  # s
QUIET_TIME: Final = 1.0  # s with zero force
PULSE: Final = 0.2  # s of a force along one axis
REST_TIME: Final = 1.0  # s without force after that
SPRING_TIME: Final = 2.0  # s
STIFFNESS: Final = 50.0  # N/m
SPRING_DAMPING: Final = 1.0  # N s/m
ELONGATION: Final = 0.01  # m, of the spring at first
TRAVEL: Final = 0.02  # m
SPEED: Final = 0.5  # m/s
ARM: Final = 0.05  # m, lever arm to convert forces to torques and distances to angles
LEAST_MOTION: Final = 2e-4  # m, least displacement by a force
LEAST_RATE: Final = 100.0  # samples a second
FOLLOWING_SPEED: Final = 0.05  # m/s, of an admittance device
FOLLOWING_DAMPING: Final = 50.0  # N s/m, resistance to the hand
SETTLED: Final = 0.05  # allowed motion in the last quarter of the time with the spring, as a part of the elongation
SILENCE: Final = 0.1  # s without a new sample: unplugged
PATIENCE: Final = 20.0  # s for unplugging
WIDTH: Final = 160.0  # points, of the largest axis in the picture of the workspace
MARGIN: Final = 28  # points
BAR: Final = 14.0  # points, height of the bar of a single axis
LABEL: Final = 150.0  # points, least distance of the parts of the picture


@dataclass(frozen=True)
class CheckStep:
    """Result of one step."""

    name: str
    passed: bool
    remark: str  # finding, or reason of the failure
    figures: dict[str, float] = field(default_factory=dict)  # measured values by name, with their units


class _Course(NamedTuple):
    """Samples of a step with different sequence numbers, and the last force reported by the driver."""

    samples: list[Sample]
    shown: Sequence[float]


Law = Callable[[Sample], Sequence[float]]
Read = Callable[[], Sample]


def check_device(
    driver: str, options: Mapping[str, Any], force: float, unplug: Callable[[], None]
) -> tuple[DeviceSpec, list[CheckStep]]:
    """Check a device; return the declaration of its driver and the results.

    In the first step the driver opens and calibrates the device, before any force, or raises the reason for its
    failure. The figures of this step are the maker's if the driver has ``maker_figures``.

    After wrong samples no force is applied, after a wrong direction no spring, and after a failed driver nothing.
    ``driver``: as for :func:`~fsm_dyn.live.driver_protocol.driver_class`; ``force``: largest force, N; ``unplug``:
    called to ask for unplugging the device. Raises InputError: the driver, its library or the device is missing, an
    option is invalid, or the driver combines several devices.
    """
    with _opened(driver, options) as (device, read):
        spec: DeviceSpec = device.spec
        units = tuple(ARM if i in spec.rotational_axes else 1.0 for i in range(spec.axes))
        results: list[CheckStep] = []
        try:
            results.append(_ready(device, spec))
            follows = spec.kind == ADMITTANCE
            results.append((_standing_still if follows else _zero_force)(device, read, spec))
            if results[-1].passed and spec.felt:
                most = min(FOLLOWING_SPEED, spec.force) if follows else force
                for axis in range(spec.axes):
                    results.append(_direction(device, read, axis, most, units))
                if all(step.passed for step in results):
                    results.append((_yielding if follows else _spring)(device, read, most, units))
            results.append(_unplugged(device, read, unplug))
        except Exception as error:  # a driver may raise anything
            results.append(CheckStep("driver", False, f"{type(error).__name__}: {error}"))
        return spec, results


@contextlib.contextmanager
def _opened(driver: str, options: Mapping[str, Any]) -> Iterator[tuple[Any, Read]]:
    """Open a device; at the end its force is zero, and it is closed."""
    kind = driver_class(driver)
    complete = dict(getattr(kind, "complete", dict)(options))
    spec = kind.describe(complete)
    if spec.parts:
        raise InputError(
            "the check is of one device", found=f"{len(spec.parts)} devices", remedy="check devices one by one"
        )
    transport = kind.open_transport(complete)
    device = kind(complete, transport)
    waiting: BlockingReader | None = None
    try:
        device.open()
        device.calibrate()
        waiting = BlockingReader(device) if device.spec.blocking_read else None
        yield device, partial(_copied, waiting.read if waiting else device.read)
    finally:
        if waiting is not None:
            waiting.stop()
        with contextlib.suppress(Exception):  # it may be unplugged
            device.write((0.0,) * device.spec.axes)
        with contextlib.suppress(Exception):
            device.close()
        if transport is not None:
            with contextlib.suppress(OSError):  # the driver has closed it
                os.close(transport)


def _copied(read: Read) -> Sample:
    """Return the latest sample with its own numbers: a driver may change those of its sample later."""
    sample = read()
    return sample._replace(position=tuple(sample.position), velocity=tuple(sample.velocity))


def _exchange(device: Any, read: Read, law: Law, duration: float) -> _Course:
    """Read and write every millisecond, with the force of a law; end with a force of zero."""
    samples, none = [read()], (0.0,) * device.spec.axes
    shown: Sequence[float] = none
    due = time.monotonic()
    until = due + duration
    while due < until:
        sample = read()
        if sample.sequence != samples[-1].sequence:
            samples.append(sample)
        shown = device.write(law(sample))
        due += PERIOD
        time.sleep(max(0.0, due - time.monotonic()))
    device.write(none)
    return _Course(samples, shown)


def _ready(device: Any, spec: DeviceSpec) -> CheckStep:
    """The device is open and its driver has calibrated it: the figures of its maker."""
    figures: dict[str, float] = getattr(device, "maker_figures", dict)()
    zero = "its zero is where it stands now" if spec.zeroed else "its zero is that of its driver"
    return CheckStep("ready", True, f"open and calibrated: {zero}", figures)


def _zero_force(device: Any, read: Read, spec: DeviceSpec) -> CheckStep:
    """No force: samples come, are finite and within the workspace."""
    course = _exchange(device, read, lambda sample: (0.0,) * spec.axes, QUIET_TIME)
    rate = (len(course.samples) - 1) / QUIET_TIME
    numbers = [x for sample in course.samples for x in (*sample.position, *sample.velocity)]
    figures = {"sample rate, 1/s": rate}
    if not all(map(math.isfinite, numbers)):
        return CheckStep("zero force", False, "a position or velocity is not finite", figures)
    columns = list(zip(*(sample.position for sample in course.samples), strict=True))
    figures["largest motion, m or rad"] = max(max(column) - min(column) for column in columns)
    bounds = zip(columns, spec.low, spec.high, strict=False)
    outside = [i for i, (column, low, high) in enumerate(bounds) if min(column) < low or max(column) > high]
    if outside:
        return CheckStep("zero force", False, f"axis {outside[0]} is outside the workspace", figures)
    if rate < LEAST_RATE:
        return CheckStep("zero force", False, f"fewer than {LEAST_RATE:g} samples a second", figures)
    if any(course.shown):
        return CheckStep("zero force", False, f"the driver reports a force of {list(course.shown)}", figures)
    return CheckStep("zero force", True, "samples are finite and within the workspace", figures)


def _standing_still(device: Any, read: Read, spec: DeviceSpec) -> CheckStep:
    """Zero velocity, or zero force: an admittance device does not move."""
    found = replace(_zero_force(device, read, spec), name="standing still")
    if found.passed and found.figures["largest motion, m or rad"] > LEAST_MOTION:
        return replace(found, passed=False, remark="it moves though no velocity is commanded")
    return found


def _direction(device: Any, read: Read, axis: int, most: float, units: Sequence[float]) -> CheckStep:
    """Command the most along an axis, a force or a velocity: the device moves along it, farther than along others."""
    start = read().position
    follows = device.spec.kind == ADMITTANCE
    what = "velocity" if follows else "force"

    def push(sample: Sample) -> Sequence[float]:
        if follows:
            part = most / units[axis] if _farthest(sample, start, units) <= TRAVEL else 0.0
        else:
            part = 0.0 if _moves_too_far(sample, start, units) else most * units[axis]
        return tuple(part if i == axis else 0.0 for i in range(len(start)))

    end = _exchange(device, read, push, PULSE).samples[-1].position
    moved = [unit * (after - before) for after, before, unit in zip(end, start, units, strict=True)]
    name = f"direction of axis {axis}"
    figures = {"moved along it, m": moved[axis], "moved otherwise, m": _largest(moved[:axis] + moved[axis + 1 :])}
    _exchange(device, read, lambda sample: (0.0,) * len(start), REST_TIME)
    if abs(moved[axis]) < LEAST_MOTION:
        remedy = "" if follows else ": hold it lightly, or allow more force"
        return CheckStep(name, False, f"it does not move{remedy}", figures)
    if moved[axis] < 0.0:
        return CheckStep(name, False, f"a positive {what} moves it in the negative direction", figures)
    if figures["moved otherwise, m"] >= moved[axis]:
        return CheckStep(name, False, "it moves farther along another axis", figures)
    return CheckStep(name, True, f"a positive {what} moves it in the positive direction", figures)


def _spring(device: Any, read: Read, force: float, units: Sequence[float]) -> CheckStep:
    """Draw all axes to a point nearby by a soft spring: the device moves there, and comes to rest."""
    start = read().position
    target = [x + ELONGATION / unit for x, unit in zip(start, units, strict=True)]

    def draw(sample: Sample) -> Sequence[float]:
        if _moves_too_far(sample, start, units):
            return (0.0,) * len(start)
        state = zip(target, sample.position, sample.velocity, units, strict=True)
        pulls = [unit**2 * (STIFFNESS * (to - x) - SPRING_DAMPING * v) for to, x, v, unit in state]
        return [max(-force * unit, min(force * unit, pull)) for pull, unit in zip(pulls, units, strict=True)]

    samples = _exchange(device, read, draw, SPRING_TIME).samples
    last = samples[3 * len(samples) // 4 :]
    columns = zip(*(sample.position for sample in last), strict=True)
    swing = max(unit * (max(column) - min(column)) for column, unit in zip(columns, units, strict=True))
    moved = [unit * (after - x) for after, x, unit in zip(last[-1].position, start, units, strict=True)]
    figures = {"moved, m": min(moved), "motion at the end, m": swing}
    if min(moved) <= 0.0:
        return CheckStep("soft spring", False, "an axis does not move towards the middle of the spring", figures)
    if swing > SETTLED * ELONGATION:
        return CheckStep("soft spring", False, "it does not come to rest", figures)
    return CheckStep("soft spring", True, "it comes to rest", figures)


def _yielding(device: Any, read: Read, most: float, units: Sequence[float]) -> CheckStep:
    """Let an admittance device yield to the hand: it moves in the direction of the measured force."""
    start = read().position

    def yield_to(sample: Sample) -> Sequence[float]:
        if _farthest(sample, start, units) > TRAVEL:
            return (0.0,) * len(start)
        forces = zip(sample.velocity, units, strict=True)
        speeds = [force / unit / FOLLOWING_DAMPING for force, unit in forces]
        return [max(-most, min(most, speed)) / unit for speed, unit in zip(speeds, units, strict=True)]

    samples = _exchange(device, read, yield_to, SPRING_TIME).samples
    ways = [
        [after - before for after, before in zip(two.position, one.position, strict=True)]
        for one, two in pairwise(samples)
    ]
    work = min(
        sum(way[i] * sample.velocity[i] for way, sample in zip(ways, samples, strict=False)) for i in range(len(start))
    )
    farthest = max(_farthest(sample, start, units) for sample in samples)
    figures = {"least work of the hand on an axis, J": work, "largest motion, m": farthest}
    if farthest > TRAVEL:
        return CheckStep("yielding", False, "it runs away: a force of the hand has the wrong sign", figures)
    if work <= 0.0:
        return CheckStep("yielding", False, "no force of a hand moves it: push it lightly along each axis", figures)
    return CheckStep("yielding", True, "it moves as the hand pushes", figures)


def _unplugged(device: Any, read: Read, unplug: Callable[[], None]) -> CheckStep:
    """Unplug the device, with a force of zero: the driver reports an error, or samples stop."""
    name, none = "unplugging", (0.0,) * device.spec.axes
    unplug()
    began = time.monotonic()
    latest, at = -1, began
    while (now := time.monotonic()) - began < PATIENCE:
        try:
            sample = read()
            device.write(none)
        except Exception as error:  # raised by drivers for unplugged devices
            return CheckStep(name, True, f"reported as {type(error).__name__}: {error}", {"after, s": now - began})
        if sample.sequence != latest:
            latest, at = sample.sequence, now
        elif now - at > SILENCE:
            return CheckStep(name, True, "samples stop, which is a fault of a run", {"after, s": at - began})
        time.sleep(PERIOD)
    return CheckStep(name, False, f"nothing was noticed within {PATIENCE:g} s")


def _farthest(sample: Sample, start: Sequence[float], units: Sequence[float]) -> float:
    return _largest([unit * (x - before) for x, before, unit in zip(sample.position, start, units, strict=True)])


def _moves_too_far(sample: Sample, start: Sequence[float], units: Sequence[float]) -> bool:
    return (
        _farthest(sample, start, units) > TRAVEL
        or _largest([u * v for u, v in zip(units, sample.velocity, strict=True)]) > SPEED
    )


def _largest(values: Sequence[float]) -> float:
    return max(map(abs, values), default=0.0)


def _workspace(spec: DeviceSpec) -> list[str]:
    """Return the table of the axes: unit and workspace as the driver declares them."""
    rows = [
        f"| {axis} | {'rad' if axis in spec.rotational_axes else 'm'} | {low:g} | {high:g} |"
        for axis, (low, high) in enumerate(zip(spec.low, spec.high, strict=True))
    ]
    if not rows:
        return ["The workspace is unknown.", ""]
    return ["| axis | unit | from | to |", "|--:|---|--:|--:|", *rows, ""]


def workspace_picture(spec: DeviceSpec) -> str:
    """Return the workspace as SVG: axis 1 over axis 0, then axis 1 over axis 2, to one scale, zero as a cross.

    One axis, more than three, and axes of different kinds are drawn as bars of one length.
    """
    kinds = {axis in spec.rotational_axes for axis in range(spec.axes)}
    pairs: list[tuple[int, ...]] = [(0, 1), (2, 1)] if spec.axes == 3 else [(0, 1)]
    if spec.axes not in (2, 3) or len(kinds) > 1:
        pairs = [(axis,) for axis in range(spec.axes)]
    extents = [high - low for low, high in zip(spec.low, spec.high, strict=True)]
    parts, left, bottom = [], float(MARGIN), 0.0
    for pair in pairs:
        across, scale = pair[0], WIDTH / (max(extents) if len(pair) > 1 else extents[pair[0]])
        width = scale * (spec.high[across] - spec.low[across])
        height = scale * (spec.high[pair[1]] - spec.low[pair[1]]) if len(pair) > 1 else BAR
        top = float(MARGIN)
        x = left - scale * spec.low[across]
        y = top + scale * spec.high[pair[1]] if len(pair) > 1 else top + 0.5 * height
        parts += [
            svg.element("rect", x=left, y=top, width=width, height=height, fill="#EEF2F7", stroke="#667085"),
            svg.element("path", d=f"M{x - 5:.1f} {y:.1f}h10M{x:.1f} {y - 5:.1f}v10", stroke="#101828"),
            svg.text(_extent(spec, across), left, top + height + 12, 11, "start"),
        ]
        if len(pair) > 1:
            turned = f"rotate(-90 {left - 12:.1f} {top + 0.5 * height:.1f})"
            parts.append(svg.text(_extent(spec, pair[1]), left - 12, top + 0.5 * height, 11, transform=turned))
        bottom, left = max(bottom, top + height), left + max(width, LABEL) + 2 * MARGIN
    return svg.picture(left - MARGIN, bottom + MARGIN, parts, "workspace")


def _extent(spec: DeviceSpec, axis: int) -> str:
    low, high = spec.low[axis], spec.high[axis]
    if axis in spec.rotational_axes:
        return f"axis {axis}: {low:g} to {high:g} rad"
    return f"axis {axis}: {1e3 * low:g} to {1e3 * high:g} mm"


def _safeguards(spec: DeviceSpec) -> list[str]:
    """Return the safeguards of the device as a Markdown list, with the default timeouts of a run."""
    usual = LiveSettings()
    found = [f"- the run itself: after {1e3 * usual.release_after:g} ms"]
    if spec.zero_frame:
        zero_after = 1e3 * ZERO_AFTER * usual.release_after
        found.append(f"- the watchdog process, by a packet of zero force: after {zero_after:.2g} ms")
    if spec.stop_mechanism == SAFE_FRAME:
        found.append(f"- the watchdog process, by the safe packet: after {1e3 * usual.watchdog_timeout:g} ms")
    if spec.watchdog:
        found.append(f"- the watchdog of the device: after {1e3 * spec.watchdog:g} ms without a command")
    if spec.stop_mechanism == NOTHING:
        found.append("- nothing once the processes have stopped: a run limits the force to a fifth")
    return found


def report(driver: str, spec: DeviceSpec, steps: Sequence[CheckStep], force: float, *, drawn: bool = False) -> str:
    """Return the results as a page of Markdown; ``drawn``: with a picture of the workspace, SVG."""
    follows = spec.kind == ADMITTANCE
    most = f"{min(FOLLOWING_SPEED, spec.force):g} m/s" if follows else f"{force:g} N"
    limits = "" if follows or math.isinf(spec.force) else f", largest force {spec.force:g} N"
    lines = [
        f"# Check of `{driver}`",
        "",
        f"{spec.axes} axes{limits}, stop mechanism `{spec.stop_mechanism}`, watchdog {spec.watchdog:g} s; "
        f"checked with up to {most}.",
        "",
        *_workspace(spec),
        *([workspace_picture(spec), ""] if drawn and spec.low else []),
        "What removes the force when no sample, tick or heartbeat comes:",
        "",
        *_safeguards(spec),
        "",
        "| step | passed | found | measured |",
        "|---|---|---|---|",
    ]
    for step in steps:
        measured = "; ".join(f"{name}: {value:.4g}" for name, value in step.figures.items())
        lines.append(f"| {step.name} | {'yes' if step.passed else '**no**'} | {step.remark} | {measured} |")
    return "\n".join(lines) + "\n"
