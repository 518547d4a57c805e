"""The starter model."""

import pytest

from fsm_dyn.core.errors import InputError
from fsm_dyn.language.describe_keys import starter
from fsm_dyn.language.loader import load


@pytest.mark.parametrize("name", ["my_model", "gripper-2", "N", "x"])
def test_loads_as_it_stands(name: str) -> None:
    mechanism = load(text=starter(name))
    assert mechanism.name == name
    assert mechanism.uses_units
    assert mechanism.contacts
    assert mechanism.modes


def test_its_commented_parts_load_too() -> None:
    lines = starter("model").split("\n")
    wanted = ("# ground: {", "# pivot: {", "# transitions:", '#   - {from: "*"')
    found = [line for line in lines if line.strip().startswith(wanted)]
    assert len(found) == 4
    text = "\n".join(line.replace("# ", "", 1) if line in found else line for line in lines)
    mechanism = load(text=text)
    assert {"ground", "pivot"} <= set(mechanism.contacts)
    assert len(mechanism.transitions) == 1


@pytest.mark.parametrize("name", ["", "two words", "1st", "../x", "_a", "a" * 65, "é", "a\n"])
def test_bad_names(name: str) -> None:
    with pytest.raises(InputError, match="cannot name a model"):
        starter(name)
