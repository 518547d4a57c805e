/* Projection of drift, landing on rows, consistency of constraints. */

#include "stepping.h"

/* -- Drift projection: correct the configuration so that it satisfies its rows (docs/theory.md, "Drift").

   `Δq = -W M⁻¹Aᵀ (A M⁻¹Aᵀ)⁺ φ` over configuration rows and closed gaps: the smallest correction in the metric of
   the mass matrix, so that it does least work. */

#define FSM_NEWTON_STEPS 2
#define FSM_INDEPENDENT_PIVOT                                                                                          \
    1e-4 // the least pivot, a square of what is left of a row, above which no row is redundant

/* Constraints on coordinates and the normal rows of what is closed or engaged; what yields has a depth. */
static fsm_indices configuration_rows(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    int64_t mode = run->state->counters->mode;
    fsm_indices rows = fsm_arena_indices(&work->arena, tables->sizes->n_rows);
    int64_t count = 0;
    for (int64_t r = 0; r < rows.n; r++) {
        if (tables->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            rows.at[count] = r;
            count++;
        }
    }
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t r = AT(tables->contact_rows, k, 0);
        bool held = AT(tables->mode_states, mode, k) != FSM_CONTACT_FREE &&
                    (tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) == 0;
        if (r >= 0 && held && tables->row_positional.at[r] == 1) {
            rows.at[count] = r;
            count++;
        }
    }
    return fsm_indices_first(rows, count);
}

/* Return the largest residual of rows, as a length (m). */
static double largest_residual(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices rows)
{
    double largest = 0.0;
    for (int64_t k = 0; k < rows.n; k++) {
        largest = fsm_larger(largest, fabs(terms->residual.at[rows.at[k]]) / tables->row_unit.at[rows.at[k]]);
    }
    return largest;
}

/* Move the configuration onto those rows that are independent, as far as one step of Newton's method leads. */
static void newton_step(const struct fsm_run *run, const struct fsm_terms *terms, fsm_indices rows, fsm_vector x)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u;
    struct fsm_bilateral_system bilateral = fsm_factor_bilateral(&work->arena, terms, rows, n_u);
    if (fsm_least_pivot(&bilateral) < FSM_INDEPENDENT_PIVOT) {
        rows = fsm_independent_rows(&work->arena, tables, terms, rows, FSM_OFF_ROWS, 0.0);
        bilateral = fsm_factor_bilateral(&work->arena, terms, rows, n_u);
    }
    int64_t m = rows.n;
    fsm_vector target = fsm_arena_vector(&work->arena, m), move = fsm_arena_vector(&work->arena, n_u),
               reaction = fsm_arena_vector(&work->arena, m);
    for (int64_t k = 0; k < m; k++) {
        target.at[k] = -terms->residual.at[rows.at[k]];
    }
    fsm_solve_bilateral(&bilateral, fsm_arena_vector(&work->arena, n_u), target, move, reaction, 0.0);
    for (int64_t i = 0; i < n_q; i++) {
        for (int64_t j = 0; j < n_u; j++) {
            x.at[i] += AT(terms->W, i, j) * move.at[j];
        }
    }
}

/* Project a state onto the configuration rows of its mode where their residual exceeds the tolerance.

   Asked after each accepted step of modes with FSM_MODE_PROJECTS, before guards are evaluated.  `x` in and out, at `t`
   (s); `moved`: whether it changed, so that the current derivative is no longer valid.  `state->drift` counts the
   energy put in (J) and the largest residual met (m).

   Returns FSM_CONTINUE, FSM_PROJECTION_FAILED, or FSM_CONTRADICTORY where only redundant rows are missed. */
FSM_LOCAL enum fsm_status fsm_project(const struct fsm_run *run, double t, fsm_vector x, bool *moved)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_arena *arena = &run->work->arena;
    fsm_vector c = run->state->c, drift = run->state->drift;
    const struct fsm_terms *terms = fsm_terms_of(run->work);
    double tolerance = tables->tolerances->projection;
    fsm_arena_clear(arena);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_indices rows = configuration_rows(run);
    double worst = largest_residual(tables, terms, rows);
    *moved = false;
    if (worst <= tolerance) {
        return FSM_CONTINUE;
    }
    drift.at[1] = fsm_larger(drift.at[1], worst);
    double before = terms->energies.at[0] + terms->energies.at[1];
    for (int64_t pass = 0; pass < FSM_NEWTON_STEPS; pass++) {
        fsm_mark top = fsm_arena_mark(arena);
        newton_step(run, terms, rows, x);
        fsm_arena_release(arena, top);
        tables->terms.at[0](t, x.at, c.at, terms->whole.at);
        if (largest_residual(tables, terms, rows) <= tolerance) {
            break;
        }
    }
    if (!(largest_residual(tables, terms, rows) <= tables->tolerances->drift)) {
        fsm_indices independent = fsm_independent_rows(arena, tables, terms, rows, FSM_OFF_ROWS, 0.0);
        bool redundant = largest_residual(tables, terms, independent) <= tables->tolerances->drift;
        return redundant ? FSM_CONTRADICTORY : FSM_PROJECTION_FAILED;
    }
    drift.at[0] += terms->energies.at[0] + terms->energies.at[1] - before;
    *moved = true;
    return FSM_CONTINUE;
}

/* Whether a contact may close by its `closes_if` while its gap is already below zero: a named failure.

   Asked after steps that end without an event, in modes with the flag FSM_MODE_WATCHES_GATES. */
FSM_LOCAL bool fsm_gate_opened_late(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    double t = run->state->clock->time;
    fsm_vector x = run->state->x;
    fsm_vector c = run->state->c;
    int64_t mode = run->state->counters->mode;
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        int64_t flags = tables->contact_flags.at[k];
        bool gated = (flags & FSM_FLAG_GATED) && !(flags & FSM_FLAG_LIMITED) &&
                     AT(tables->mode_states, mode, k) == FSM_CONTACT_FREE;
        if ((tables->contact_flags.at[k] & FSM_FLAG_COMPLIANT) != 0 && terms->elastic.at[k] <= 0.0) {
            continue; // its surface still follows what left it
        }
        if (gated && terms->closes_if.at[k] != 0.0 && terms->residual.at[row] < -fsm_gap_tolerance(tables, row)) {
            return true;
        }
    }
    return false;
}

/* -- Landing: putting a configuration on its constraint rows to rounding (docs/theory.md, "Change points").

   A stage of a step is off the rows by the error of the stage.  Where rows have nearly lost rank, that error is divided by
   what is left of them; on the rows nothing is. */

#define FSM_LANDED     1e-13 // a move shorter than this part of the coordinates ends it
#define FSM_MET        10.0 // times the tolerance of the projection that rows may be missed by, redundant ones included
#define FSM_MOST_MOVES 8

/* Return the largest residual of the rows, as a length (m), those left out as redundant included. */
static double residual_of(const struct fsm_tables *tables, const struct fsm_terms *terms, fsm_indices rows)
{
    double largest = 0.0;
    for (int64_t k = 0; k < rows.n; k++) {
        int64_t r = rows.at[k];
        if (tables->row_positional.at[r] == 1) {
            largest = fsm_larger(largest, fabs(terms->residual.at[r]) / tables->row_unit.at[r]);
        }
    }
    return largest;
}

/* Put a configuration on the rows of its mode to rounding, by the smallest moves of the scaled speeds.

   `x`: state, its coordinates in and out, at `t` (s); `farthest`: a move beyond this (in scaled speeds times time) may lead
   to another branch.  Returns false where the rows could not be met, or only by too long a move. */
FSM_LOCAL bool fsm_land(const struct fsm_run *run, double t, fsm_vector x, double farthest)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    fsm_vector c = run->state->c;
    int64_t mode = run->state->counters->mode;
    struct fsm_rank *rank = run->state->rank;
    int64_t n_q = tables->sizes->n_q, n_u = tables->sizes->n_u, n_rows = tables->sizes->n_rows;
    fsm_vector sizes = fsm_rank_sizes(rank, n_rows);
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    fsm_indices rows = fsm_rows_held(&work->arena, tables, mode, false);
    int64_t m = rows.n;
    fsm_vector scale = fsm_arena_vector(&work->arena, n_u), right = fsm_arena_vector(&work->arena, m),
               move = fsm_arena_vector(&work->arena, n_u);
    fsm_matrix B = fsm_arena_matrix(&work->arena, m, n_u);
    fsm_indices order = fsm_arena_indices(&work->arena, m);
    fsm_matrix L = fsm_arena_matrix(&work->arena, m, m);
    double moved = 0.0, last = FSM_INFINITY;
    for (int64_t pass = 0; pass < FSM_MOST_MOVES; pass++) {
        tables->terms.at[0](t, x.at, c.at, terms->whole.at);
        fsm_column_scales(terms, scale);
        fsm_fill_scaled(terms, rows, scale, sizes, B);
        int64_t taken = fsm_orthogonalise(&work->arena, B, order, L, tables->tolerances->redundancy);
        for (int64_t k = 0; k < m; k++) {
            right.at[k] = 0.0;
            if (tables->row_positional.at[rows.at[k]] == 1) {
                right.at[k] =
                    -terms->residual.at[rows.at[k]] / (sizes.at[rows.at[k]] > 0.0 ? sizes.at[rows.at[k]] : 1.0);
            }
        }
        fsm_least_move(B, order, L, taken, right, move);
        double square = 0.0;
        for (int64_t i = 0; i < n_u; i++) {
            square += move.at[i] * move.at[i];
            move.at[i] *= scale.at[i];
        }
        double length = sqrt(square);
        moved += length;
        if (!(moved <= farthest)) {
            return false;
        }
        double largest = 0.0;
        for (int64_t i = 0; i < n_q; i++) {
            double step = 0.0;
            for (int64_t j = 0; j < n_u; j++) {
                step += AT(terms->W, i, j) * move.at[j];
            }
            x.at[i] += step;
            largest = fsm_larger(largest, fabs(step) / (tables->state_unit.at[i] + fabs(x.at[i])));
        }
        if (largest <= FSM_LANDED || length >= 0.5 * last) { // shorter moves are rounding
            return residual_of(tables, terms, rows) <= FSM_MET * tables->tolerances->projection;
        }
        last = length;
    }
    return false;
}

/* -- Redundant constraint rows that have become inconsistent.

   The rows left out of an elimination are satisfied by the others as long as they are consistent.  Inputs and time can
   change that, as with two belts under one plank; then no motion satisfies all rows, and contacts must change their
   state (docs/theory.md, "Inconsistent constraint rows"). */

/* Return the largest speed along the active rows of contacts of a mode with FSM_MODE_REPEATS, over the speed tolerance.

   `x`: state at `t` (s). */
FSM_LOCAL double fsm_constraint_violation_speed(const struct fsm_run *run, double t, fsm_vector x)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    fsm_vector c = run->state->c;
    int64_t mode = run->state->counters->mode;
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    int64_t n_q = tables->sizes->n_q;
    fsm_vector u = fsm_vector_part(x, n_q, n_q + tables->sizes->n_u);
    double worst = 0.0;
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t code = AT(tables->mode_states, mode, k), flags = tables->contact_flags.at[k];
        if (code == FSM_CONTACT_FREE || (flags & FSM_FLAG_SWITCHED) != 0) {
            continue;
        }
        if ((flags & FSM_FLAG_RIGID) != 0) {
            int64_t row = AT(tables->contact_rows, k, 0);
            worst = fsm_larger(worst, fabs(fsm_row_speed(terms, row, u)) / fsm_speed_tolerance(tables, row));
        }
        if (code == FSM_CONTACT_HELD && AT(tables->contact_rows, k, 1) >= 0) {
            worst = fsm_larger(worst, fsm_slip_speed(tables, terms, k, u) / fsm_slip_tolerance(tables, k));
        }
    }
    return worst;
}
