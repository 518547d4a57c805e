/* Conditions of transitions, and reset maps. */

#include "stepping.h"
#include "contacts.h"

/* -- User-defined transitions in an instant: which are due, and which conditions were met before it
   (docs/theory.md, "Conditions").

   A condition acts on becoming true, once.  Along a step that is a zero crossing of a guard.  At a jump no slope leads
   from one side of zero to the other: what was true before is compared with what is true after.  What was true before is
   the status of the guards in the mode before, which is noted here, as the mode after has other guards. */

#define FSM_FALLS_WITHIN 1e-3 // time scales within which a guard at zero falls out of its tolerance if it counts as falling

/* What was known of a condition before the instant, for one direction of crossing. */
enum known {
    UNWATCHED = 0, // the mode before was not one that the transition leaves, or the run begins
    UNMET = 1,
    MET = 2,
    AT_ZERO = 3, // unmet; an expression at zero, from where it may cross but which it cannot reach any more
};

static double *entry_of(fsm_vector conditions, int64_t transition)
{
    return conditions.at + FSM_CONDITION_WIDTH * transition;
}

static bool is_condition(const struct fsm_tables *tables, int64_t guard)
{
    return tables->guard_event.at[guard] == FSM_EVENT_TRANSITION;
}

static bool has_kind(const struct fsm_tables *tables, int64_t guard, enum fsm_condition_kind kind)
{
    return AT(tables->transitions, tables->guard_contact.at[guard], FSM_TRANSITION_WHEN) == kind;
}

/* Whether guard `j` of `mode` is the second one of its condition: an expression that may cross in both directions has two,
   the first where it rises. */
static bool is_second(const struct fsm_tables *tables, int64_t mode, int64_t j)
{
    int64_t guard = tables->mode_guard_start.at[mode] + j, transition = tables->guard_contact.at[guard];
    return j > 0 && is_condition(tables, guard - 1) && tables->guard_contact.at[guard - 1] == transition;
}

/* Return the place for knowledge of the condition of guard `j` of `mode`. */
static double *known_of(const struct fsm_tables *tables, fsm_vector conditions, int64_t mode, int64_t j)
{
    int64_t transition = tables->guard_contact.at[tables->mode_guard_start.at[mode] + j];
    return entry_of(conditions, transition) +
           (is_second(tables, mode, j) ? FSM_CONDITION_SECOND : FSM_CONDITION_FIRST);
}

/* Note for guard `j` of the current mode what is known of its condition before the instant. */
static void note(const struct fsm_run *run, int64_t j)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_state *state = run->state;
    int64_t guard = tables->mode_guard_start.at[state->counters->mode] + j;
    double value = state->guards.at[j], slope = state->guards.at[tables->sizes->max_guards + j];
    bool reached = value <= fsm_graze_tolerance(tables, guard) && slope >= 0.0;
    enum known known = state->armed.at[j] != FSM_GUARD_ARMED                   ? MET
                       : has_kind(tables, guard, FSM_WHEN_CROSSES) && reached ? AT_ZERO
                                                                              : UNMET;
    *known_of(tables, state->conditions, state->counters->mode, j) = (double)known;
}

/* Make the transition of the condition that is number `k` of the fired guards due. */
static void make_due(const struct fsm_run *run, int64_t k)
{
    struct fsm_state *state = run->state;
    int64_t most = run->tables->sizes->max_guards, mode = state->counters->mode;
    int64_t guard = state->fired.at[k], j = guard - run->tables->mode_guard_start.at[mode];
    double *entry = entry_of(state->conditions, run->tables->guard_contact.at[guard]);
    entry[FSM_CONDITION_DUE] = FSM_DUE_BY_CONDITION;
    entry[FSM_CONDITION_VALUE] = state->guards.at[3 * most + k];
    entry[FSM_CONDITION_SLOPE] = state->guards.at[4 * most + k];
    state->armed.at[j] = FSM_GUARD_WAITING;
    *known_of(run->tables, state->conditions, mode, j) = MET;
}

/* Note what is known of all conditions before the pending resolution, and take those that fired out of the fired guards:
   their transitions are due.

   A comparison with < or > at zero is not met yet.  Where a contact's guard fires in the same instant, what follows from it
   decides whether it will be: such conditions are looked at again after the resolution.  What was met in this instant stays
   so in modes that do not watch it: no condition acts twice because a mode is left and entered again in no time.  May be
   called again. */
FSM_LOCAL void fsm_note_conditions(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, first = tables->mode_guard_start.at[mode];
    bool goes_on = fsm_is_same_instant(run);
    for (int64_t w = 0; w < tables->sizes->n_transitions; w++) {
        for (int64_t i = FSM_CONDITION_FIRST; i <= FSM_CONDITION_SECOND; i++) {
            double *known = entry_of(state->conditions, w) + i;
            *known = goes_on && *known == MET ? MET : UNWATCHED;
        }
    }
    for (int64_t j = 0; j < fsm_guard_count(tables, mode) && state->counters->reason != FSM_REASON_START; j++) {
        if (is_condition(tables, first + j)) {
            note(run, j);
        }
    }
    int64_t most = tables->sizes->max_guards, kept = 0;
    bool contacts = false;
    for (int64_t k = 0; k < state->counters->fired; k++) {
        contacts = contacts || !is_condition(tables, state->fired.at[k]);
    }
    for (int64_t k = 0; k < state->counters->fired; k++) {
        int64_t guard = state->fired.at[k];
        if (!is_condition(tables, guard)) {
            state->fired.at[kept] = guard;
            state->guards.at[3 * most + kept] = state->guards.at[3 * most + k];
            state->guards.at[4 * most + kept] = state->guards.at[4 * most + k];
            kept++;
        } else if (!contacts || !has_kind(tables, guard, FSM_WHEN_STRICT)) {
            make_due(run, k);
        }
    }
    state->counters->fired = kept;
}

/* Return the first transition in the file that is due, -1 if none is. */
FSM_LOCAL int64_t fsm_first_due(fsm_vector conditions)
{
    for (int64_t w = 0; FSM_CONDITION_WIDTH * w < conditions.n; w++) {
        if (conditions.at[FSM_CONDITION_WIDTH * w + FSM_CONDITION_DUE] != FSM_NOT_DUE) {
            return w;
        }
    }
    return -1;
}

/* Let a user-defined transition, -1 for none, be due no more. */
FSM_LOCAL void fsm_is_made(const struct fsm_state *state, int64_t transition)
{
    if (transition >= 0) {
        state->conditions.at[FSM_CONDITION_WIDTH * transition + FSM_CONDITION_DUE] = FSM_NOT_DUE;
    }
}

/* Whether the condition of a guard, or its crossing, is met behind a jump.

   `known`: before it.  `value`, `slope`: of the guard, negative where the condition is met.  At zero >= and <= are met, > and
   < where the guard falls from there; one that is met already stays so where it falls however little. */
static bool condition_is_met(const struct fsm_tables *tables, int64_t guard, enum known known, double value, double slope)
{
    double zero = fsm_graze_tolerance(tables, guard);
    double least = known == MET ? 0.0 : zero / (FSM_FALLS_WITHIN * tables->tolerances->time_scale);
    bool falls = slope < -least && value <= zero + 2.0 * fabs(slope) * tables->tolerances->coincidence;
    bool at_zero_too = has_kind(tables, guard, FSM_WHEN_CROSSES) ? known == MET || known == UNMET
                                                                 : has_kind(tables, guard, FSM_WHEN_WIDE);
    return value < -zero || falls || (at_zero_too && value <= zero);
}

/* Whether a condition that is met becomes so: an expression that was not watched before has not crossed anything. */
static bool becomes_met(const struct fsm_tables *tables, int64_t guard, enum known known)
{
    return known == UNMET || known == AT_ZERO || (known == UNWATCHED && !has_kind(tables, guard, FSM_WHEN_CROSSES));
}

/* Return the status of a condition's guard of the mode just entered; `fires`: its transition is due at once. */
FSM_LOCAL enum fsm_guard_status fsm_arm_condition(const struct fsm_run *run, int64_t j, double value, double slope,
                                                  bool *fires)
{
    const struct fsm_tables *tables = run->tables;
    int64_t mode = run->state->counters->mode, guard = tables->mode_guard_start.at[mode] + j;
    enum known known = (enum known)(int)*known_of(tables, run->state->conditions, mode, j);
    if (!condition_is_met(tables, guard, known, value, slope)) {
        return FSM_GUARD_ARMED;
    }
    *fires = becomes_met(tables, guard, known);
    return *fires ? FSM_GUARD_ARMED : FSM_GUARD_WAITING;
}

/* Note the conditions that become met, or cease to be, between two jumps of one instant, as between an impact and the reset
   after it; `when` (n_transitions,): the scalars of the conditions there. */
FSM_LOCAL void fsm_look_between(const struct fsm_resolution *r, const struct fsm_instant *instant, fsm_vector when)
{
    const struct fsm_tables *tables = r->tables;
    int64_t mode = instant->mode, first = tables->mode_guard_start.at[mode];
    for (int64_t j = 0; j < fsm_guard_count(tables, mode) && when.n > 0; j++) {
        int64_t guard = first + j;
        if (!is_condition(tables, guard) || fsm_is_bound(tables, guard) || fsm_is_kink(tables, guard)) {
            continue;
        }
        int64_t w = tables->guard_contact.at[guard];
        bool second = is_second(tables, mode, j), falls = second || AT(tables->transitions, w, FSM_TRANSITION_FALLS) != 0;
        double value = falls ? when.at[w] : -when.at[w];
        enum known known = (enum known)(int)*known_of(tables, instant->conditions, mode, j);
        bool met = condition_is_met(tables, guard, known, value, 0.0);
        if (met && becomes_met(tables, guard, known)) {
            AT(r->between, w, second) = value;
        } else if (known == MET && value > fsm_graze_tolerance(tables, guard)) {
            AT(r->between, w, second) = -FSM_INFINITY;
        }
    }
}

/* Make the transitions due whose conditions became met between two jumps of the instant; those that ceased to be met may
   become so again. */
FSM_LOCAL void fsm_make_due_between(const struct fsm_resolution *r, const struct fsm_instant *instant)
{
    for (int64_t w = 0; w < r->between.n; w++) {
        bool leaves = instant->reason != FSM_REASON_START || AT(r->tables->transition_leaves, w, r->outcome->mode) != 0;
        double *entry = entry_of(instant->conditions, w);
        for (int64_t i = 0; i < 2 && leaves; i++) {
            double value = AT(r->between, w, i);
            if (value == -FSM_INFINITY) {
                entry[FSM_CONDITION_FIRST + i] = UNMET;
            } else if (value < FSM_INFINITY) {
                entry[FSM_CONDITION_DUE] = FSM_DUE_BY_CONDITION;
                entry[FSM_CONDITION_VALUE] = value;
                entry[FSM_CONDITION_SLOPE] = 0.0;
            }
        }
    }
}

/* Arm the waiting guards of conditions that are not met any more where a step ends at an event. */
FSM_LOCAL void fsm_rearm_conditions(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, first = tables->mode_guard_start.at[mode];
    const double *values = state->guards.at, *tolerances = values + 2 * tables->sizes->max_guards;
    for (int64_t j = 0; j < fsm_guard_count(tables, mode) && tables->sizes->n_transitions > 0; j++) {
        if (is_condition(tables, first + j) && values[j] > tolerances[j]) {
            state->armed.at[j] = FSM_GUARD_ARMED;
        }
    }
}

/* -- Reset maps of user-defined transitions, and transitions that change no motion (docs/theory.md, "Conditions"). */

/* Apply the assignments of a user-defined reset, all at once from the values before.

   Returns whether they leave finite numbers finite; nothing is assigned otherwise. */
FSM_LOCAL bool fsm_apply_reset(const struct fsm_resolution *r, int64_t address)
{
    int64_t n_x = r->state.n, n_memory = r->tables->sizes->n_memory, memory = fsm_memory_at(r->tables->sizes);
    fsm_vector after = fsm_arena_vector(r->arena, n_x + n_memory);
    ((fsm_kernel)(intptr_t)address)(r->t, r->state.at, r->context.at, after.at);
    for (int64_t i = 0; i < after.n; i++) {
        double before = i < n_x ? r->state.at[i] : r->context.at[memory + i - n_x];
        if (!fsm_is_finite(after.at[i]) && fsm_is_finite(before)) {
            return false;
        }
    }
    for (int64_t i = 0; i < n_x; i++) {
        r->state.at[i] = after.at[i];
    }
    for (int64_t i = 0; i < n_memory; i++) {
        r->context.at[memory + i] = after.at[n_x + i];
    }
    return true;
}

/* Whether a user-defined transition is all that happens, and asks for no contact state. */
FSM_LOCAL bool fsm_only_observes(const struct fsm_resolution *r, const struct fsm_instant *instant)
{
    bool alone = instant->reason == FSM_REASON_EVENT && r->transition >= 0 && !fsm_any_event(r->event);
    for (int64_t k = 0; k < r->before.n; k++) {
        alone = alone && r->outcome->wanted.at[k] == r->before.at[k];
    }
    return alone;
}

/* Whether the reset map of the user-defined transition, which is applied, leaves state and terms as they are.

   Where it does contact states are not selected again: what a model counts must not change how it moves.  Else nothing is
   changed here. */
FSM_LOCAL bool fsm_changes_no_motion(const struct fsm_resolution *r, fsm_vector x, fsm_vector c)
{
    int64_t address = AT(r->tables->transitions, r->transition, FSM_TRANSITION_RESET);
    if (address == 0) {
        return true;
    }
    fsm_mark top = fsm_arena_mark(r->arena);
    fsm_vector whole = fsm_arena_copy(r->arena, r->terms->whole);
    bool same = fsm_apply_reset(r, address);
    r->tables->terms.at[0](r->t, r->state.at, r->context.at, r->terms->whole.at);
    for (int64_t i = 0; i < x.n; i++) {
        same = same && r->state.at[i] == x.at[i];
    }
    for (int64_t i = 0; i < whole.n; i++) {
        same = same && r->terms->whole.at[i] == whole.at[i];
    }
    if (!same) {
        fsm_put(r->state, x);
        fsm_put(r->context, c);
        r->tables->terms.at[0](r->t, r->state.at, r->context.at, r->terms->whole.at);
    }
    fsm_arena_release(r->arena, top);
    return same;
}
