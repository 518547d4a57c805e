/* Ends: of sequences of impacts (Zeno, chatter) and of runs, with their reasons; runs one after the other. */

#include "stepping.h"
#include "contacts.h"

/* -- Zeno sequences and chatter: detected, completed. */

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

/* -- End of a run, its reasons, and whether what was recorded explains itself. */

/* -- Reasons for the end of a run at a loss of rank of constraint rows (docs/theory.md, "Change points").

   Told from the rows that are small or vanish, each taken free of those before it, `n (A u + b)`: what they ask of the
   speeds, `n b`, of the accelerations, `n gamma`, and whether they hold something beside the current configuration. */

#define FSM_AT_REST      1e-9  // scaled speed, in the mechanism's own units, below which nothing moves
#define FSM_NO_DIRECTION 1e-12 // rounding of the square of what rows leave of a direction of about the size 1
#define FSM_WEAK         1e-4  // what is left of a row that is stretched to its limit
#define FSM_DRIVEN       1e-3  // part of the largest speed imposed that such a row must continue asking for
#define FSM_TURNS_UP                                                                                                   \
    1e-3 // change, per scaled length in the mechanism's own units, of a row that vanishes here and holds something elsewhere
#define FSM_MISSED 1e-6 // acceleration that a row that vanishes may ask for, relative to its terms
#define FSM_EXTENT 1e-6 // scaled length, in the mechanism's own units, over which rows are differenced

/* Return what the weak rows ask of the speeds, relative to what is imposed; `missed`: what the vanished ones ask of the
   accelerations, relative to their terms.  The weights of the rows that ask for something are set. */
static double asked_for(const struct fsm_run *run, double *missed)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    const struct fsm_terms *terms = fsm_terms_at(run, run->state->clock->time, run->state->x);
    struct fsm_rank *rank = run->state->rank;
    int64_t n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    fsm_vector sizes = fsm_rank_sizes(rank, n_rows), weights = fsm_rank_weights(rank, n_rows);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, run->state->counters->mode, false);
    int64_t m = rows.n;
    fsm_vector scale = fsm_arena_vector(&work->arena, n_u);
    fsm_column_scales(terms, scale);
    fsm_matrix B = fsm_arena_matrix(&work->arena, m, n_u);
    fsm_indices order = fsm_arena_indices(&work->arena, m);
    fsm_matrix L = fsm_arena_matrix(&work->arena, m, m);
    fsm_fill_scaled(terms, rows, scale, sizes, B);
    int64_t taken = fsm_orthogonalise(&work->arena, B, order, L, FSM_WEAK);
    fsm_vector combination = fsm_arena_vector(&work->arena, m);
    *missed = 0.0;
    const struct fsm_tolerances *tolerances = tables->tolerances;
    double unit = fsm_scaled_length(tolerances) / tolerances->time_scale; // of scaled speeds
    double driven = 0.0, imposed = FSM_TINIEST;
    for (int64_t k = 0; k < rows.n; k++) {
        int64_t r = rows.at[k];
        imposed = fsm_larger(imposed, fabs(terms->b.at[r]) / fsm_larger(sizes.at[r], FSM_TINIEST));
    }
    for (int64_t k = taken; k < m; k++) {
        fsm_combination_of(L, taken, k, combination);
        int64_t row = rows.at[order.at[k]];
        double speed = terms->b.at[row] / fsm_larger(sizes.at[row], FSM_TINIEST),
               left = terms->gamma.at[row] / fsm_larger(sizes.at[row], FSM_TINIEST);
        double magnitude = fabs(left);
        for (int64_t j = 0; j < taken; j++) {
            int64_t other = rows.at[order.at[j]];
            speed -= combination.at[j] * terms->b.at[other] / fsm_larger(sizes.at[other], FSM_TINIEST);
            double part = combination.at[j] * terms->gamma.at[other] / fsm_larger(sizes.at[other], FSM_TINIEST);
            left -= part;
            magnitude += fabs(part);
        }
        driven = fsm_larger(driven, fabs(speed) / imposed);
        double weak = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            weak += fsm_square(AT(B, order.at[k], i));
        }
        if (sqrt(weak) < tables->tolerances->redundancy) {
            *missed = fsm_larger(*missed, magnitude > FSM_AT_REST * unit / tolerances->time_scale
                                              ? fabs(left) / fsm_larger(magnitude, FSM_TINIEST)
                                              : 0.0);
        }
        if (fabs(speed) > FSM_DRIVEN * imposed || fabs(left) > FSM_MISSED * magnitude) {
            weights.at[row] = 1.0;
            for (int64_t j = 0; j < taken; j++) {
                weights.at[rows.at[order.at[j]]] =
                    fsm_larger(weights.at[rows.at[order.at[j]]], fabs(combination.at[j]));
            }
        }
    }
    return driven;
}

/* Take the parts along the first rows taken out of a vector. */
static void remove_components(fsm_matrix Q, fsm_indices order, int64_t taken, fsm_vector direction)
{
    for (int64_t k = 0; k < taken; k++) {
        double product = 0.0;
        for (int64_t i = 0; i < direction.n; i++) {
            product += direction.at[i] * AT(Q, order.at[k], i);
        }
        for (int64_t i = 0; i < direction.n; i++) {
            direction.at[i] -= product * AT(Q, order.at[k], i);
        }
    }
}

/* Return how many rows others imply here but not beside it: rows that always are redundant are not counted.

   Beside it is where any motion leads that the rows allow, seen in one direction that has a part of each. */
static int64_t count_vanishing(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    const struct fsm_terms *terms = fsm_terms_at(run, run->state->clock->time, run->state->x);
    struct fsm_rank *rank = run->state->rank;
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    fsm_vector sizes = fsm_rank_sizes(rank, n_rows), weights = fsm_rank_weights(rank, n_rows);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, run->state->counters->mode, false);
    int64_t m = rows.n;
    fsm_vector scale = fsm_arena_vector(&work->arena, n_u);
    fsm_column_scales(terms, scale);
    fsm_matrix before = fsm_arena_matrix(&work->arena, m, n_u), Q = fsm_arena_matrix(&work->arena, m, n_u);
    fsm_fill_scaled(terms, rows, scale, sizes, before);
    fsm_fill_scaled(terms, rows, scale, sizes, Q);
    fsm_indices order = fsm_arena_indices(&work->arena, m);
    fsm_matrix L = fsm_arena_matrix(&work->arena, m, m);
    int64_t taken = fsm_orthogonalise(&work->arena, Q, order, L, tables->tolerances->redundancy);
    if (taken == m) {
        return 0;
    }
    fsm_vector direction = fsm_arena_vector(&work->arena, n_u), x_dot = fsm_arena_vector(&work->arena, run->state->x.n);
    for (int64_t i = 0; i < n_u; i++) {
        direction.at[i] = 1.0 + fmod(FSM_GOLDEN_RATIO * (double)(i + 1), 1.0);
    }
    remove_components(Q, order, taken, direction);
    double norm = 0.0;
    for (int64_t i = 0; i < n_u; i++) {
        norm += direction.at[i] * direction.at[i];
    }
    if (!(norm > FSM_NO_DIRECTION)) {
        return 0;
    }
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            x_dot.at[i] += AT(terms->W, i, j) * scale.at[j] * direction.at[j] / sqrt(norm);
        }
    }
    double unit = fsm_scaled_length(tables->tolerances);
    fsm_matrix after = fsm_rows_along(run, x_dot, rows, scale, sizes, FSM_EXTENT * unit, 0.0);
    int64_t count = 0;
    fsm_vector combination = fsm_arena_vector(&work->arena, m);
    fsm_vector change = fsm_arena_vector(&work->arena, n_u);
    for (int64_t k = taken; k < m; k++) {
        fsm_combination_of(L, taken, k, combination);
        for (int64_t i = 0; i < n_u; i++) {
            change.at[i] = (AT(after, order.at[k], i) - AT(before, order.at[k], i)) / FSM_EXTENT;
            for (int64_t j = 0; j < taken; j++) {
                change.at[i] -=
                    combination.at[j] * (AT(after, order.at[j], i) - AT(before, order.at[j], i)) / FSM_EXTENT;
            }
        }
        remove_components(Q, order, taken, change);
        double square = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            square += change.at[i] * change.at[i];
        }
        if (square > FSM_TURNS_UP * FSM_TURNS_UP) {
            count++;
            weights.at[rows.at[order.at[k]]] = 1.0;
        }
    }
    return count;
}

/* Whether nothing moves. */
static bool is_at_rest(const struct fsm_run *run)
{
    const struct fsm_tolerances *tolerances = run->tables->tolerances;
    return run->state->rank->speed_norm <= FSM_AT_REST * fsm_scaled_length(tolerances) / tolerances->time_scale;
}

/* Return the outcome of a run that failed with `status`: one of those that belong to a loss of rank, if it is one.

   FSM_STRETCHED (`rank->ahead` is then how long the motion could have gone on, s), FSM_UNDETERMINED, FSM_NO_BRANCH, or
   `status` itself. */
FSM_LOCAL enum fsm_status fsm_why_not(const struct fsm_run *run, enum fsm_status status)
{
    fsm_vector x = run->state->x, x_dot = run->state->x_dot;
    struct fsm_rank *rank = run->state->rank;
    bool may_be = status == FSM_STEP_TOO_SMALL || status == FSM_NON_FINITE || status == FSM_SINGULAR ||
                  status == FSM_PROJECTION_FAILED;
    if (!may_be || (run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_RANKS) == 0) {
        return status;
    }
    for (int64_t i = 0; i < x.n; i++) {
        if (!fsm_is_finite(x.at[i])) {
            return status;
        }
        if (!fsm_is_finite(x_dot.at[i])) {
            x_dot.at[i] = 0.0;
        }
    }
    fsm_assess(run);
    double missed;
    double driven = asked_for(run, &missed);
    if (is_at_rest(run) && count_vanishing(run) > 0) {
        return FSM_UNDETERMINED;
    }
    if (driven > FSM_DRIVEN) {
        rank->ahead = 0.5 * rank->sigma / fsm_larger(rank->rate, FSM_TINIEST);
        return FSM_STRETCHED;
    }
    return missed > FSM_MISSED ? FSM_NO_BRANCH : status;
}

/* Whether the mechanism is at rest where rows vanish that hold something beside it. */
FSM_LOCAL bool fsm_rests_in_change_point(const struct fsm_run *run)
{
    struct fsm_rank *rank = run->state->rank;
    if (rank->independent >= rank->active || !is_at_rest(run)) {
        return false;
    }
    return count_vanishing(run) > 0;
}

/* -- Influence of the end time of a run on its next step.

   The last step is shortened to end there, so a run that is to be continued is saved before it (saved_state.c): what goes
   on from there takes the step that a run with a later end takes. */

#define FSM_PASSAGES 32.0 // times a step's length up to which one over a change point may be made longer

/* Return the length of the first step (s) up to `target` (s), as fsm_advance would choose it. */
static double first_length_up_to(const struct fsm_run *run, double target)
{
    return fsm_first_step(run, fsm_smaller(target - run->state->clock->time, run->options->numbers->max_step));
}

/* Whether the next step, or the transition that is pending, may depend on where the run ends. */
FSM_API bool fsm_end_is_near(const struct fsm_run *run)
{
    const struct fsm_state *state = run->state;
    const struct fsm_clock *clock = state->clock;
    double until = run->options->numbers->until;
    bool resolving = state->counters->phase == FSM_PHASE_RESOLVING, adaptive = run->method->counts->adaptive != 0;
    if (!resolving && !adaptive && until > fsm_grid_point(run)) { // most steps of fixed length
        return false;
    }
    double jump = fsm_next_jump(run);
    if (until > jump) {
        return false;
    }
    if (resolving) {
        return state->counters->reason == FSM_REASON_ZENO && clock->jump > 0.0 && clock->time + clock->jump > until;
    }
    if (!adaptive) {
        return true;
    }
    double length = clock->step;
    if (length <= 0.0) {
        length = first_length_up_to(run, jump);
        if (length != first_length_up_to(run, until)) {
            return true;
        }
    }
    length = fsm_smaller(length, run->options->numbers->max_step);
    if ((run->tables->mode_flags.at[state->counters->mode] & FSM_MODE_RANKS) != 0) {
        length *= FSM_PASSAGES;
    }
    return until - clock->time <= length + 32.0 * FSM_EPS * fsm_larger(fabs(clock->time), fabs(until));
}

/* -- Whether the recorded states of runs follow from their recorded rates.

   The balance of energy takes longer than most runs.  Where the states of every step follow from its rates, as an integral,
   it closes as far as the rates are those of the mechanism: it need not be drawn up. */

#define FSM_UNEXPLAINED 0.01  // part of the largest value of a speed, summed over the steps of a run: of middles of steps
#define FSM_MISTIMED    1e-3  // part of the largest speed, or of how far a coordinate moves: of steps of fixed length
#define FSM_ALIKE       0.1   // length of a step over that of its neighbour, at least, whose rates tell how its own bend

/* Whether a row begins an interval of a run: no step leads there. */
static bool is_beginning(const struct fsm_recorded *rows, int64_t begin, int64_t i)
{
    return i <= begin || !(rows->t[i] > rows->t[i - 1]);
}

/* Return by how much a state in the middle of the step that leads to row `i` differs from the cubic of its ends and rates. */
static double missed_in_middle(const struct fsm_recorded *rows, int64_t i, int64_t j)
{
    const double *x = rows->x + j, *rate = rows->x_dot + j;
    int64_t end = i * rows->stride, start = end - rows->stride;
    double h = rows->t[i] - rows->t[i - 1];
    return fabs(rows->x_mid[end + j] - 0.5 * (x[start] + x[end]) - 0.125 * h * (rate[start] - rate[end]));
}

/* Return by how much a state changes otherwise in the step that leads to row `i` than by the integral of its rate: of the
   parabola through the rates at its ends and at that of a neighbouring step, if there is one of about its length. */
static double missed_at_end(const struct fsm_recorded *rows, int64_t begin, int64_t end, int64_t i, int64_t j)
{
    const double *t = rows->t, *x = rows->x + j, *rate = rows->x_dot + j;
    int64_t here = i * rows->stride, before = here - rows->stride;
    double h = t[i] - t[i - 1], change = x[here] - x[before], near = rate[before], far = rate[here], other = 0.0,
           ratio = 0.0;
    if (!is_beginning(rows, begin, i - 1)) {
        ratio = (t[i - 1] - t[i - 2]) / h;
        other = rate[before - rows->stride];
    }
    if (ratio < FSM_ALIKE && i + 1 < end && !is_beginning(rows, begin, i + 1)) {
        ratio = (t[i + 1] - t[i]) / h;
        near = rate[here];
        far = rate[before];
        other = rate[here + rows->stride];
    }
    if (ratio < FSM_ALIKE) {
        return fabs(change - 0.5 * h * (near + far));
    }
    double part = 1.0 / (6.0 * ratio * (1.0 + ratio));
    double mean = (2.0 + 3.0 * ratio) * ratio * far + (1.0 + 3.0 * ratio) * (1.0 + ratio) * near - other;
    return fabs(change - h * part * mean);
}

/* Whether all states and rates of the rows of a run are finite, middles of steps included. */
static bool is_recorded_finite(const struct fsm_recorded *rows, int64_t begin, int64_t end)
{
    double total = 0.0;
    for (int64_t i = begin; i < end; i++) {
        const double *x = rows->x + i * rows->stride, *rate = rows->x_dot + i * rows->stride;
        for (int64_t j = 0; j < rows->n; j++) {
            total += 0.0 * x[j] + 0.0 * rate[j];
        }
        const double *middle = rows->x_mid + i * rows->stride;
        for (int64_t j = 0; j < rows->n && !is_beginning(rows, begin, i); j++) {
            total += 0.0 * middle[j];
        }
    }
    return total == 0.0;
}

/* Whether state `j` of the rows of a run follows from its rate, to a part of its largest value, or motion. */
static bool is_explained(const struct fsm_recorded *rows, int64_t begin, int64_t end, int64_t j, bool fixed)
{
    const double *x = rows->x + j;
    double first = j < rows->n_q ? x[begin * rows->stride] : 0.0, largest = 0.0, missed = 0.0;
    for (int64_t i = begin; i < end; i++) {
        largest = fsm_larger(largest, fabs(x[i * rows->stride] - first));
        if (!is_beginning(rows, begin, i)) {
            missed += fixed ? missed_at_end(rows, begin, end, i, j) : missed_in_middle(rows, i, j);
        }
    }
    return missed <= (fixed ? FSM_MISTIMED : FSM_UNEXPLAINED) * largest;
}

/* Judge the rows of each run, `begin` (runs + 1,): the first of each, and the end; write into `found` (runs,) what they are.

   `fixed`: nothing controlled the error of its steps.  Then middles are cubics of ends and rates, and the ends are judged,
   coordinates too; else the speeds in the middles are, which are known otherwise. */
FSM_API void fsm_judge_rows(const struct fsm_recorded *rows, const int64_t *begin, int64_t runs, bool fixed, int8_t *found)
{
    for (int64_t k = 0; k < runs; k++) {
        bool explained = true;
        for (int64_t j = fixed ? 0 : rows->n_q; j < rows->n && explained; j++) {
            explained = is_explained(rows, begin[k], begin[k + 1], j, fixed);
        }
        bool finite = is_recorded_finite(rows, begin[k], begin[k + 1]);
        found[k] = !finite ? FSM_ROWS_NOT_FINITE : explained ? FSM_ROWS_EXPLAINED : FSM_ROWS_CONTRADICTED;
    }
}

/* -- Runs of one automaton one after the other, as those of a study: the same inputs, method and options; each run has its
   own start.  What they record is stored in the same buffers, of one run after that of another. */

/* Make the state and the workspace those of a run that is about to start. */
static void start_run(struct fsm_run_batch *batch)
{
    struct fsm_state *state = batch->run->state;
    int64_t number = batch->next;
    fsm_put_indices(batch->state, batch->state_at_start);
    fsm_put_indices(batch->work, batch->work_at_start);
    fsm_put(state->x, fsm_row(batch->x, number));
    fsm_put(state->c, fsm_row(batch->c, number));
    state->counters->mode = batch->modes.at[number];
    batch->under_way = 1;
}

/* Note how a run ended and how much room it took. */
static void finish_run(struct fsm_run_batch *batch, enum fsm_status status)
{
    const struct fsm_counters *counters = batch->run->state->counters;
    fsm_indices end = fsm_index_row(batch->ends, batch->next);
    end.at[FSM_END_STATUS] = status;
    end.at[FSM_END_ROWS] = counters->rows;
    end.at[FSM_END_TRANSITIONS] = counters->transitions;
    batch->rows += counters->rows;
    batch->transitions += counters->transitions;
    batch->passages += counters->passed;
    batch->next++;
    batch->under_way = 0;
}

/* The matrix without its first rows. */
static fsm_matrix rows_from(fsm_matrix a, int64_t first)
{
    return (fsm_matrix){a.at + first * a.m, a.n - first, a.m};
}

/* Make runs up to number `end`; return FSM_DONE, or what the run `next` wants of the caller, with which it continues.

   Where the buffers are full, the caller takes what was recorded, sets `rows`, `transitions` and `passages` to zero, and
   `under_way` as well: the run begins again. */
FSM_API enum fsm_status fsm_advance_batch(struct fsm_run_batch *batch, int64_t end)
{
    const struct fsm_buffers *all = batch->run->buffers;
    while (batch->next < end) {
        struct fsm_buffers room = {
            rows_from(all->rows, batch->rows),
            fsm_indices_from(all->modes, batch->rows),
            rows_from(all->transitions, batch->transitions),
            rows_from(all->passages, batch->passages),
        };
        struct fsm_run run = *batch->run;
        run.buffers = &room;
        if (batch->under_way == 0) {
            start_run(batch);
        }
        enum fsm_status status = fsm_advance(&run);
        if (status <= FSM_LAST_INTERNAL) {
            return status;
        }
        finish_run(batch, status);
    }
    return FSM_DONE;
}
