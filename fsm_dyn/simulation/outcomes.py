"""Outcomes of a run: a code for the runtime, and name, sentence and remedy for the user.

The integer constants are what compiled functions return; :data:`OUTCOMES` gives each one a name, a sentence
and a remedy.  Statuses up to :data:`LAST_INTERNAL` never reach a user: they ask the Python side for
something (more room, another mode) and the run continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CONTINUE: Final = 0
PAUSED: Final = 1
BUFFER_FULL: Final = 2
NEED_MODE: Final = 3
NEED_CHART: Final = 4
LAST_INTERNAL: Final = 4
DONE: Final = 5
STOPPED: Final = 6
INTERRUPTED: Final = 7
TOO_MANY_STEPS: Final = 8
STEP_TOO_SMALL: Final = 9
NON_FINITE: Final = 10
CHATTERING: Final = 11
INCONSISTENT: Final = 12
NON_UNIQUE_STATE: Final = 13
NON_UNIQUE: Final = 14
SINGULAR: Final = 15
PENETRATION: Final = 16
PROJECTION_FAILED: Final = 17
MODE_NOT_LISTED: Final = 18
IMPACTS_DIVERGE: Final = 19
CONTRADICTORY: Final = 20
STRETCHED: Final = 21
UNDETERMINED: Final = 22
NO_BRANCH: Final = 23
PENETRATION_LATER: Final = 24
STEP_TOO_LONG: Final = 25
LEFT_RANGE: Final = 26
EVENT_IN_CHANGE_POINT: Final = 27
UNSOLVED: Final = 28


@dataclass(frozen=True, slots=True)
class Outcome:
    """One way a run ends (or pauses).

    Attributes
    ----------
    code : int
        What the compiled loop returns.
    name : str
        Short name, fit for a log or a table.
    sentence : str
        What happened, in one sentence.
    remedy : str
        What the user can do about it; empty where nothing is wrong.
    failed : bool
        Whether the run could not do what was asked.
    """

    code: int
    name: str
    sentence: str
    remedy: str = ""
    failed: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.sentence}" + (f" Remedy: {self.remedy}" if self.remedy else "")


_ALL: Final = (
    Outcome(CONTINUE, "running", "The run is under way.", failed=False),
    Outcome(PAUSED, "paused", "The run paused to report progress.", failed=False),
    Outcome(BUFFER_FULL, "buffer full", "The run paused for more room to record.", failed=False),
    Outcome(NEED_MODE, "mode needed", "The next mode has not been derived yet.", failed=False),
    Outcome(NEED_CHART, "chart needed", "The current chart degenerates (small pivot).", failed=False),
    Outcome(DONE, "done", "The run reached its final time.", failed=False),
    Outcome(STOPPED, "stopped", "A transition marked 'stop' ended the run.", failed=False),
    Outcome(INTERRUPTED, "interrupted", "The run was interrupted from outside; what was recorded is kept."),
    Outcome(
        TOO_MANY_STEPS,
        "too many steps",
        "The run reached its limit on the number of steps.",
        "raise max_steps, loosen rtol and atol, or use method='radau' if the model is stiff",
    ),
    Outcome(
        STEP_TOO_SMALL,
        "step size too small",
        "The tolerances require a step shorter than the resolution of time.",
        "loosen rtol and atol, use method='radau' if the model is stiff, and look for a law that jumps or grows "
        "without bound at this time",
    ),
    Outcome(
        NON_FINITE,
        "non-finite state",
        "The state or its derivative became infinite or not a number.",
        "look for a division by zero or a root of a negative number in the loads, or shorten the step",
    ),
    Outcome(
        CHATTERING,
        "chattering",
        "Transitions follow each other at one event time without limit.",
        "check the transitions recorded last: give user-defined transitions a hysteresis, or contacts friction "
        "or less restitution",
    ),
    Outcome(
        INCONSISTENT,
        "inconsistent contact state",
        "No candidate satisfies the contact laws (Painlevé paradox, jamming).",
        "check the candidates and residuals reported; lower the friction, model the contact as compliant, or let an "
        "impact without collision resolve it: on_inconsistent: impact",
    ),
    Outcome(
        NON_UNIQUE_STATE,
        "non-unique contact state",
        "Several candidates with different motions satisfy the contact laws.",
        "select the motion of the fewest state changes: on_nonunique: prefer_previous; lower the friction, "
        "or model the contact as compliant",
    ),
    Outcome(
        NON_UNIQUE,
        "non-unique motion",
        "Redundant contacts with indeterminate friction forces leave the motion undetermined.",
        "give redundant contacts the same friction, remove one, or model them as compliant",
    ),
    Outcome(
        SINGULAR,
        "singular configuration",
        "The active constraints lose rank, or the reduced mass matrix is singular, in every chart.",
        "start from another configuration, give every moving body inertia, or remove a redundant constraint",
    ),
    Outcome(
        PENETRATION,
        "initial penetration",
        "A contact that should be open or touching penetrates deeper than the tolerance.",
        "move the start so that every gap is at least zero, or let closes_if admit the contact only above zero",
    ),
    Outcome(
        PENETRATION_LATER,
        "penetration during the run",
        "A contact penetrates deeper than the tolerance when its contact state is selected.",
        "tighten rtol and atol, shorten max_step or step, let closes_if admit the contact only above zero, or correct "
        "a transition at this instant whose reset or set moves a gap below zero",
    ),
    Outcome(
        STEP_TOO_LONG,
        "step too long",
        "The fixed step does not resolve the oscillation of a compliant contact.",
        "shorten step, or use method='dopri5' or 'radau'",
    ),
    Outcome(
        PROJECTION_FAILED,
        "projection failed",
        "The drift projection onto the constraints did not converge.",
        "shorten the step or tighten rtol and atol; check that the constraints are consistent",
    ),
    Outcome(
        MODE_NOT_LISTED,
        "mode not listed",
        "The motion leads into a mode that the model does not list.",
        "name this combination of contact states under modes, or drop only_listed",
    ),
    Outcome(
        IMPACTS_DIVERGE,
        "impact sequence does not terminate",
        "Sequential impacts at one event time do not terminate.",
        "give the contacts restitutions below 1, or use impacts: simultaneous",
    ),
    Outcome(
        CONTRADICTORY,
        "inconsistent constraints",
        "Redundant constraints have become inconsistent.",
        "check the lengths and axes of the redundant constraints, or remove one of them",
    ),
    Outcome(
        STRETCHED,
        "stretched to its limit",
        "A loop is stretched to its limit and driven beyond it: no motion satisfies its constraints.",
        "end the run earlier, change the motion that drives the loop, or make a link compliant",
    ),
    Outcome(
        UNDETERMINED,
        "undetermined at a change point",
        "The mechanism is at rest in a change point, where its constraints lose rank: several motions are possible.",
        "give it a speed, or start near the change point",
    ),
    Outcome(
        NO_BRANCH,
        "speeds belong to no branch",
        "No motion through this change point has these speeds: it would violate the constraints that are lost here.",
        "give all speeds of one of the motions through the change point, or start near it",
    ),
    Outcome(
        LEFT_RANGE,
        "left its range",
        "A coordinate left the range that the model states for it.",
        "widen the range, add a stop, or start elsewhere",
        failed=False,
    ),
    Outcome(
        EVENT_IN_CHANGE_POINT,
        "event in a change point",
        "A contact or condition becomes active in a change point, where the constraints lose rank.",
        "move the contact or the condition away from the configuration in which the links are in one line",
    ),
    Outcome(
        UNSOLVED,
        "contact solve did not converge",
        "The sweeps over the contacts of a step of Moreau–Jean time stepping did not converge.",
        "use method='dopri5'; or avoid very different masses of bodies in contact, or model a contact as compliant",
    ),
)

UNDECIDED: Final = (INCONSISTENT, NON_UNIQUE_STATE, NON_UNIQUE)  # outcomes that list the candidates examined
AT_CHANGE_POINTS: Final = (
    STRETCHED,
    UNDETERMINED,
    NO_BRANCH,
    EVENT_IN_CHANGE_POINT,
)  # outcomes that name the rows that lose rank

OUTCOMES: Final[dict[int, Outcome]] = {outcome.code: outcome for outcome in _ALL}
