"""Contact forces in their friction cones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fsm_dyn.errors import InputError, did_you_mean
from fsm_dyn.graphics import palette
from fsm_dyn.modes.unconstrained_system import ContactInfo
from fsm_dyn.plot import style
from fsm_dyn.plot.mode_bands import head
from fsm_dyn.results.arrays import BoolArray, FloatArray
from fsm_dyn.results.run_timeline import dense_rows, timeline_of
from fsm_dyn.results.samples import Samples
from fsm_dyn.results.trajectory import Trajectory

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
    timeline = timeline_of(trajectory.model, trajectory.record)
    shades = np.array([style.strong(timeline.colours[name]) for name in trajectory.model.labels])[rows.mode]
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


def _draw_cone(axes: Axes, rows: Samples, contact: ContactInfo, limits: list[FloatArray], shades: FloatArray) -> None:
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
    axes.set_xlabel("normal force, N")
    axes.set_ylabel("friction, N")


def _draw_limits(axes: Axes, rows: Samples, contact: ContactInfo, limits: list[FloatArray], shades: FloatArray) -> None:
    """Dry friction on a speed over time, between its limits."""
    friction = _friction(rows, contact)
    bears = friction != 0.0
    _scatter(axes, rows.t, friction, bears, _shared(rows, contact), rows.admissible, shades)
    for limit, line in zip(limits, _LINES, strict=True):
        for sign in (-1.0, 1.0):
            axes.plot(rows.t, sign * limit, line, color=palette.SOFT, lw=0.9, zorder=2)
    axes.set_xlabel("time, s")
    axes.set_ylabel("friction")


def _scatter(
    axes: Axes,
    x: FloatArray,
    y: FloatArray,
    bears: BoolArray,
    shared: BoolArray,
    admissible: BoolArray,
    shades: FloatArray,
) -> None:
    own, open_, none = bears & ~shared, bears & shared & admissible, bears & shared & ~admissible
    axes.scatter(x[open_], y[open_], s=6, facecolors="none", edgecolors=palette.FAINT, lw=0.5, zorder=2)
    if none.any():
        axes.scatter(x[none], y[none], s=14, marker="x", c=palette.SOFT, lw=0.7, zorder=3)
    axes.scatter(x[own], y[own], s=4, c=shades[own], lw=0, zorder=3)


def _shared(rows: Samples, contact: ContactInfo) -> BoolArray:
    """Return the rows at which the forces of the contact are indeterminate."""
    open_modes = [not set(_rows(contact)).isdisjoint(left) for left in rows.model.indeterminate]
    found: BoolArray = np.array(open_modes, dtype=np.bool_)[rows.mode] if open_modes else np.zeros(len(rows), np.bool_)
    return found


def _friction(rows: Samples, contact: ContactInfo) -> FloatArray:
    tangents = rows.multiplier_table[:, list(contact.tangent_rows)]
    found: FloatArray = tangents[:, 0] if tangents.shape[1] == 1 else np.linalg.norm(tangents, axis=1)
    return found
