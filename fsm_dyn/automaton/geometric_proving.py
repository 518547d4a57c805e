"""Making of geometric proofs: the subdivisions behind the verdicts, recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from fsm_dyn.automaton.configuration_search import MARGIN, Condition, ConfigurationSearch
from fsm_dyn.automaton.geometric_feasibility import MOST_BOXES, ContactVerdict, GeometricFeasibility
from fsm_dyn.automaton.geometric_proofs import ExclusionProof, GeometricProofs, ProofCondition
from fsm_dyn.automaton.held_contacts import HeldContacts
from fsm_dyn.automaton.hybrid_automaton import Automaton
from fsm_dyn.automaton.subdivision import Subdivision
from fsm_dyn.programs.program import Array

WIDER: Final = 1.001  # than the margin of the claim, by which the conditions of a proof are missed


def prove_geometry(
    automaton: Automaton,
    parameters: Array,
    q: Array,
    found: GeometricFeasibility,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> GeometricProofs:
    """Return a proof of each verdict ``impossible``.

    Parameters
    ----------
    automaton : Automaton
    parameters : ndarray, shape (n_p,)
        SI units, those of the verdicts.
    q : ndarray, shape (n_q,)
        A configuration, SI units.
    found : GeometricFeasibility
        The verdicts.
    progress : callable
        Called with the numbers of proofs made and asked for.
    """
    search = ConfigurationSearch(automaton, parameters, q)
    asked, proofs, unproved = list(_impossible(found)), [], []
    for done, item in enumerate(asked):
        progress(done, len(asked))
        proof = _proof(search, item)
        if proof is None:
            unproved.append(item.states)
        else:
            proofs.append(proof)
    named = dict(zip(automaton.terms.layout.p, parameters.tolist(), strict=True))
    mechanism = automaton.mechanism
    return GeometricProofs(mechanism.name, mechanism.digest, named, MARGIN, tuple(proofs), tuple(unproved))


def _impossible(found: GeometricFeasibility) -> Iterator[ContactVerdict]:
    """Yield what is impossible, each once: a mode only if none of the other verdicts excludes it."""
    known = [item for item in (*found.verdicts, *found.held_contacts) if item.verdict == "impossible"]
    yield from known
    reasons = {item.reason for item in known}
    yield from (mode for mode in found.modes.values() if mode.verdict == "impossible" and mode.reason not in reasons)


def _proof(search: ConfigurationSearch, item: ContactVerdict) -> ExclusionProof | None:
    """Return how the space is cut until all boxes are excluded; None where that takes too many."""
    automaton, layout = search.automaton, search.automaton.terms.layout
    if item.without_sliding:
        return _held_proof(search, item)
    asked = [
        condition
        for name, shut in zip(item.contacts, item.closed, strict=True)
        for condition in search.conditions(layout.contacts.index(name), shut)
    ]
    everything = [*asked, *search.limits(asked)]
    cuts = Subdivision()
    if not search.remaining(everything, 4 * MOST_BOXES, None, cuts, WIDER * MARGIN).empty:
        return None
    variables = search.variables(everything)
    number = {argument: i for i, argument in enumerate(variables)}
    shifts = search.shifts(everything, search.part(everything)[0]).values()
    return ExclusionProof(
        item.contacts, item.closed, item.reason, tuple(_named(automaton, condition) for condition in everything),
        tuple(layout.arguments[i] for i in variables),
        tuple(None if cut is None else (number[cut[0]], cut[1]) for cut in cuts.in_order()),
        shifts=tuple(tuple((layout.arguments[i], float(rate)) for i, rate in moved.items()) for moved in shifts),
    )  # fmt: skip


def _held_proof(search: ConfigurationSearch, item: ContactVerdict) -> ExclusionProof:
    """Return the proof that contacts cannot be held at once; it is found again as it was."""
    automaton, layout = search.automaton, search.automaton.terms.layout
    held = HeldContacts(search)
    answer = held.answer(tuple(layout.contacts.index(name) for name in item.contacts))
    conditions = held.conditions(answer.contacts)
    variables = search.variables(conditions)
    number = {argument: i for i, argument in enumerate(variables)}
    return ExclusionProof(
        item.contacts, item.closed, item.reason, tuple(_named(automaton, condition) for condition in conditions),
        tuple(layout.arguments[i] for i in variables),
        tuple(None if cut is None else (number[cut[0]], cut[1]) for cut in answer.cuts), True, answer.weights,
    )  # fmt: skip


def _named(automaton: Automaton, condition: Condition) -> ProofCondition:
    rows = len(automaton.rows)
    if condition.value < rows:
        return ProofCondition("residual", condition.value, automaton.rows[condition.value].name, condition.sense)
    contact = condition.value - rows
    return ProofCondition("reach", contact, automaton.contacts[contact].name, condition.sense)
