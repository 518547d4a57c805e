// Codes and lengths that the runtime in C and pages share, written by fsm_dyn/runtime/abi_build.py.

// Statuses of a run, in the order of FSM_STATUSES.
export const Status = Object.freeze({ CONTINUE: 0, PAUSED: 1, BUFFER_FULL: 2, NEED_MODE: 3, NEED_CHART: 4, DONE: 5, STOPPED: 6, INTERRUPTED: 7, TOO_MANY_STEPS: 8, STEP_TOO_SMALL: 9, NON_FINITE: 10, CHATTERING: 11, INCONSISTENT: 12, NON_UNIQUE_STATE: 13, NON_UNIQUE: 14, SINGULAR: 15, PENETRATION: 16, PROJECTION_FAILED: 17, MODE_NOT_LISTED: 18, IMPACTS_DIVERGE: 19, CONTRADICTORY: 20, STRETCHED: 21, UNDETERMINED: 22, NO_BRANCH: 23, PENETRATION_LATER: 24, STEP_TOO_LONG: 25, LEFT_RANGE: 26, EVENT_IN_CHANGE_POINT: 27, UNSOLVED: 28, LAST_INTERNAL: 4 });
// Which event a guard detects (`fsm_tables.guard_event`).
export const Event = Object.freeze({ CLOSES: 1, OPENS: 2, SLIDES: 3, STICKS: 4, TRANSITION: 5, LEAVES: 6 });
// States of a contact (`fsm_tables.mode_states`).
export const ContactState = Object.freeze({ FREE: 0, HELD: 1, SLIDING: 2, SLIDING_UNDER: 3 });
// Run states of a live session (`fsm_tick_counts.phase`).
export const LivePhase = Object.freeze({ RUNNING: 0, PAUSED: 1, FAULT: 2, FAILED: 3, STOPPED: 4 });
export const MAX_FIRED = 8;
export const GUARD_WIDTH = 5; // event, contact, direction, value, slope
