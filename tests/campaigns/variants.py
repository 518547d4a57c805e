"""Mechanisms that are made wrongly and made well: a search within 2 % of each refutes its requirement or does not."""

import time
from typing import NamedTuple

import fsm_dyn
from fsm_dyn.analysis.searches import worst_case
from fsm_dyn.language import models
from fsm_dyn.language.loader import load
from fsm_dyn.language.values import parameter_values

LONGEST = 60.0  # s of processor time, of a search
RUNS = 16  # of a search
NEAR = 0.02  # half the width of its box, relative to each value


class Pair(NamedTuple):
    """A requirement of a shipped model, parameters with which it is not met and others with which it is.

    ``formula`` is that of a requirement which the model's own file does not have.
    """

    model: str
    requirement: str
    broken: dict
    sound: dict
    formula: str = ""


PAIRS = (
    Pair("latch_door", "latches", {"home": "40 mm"}, {"home": "45 mm"}),
    Pair("latch_door", "comes_open", {"xs": "33 mm"}, {"xs": "29 mm"}),
    Pair("latch_door", "bolt_returns", {"xs": "33 mm"}, {"xs": "29 mm"}),
    Pair("seat_belt_reel", "caught", {"c_seat": "20 N*s/m"}, {"c_seat": "100 N*s/m"}),
    Pair("seat_belt_reel", "belt_holds", {"m": "120 kg"}, {"m": "35 kg"}),
    Pair("escapement_deadbeat", "swings_on", {"c": "0.03 N*m*s"}, {"c": "1.5e-3 N*m*s"}),
    Pair("escapement_deadbeat", "swings_on", {"drop": "-4 deg"}, {"drop": "1.8 deg"}),
    Pair("piano_action", "is_checked", {"check": "6 mm"}, {"check": "0.1 mm"}),
    Pair("escapement_anchor", "advances", {"drop": "-4 deg"}, {"drop": "1.8 deg"}, "final(w) > 1.5 rad"),
    Pair("bouncing_ball", "rests", {"e": 0.85}, {"e": 0.7}, "eventually mode == resting before 4 s"),
    Pair("pendulum_with_stop", "rests", {"e": 0.9}, {"e": 0.5}, "eventually mode == leaning before 4 s"),
    Pair("ratchet", "advances", {"preload": "200 N"}, {"preload": "2.2 N"}, "final(tooth_number) >= 11.5"),
    Pair("rocking_block", "stands", {"tilt": "12 deg"}, {"tilt": "5 deg"}, "peak(abs(tilt_share)) < 0.9"),
    Pair("rimless_wheel", "rolls_on", {"slope": "1 deg"}, {"slope": "5 deg"}, "trough(spin) > 0.2 rad/s"),
    Pair("stick_slip_belt", "is_slow", {"mu_k": 0.1}, {"mu_k": 0.45}, "peak(abs(slip_speed)) < 0.9 m/s"),
    Pair("felt_drop", "shallow", {"m": "30 g"}, {"m": "7 g"}, "trough(y) > -1.2 mm"),
    Pair("push_button", "returns", {"k_cap": "100 N/m"}, {"k_cap": "750 N/m"}, "final(y) < 0.1 mm"),
    Pair("push_button", "clicks", {"h": "0.2 mm"}, {"h": "1.05 mm"}, "peak(abs(y_dot)) > 50 mm/s"),
    Pair("latch", "reaches", {"k_door": "3000 N/m"}, {"k_door": "50 N/m"}, "eventually x >= 61 mm before 4 s"),
    Pair("cam_flat_follower", "follows", {"preload": "1 N"}, {"preload": "400 N"}, "count(face opens) <= 0"),
)


def graph_of(pair):
    """The mode graph of a model with the requirement of a pair."""
    text = models.resolve(pair.model).read_text(encoding="utf-8")
    if pair.formula:
        text += f"\nrequirements:\n  {pair.requirement}: {pair.formula}\n"
    return fsm_dyn.compile(load(pair.model, text=text))


def searched(pair, parameters):
    """Search the vicinity of parameters for a violation; return the result and the processor time, s."""
    graph = graph_of(pair)
    values = parameter_values(graph.automaton.mechanism, parameters)
    box = {name: sorted((values[name] * (1.0 - NEAR), values[name] * (1.0 + NEAR))) for name in parameters}
    begin = time.process_time()
    found = worst_case(graph, pair.requirement, vary=box, runs=RUNS, parameters=parameters)
    return found, time.process_time() - begin


def fault(pair):
    """Return what is wrong with the verdicts on a pair; an empty text if nothing is."""
    broken, spent = searched(pair, pair.broken)
    if not broken.violations:
        return f"{pair.model}: {pair.requirement} is not refuted with {pair.broken}: {broken}"
    if broken.violations[0].judgement.margin > 0.0:
        return f"{pair.model}: {pair.requirement} is refuted with a margin of {broken.violations[0].judgement.margin}"
    if spent > LONGEST:
        return f"{pair.model}: {pair.requirement} was refuted after {spent:.0f} s"
    sound, _ = searched(pair, pair.sound)
    if sound.violations or sound.undecided or sound.failed or sound.margin < 0.0:
        return f"{pair.model}: {pair.requirement} is not met with {pair.sound}: {sound}"
    return ""


def case(seed):
    """The case of a campaign: a pair by its number."""
    reason = fault(PAIRS[seed % len(PAIRS)])
    return {"ok": not reason, "reason": reason}
