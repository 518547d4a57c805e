"""The JSON Schema of model files, and a commented first model."""

from __future__ import annotations

from typing import Any

from fsm_dyn.core.errors import InputError
from fsm_dyn.language.expression_tree import is_name
from fsm_dyn.language.keyed import KeyedMapping, keys_of, others_of
from fsm_dyn.language.mechanism_form import FORMAT, MechanismForm

# -- The JSON Schema of model files, for checks in editors ---------------------------------------------------


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a model file.

    It knows the keys and the forms of values; expressions and references are checked by
    `load` only.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"fsm_dyn model, format {FORMAT}",
        **MechanismForm.schema(),
        "$defs": {cls.__name__: cls.schema() for cls in mapping_classes(MechanismForm)},
    }


def mapping_classes(cls: type[KeyedMapping]) -> list[type[KeyedMapping]]:
    """Return the classes of all mappings in a mapping, each once."""
    found: dict[type[KeyedMapping], None] = {}
    pending = [cls]
    while pending:
        taken = pending.pop()
        rest = others_of(taken)
        for _, key in (*keys_of(taken).values(), *([] if rest is None else [rest])):
            new = [inner for inner in key.kind.mappings if inner not in found]
            found |= dict.fromkeys(new)
            pending += new
    return list(found)


# -- A commented first model, for ``fsm-dyn new`` ------------------------------------------------------------

_TEMPLATE = """\
fsm_dyn: 1                        # format of this file
name: @NAME@
summary: A rod hangs from a pivot, swings under gravity and a moment, and strikes a stop.

# Numbers carry units, here and in expressions; SI inside. Leave all units out to take everything as SI.
parameters:
  m: 1.2 kg
  l: 0.8 m
  J: m*l**2/12                    # expressions may use parameters above them
  e: 0.6                          # restitution of the stop
  stop: 35 deg

# What can move, with SI units.
coordinates: {q: rad}

# N is the fixed frame, O its origin. A frame turns about an axis of its parent.
frames:
  R: {parent: N, rotate: {z: q}}

# Points are given from other points by vectors along the axes of frames.
points:
  C: {from: O, at: -l/2*R.y}      # middle of the rod
  T: {from: O, at: -l*R.y}        # its tip

bodies:                           # without a frame a body is a particle
  rod: {frame: R, center: C, mass: m, inertia: {zz: J}}

# Speeds of your choice; without this section q_dot = rate(q). Quote what contains commas.
speeds:
  w: "dot(omega(R), N.z)"

# A contact is a gap that cannot become negative; modes come and go with it.
contacts:
  block: {joint_stop: {coordinate: q, upper: stop}, restitution: e}
  # floor contact of a tip with friction:
  # ground: {gap: "dot(pos(T), N.y)", slip: "dot(vel(T), N.x)", friction: {static: 0.5, kinetic: 0.4}}
  # friction in a joint:
  # pivot: {dry_friction: {speed: w, static: 0.3 N*m, kinetic: 0.2 N*m}}

# What acts from outside, and how it runs over time unless a run says otherwise.
inputs: {moment: N*m}
schedule:
  moment: {steps: [[0 s, 0 N*m], [2 s, 1.5 N*m], [2.5 s, 0 N*m]]}

loads:
  - {gravity: -9.81 m/s^2*N.y}
  - {torque: moment*N.z, on: rod}
  - {damper: {coordinate: q, damping: 0.02 N*m*s}}

modes:                            # names for what is in contact; others are named by themselves
  swinging: {block: open}
  resting: {block: closed}

# Transitions beyond those of contacts, for example an end of the run:
# transitions:
#   - {from: "*", when: t - 10 s, crossing: rising, stop: true, because: that is enough}

initial: {mode: swinging, q: -60 deg}   # what is not given is 0, or follows

outputs:                          # extra columns
  height: "dot(pos(T), N.y)"

view:                             # in the body's frame, from its centre, in metres
  rod: {polygon: [[-0.02, -l/2], [0.02, -l/2], [0.02, l/2], [-0.02, l/2]]}
"""


def starter(name: str) -> str:
    """Return a commented model file called `name`, ready to load.

    Raises
    ------
    InputError
        If `name` cannot be the name of a model.
    """
    if not is_name(name.replace("-", "_")):
        raise InputError(
            f"{name!r} cannot name a model",
            found=name,
            allowed="letters, digits, _ and -, beginning with a letter, at most 64 characters",
        )
    return _TEMPLATE.replace("@NAME@", name)
