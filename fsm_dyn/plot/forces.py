"""Forces over time: in contacts, with guards and energy; in connections, also in the axes of a bearing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import MaxNLocator

from fsm_dyn.core.arrays import Booleans, Floats
from fsm_dyn.core.errors import InputError, did_you_mean
from fsm_dyn.derive.unconstrained_system import ContactInfo
from fsm_dyn.draw import svg as palette
from fsm_dyn.draw.run_diagrams import Timeline
from fsm_dyn.language.evaluate import evaluate_expression
from fsm_dyn.plot import style
from fsm_dyn.plot.timelines import head, time_panel
from fsm_dyn.run.pin_loads import words_of
from fsm_dyn.run.pins import Pin
from fsm_dyn.run.run_timeline import dense_rows, visits_timeline
from fsm_dyn.run.samples import Samples
from fsm_dyn.run.trajectory import Trajectory
from fsm_dyn.run.transitions import Transition

# -- Contact forces in their friction cones ------------------------------------------------------------------

_ACROSS = 3  # panels side by side
_PANEL = 2.5  # inches
_LINES = ("-", "--")  # of the static and the kinetic limit


@overload
def forces(trajectory: Trajectory, contacts: Sequence[str] | None = None) -> Figure: ...


@overload
def forces(trajectory: Trajectory, contacts: Sequence[str] | None = None, *, ax: Axes) -> Axes: ...


def forces(trajectory: Trajectory, contacts: Sequence[str] | None = None, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw friction over normal force, contact by contact, in the colour of the mode, with its friction cone.

    Solid lines are the static limit, dashed ones the kinetic.  Indeterminate forces are those of minimum norm that
    satisfy the contact laws, drawn as grey rings; if none do, those of minimum norm, drawn as crosses.
    Dry friction on a speed has no normal force; it is drawn over time, between its limits.

    Parameters
    ----------
    trajectory : Trajectory
    contacts : sequence of str, optional
        By default all contacts with friction that carry a force during the run.
    ax : Axes, optional
        Where to draw one contact, without heading; it is returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        A contact does not exist or has no friction, none was given and no contact with friction carries a force, or
        with ``ax`` there is not one contact.
    """
    rows = dense_rows(trajectory.rows, trajectory.sample)
    chosen = _chosen(trajectory, rows, contacts)
    timeline = visits_timeline(trajectory.reading)
    shades = np.array([style.strong(timeline.colours[name]) for name in timeline.names_at(rows.t)])
    terms = trajectory.model.terms.evaluate(rows.t, rows.x, rows.context)
    if ax is not None and len(chosen) != 1:
        raise InputError("axes take one contact", found=", ".join(contact.name for _, contact in chosen))

    def draw(axes: Axes, number: int, contact: ContactInfo) -> None:
        axes.set_title(contact.name, fontsize=9, loc="left")
        axes.grid(color="#EEEEEE", lw=0.8)
        limits = [np.broadcast_to(terms[kind][..., number], len(rows)) for kind in ("static", "kinetic")]
        panel = _draw_cone if contact.normal_row >= 0 else _draw_limits
        panel(axes, rows, contact, limits, shades)

    if ax is not None:
        with style.settings():
            draw(ax, *chosen[0])
        return ax
    across = min(len(chosen), _ACROSS)
    down = -(-len(chosen) // across)
    with style.settings():
        picture = style.new_figure(max(_PANEL * across + 1.2, 5.0), _PANEL * down + 1.1)
        height = picture.get_figheight()
        grid = picture.add_gridspec(
            down,
            across,
            left=max(0.11, 0.88 / picture.get_figwidth()),
            right=0.97,
            top=1.0 - 0.95 / height,
            bottom=0.55 / height,
            wspace=0.4,
            hspace=0.5,
        )
        for i, (number, contact) in enumerate(chosen):
            draw(picture.add_subplot(grid[i // across, i % across]), number, contact)
        head(picture, timeline)
    return picture


def _chosen(trajectory: Trajectory, rows: Samples, names: Sequence[str] | None) -> list[tuple[int, ContactInfo]]:
    able = {c.name: (i, c) for i, c in enumerate(trajectory.model.contacts) if c.tangent_row >= 0}
    if names is None:
        chosen = [item for item in able.values() if np.any(rows.multiplier_table[:, _rows(item[1])] != 0.0)]
        if not chosen:
            raise InputError(f"in this run of {trajectory.model.name} no contact with friction carries a force")
        return chosen
    for name in names:
        if name not in able:
            raise InputError(
                f"there is no contact '{name}' with friction",
                found=name,
                allowed=", ".join(able) or "none",
                remedy=did_you_mean(name, able),
            )
    return [able[name] for name in names]


def _rows(contact: ContactInfo) -> list[int]:
    return [row for row in (contact.normal_row, *contact.tangent_rows) if row >= 0]


def _draw_cone(axes: Axes, rows: Samples, contact: ContactInfo, limits: list[Floats], shades: Floats) -> None:
    """Friction over normal force; the limits are coefficients."""
    normal, friction = rows.multiplier_table[:, contact.normal_row], _friction(rows, contact)
    bears = (normal != 0.0) | (friction != 0.0)
    _scatter(axes, normal, friction, bears, _shared(rows, contact), rows.admissible, shades)
    ends = np.array([min(float(normal.min(initial=0.0)), 0.0), 0.0, max(float(normal.max(initial=0.0)), 0.0)])
    for limit, line in zip(limits, _LINES, strict=True):
        finite = limit[bears & np.isfinite(limit)]
        for slope in {float(finite.min()), float(finite.max())} if len(finite) else ():
            for sign in (-1.0, 1.0):
                axes.plot(ends, sign * slope * np.abs(ends), line, color=palette.SOFT, lw=0.9, zorder=2)
    units = rows.model.force_units
    axes.set_xlabel(_with_unit("normal force", units[contact.normal_row]))
    axes.set_ylabel(_with_unit("friction", units[contact.tangent_row]))


def _draw_limits(axes: Axes, rows: Samples, contact: ContactInfo, limits: list[Floats], shades: Floats) -> None:
    """Dry friction on a speed over time, between its limits."""
    friction = _friction(rows, contact)
    bears = friction != 0.0
    _scatter(axes, rows.t, friction, bears, _shared(rows, contact), rows.admissible, shades)
    for limit, line in zip(limits, _LINES, strict=True):
        for sign in (-1.0, 1.0):
            axes.plot(rows.t, sign * limit, line, color=palette.SOFT, lw=0.9, zorder=2)
    axes.set_xlabel("time, s")
    axes.set_ylabel(_with_unit("friction", rows.model.force_units[contact.tangent_row]))


def _with_unit(name: str, unit: str) -> str:
    return f"{name}, {unit.replace('*', '·')}" if unit else name


def _scatter(
    axes: Axes,
    x: Floats,
    y: Floats,
    bears: Booleans,
    shared: Booleans,
    admissible: Booleans,
    shades: Floats,
) -> None:
    own, open_, none = bears & ~shared, bears & shared & admissible, bears & shared & ~admissible
    axes.scatter(x[open_], y[open_], s=6, facecolors="none", edgecolors=palette.FAINT, lw=0.5, zorder=2)
    if none.any():
        axes.scatter(x[none], y[none], s=14, marker="x", c=palette.SOFT, lw=0.7, zorder=3)
    axes.scatter(x[own], y[own], s=4, c=shades[own], lw=0, zorder=3)


def _shared(rows: Samples, contact: ContactInfo) -> Booleans:
    """Return the rows at which the forces of the contact are indeterminate."""
    open_modes = [not set(_rows(contact)).isdisjoint(left) for left in rows.model.indeterminate]
    found: Booleans = np.array(open_modes, dtype=np.bool_)[rows.mode] if open_modes else np.zeros(len(rows), np.bool_)
    return found


def _friction(rows: Samples, contact: ContactInfo) -> Floats:
    tangents = rows.multiplier_table[:, list(contact.tangent_rows)]
    found: Floats = tangents[:, 0] if tangents.shape[1] == 1 else np.linalg.norm(tangents, axis=1)
    return found


# -- Guards of a run over time -------------------------------------------------------------------------------

_GUARD_PANEL = 0.95  # inches
_MOST = 12


@overload
def guards(trajectory: Trajectory, names: Sequence[str] | None = None) -> Figure: ...


@overload
def guards(trajectory: Trajectory, names: Sequence[str], *, ax: Axes) -> Axes: ...


def guards(trajectory: Trajectory, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw the guards of the modes over time: gaps, normal forces, margins of friction limits, slip velocities.

    A guard fires when its line reaches zero; it has no line while its mode is inactive.

    Parameters
    ----------
    names : sequence of str, optional
        Guards by their text, as in transitions ("gap of floor"); by default those of the run that come nearest to
        zero, at most twelve.
    ax : Axes, optional
        Where to draw one guard, without heading and legend; it is returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        A guard does not occur in the run, or with ``ax`` there is not one guard.
    """
    rows = dense_rows(trajectory.rows, trajectory.sample)
    found = _distances(rows)
    for name in names or ():
        if name not in found:
            raise InputError(
                f"no guard '{name}' in this run", found=name, allowed=", ".join(found),
                remedy=did_you_mean(name, found),
            )  # fmt: skip
    chosen = list(names) if names else _nearest_to_zero(found)
    timeline = visits_timeline(trajectory.reading)
    if ax is not None:
        if len(chosen) != 1:
            raise InputError("axes take one guard", found=", ".join(chosen) or "none")
        with style.settings():
            _draw(ax, timeline, rows, found, chosen[0])
            ax.set_xlabel("time, s")
        return ax
    with style.settings():
        height = 1.2 + _GUARD_PANEL * max(len(chosen), 1)
        picture = style.new_figure(8.0, height)
        grid = picture.add_gridspec(
            max(len(chosen), 1), 1, left=0.11, right=0.97, top=1.0 - 0.75 / height, bottom=0.45 / height, hspace=0.35
        )
        for i, name in enumerate(chosen):
            axes = picture.add_subplot(grid[i])
            _draw(axes, timeline, rows, found, name)
            axes.tick_params(labelbottom=i == len(chosen) - 1)
        if chosen:
            axes.set_xlabel("time, s")
        head(picture, timeline)
    return picture


def _draw(axes: Axes, timeline: Timeline, rows: Samples, found: dict[str, Floats], name: str) -> None:
    time_panel(axes, timeline)
    axes.plot(rows.t, found[name], color=palette.LINES[0], zorder=3)
    axes.axhline(0.0, color=palette.INK, lw=0.7, zorder=2)
    axes.annotate(
        name, (0.006, 0.9), xycoords="axes fraction", fontsize=8.5, va="top", zorder=4,
        bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1.5},
    )  # fmt: skip


def _distances(rows: Samples) -> dict[str, Floats]:
    """Return every guard's value over the rows, nan if its mode is inactive or the row only ends a step."""
    found: dict[str, Floats] = {}
    for index in np.unique(rows.mode):
        chosen = np.flatnonzero(rows.mode == index)
        out = rows.model.full[index].evaluate(rows.t[chosen], rows.x[chosen], rows.context[chosen])
        values = np.broadcast_to(out["guards"], (len(chosen), out["guards"].shape[-1]))
        for guard, column in zip(rows.model.charts[index].guards, values.T, strict=True):
            line = found.setdefault(guard.text, np.full(len(rows), np.nan))
            # two guards of one text are the two sides of a friction limit: the nearer one counts
            line[chosen] = np.fmin(line[chosen], column)
    return found


def _nearest_to_zero(found: dict[str, Floats]) -> list[str]:
    """Return the guards that come nearest to zero, compared to how far away they get, in the order found."""
    share = {name: np.nanmin(np.abs(line)) / max(np.nanmax(np.abs(line)), 1e-300) for name, line in found.items()}
    kept = sorted(share, key=lambda name: float(share[name]))[:_MOST]
    return [name for name in found if name in kept]


# -- Energy balance of a run as a figure (see docs/theory.md) ------------------------------------------------

_NAMED = 1.1  # inches for a name in the legend
_NOTHING = 1e-9  # of the energy exchanged: smaller entries are omitted


@overload
def energy(trajectory: Trajectory) -> Figure: ...


@overload
def energy(trajectory: Trajectory, *, ax: Axes) -> Axes: ...


def energy(trajectory: Trajectory, *, ax: Axes | None = None) -> Figure | Axes:
    """Draw the energies of a run, the work and heat exchanged, and the residual of the energy balance.

    Parameters
    ----------
    trajectory : Trajectory
        The run.
    ax : Axes, optional
        Where to draw kinetic, potential and total energy alone, without heading; it is returned.

    Returns
    -------
    Figure or Axes
        Three panels over time: energies; cumulative energy in (positive) and out (negative), by load, contact and
        transitions; the residual.
    """
    balance = trajectory.energy
    timeline = visits_timeline(trajectory.reading)
    stored = [("kinetic", balance.kinetic), ("potential", balance.potential), ("total", balance.total)]
    if ax is not None:
        with style.settings():
            _lines(ax, trajectory.t, stored, outside=False)
            time_panel(ax, timeline)
            ax.set_xlabel("time, s")
            ax.set_ylabel("energy, J")
        return ax
    passed: list[tuple[str, Floats]] = []
    passed += [(name, values) for name, values in balance.work.items()]
    passed += [(f"{name} (drive)", values) for name, values in balance.constraints.items()]
    passed += [(f"{name} (heat)", -values) for name, values in balance.friction.items()]
    passed += [("moving points (drive)", balance.drive), ("transitions", balance.transitions)]
    passed = [(name, values) for name, values in passed if np.abs(values).max() > _NOTHING * balance.exchanged]
    with style.settings():
        picture = style.new_figure(8.0, 6.0)
        grid = picture.add_gridspec(
            3, 1, height_ratios=[1, 1, 0.5], left=0.13, right=0.79, top=0.885, bottom=0.09, hspace=0.3
        )
        panels = [picture.add_subplot(grid[i]) for i in range(3)]
        _lines(panels[0], trajectory.t, stored)
        _lines(panels[1], trajectory.t, passed)
        panels[2].plot(trajectory.t, balance.residual, color=palette.INK, lw=1.0, zorder=3)
        for panel, label in zip(panels, ("energy, J", "in and out, J", "residual, J"), strict=True):
            time_panel(panel, timeline)
            panel.set_ylabel(label)
            panel.yaxis.set_label_coords(-0.14, 0.5)
            panel.tick_params(labelbottom=panel is panels[2])
        panels[2].set_xlabel("time, s")
        head(picture, timeline, f"energy-balance residual: {balance.relative_residual:.1e} of the energy exchanged")
    return picture


def _lines(axes: Axes, t: Floats, lines: list[tuple[str, Floats]], outside: bool = True) -> None:
    for i, (name, values) in enumerate(lines):
        dashes = ("-", "--", ":")[(i // len(palette.LINES)) % 3]
        axes.plot(
            t,
            values,
            dashes,
            color=palette.LINES[i % len(palette.LINES)],
            label=style.fitted(name, _NAMED, 8.5),
            zorder=3,
        )
    if lines and outside:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=1.4, borderaxespad=0.0)
    elif lines:
        axes.legend(handlelength=1.4)
    axes.margins(y=0.1)


# -- Forces in connections -----------------------------------------------------------------------------------

_PIN_PANEL: Final = 1.9  # inches
_MOST_PINS: Final = 4
_SMALL: Final = 1e-9  # part of the largest load below which one is left out
_AXES: Final = "xyz"
_RINGS: Final = 3  # of a polar diagram, at most


@overload
def loads(trajectory: Trajectory, connections: Sequence[str] | None = None, *, frame: str | None = None) -> Figure: ...


@overload
def loads(
    trajectory: Trajectory, connections: Sequence[str] | None = None, *, frame: str | None = None, ax: Axes
) -> Axes: ...


def loads(
    trajectory: Trajectory,
    connections: Sequence[str] | None = None,
    *,
    frame: str | None = None,
    ax: Axes | None = None,
) -> Figure | Axes:
    """Draw the force in each connection over time, and the directions from which its bearing is loaded.

    Impulses of rigid impacts are stems on a separate axis; limits of the model are dashed.  The polar diagram has
    the force of the parent on the child along two axes of a frame: those across the axis of a joint that turns, else
    those with the largest components.  Colours are those of the visits.

    Parameters
    ----------
    connections : sequence of str, optional
        By default the four with the largest forces.
    frame : str, optional
        Frame of the polar diagrams; by default that of each child.
    ax : Axes, optional
        Where to draw the force of one connection over time, without heading; it is returned.

    Returns
    -------
    matplotlib.figure.Figure or matplotlib.axes.Axes
        The axes if they were given.

    Raises
    ------
    InputError
        There is no such connection or frame, no connection carries a load, or with ``ax`` there is not one connection.
    """
    rows = dense_rows(trajectory.rows, trajectory.sample)
    chosen = list(connections) if connections is not None else _largest(rows)
    pins = [rows.pins[name] for name in chosen]
    if not pins:
        raise InputError(f"in this run of {trajectory.model.name} no connection carries a load")
    impacts = [item for item in trajectory.transitions if item.impulse]
    timeline = visits_timeline(trajectory.reading)
    titles = [f"{pin.info.name}: {words_of(trajectory.reading.words, pin.info)}" for pin in pins]
    if ax is not None:
        if len(pins) != 1:
            raise InputError("axes take one connection", found=", ".join(chosen))
        with style.settings():
            _draw_times(ax, timeline, rows, pins[0], impacts, titles[0])
            ax.set_xlabel("time, s")
        return ax
    visits = trajectory.visits
    shades = np.array([style.strong(visits.fills[visits.at(time).name].colour) for time in rows.t.tolist()])
    with style.settings():
        height = _PIN_PANEL * len(pins) + 1.3
        picture = style.new_figure(8.5, height)
        grid = picture.add_gridspec(
            len(pins), 2, width_ratios=[3.1, 1.0], left=0.1, right=0.97, top=1.0 - 0.95 / height,
            bottom=0.5 / height, wspace=0.32, hspace=0.42,
        )  # fmt: skip
        for i, pin in enumerate(pins):
            axes = picture.add_subplot(grid[i, 0])
            _draw_times(axes, timeline, rows, pin, impacts, titles[i])
            rose = picture.add_subplot(grid[i, 1], projection="polar")
            assert isinstance(rose, PolarAxes)
            _draw_rose(rose, pin, frame or pin.info.frames[1], shades)
        axes.set_xlabel("time, s")
        head(picture, timeline)
    return picture


def _largest(rows: Samples) -> list[str]:
    sizes = {name: float(pin.magnitude.max(initial=0.0)) for name, pin in rows.pins.items()}
    bears = [name for name, size in sizes.items() if size > _SMALL * max(sizes.values())]
    return sorted(bears, key=lambda name: -sizes[name])[:_MOST_PINS]


def _draw_times(
    axes: Axes, timeline: Timeline, rows: Samples, pin: Pin, impacts: Sequence[Transition], title: str
) -> None:
    """Draw the magnitude of the force, the limits, and the impulses as stems on a second axis."""
    info = pin.info
    time_panel(axes, timeline)
    axes.plot(rows.t, pin.magnitude, color=palette.LINES[0], zorder=3)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("force, N")
    axes.set_title(title, fontsize=9, loc="left")
    _draw_limit(axes, rows, info.name, "force")
    sizes = np.array([np.linalg.norm(item.pin_impulse[info.name][:3]) for item in impacts])
    if not sizes.any():
        return
    other = axes.twinx()
    other.vlines([item.time for item in impacts], 0.0, sizes, color=palette.LINES[1], lw=1.4, zorder=4)
    other.plot([item.time for item in impacts], sizes, "o", color=palette.LINES[1], ms=3, zorder=4)
    other.set_ylim(0.0, 1.15 * sizes.max())
    other.set_ylabel("impulse, N·s", color=palette.LINES[1])
    other.tick_params(length=3, colors=palette.LINES[1])
    _draw_limit(other, rows, info.name, "impulse")


def _draw_limit(axes: Axes, rows: Samples, name: str, quantity: str) -> None:
    automaton = rows.model.automaton
    entry = None if automaton is None else automaton.mechanism.pins.get(name)
    bound = None if entry is None else entry.bounds.get(quantity)
    if bound is not None:
        limit = float(evaluate_expression(bound, rows.model.values))
        axes.axhline(limit, ls="--", color=palette.SOFT, lw=0.9, zorder=2)
        axes.set_ylim(top=max(axes.get_ylim()[1], 1.1 * limit))


def _draw_rose(axes: PolarAxes, pin: Pin, frame: str, shades: Floats) -> None:
    """Draw size and direction of the force in a frame."""
    force = pin.wrench(frame=frame)[:, :3]
    a, b = _plane(pin, frame, force)
    size = np.hypot(force[:, a], force[:, b])
    if not size.any():  # it sees impacts alone
        axes.set_visible(False)
        return
    axes.scatter(np.arctan2(force[:, b], force[:, a]), size, s=3, c=shades, lw=0, zorder=3)
    axes.set_ylim(0.0, 1.05 * float(size.max()))
    axes.set_xticks([0.0, 0.5 * np.pi, np.pi, 1.5 * np.pi])
    axes.set_xticklabels([f"{frame}.{_AXES[a]}", f"{frame}.{_AXES[b]}", "", ""], fontsize=7)
    axes.yaxis.set_major_locator(MaxNLocator(_RINGS, steps=[1, 2, 5, 10]))
    axes.tick_params(axis="y", labelsize=6)
    axes.tick_params(pad=0)


def _plane(pin: Pin, frame: str, force: Floats) -> tuple[int, int]:
    """Return the two axes across a joint that turns about a third one, else those of the largest components."""
    turns = pin.twists[0, :, 3:]
    across = np.abs(force).max(axis=0)
    if len(turns) == 1 and pin.info.kind == "pin":
        axis = pin.in_frame(turns, frame)[0]
        if np.abs(axis).max() > 1.0 - _SMALL:
            across[int(np.abs(axis).argmax())] = -1.0
    first, second = sorted(np.argsort(-across, kind="stable")[:2].tolist())
    return first, second
