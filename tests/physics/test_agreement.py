"""All methods find the same motions, or a machine shows why not: a sample of the comparison in ``agreement.py``."""

from __future__ import annotations

import pytest

from tests.physics import agreement as ag

SEED = 3
LEFT_TO_THE_CAMPAIGN = ("piano_action", "piano_action_simple", "seat_belt_reel")  # their steps are short


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:.*contact problems were not solved:UserWarning")
@pytest.mark.parametrize("name", [name for name in ag.MODELS if name not in LEFT_TO_THE_CAMPAIGN])
def test_methods_agree(name):
    found = ag.methods_agreement(SEED, [name])
    wrong = {key: words for key, (state, words) in found.items() if state in ("failed", "no reference")}
    assert not wrong
    refused = {key for key, (state, _) in found.items() if state == "refused"}
    assert refused <= {f"{name}/moreau_jean"}


def test_the_comparison_sees_a_method_that_misses_a_contact():
    """A run that begins 10 mm aside passes the peg: it neither agrees nor is it excused by the error of a method."""
    judge = ag.Judge("twelve_contacts", 0)
    given = {**judge.given, "initial": {**judge.given["initial"], "x": judge.given["initial"]["x"] + 0.01}}
    aside = ag.go("twelve_contacts", given, ag.REFERENCE)
    found = ag.Comparison(judge.reference, aside, 1e-5)
    assert not found.same or found.end > ag.METHODS["dopri5"].error


def test_an_impact_with_two_outcomes_is_found_by_enumeration():
    """A disk with much friction jams in a groove, or rolls back out; nothing is non-unique where there is little."""
    judge = ag.Judge("groove", 10)
    jams = [x for x in judge.reference.transitions if len(judge.outcomes(x)) == 2]
    assert jams
    assert judge.has_several_outcomes()
    assert all(any(x.u_after - x.u_before == pytest.approx(one) for one in judge.outcomes(x)) for x in jams)
    assert not ag.Judge("groove", 0).has_several_outcomes()


def test_table_counts_what_was_found():
    results = [
        {"latch/dopri5": ["agreed", ""], "latch/bdf": ["sensitive", ""], "latch/moreau_jean": ["refused", ""]},
        {"latch/dopri5": ["agreed", ""], "latch/bdf": ["failed", ""], "latch/moreau_jean": ["refused", ""]},
    ]
    row = next(line for line in ag.agreement_table(results).splitlines() if line.startswith("| latch"))
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        "latch", "2", "–", "–", "–", "–", "0, 1 sensitive, **1 failed**", "refused",
    ]  # fmt: skip
