"""One namespace per model: who declares what, and no name twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsm_dyn.errors import Location, ModelError, did_you_mean
from fsm_dyn.expressions import RESERVED_NAMES
from fsm_dyn.spec.frame import EulerFrame
from fsm_dyn.spec.model import Mechanism
from fsm_dyn.spec.yaml_tree import where_of


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a name stands for (``"a parameter"``) and where it was declared."""

    role: str
    where: Location


def declarations(mechanism: Mechanism) -> dict[str, Declaration]:
    """Return every name of the model.

    Raises
    ------
    ModelError
        If a name is declared twice, or what the model makes of one (``e0``, ``q_dot``) is reserved.
    """
    found: dict[str, Declaration] = {}
    for name, role, where in _all(mechanism):
        if name in RESERVED_NAMES:
            raise ModelError(f"the name {str(name)!r} of {role} is reserved", where, remedy="choose another name")
        if name in found:
            first = found[name]
            raise ModelError(
                f"{role} is called {str(name)!r}, which is already {first.role}",
                where,
                found=f"first at {first.where}",
                allowed="each name once per model",
                remedy="rename one of them",
            )
        found[str(name)] = Declaration(role, where)
    return found


def _all(mechanism: Mechanism) -> Iterator[tuple[str, str, Location]]:
    sections: tuple[tuple[str, Mapping[str, object]], ...] = (
        ("a parameter", mechanism.parameters),
        ("a coordinate", mechanism.coordinates),
        ("a frame", mechanism.frames),
        ("a point", mechanism.points),
        ("a body", mechanism.bodies),
        ("a speed", mechanism.speeds),
        ("a constraint", mechanism.constraints),
        ("a shape", mechanism.shapes),
        ("a contact", mechanism.contacts),
        ("an input", mechanism.inputs),
        ("a memory", mechanism.memory),
        ("a controller", mechanism.controllers),
        ("a mode", mechanism.modes),
        ("a port", mechanism.ports),
        ("an output", mechanism.outputs),
        ("a requirement", mechanism.requirements),
    )
    for role, section in sections:
        for name in section:
            yield name, role, where_of(name)
        if role == "an output":  # a joint with a single coordinate or row shares its name
            taken = {*mechanism.coordinates, *mechanism.constraints}
            yield from (
                (joint.name, "a joint", joint.where) for joint in mechanism.joints.values() if joint.name not in taken
            )
        if role == "a controller":
            for controller in mechanism.controllers.values():
                parts = (
                    ("an input", controller.inputs),
                    ("a memory", controller.memory),
                    ("an output", controller.outputs),
                )
                for part, items in parts:
                    yield from ((item.name, f"{part} of a controller", where_of(item.name)) for item in items)
        if role == "a coordinate":
            for frame in mechanism.frames.values():
                if isinstance(frame, EulerFrame):
                    yield from ((name, "an Euler parameter", where_of(frame.euler)) for name in frame.euler_names)


def unknown(
    name: str, wanted: str, allowed: Mapping[str, object] | list[str], known: Mapping[str, Declaration]
) -> ModelError:
    """Return the error for a reference to something that is not there or is something else."""
    choices = [str(choice) for choice in allowed]
    other = known.get(name)
    message = f"{str(name)!r} is {other.role}, not {wanted}" if other else f"there is no {_bare(wanted)} {str(name)!r}"
    return ModelError(
        message,
        where_of(name),
        found=name,
        allowed=_listed(choices) or f"the model has no {_bare(wanted)}",
        remedy=did_you_mean(name, choices),
    )


def _bare(wanted: str) -> str:
    return wanted.split(" ", 1)[1] if wanted.startswith(("a ", "an ")) else wanted


def _listed(choices: list[str], limit: int = 20) -> str:
    return ", ".join(choices[:limit]) + (", ..." if len(choices) > limit else "")
