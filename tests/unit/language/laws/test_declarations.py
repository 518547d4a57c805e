"""A contact law is declared in one file: no other module asks for the law of a contact, and C has the same numbers."""

import ast
import itertools
from types import SimpleNamespace

import pytest

from fsm_dyn.language.laws import FREE, LAWS, Traits
from fsm_dyn.run import structures as st
from fsm_dyn.runtime.abi import ContactFlag
from tests.source_trees import PACKAGE, modules, nodes

NAMES = {law.name for law in LAWS}
TRAITS = tuple(name for name, member in vars(Traits).items() if isinstance(member, property))


def kinds_compared(path):
    """Names of laws in comparisons and look-ups of an attribute `kind`."""
    for node in nodes(path):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            parts = [node.subject, *(case.pattern for case in node.cases)]
        elif isinstance(node, ast.Subscript):
            parts = [node.value, node.slice]
        else:
            continue
        within = [item for part in parts for item in ast.walk(part)]
        if any(isinstance(item, ast.Attribute) and item.attr == "kind" for item in within):
            words = (item.value for item in within if isinstance(item, ast.Constant))
            yield from (f"{node.lineno}: {word}" for word in words if word in NAMES)


def test_no_other_module_compares_the_kind_of_a_contact():
    found = []
    for path in modules():
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith("laws/"):
            found += [f"{name}:{place}" for place in kinds_compared(path)]
    assert found == []


def test_the_library_has_no_names_of_laws():
    for path in sorted((PACKAGE / "runtime").glob("*.[ch]")):
        assert "FSM_KIND" not in path.read_text(encoding="utf-8"), path.name


def contacts(law):
    """Every combination of the properties that decide on guards."""
    for values in itertools.product([False, True], repeat=len(TRAITS)):
        yield SimpleNamespace(**dict(zip(TRAITS, values, strict=True)))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name + ("_two_sided" if law.bilateral else ""))
def test_a_declaration_fits_together(law):
    """Guards begin and end in states of the law, and have messages with a way back to their events."""
    for contact in contacts(law):
        states = law.states(contact.frictional or law.friction_only, contact.sticks_always)
        codes = [code for code, name in enumerate(states) if name]
        for code in codes:
            for guard in law.guards_of(contact, code):
                assert law.verb(guard.event), law.sign(guard.event)
                assert guard.text
                assert guard.sign in (-1.0, 1.0)
                assert code not in guard.leads_to
                assert any(end < 4 for end in guard.leads_to)
                assert law.ends_in(contact, code, guard.event)
        for word in law.events(contact.frictional, contact.sticks_always, contact.bounded_face):
            assert law.word(law.event_named(word)) == word


def test_kinds_and_flags():
    assert len({(law.name, law.bilateral) for law in LAWS}) == len(LAWS)
    for law in LAWS:
        assert [law.rigid, law.compliant, law.switched, law.friction_only].count(True) == 1
        assert (
            bin(
                st.law_flags(law)
                & (ContactFlag.RIGID | ContactFlag.COMPLIANT | ContactFlag.SWITCHED | ContactFlag.FRICTION_ONLY)
            ).count("1")
            == 1
        )
        assert FREE in range(len(law.states(False, False)))
