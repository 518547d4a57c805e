"""Forces as outputs of exports: the listed ones of connections, or those of all connections and contacts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.language.pins import listed_outputs
from fsm_dyn.language.scales import force_units
from fsm_dyn.language.values import units
from fsm_dyn.programs.graph import Node
from fsm_dyn.programs.pin_programs import PinPrograms
from fsm_dyn.programs.program import Program
from fsm_dyn.run.pins import pin_programs

Outputs = Literal["listed", "all", "reals"]
#: Outputs of an export: those of the model; with all states and forces; with modes and contact states as reals too.
OUTPUTS: Final[tuple[Outputs, ...]] = ("listed", "all", "reals")
_COMPONENTS: Final = tuple(f"{part}_{axis}" for part in ("force", "torque") for axis in "xyz")


@dataclass(frozen=True)
class ForceOutputs:
    """Outputs after those of the model.

    Attributes
    ----------
    units : mapping
        Unit by name, in their order; empty for a number, or in a model without units.
    program : Program, optional
        Gives ``outputs`` (n,) from the state with rates of speeds and multipliers; None without any.
    """

    units: Mapping[str, str] = field(default_factory=dict)
    program: Program | None = None


def force_outputs(automaton: Automaton, outputs: Outputs = "listed") -> ForceOutputs:
    """Return the forces among the outputs.

    In addition to the listed ones these are, unless they vanish in every motion, ``pin_<connection>_force_x`` to
    ``_torque_z`` in N, and ``contact_<contact>_normal``, ``_friction``, ``_friction2``, zero while the contact is open.

    Parameters
    ----------
    automaton : Automaton
    outputs : str
        One of :data:`OUTPUTS`.
    """
    mechanism = automaton.mechanism
    listed = listed_outputs(mechanism.pins)
    if not listed and outputs == "listed":
        return ForceOutputs()
    programs = pin_programs(mechanism, [(row.name, row.role) for row in automaton.rows])
    known = units(mechanism)
    _, symbols, nodes = programs.program.graph()
    columns = programs.quantities([column for _, column in listed], nodes)
    found = {name: (known.get(name, ""), node) for (name, _), node in zip(listed, columns, strict=True)}
    if outputs != "listed":
        multipliers = [symbols[f"lambda[{k}]"] for k in range(len(automaton.rows))]
        for name, unit, node in (*_wrenches(mechanism.uses_units, programs, nodes), *_contacts(automaton, multipliers)):
            found.setdefault(name, (unit, node))
    forces = [node for _, node in found.values()]
    program = Program.from_nodes(programs.program.layout, {"outputs": forces}) if forces else None
    return ForceOutputs({name: unit for name, (unit, _) in found.items()}, program)


def _wrenches(uses_units: bool, programs: PinPrograms, nodes: Mapping[str, Any]) -> Iterator[tuple[str, str, Node]]:
    """Yield name, unit and node of the components of all wrenches that do not vanish."""
    for pin in programs.pins:
        for component in _COMPONENTS:
            (node,) = programs.quantities([f"pin.{pin.name}.{component}"], nodes)
            if not node.is_zero:
                unit = "N" if component.startswith("force") else "N*m"
                yield f"pin_{pin.name}_{component}", unit if uses_units else "", node


def _contacts(automaton: Automaton, multipliers: Sequence[Node]) -> Iterator[tuple[str, str, Node]]:
    """Yield name, unit and node of the forces along the rows of all contacts."""
    of_rows = force_units(automaton.mechanism, [(row.name, row.role) for row in automaton.rows])
    for contact in automaton.contacts:
        rows = {"normal": contact.normal_row} if contact.normal_row >= 0 else {}
        rows |= dict(zip(("friction", "friction2"), contact.tangent_rows, strict=False))
        for part, row in rows.items():
            yield f"contact_{contact.name}_{part}", of_rows[row], multipliers[row]
