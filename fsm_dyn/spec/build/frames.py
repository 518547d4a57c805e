"""Frames: one kind each, as many angles as axes."""

from __future__ import annotations

from fsm_dyn.errors import ModelError
from fsm_dyn.spec.forms.form import exactly_one, only_with
from fsm_dyn.spec.forms.geometry import FrameForm
from fsm_dyn.spec.frame import BodyFrame, EulerFrame, Frame, SimpleFrame, SpaceFrame
from fsm_dyn.spec.yaml_tree import where_of


def frame_of(name: str, form: FrameForm) -> Frame:
    """Return the frame `name`.

    Parameters
    ----------
    form : FrameForm
        Its entry.

    Raises
    ------
    ModelError
        Its keys are not compatible, or an axis is unknown.
    """
    kind = exactly_one(form, ("rotate", "body", "space", "euler_parameters"))
    where = where_of(name)
    if form.rotate is not None:
        only_with(form, kind, ("parent",))
        if len(form.rotate) != 1:
            raise ModelError(
                "`rotate` has one axis",
                form.key(kind),
                found=", ".join(form.rotate) or "none",
                allowed="{z: angle}",
                remedy="for several rotations write `body: zx, angles: [a, b]`",
            )
        ((axis, angle),) = form.rotate.items()
        if axis not in ("x", "y", "z"):
            raise ModelError(f"{str(axis)!r} is no axis", where_of(axis), found=axis, allowed="x, y, z")
        return SimpleFrame(name=name, parent=form.parent, rotations=((str(axis), angle),), where=where)
    if form.euler_parameters is not None:
        only_with(form, kind, ("parent",))
        return EulerFrame(name=name, parent=form.parent, euler=form.euler_parameters, where=where)
    return _sequence(name, form, kind)


def _sequence(name: str, form: FrameForm, kind: str) -> Frame:
    only_with(form, kind, ("parent", "angles"))
    axes = form.body or form.space or ""
    angles = form.angles or ()
    if len(angles) != len(axes):
        raise ModelError(
            f"frame {str(name)!r} has {len(axes)} axes and {len(angles)} angles",
            form.key("angles"),
            allowed=f"{len(axes)} angles for {str(axes)!r}",
        )
    rotations = tuple(zip(axes, angles, strict=True))
    made = SpaceFrame if form.body is None else BodyFrame
    return made(name=name, parent=form.parent, rotations=rotations, where=where_of(name))
