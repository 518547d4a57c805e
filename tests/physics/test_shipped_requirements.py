"""Requirements of shipped models: met by their own schedules, refuted where the mechanism is used or made wrongly."""

import pytest

import fsm_dyn

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
