"""The names of a mechanism in the order in which its kernels have them."""

from __future__ import annotations

from fsm_dyn.expressions import Text
from fsm_dyn.programs.layout import Layout
from fsm_dyn.spec.controller_memory import memory_of_controllers
from fsm_dyn.spec.model import Mechanism


def layout_of(mechanism: Mechanism) -> Layout:
    """Return the arguments of the mechanism's kernels, in order."""
    q = [*mechanism.coordinates]
    for frame in mechanism.frames.values():
        q += [name for name in frame.euler_names if name not in mechanism.coordinates]
    q += parameters_of_contacts(mechanism)
    p: list[str] = []
    for parameter in mechanism.parameters.values():
        p += (
            [f"{parameter.name}[{i}]" for i in range(len(parameter.values))]
            if parameter.is_vector
            else [parameter.name]
        )
    return Layout(
        q=tuple(q),
        u=tuple(speed_definitions(mechanism)),
        p=tuple(p),
        w=tuple(mechanism.inputs),
        contacts=tuple(mechanism.contacts),
        memory=(*mechanism.memory, *memory_of_controllers(mechanism)),
    )


def parameters_of_contacts(mechanism: Mechanism) -> list[str]:
    """Return the coordinates that follow contacts along curves, in the order of the contacts."""
    return [contact.parameter for contact in mechanism.contacts.values() if contact.parameter]


def speed_definitions(mechanism: Mechanism) -> dict[str, Text]:
    """Return the definitions of the speeds; without any, each coordinate's rate is one (``<q>_dot``)."""
    if mechanism.speeds:
        return dict(mechanism.speeds)
    return {f"{q}_dot": Text(f"rate({q})", item.where) for q, item in mechanism.coordinates.items()}
