"""Coupled models: mechanisms whose ports are coupled to a device."""

from __future__ import annotations

from typing import Final

from fsm_dyn.spec.build.port_couplers import SUFFIXES, axes_of
from fsm_dyn.spec.coupled_port import CoupledPort as CoupledPort
from fsm_dyn.spec.coupled_port import PortAxis as PortAxis
from fsm_dyn.spec.loader import with_settings
from fsm_dyn.spec.model import Mechanism

# names in mechanisms of versions before 0.2, which recordings hold: couplers are written into the text there
_OLDER_SUFFIXES: Final = {
    **SUFFIXES, "device": "", "rate": "_rate", "engagement": "_grip", "position": "_at", "velocity": "_at_rate",
    "constraint": "_drive", "initial": "_begin", "displacement": "_way", "displacement_row": "_way_row",
}  # fmt: skip
_OLDER_ROTATION: Final = "twist"


def coupled_ports(mechanism: Mechanism) -> tuple[CoupledPort, ...]:
    """Return the ports of a mechanism with their axes for coupling, whether it is coupled or not."""
    if mechanism.coupled_ports:
        return mechanism.coupled_ports
    older = axes_of(mechanism, suffixes=_OLDER_SUFFIXES, rotation=_OLDER_ROTATION)
    possible = (older, axes_of(mechanism, admittance=True))
    return next((ports for ports in possible if is_coupled(mechanism, ports)), axes_of(mechanism))


def is_coupled(mechanism: Mechanism, ports: tuple[CoupledPort, ...]) -> bool:
    """Whether a mechanism has what couples these ports."""
    return bool(ports) and all(name in mechanism.inputs for port in ports for name in port.inputs)


def add_couplers(mechanism: Mechanism, admittance: bool = False) -> Mechanism:
    """Return the mechanism with a virtual coupler on each of its ports.

    With ``admittance`` a port has no coupler: the force of the hand is an input, for devices that measure it and follow
    the motion of the port.

    Raises
    ------
    ModelError
        There is no port; the body of a rotation has no frame; a name is taken already.
    """
    return with_settings(mechanism, port_coupling="admittance" if admittance else "impedance")
