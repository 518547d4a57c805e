"""Sampled controllers as data."""

from __future__ import annotations

from collections.abc import Mapping

from fsm_dyn.errors import ModelError
from fsm_dyn.spec.forms.controllers import ControllerForm
from fsm_dyn.spec.model import Controller, ControllerQuantity
from fsm_dyn.spec.yaml_tree import where_of


def controllers_of(forms: Mapping[str, ControllerForm]) -> dict[str, Controller]:
    """Return the controllers.

    Parameters
    ----------
    forms : Mapping[str, ControllerForm]
        Entries by name.

    Raises
    ------
    ModelError
        One has no output.
    """
    return {name: _controller(name, form) for name, form in forms.items()}


def _controller(name: str, form: ControllerForm) -> Controller:
    if not form.outputs:
        raise ModelError(f"controller {str(name)!r} has no output", form.key("outputs"), remedy="name one at least")
    inputs = [ControllerQuantity(n, item.value, quantum=item.quantum) for n, item in form.inputs.items()]
    memory = [ControllerQuantity(n, item.update, item.unit, item.start) for n, item in form.memory.items()]
    outputs = [
        ControllerQuantity(n, item.value, item.unit, item.start, item.quantum) for n, item in form.outputs.items()
    ]
    return Controller(name, form.period, form.delay, tuple(inputs), tuple(memory), tuple(outputs), where_of(name))
