"""Requirements of shipped models: met by their own schedules, refuted where the mechanism is used or made wrongly."""

import pytest

import fsm_dyn
from tests.campaigns.variants import PAIRS, fault

SHORT = (("latch_door", "latches"), ("push_button", "clicks"))
WRONG = {
    "latch_door": {"latches": {"inputs": {"push": 1.0}}, "bolt_returns": {"inputs": {"handle": 5.0}}},
    "seat_belt_reel": {"locks": {"inputs": {"deceleration": 0.0}}, "belt_holds": {"parameters": {"m": 200.0}}},
    "escapement_deadbeat": {"swings_on": {"parameters": {"c": 3e-2}}},
    "piano_action": {"sounds": {"inputs": {"finger": 0.3}}, "is_checked": {"inputs": {"finger": 0.3}}},
}


@pytest.mark.parametrize("name", WRONG)
def test_the_models_own_schedule_meets_its_requirements(name):
    verdicts = fsm_dyn.simulate(fsm_dyn.compile(name)).judge()
    assert {key: judged.verdict for key, judged in verdicts.items()} == dict.fromkeys(verdicts, "met")


@pytest.mark.parametrize(("name", "requirement"), [(name, key) for name in WRONG for key in WRONG[name]])
def test_a_wrong_use_is_refuted(name, requirement):
    run = fsm_dyn.simulate(fsm_dyn.compile(name), on_failure="return", **WRONG[name][requirement])
    judged = run.judge()[requirement]
    assert (judged.verdict, judged.margin < 0.0) == ("violated", True)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(
            pair,
            marks=() if (pair.model, pair.requirement) in SHORT else pytest.mark.long,
            id=f"{pair.model}-{pair.requirement}-{next(iter(pair.broken))}",
        )
        for pair in PAIRS
    ],
)
def test_a_search_refutes_the_broken_variant_and_not_the_sound_one(pair):
    assert fault(pair) == ""


def test_a_sound_variant_in_the_place_of_the_broken_one_is_a_fault():
    pair = next(pair for pair in PAIRS if (pair.model, pair.requirement) == ("bouncing_ball", "rests"))
    assert "is not refuted" in fault(pair._replace(broken=pair.sound))
    assert "is not met" in fault(pair._replace(sound=pair.broken))


def test_there_are_twenty_pairs():
    assert len({(pair.model, pair.requirement, *pair.broken) for pair in PAIRS}) == 20
