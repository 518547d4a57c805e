"""What can be charted of a run: names, units, and the values at an instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fsm_dyn.automaton.mode_graph import ModeGraph
from fsm_dyn.contact_forces.locations import ContactLocation
from fsm_dyn.live.port_coupling import coupled_ports
from fsm_dyn.spec.values import units as units_of
from fsm_dyn.viewer.row_evaluation import Floats, RowEvaluator


@dataclass(frozen=True)
class Quantity:
    """Scalar with a value in every row; ``group`` is its heading in lists."""

    name: str
    unit: str
    group: str


class Quantities:
    """Quantities of a coupled graph.

    Order: coordinates and speeds, inputs that no coupler sets, forces of constraints and contacts, outputs, memory,
    energies (kinetic, potential, total), couplers' forces.
    """

    def __init__(self, graph: ModeGraph, evaluator: RowEvaluator, locations: tuple[ContactLocation, ...]) -> None:
        automaton = graph.automaton
        mechanism, layout = automaton.mechanism, evaluator.layout
        units = units_of(mechanism)
        ports = coupled_ports(mechanism)
        coupling = {name for port in ports for name in port.inputs}
        reported = {name for port in ports for axis in port.axes for name in axis.outputs}
        turning = {automaton.contacts[location.contact].name for location in locations if location.kind == "torque"}
        contacts = {contact.name for contact in automaton.contacts}
        self._inputs = [i for i, name in enumerate(layout.w) if name not in coupling]
        self._outputs = [i for i, name in enumerate(mechanism.outputs) if name not in reported]
        outputs = list(mechanism.outputs)
        axes = [axis for port in ports for axis in port.axes if axis.outputs[0] in outputs]
        self._pulls = [outputs.index(axis.outputs[0]) for axis in axes]
        displacements = {
            name for port in ports for axis in port.axes for name in (axis.displacement, f"{axis.displacement}_dot")
        }
        self._state = [i for i, name in enumerate(layout.x) if name not in displacements]
        rows = _rows(automaton.rows)
        defining = {axis.displacement_row for port in ports for axis in port.axes}
        self._rows = [i for i, (_, owner) in enumerate(rows) if owner not in defining]
        self.all: tuple[Quantity, ...] = (
            *(
                Quantity(layout.x[i], units.get(layout.x[i], ""), "coordinates" if i < len(layout.q) else "speeds")
                for i in self._state
            ),
            *(Quantity(layout.w[i], units.get(layout.w[i], ""), "inputs") for i in self._inputs),
            *(
                Quantity(label, "N·m" if owner in turning else "N", "contacts" if owner in contacts else "constraints")
                for label, owner in (rows[i] for i in self._rows)
            ),
            *(Quantity(outputs[i], units.get(outputs[i], ""), "outputs") for i in self._outputs),
            *(Quantity(name, units.get(name, ""), "memory") for name in layout.memory),
            *(Quantity(f"{name} energy", "J", "energy") for name in ("kinetic", "potential", "total")),
            *(Quantity(f"{axis.name} pull", "N·m" if axis.is_rotational else "N", "hand") for axis in axes),
        )
        self._evaluator = evaluator

    @property
    def sources(self) -> dict[str, list[int]]:
        """Indices of the values of ``all``: numbers of states, inputs, rows and outputs."""
        return {
            "state": self._state, "inputs": self._inputs, "rows": self._rows, "outputs": self._outputs,
            "memory": list(range(self._evaluator.layout.n_c))[self._evaluator.layout.memory_slice],
            "pulls": self._pulls,
        }  # fmt: skip

    def values(self, x: Floats, c: Floats, multipliers: Floats) -> Floats:
        """Return the values at one state, in the order of ``all``."""
        layout = self._evaluator.layout
        report = self._evaluator.report.outputs(0.0, x, c)
        outputs = report["outputs"]
        kinetic, potential = float(report["kinetic_energy"]), float(report["potential_energy"])
        return np.concatenate(
            [
                x[self._state],
                c[layout.w_slice][self._inputs],
                multipliers[self._rows],
                outputs[self._outputs],
                c[layout.memory_slice],
                [kinetic, potential, kinetic + potential],
                outputs[self._pulls],
            ]
        )


def _rows(rows: tuple[object, ...]) -> list[tuple[str, str]]:
    """Return label and owner of every constraint row; the label has the role if the owner has several rows."""
    owners = [str(getattr(row, "name", "")) for row in rows]
    return [
        (owner if owners.count(owner) == 1 else f"{owner} {getattr(row, 'role', '')}", owner)
        for row, owner in zip(rows, owners, strict=True)
    ]
