/* Zeno sequences and chatter: detected, completed. */

#include "stepping.h"
#include "contacts.h"

/* -- Zeno detection: sequences of impacts that accumulate in finite time.

   When the same cycle of contacts strikes three times over with durations that shrink by a steady ratio `r < 1`,
   and the gaps between have become smaller than the tolerance, the remaining strokes add up to a geometric series:
   the sequence ends `d r / (1 - r)` after the last stroke, `d` being the last duration.

   Strokes of several contacts need not fall into a cycle, and sequences may consist of sequences.  When the last few have kept
   within the tolerance all together, what is left of them takes about as long again. */

#define FSM_ACYCLIC_STROKES 8   // that are looked at where there is no cycle
#define FSM_STEADINESS      0.2 // how far two ratios in a row may differ, as a fraction of 1 - r

/* Where the entry of the event `back` events ago begins in the history, a ring. */
static int64_t entry(const struct fsm_state *state, int64_t back)
{
    return fsm_modulo(state->counters->history - 1 - back, FSM_RING_LENGTH) * FSM_RING_WIDTH;
}

/* Enter the event in the history; return whether a gap closes in it. */
FSM_LOCAL bool fsm_remember_event(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    state->counters->history++;
    int64_t at = entry(state, 0);
    int64_t most = tables->sizes->max_guards;
    double sign = 0.0, speed = 0.0;
    bool closes = false;
    for (int64_t k = 0; k < state->counters->fired; k++) {
        int64_t guard = state->fired.at[k];
        double mark = (double)tables->guard_event.at[guard] + 8.0 * (double)tables->guard_contact.at[guard];
        sign += mark * mark;
        if (tables->guard_event.at[guard] == FSM_EVENT_CLOSES &&
            (tables->contact_flags.at[tables->guard_contact.at[guard]] & (FSM_FLAG_RIGID | FSM_FLAG_NO_GAP)) ==
                FSM_FLAG_RIGID) {
            closes = true;
            int64_t row = AT(tables->contact_rows, tables->guard_contact.at[guard], 0);
            speed = fsm_larger(speed, -state->guards.at[4 * most + k] / tables->row_unit.at[row]);
        }
    }
    state->history.at[at + FSM_RING_TIME] = state->clock->time;
    state->history.at[at + FSM_RING_MODE] = (double)state->counters->mode;
    state->history.at[at + FSM_RING_SIGN] = sign;
    state->history.at[at + FSM_RING_SPEED] = speed;
    state->history.at[at + FSM_RING_CONTACT] = (double)(closes ? tables->guard_contact.at[state->fired.at[0]] : -1);
    return closes;
}

/* Take the event of this instant out of the history, if it was entered: nothing happened in it. */
FSM_LOCAL void fsm_forget_event(const struct fsm_state *state)
{
    if (state->counters->history > 0 && state->history.at[entry(state, 0) + FSM_RING_TIME] == state->clock->time) {
        state->counters->history--;
    }
}

/* Return the largest closing speed of the last events (m/s). */
static double largest_speed(const struct fsm_state *state, int64_t count)
{
    double speed = 0.0;
    for (int64_t i = 0; i < count; i++) {
        speed = fsm_larger(speed, state->history.at[entry(state, i) + FSM_RING_SPEED]);
    }
    return speed;
}

/* Return how long the Zeno sequence of impacts under way will continue (s), and how many impacts back its contacts are
   met.

   The length is negative where there is no such train or its apex is still above `gap` (m), the apex being
   estimated as that of a parabola with the last duration and the largest closing speed.  The number of strokes is
   that of the cycle, or more than any cycle has where there is none and the length is but a guess. */
FSM_LOCAL double fsm_zeno_duration(const struct fsm_state *state, double gap, int64_t *strokes)
{
    for (int64_t cycle = 1; cycle < FSM_LONGEST_CYCLE + 1; cycle++) {
        if (state->counters->history < 3 * cycle + 1) {
            break;
        }
        bool same = true;
        for (int64_t i = 0; i < 2 * cycle + 1; i++) {
            const double *one = state->history.at + entry(state, i),
                         *other = state->history.at + entry(state, i + cycle);
            same = same && one[FSM_RING_MODE] == other[FSM_RING_MODE] && one[FSM_RING_SIGN] == other[FSM_RING_SIGN];
        }
        if (!same) {
            continue;
        }
        double t0 = state->history.at[entry(state, 0) + FSM_RING_TIME];
        double t1 = state->history.at[entry(state, cycle) + FSM_RING_TIME];
        double t2 = state->history.at[entry(state, 2 * cycle) + FSM_RING_TIME];
        double t3 = state->history.at[entry(state, 3 * cycle) + FSM_RING_TIME];
        if (!(t0 > t1 && t1 > t2 && t2 > t3)) {
            continue;
        }
        double ratio = (t0 - t1) / (t1 - t2);
        double before = (t1 - t2) / (t2 - t3);
        if (ratio >= 1.0 || before >= 1.0 ||
            fabs(ratio - before) > FSM_STEADINESS * (1.0 - fsm_larger(ratio, before))) {
            continue;
        }
        double speed = largest_speed(state, cycle);
        if (speed > 0.0 && 0.25 * speed * (t0 - t1) < gap) {
            *strokes = cycle;
            return (t0 - t1) * ratio / (1.0 - ratio);
        }
    }
    if (state->counters->history >= FSM_ACYCLIC_STROKES) {
        double duration = state->history.at[entry(state, 0) + FSM_RING_TIME];
        duration -= state->history.at[entry(state, FSM_ACYCLIC_STROKES - 1) + FSM_RING_TIME];
        if (0.25 * largest_speed(state, FSM_ACYCLIC_STROKES) * duration < gap) {
            *strokes = FSM_ACYCLIC_STROKES;
            return duration;
        }
    }
    *strokes = 0;
    return -1.0;
}

/* Add the guards of contacts that strike in the cycle and are near to the fired ones: they close together. */
FSM_LOCAL void fsm_add_cycle_guards(const struct fsm_run *run, int64_t cycle)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode;
    int64_t most = tables->sizes->max_guards;
    int64_t first = tables->mode_guard_start.at[mode], n_g = fsm_guard_count(tables, mode);
    for (int64_t i = 0; i < cycle; i++) {
        double contact = state->history.at[entry(state, i) + FSM_RING_CONTACT];
        for (int64_t j = 0; j < n_g; j++) {
            if (tables->guard_event.at[first + j] != FSM_EVENT_CLOSES ||
                (double)tables->guard_contact.at[first + j] != contact) {
                continue;
            }
            int64_t row = AT(tables->contact_rows, tables->guard_contact.at[first + j], 0);
            bool known = state->guards.at[j] > fsm_gap_tolerance(tables, row);
            for (int64_t k = 0; k < state->counters->fired; k++) {
                known = known || state->fired.at[k] == first + j;
            }
            if (!known) {
                int64_t k = state->counters->fired;
                state->fired.at[k] = first + j;
                state->guards.at[3 * most + k] = state->guards.at[j];
                state->guards.at[4 * most + k] = state->guards.at[most + j];
                state->counters->fired = k + 1;
            }
        }
    }
}

/* Whether a contact, or another of its corner with the same outline, is closed in a mode. */
static bool is_closed(const struct fsm_tables *tables, int64_t mode, int64_t contact)
{
    int64_t outline = tables->contact_outline.at[contact];
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        bool same = k == contact || (outline >= 0 && tables->contact_outline.at[k] == outline);
        if (same && AT(tables->mode_states, mode, k) != FSM_CONTACT_FREE) {
            return true;
        }
    }
    return false;
}

/* Whether all contacts that strike in the cycle are closed in a mode.

   If not, those still open have strokes of their own to make, and time must not be advanced over them. */
FSM_LOCAL bool fsm_cycle_is_closed(const struct fsm_run *run, int64_t mode)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    for (int64_t i = 0; i < state->counters->cycle; i++) {
        int64_t contact = (int64_t)state->history.at[entry(state, i) + FSM_RING_CONTACT];
        if (contact >= 0 && !is_closed(tables, mode, contact)) {
            return false;
        }
    }
    return true;
}

/* -- Zeno completion: state at the accumulation point, solved for all contacts simultaneously (docs/theory.md, "Zeno
   sequences").

   Over the time `h` that the sequence still takes, its impulses add up: `M (u_end - u) = f h + AᵀΛ` with
   `0 ≤ Λ_n ⊥ v_n ≥ 0` and Coulomb's law between the sums, which is a step of Moreau's time stepping.  It tells which
   contacts the sequence leaves closed, and which of them stick; the impulses of single impacts would not, as each may
   open another contact that the load has closed again by the Zeno time.

   The forces' part belongs to the flow that follows.  What is left for the instant itself, `M (u⁺ - u) = AᵀΛ` with the
   rows of the contacts left closed brought to rest, takes impulses of either sign; with the forces' part none pulls. */

/* Fill in the generalized forces (n_u,), those of compressed compliant contacts included. */
static void fill_forces(const struct fsm_resolution *r, fsm_vector force)
{
    for (int64_t i = 0; i < force.n; i++) {
        force.at[i] = r->terms->f.at[i];
    }
    for (int64_t k = 0; k < r->tables->sizes->n_contacts; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) != 0 &&
            r->outcome->wanted.at[k] != FSM_CONTACT_FREE) {
            for (int64_t i = 0; i < force.n; i++) {
                force.at[i] += r->terms->elastic.at[k] * AT(r->terms->A, AT(r->tables->contact_rows, k, 0), i);
            }
        }
    }
}

/* Whether an open contact approaches, though the forces would have turned it back by the Zeno time. */
static bool any_approaches(const struct fsm_resolution *r, const struct fsm_contact_problem *problem,
                           const struct fsm_contact_solution *solution)
{
    for (int64_t at = 0; at < problem->contact.n; at++) {
        int64_t normal = problem->normal.at[at];
        double speed = solution->motions.at[normal] / problem->unit.at[normal];
        if (solution->choices.at[at] == FSM_CHOICE_OPEN &&
            speed < -fsm_speed_tolerance(r->tables, problem->row.at[normal])) {
            return true;
        }
    }
    return false;
}

/* Bring the closed contacts to the end of their Zeno sequence; changes the speeds, adds to the impulses.

   The terms are those at the last impact, the speeds those before it, on return those with which the flow begins.
   `remaining`: how long the sequence continues (s).  Returns FSM_CONTINUE, or a failure: then the sequence does not end
   with these contacts closed, and the speeds are as they were. */
FSM_LOCAL int64_t fsm_complete_zeno_sequence(const struct fsm_resolution *r, double remaining)
{
    int64_t n_u = r->u.n;
    fsm_indices held = fsm_bilateral_rows(r->arena, r->tables, r->outcome->wanted);
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(r->arena, r->terms, held, n_u);
    struct fsm_base_motion base;
    fsm_vector force = fsm_arena_vector(r->arena, n_u), acceleration = fsm_arena_vector(r->arena, n_u);
    fsm_vector reaction = fsm_arena_vector(r->arena, held.n);
    fill_forces(r, force);
    if (!fsm_base_impact(r, &bilateral, &base) ||
        !fsm_base_accelerations(r->arena, r->tables, r->terms, &bilateral, force, r->u, acceleration,
                                reaction)) {
        return FSM_SINGULAR;
    }
    struct fsm_contact_problem unscaled = fsm_build_impact_problem(r, r->closed, FSM_IMPACT_PLASTIC);
    fsm_indices rows = unscaled.row;
    struct fsm_response response = fsm_unit_responses(r->arena, r->terms, &bilateral, rows, n_u);
    fsm_vector free_response = fsm_free_response(r->arena, r->terms, rows);
    fsm_vector now = fsm_arena_vector(r->arena, rows.n), then = fsm_arena_vector(r->arena, rows.n);
    for (int64_t k = 0; k < rows.n; k++) {
        now.at[k] = fsm_row_speed(r->terms, rows.at[k], base.u);
        then.at[k] = now.at[k];
        then.at[k] += remaining * r->terms->gamma.at[rows.at[k]];
        for (int64_t i = 0; i < n_u; i++) {
            then.at[k] += remaining * AT(r->terms->A, rows.at[k], i) * acceleration.at[i];
        }
    }
    struct fsm_contact_solution solution = fsm_allocate_solution(r->arena, unscaled.contact.n, rows.n);
    struct fsm_contact_problem problem =
        fsm_scale_problem(r->arena, &unscaled, response.K, then, free_response, base.scale);
    struct fsm_enumeration_result result;
    r->outcome->log.count = 0;
    double tolerance = r->tables->tolerances->impact;
    int64_t status = fsm_solve_contact_problem(r->arena, &problem, tolerance, &solution, &r->outcome->log, &result);
    if (status != FSM_CONTINUE && status != FSM_NON_UNIQUE_STATE) {
        return status;
    }
    fsm_retarget(&problem, &unscaled, now);
    fsm_matrix basis;
    bool shared;
    double remainder =
        fsm_solve_candidate(r->arena, &problem, solution.choices, solution.forces, solution.motions, &basis, &shared);
    if (remainder > tolerance * fsm_reference_scale(&problem, solution.forces) ||
        any_approaches(r, &problem, &solution)) {
        return FSM_INCONSISTENT;
    }
    for (int64_t k = 0; k < rows.n; k++) {
        solution.forces.at[k] *= problem.unit.at[k];
    }
    fsm_apply_impulses(r, rows, held, &base, &response, solution.forces);
    return FSM_CONTINUE;
}
