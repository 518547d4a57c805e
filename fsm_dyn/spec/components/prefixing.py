"""A component under its prefix: every name it declares, wherever it stands.

The component's own fixed frame becomes the frame it is attached to, its origin the point.  What its expressions say of
motion, ``vel`` and ``omega``, stays motion against that frame, so that a slip or a damper within the component means
what it meant alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from fsm_dyn.errors import Location
from fsm_dyn.expressions import Text
from fsm_dyn.expressions.tokens import Token, tokenise
from fsm_dyn.expressions.unit_literals import read_quantity
from fsm_dyn.spec.forms.controllers import ControllerMemoryForm, ControllerOutputForm
from fsm_dyn.spec.forms.geometry import FrameForm
from fsm_dyn.spec.forms.hybrid import TransitionForm
from fsm_dyn.spec.forms.shapes import (
    ArcForm,
    BoxForm,
    CircleForm,
    CurveForm,
    DiskForm,
    LineForm,
    PlaneForm,
    PolygonForm,
    SegmentForm,
    SphereForm,
)
from fsm_dyn.spec.model import Coordinate, Input
from fsm_dyn.spec.yaml_tree import LocatedStr, where_of

T = TypeVar("T")

FRAME, ORIGIN = "N", "O"
# Words of the forms that are no names of the model: units, letters of axes.
_KEPT: Mapping[type, frozenset[str]] = {
    Coordinate: frozenset({"unit"}),
    Input: frozenset({"unit"}),
    ControllerMemoryForm: frozenset({"unit"}),
    ControllerOutputForm: frozenset({"unit"}),
    FrameForm: frozenset({"body", "space", "rotate"}),
}
_CENTRED = (CircleForm, ArcForm, SphereForm, DiskForm, BoxForm)
_OUTLINES = (*_CENTRED, LineForm, SegmentForm, PolygonForm, CurveForm, PlaneForm)
_MOTION = re.compile(r"\b(vel|omega|pos) ?\( ?(\w+) ?(?:, ?(\w+) ?)?\)")


@dataclass(frozen=True)
class Renaming:
    """``names``: new names by old ones, those of the fixed frame and the origin among them."""

    names: Mapping[str, str]

    @property
    def frame(self) -> str:
        """The frame that the component is attached to."""
        return self.names[FRAME]

    def apply(self, value: T) -> T:
        """Return `value` (forms, data, mappings, tuples, texts) with every name changed."""
        changed: Any = value
        if isinstance(value, Location):
            pass  # of the component's own file
        elif isinstance(value, Text):
            changed = self._text(value)
        elif isinstance(value, LocatedStr):
            changed = LocatedStr(self.names.get(value, value), value.where)
        elif isinstance(value, BaseModel):
            changed = self._form(value)
        elif is_dataclass(value) and not isinstance(value, type):
            kept = _KEPT.get(type(value), frozenset())
            changed = replace(
                value, **{f.name: self.apply(getattr(value, f.name)) for f in fields(value) if f.name not in kept}
            )
        elif isinstance(value, Mapping):
            changed = {self.apply(key): self.apply(item) for key, item in value.items()}
        elif isinstance(value, tuple):
            changed = tuple(self.apply(item) for item in value)
        elif isinstance(value, list):
            changed = [self.apply(item) for item in value]
        return changed  # type: ignore[no-any-return]

    def _form(self, form: BaseModel) -> BaseModel:
        kept = _KEPT.get(type(form), frozenset())
        update: dict[str, Any] = {}
        for key in type(form).model_fields:
            value = getattr(form, key)
            if key == "on" and isinstance(form, TransitionForm) and value is not None:
                update[key] = (self._contact(value[0]), value[1])
            elif key in kept:
                # letters of axes are keys there, but the angles are expressions
                update[key] = {k: self.apply(v) for k, v in value.items()} if isinstance(value, dict) else value
            elif value == FRAME and key in ("frame", "parent", "carrier"):
                update[key] = LocatedStr(self.frame)  # also where nothing was written
            else:
                update[key] = self.apply(value)
        if isinstance(form, _OUTLINES) and form.frame == FRAME and not getattr(form, "ends", None):
            at = "center" if isinstance(form, _CENTRED) else "origin"
            if update[at] is None:  # what stands still stands where the component's origin is
                update[at] = LocatedStr(self.names[ORIGIN])
        return form.model_copy(update=update)

    def _contact(self, name: str) -> LocatedStr:
        """Return the new name of a contact, or of one of the pairs that an entry of `contacts` stands for."""
        entries = [entry for entry in self.names if name == entry or name.startswith(f"{entry}_")]
        entry = max(entries, key=len, default="")
        return LocatedStr(self.names.get(entry, "") + name[len(entry) :], where_of(name))

    def _text(self, text: Text) -> Text:
        return Text(_MOTION.sub(self._relative, self._renamed(text)), text.where)

    def _renamed(self, text: Text) -> str:
        """Return the text with its names changed; units, and the letters after a dot, are no names."""
        source, tokens = text.text, tokenise(text.text, text.where)
        pieces: list[str] = []
        at = copied = 0
        while at < len(tokens):
            token = tokens[at]
            if token.kind == "number":
                at = read_quantity(tokens, at, text.where)[2]
                continue
            if token.kind == "name" and token.text in self.names and not _follows_dot(tokens, at):
                pieces += [source[copied : token.start], self.names[token.text]]
                copied = token.end
            at += 1
        return "".join([*pieces, source[copied:]])

    def _relative(self, match: re.Match[str]) -> str:
        """Return ``vel``, ``omega`` or ``pos`` against what the component is attached to."""
        function, first, second = match.groups()
        frame = self.frame
        if frame == FRAME and self.names[ORIGIN] == ORIGIN:
            return match.group()
        if function == "pos":
            return match.group() if second else f"pos({first}, {self.names[ORIGIN]})"
        if frame == FRAME:
            return match.group()
        if function == "omega":
            return f"(omega({first}) - omega({frame}))"
        return f"({match.group()} - vel({first}, {frame}))"


def _follows_dot(tokens: list[Token], at: int) -> bool:
    return at > 0 and tokens[at - 1].text == "."
