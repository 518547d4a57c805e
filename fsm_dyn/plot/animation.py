"""Motion of a run as an animation and as a strip of its transitions."""

from __future__ import annotations

import io
import itertools
import math
import subprocess
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image

from fsm_dyn.core.arrays import Floats
from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import whole_file, write_file
from fsm_dyn.core.records import dataclass
from fsm_dyn.draw import svg as palette
from fsm_dyn.plot import style
from fsm_dyn.plot.mechanism import draw_scene
from fsm_dyn.plot.scene_projection import View, filling, project, trajectory_scene, with_force_arrows
from fsm_dyn.run.scene import Scene
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition
from fsm_dyn.run.visits import START

# -- Animation of a run: the mechanism in motion above a band of its modes -----------------------------------

VIDEO_CODECS = {".mp4": "libx264", ".webm": "libvpx-vp9"}
SUFFIXES = (".gif", *VIDEO_CODECS)
MOST_DISPLAY_FRAMES = 601  # 12 s at 50 per second
MOST_BYTES = 16 * 2**20
MOST_RATE = 50.0  # display frames per second: programs slow down GIFs with less than 20 ms between two
_SHORTEST, _LONGEST = 4.0, 12.0  # s of playback, unless a speed is chosen
_ROUND = (1.0, 2.0, 5.0)  # speeds chosen automatically: these times powers of ten
_DPI = 100
_WIDTH, _STAGE_HIGHEST, _STAGE_LOWEST = 6.4, 4.0, 1.0  # inches
_HEAD, _FOOT, _SIDE = 0.62, 0.78, 0.2  # inches above and below the mechanism, and at its sides
_BAND = 0.16  # inches
_MARGIN = 0.06  # of the larger side of the mechanism
_COLOURS = 64


@dataclass(frozen=True)
class Playback:
    """Times of the display frames, s of the run; seconds of the run per second of playback; frames per second."""

    times: Floats
    speed: float
    rate: float


def animation(
    trajectory: Trajectory,
    path: str | Path,
    *,
    speed: float | None = None,
    rate: float = 20.0,
    forces: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write an animation of a run as GIF, or as MP4 or WebM if the program ffmpeg is installed.

    A GIF above :data:`MOST_BYTES` is written with every second display frame, as often as necessary.

    Parameters
    ----------
    trajectory : Trajectory
    path : str or Path
        File with the suffix ``.gif``, ``.mp4`` or ``.webm``.
    speed : float, optional
        Seconds of the run per second of playback: 1 is real time, 0.1 a tenth of it.  By default real time if the
        playback then takes 4 s to 12 s, else the nearest of 1, 2 and 5 times a power of ten with which it does.
    rate : float
        Display frames per second, at most 50; of a GIF rounded to delays of whole hundredths of a second.
    forces : bool
        Whether contact forces are drawn: arrows from the contact point in the direction of the force on the body, with
        one scale for the whole run (:func:`~fsm_dyn.plot.scene_projection.with_force_arrows`).  Torques have none.
    progress : callable, optional
        Called with the number of display frames that are drawn, and the number of all.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        The model has nothing to draw; the suffix is another, or needs ffmpeg and that is missing; the speed or rate is
        not positive, or there would be more than :data:`MOST_DISPLAY_FRAMES` display frames.
    """
    target = Path(path)
    require_writable(target)
    scene = trajectory_scene(trajectory)
    plan = playback(float(trajectory.t[0]), float(trajectory.t[-1]), speed, rate)
    with style.settings():
        view = project(trajectory, scene, plan.times)
        view = with_force_arrows(trajectory, view) if forces else view
        pictures = _display_frames(trajectory, scene, plan, view, progress)
        if target.suffix.lower() == ".gif":
            write_file(target, _gif(pictures, plan.rate))
        else:
            with whole_file(target) as temporary:
                _video(pictures, temporary, plan.rate)
    return target


def require_writable(path: Path) -> None:
    """Check that an animation can be written in the format of this file's suffix.

    Raises InputError as of :func:`animation`.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"an animation cannot be written as '{path.name}'",
            found=suffix or "no suffix",
            allowed=", ".join(SUFFIXES),
        )
    if suffix in VIDEO_CODECS and not FFMpegWriter.isAvailable():
        raise InputError(
            f"an animation is written as '{path.name}' by the program ffmpeg",
            found="no ffmpeg on the search path",
            remedy="install ffmpeg, or write a .gif",
        )


def require_speed(speed: float | None) -> None:
    """Check the speed of an animation, None for automatic; raise InputError if it is not positive and finite."""
    if speed is not None and not (speed > 0.0 and math.isfinite(speed)):
        raise InputError(
            "the speed of an animation must be positive", found=f"{speed:g}", allowed="1 is real time, 0.1 a tenth"
        )


def playback(start: float, end: float, speed: float | None, rate: float) -> Playback:
    """Return the display frames of a run from ``start`` to ``end``, s; see :func:`animation`."""
    if not 0.0 < rate <= MOST_RATE:
        raise InputError("the frame rate of an animation is out of range", found=f"{rate:g}", allowed="0 to 50, 1/s")
    require_speed(speed)
    chosen = _automatic_speed(end - start) if speed is None else speed
    count = max(round((end - start) / chosen * rate), 1) + 1
    if count > MOST_DISPLAY_FRAMES:
        raise InputError(
            "an animation of this run has too many frames", found=str(count), allowed=f"{MOST_DISPLAY_FRAMES}",
            remedy=f"a speed of at least {(end - start) * rate / (MOST_DISPLAY_FRAMES - 1):.2g}, or a lower frame rate",
        )  # fmt: skip
    return Playback(np.linspace(start, end, count), chosen, rate)


def _automatic_speed(span: float) -> float:
    """Return the speed nearest to real time with which a run of this length, s, plays 4 s to 12 s."""
    if span <= 0.0:
        return 1.0
    exponents = range(math.floor(math.log10(span)) - 2, math.floor(math.log10(span)) + 2)
    speeds = [factor * 10.0**exponent for exponent in exponents for factor in _ROUND]
    return min((speed for speed in speeds if _SHORTEST <= span / speed <= _LONGEST), key=lambda s: abs(math.log(s)))


def _display_frames(
    trajectory: Trajectory, scene: Scene, plan: Playback, view: View, progress: Callable[[int, int], None] | None
) -> Iterator[Figure]:
    """Yield one and the same figure, drawn again for every display frame."""
    visits = trajectory.visits
    low, high = _limits(view)
    picture, stage = _canvas(high - low)
    low, high = filling(stage, low, high)
    _write_head(picture, trajectory.model.name, plan.speed)
    label = picture.text(_SIDE / _WIDTH, 1.0 - 0.46 / picture.get_figheight(), "", fontsize=9, va="center")
    clock = picture.text(1.0 - _SIDE / _WIDTH, label.get_position()[1], "", fontsize=9, va="center", ha="right")
    cursor = _draw_band(picture, trajectory)
    for i, time in enumerate(view.times):
        stage.clear()
        stage.set_axis_off()
        stage.set_xlim(low[0], high[0])
        stage.set_ylim(low[1], high[1])
        draw_scene(stage, view, i)
        visit = visits.at(float(time))
        label.set_text(style.fitted(f"{visit.name}: {visit.text}" if visit.text else visit.name, 4.6, 9.0))
        label.set_bbox(style.chip(visits.fills[visit.name].colour))
        clock.set_text(f"{time:.{_decimals(plan)}f} s")
        cursor.set_xdata([time, time])
        yield picture
        if progress is not None:
            progress(i + 1, len(view.times))


def _limits(view: View) -> tuple[Floats, Floats]:
    """Return the corners, m, of the drawing in all display frames, with a margin."""
    corners = np.concatenate([view.limits(), *view.paths.values()])
    low, high = corners.min(axis=0), corners.max(axis=0)
    larger = max(float((high - low).max()), 1e-9)
    return low - _MARGIN * larger, high + _MARGIN * larger


def _canvas(size: Floats) -> tuple[Figure, Axes]:
    """Return a figure with axes of equal scale for a drawing of this size, m."""
    room = _WIDTH - 2.0 * _SIDE
    tall = min(max(room * float(size[1] / size[0]), _STAGE_LOWEST), _STAGE_HIGHEST)
    height = round((_HEAD + tall + _FOOT) * _DPI / 2.0) * 2.0 / _DPI  # videos need an even number of pixels
    picture = style.new_figure(_WIDTH, height)
    picture.set_dpi(_DPI)
    axes = picture.add_axes((_SIDE / _WIDTH, _FOOT / height, room / _WIDTH, tall / height))
    axes.set_aspect("equal")
    return picture, axes


def _write_head(picture: Figure, name: str, speed: float) -> None:
    y = 1.0 - 0.2 / picture.get_figheight()
    picture.text(
        _SIDE / _WIDTH, y, style.fitted(name, 4.3, 11.0), fontsize=11, fontweight="bold", va="center"
    )  # fmt: skip
    if speed != 1.0:
        words = f"{speed:.3g} × real time"
        picture.text(1.0 - _SIDE / _WIDTH, y, words, fontsize=8.5, va="center", ha="right", color=palette.SOFT)


def _draw_band(picture: Figure, trajectory: Trajectory) -> Line2D:
    """Draw the visits over time below the mechanism and return the line that marks the time."""
    left, height = 0.35 / _WIDTH, picture.get_figheight()
    axes = picture.add_axes((left, 0.44 / height, 1.0 - 2.0 * left, _BAND / height))
    visits = trajectory.visits
    for visit in visits:
        axes.axvspan(visit.begin, visit.end, color=visits.fills[visit.name].colour, lw=0)
    start, end = float(trajectory.t[0]), float(trajectory.t[-1])
    axes.set_xlim(start, end if end > start else start + 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_yticks([])
    axes.tick_params(length=2, labelsize=8)
    axes.set_xlabel("time, s", fontsize=8, labelpad=1.0)
    return axes.axvline(start, color=palette.INK, lw=1.6)


def _decimals(plan: Playback) -> int:
    """Return the decimals with which the times of two display frames differ."""
    step = float(plan.times[1] - plan.times[0])
    return min(max(math.ceil(-math.log10(step)), 0), 9) if step > 0.0 else 3


def _gif(pictures: Iterator[Figure], rate: float) -> bytes:
    images = []
    for picture in pictures:
        picture.canvas.draw()
        pixels = np.asarray(picture.canvas.buffer_rgba())[..., :3]  # type: ignore[attr-defined]
        # maximum coverage keeps the colour of a few pixels, as of an arrow
        images.append(Image.fromarray(pixels).quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE))
    delay = 10 * max(round(100.0 / rate), 1)  # ms
    while True:
        buffer = io.BytesIO()
        images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=delay, loop=0, optimize=True)
        if buffer.tell() <= MOST_BYTES or len(images) == 1:
            return buffer.getvalue()
        images, delay = images[::2], 2 * delay


def _video(pictures: Iterator[Figure], target: Path, rate: float) -> None:
    codec = VIDEO_CODECS[target.suffix.lower()]
    writer = FFMpegWriter(
        fps=rate,  # type: ignore[arg-type]  # a float is passed on as it is
        codec=codec,
        extra_args=["-pix_fmt", "yuv420p", "-fflags", "+bitexact"],
    )
    first = next(pictures)
    try:
        with writer.saving(first, target, _DPI):
            writer.grab_frame()
            for _ in pictures:
                writer.grab_frame()
    except (BrokenPipeError, subprocess.CalledProcessError):  # it has ended before the last picture, or with an error
        raise OSError("ffmpeg has failed; is the disk full?") from None


# -- Strip of a run: the mechanism at its transitions, with the cause of each --------------------------------

_STRIP_WIDTH = 8.0  # inches
_COLUMNS = 4
_GAP = 0.12  # inches between panels
_TALLEST, _LOWEST = 2.2, 0.6  # inches of a panel
_STRIP_HEAD, _TITLE, _LINE = 0.45, 0.36, 0.135  # inches above all, above each panel, and of a line of its cause
_LINES, _LETTERS = 3, 28  # of a cause
_SIZE = 7.5  # points


@dataclass(frozen=True)
class _Panel:
    """One panel: a time, s, the short name of the mode, the colour of the visit, and the text below."""

    time: float
    mode: str
    colour: str
    text: str


def film_strip(trajectory: Trajectory, most: int = 12, *, forces: bool = True) -> Figure:
    """Draw the mechanism at the transitions of a run, a panel for each in the mode after it, with its cause below.

    Below an impact is the change of energy too.  The start of the run is the first panel.

    If there are more than ``most`` panels, transitions are left out: handovers first, then those with the least time
    until the next transition, of equals the later; the last transition is never left out.

    Parameters
    ----------
    most : int
        Largest number of panels, at least 2.
    forces : bool
        Whether contact forces are drawn as arrows, as by :func:`~fsm_dyn.plot.animation`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        The model has nothing to draw, or ``most`` is less than 2.
    """
    scene = trajectory_scene(trajectory)
    if most < 2:
        raise InputError("a strip of transitions needs more panels", found=str(most), allowed="2 or more")
    chosen = select_transitions(trajectory.transitions, float(trajectory.t[-1]), most - 1)
    panels = list(_panels(trajectory, chosen))
    view = project(trajectory, scene, np.array([panel.time for panel in panels]))
    view = with_force_arrows(trajectory, view) if forces else view
    low, high = view.limits()
    margin = _MARGIN * max(float((high - low).max()), 1e-9)
    low, high = low - margin, high + margin
    with style.settings():
        left_out = len(trajectory.transitions) - len(chosen)
        picture, stages = _strip_canvas(trajectory.model.name, left_out, len(panels), high - low)
        low, high = filling(stages[0], low, high)
        for i, (panel, axes) in enumerate(zip(panels, stages, strict=True)):
            axes.set_xlim(low[0], high[0])
            axes.set_ylim(low[1], high[1])
            draw_scene(axes, view, i)
            _write(picture, axes, panel)
    return picture


def _panels(trajectory: Trajectory, chosen: Sequence[Transition]) -> Iterator[_Panel]:
    """Yield the start and the chosen transitions, in the words of the score."""
    reading, visits = trajectory.reading, trajectory.visits
    numbers = {mode: number for number, mode in enumerate(trajectory.model.modes)}
    first = reading.names[int(trajectory.record.mode[0])]
    yield _Panel(float(trajectory.t[0]), first, visits.fills[visits[0].name].colour, START)
    shown = {id(item) for item in chosen}
    for number, item in enumerate(trajectory.transitions):
        if id(item) in shown:
            name = reading.names.get(numbers[item.target], item.target_label or item.target)
            colour = visits.fills[visits.at(item.time).name].colour
            lost = f"; energy {-item.energy_lost:+.2g} J" if item.impulse else ""
            yield _Panel(item.time, name, colour, f"{reading.sentences.cause(number)}{lost}")


def select_transitions(transitions: tuple[Transition, ...], end: float, most: int) -> list[Transition]:
    """Return the transitions that fit ``most`` panels, in order of time; ``end`` is that of the run, s.

    See :func:`film_strip` for the rule.
    """
    times = [*(item.time for item in transitions), end]
    dwell = [after - before for before, after in itertools.pairwise(times)]

    def importance(number: int) -> tuple[bool, bool, float, int]:
        item = transitions[number]
        return number == len(transitions) - 1, not item.is_handover, dwell[number], -number

    kept = sorted(range(len(transitions)), key=importance, reverse=True)[:most]
    return [transitions[number] for number in sorted(kept)]


def _strip_canvas(name: str, left_out: int, count: int, size: Floats) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of panels for drawings of this size, m."""
    rows = math.ceil(count / _COLUMNS)
    wide = (_STRIP_WIDTH - (_COLUMNS + 1) * _GAP) / _COLUMNS
    tall = min(max(wide * float(size[1] / size[0]), _LOWEST), _TALLEST)
    pitch = _TITLE + tall + (_LINES + 1) * _LINE
    height = _STRIP_HEAD + rows * pitch
    picture = style.new_figure(_STRIP_WIDTH, height)
    stages = []
    for i in range(count):
        left, top = _GAP + (i % _COLUMNS) * (wide + _GAP), _STRIP_HEAD + (i // _COLUMNS) * pitch + _TITLE
        axes = picture.add_axes((left / _STRIP_WIDTH, 1.0 - (top + tall) / height, wide / _STRIP_WIDTH, tall / height))
        axes.set_xticks([])
        axes.set_yticks([])
        stages.append(axes)
    y = 1.0 - 0.22 / height
    picture.text(_GAP / _STRIP_WIDTH, y, style.fitted(name, 4.5, 11.0), fontsize=11, fontweight="bold", va="center")
    if left_out:
        words = f"{left_out} transitions left out"
        picture.text(1.0 - _GAP / _STRIP_WIDTH, y, words, fontsize=8.5, va="center", ha="right", color=palette.SOFT)
    return picture, stages


def _write(picture: Figure, axes: Axes, panel: _Panel) -> None:
    """Write time and mode above a panel and its text below, and draw its frame in the colour of the visit."""
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color(panel.colour)
        side.set_linewidth(1.6)
    place = axes.get_position()
    room, height = place.width * _STRIP_WIDTH, picture.get_figheight()
    mode = style.fitted(panel.mode, room, _SIZE)
    picture.text(place.x0, place.y1 + 0.19 / height, f"{panel.time:.6g} s", fontsize=_SIZE, color=palette.SOFT)
    picture.text(place.x0, place.y1 + 0.06 / height, mode, fontsize=_SIZE)
    lines = textwrap.wrap(panel.text, _LETTERS, max_lines=_LINES, placeholder=" …")
    for i, line in enumerate(lines):
        y = place.y0 - (0.12 + i * _LINE) / height
        picture.text(place.x0, y, style.fitted(line, room, _SIZE), fontsize=_SIZE, va="center", color=palette.SOFT)
