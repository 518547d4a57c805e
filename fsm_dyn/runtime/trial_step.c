/* A step: Runge-Kutta stages, dense output, implicit methods; projection of its end on the mode's rows. */

#include "elementary.h"
#include "stepping.h"

/* -- Runge-Kutta stages, dense output, steps of implicit methods. */

/* -- Explicit Runge-Kutta methods as data, and one step for all of them; step-size control.

   A step of length `h` from `x` with `s` stages, the derivative at the start given:

       k_0 = x_dot(t),   k_i = f(t + c_i h, x + h sum_j a_ij k_j),   x_1 = x + h sum_i b_i k_i,   k_s = f(t + h, x_1)

   `k_s` comes from the kernel that is evaluated at the end of a step anyway (guards, dependent speeds), and starts
   the next step.  Error estimate and mid-point are further weights over `k_0 .. k_s`. */

// of a step, over the one before
#define SAFETY   0.9
#define SMALLEST 0.2
#define LARGEST  10.0

#define FSM_NO_ERROR 1e-10 // of its tolerance: a step whose error is less is lengthened as far as a step may be
#define FSM_TELLS    1e-5  // times its tolerance: from here on a state, or a rate, tells how long a step may be
#define FSM_FLAT     1e-15 // times its tolerance: a rate up to this is none
#define FSM_SHORT    1e-6  // first step where nothing tells its length, in the mechanism's own unit of time

#define FSM_TOGETHER 4 // sums formed side by side: in one alone each term waits for the last

/* Write `x + h sum_m weights_m k_m` into `out`, (n,); `rates`: the derivatives k_m, (count, n).  The terms of each sum are
   added in the order of the stages. */
FSM_LOCAL void fsm_add_rates(const double *weights, int64_t count, const double *rates, double h, fsm_vector x,
                             double *out)
{
    int64_t n = x.n, j = 0;
    for (; j + FSM_TOGETHER <= n; j += FSM_TOGETHER) {
        double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
        const double *at = rates + j;
        for (int64_t m = 0; m < count; m++, at += n) {
            double weight = weights[m];
            a += weight * at[0];
            b += weight * at[1];
            c += weight * at[2];
            d += weight * at[3];
        }
        out[j] = x.at[j] + h * a;
        out[j + 1] = x.at[j + 1] + h * b;
        out[j + 2] = x.at[j + 2] + h * c;
        out[j + 3] = x.at[j + 3] + h * d;
    }
    for (; j < n; j++) {
        double total = 0.0;
        for (int64_t m = 0; m < count; m++) {
            total += weights[m] * rates[m * n + j];
        }
        out[j] = x.at[j] + h * total;
    }
}

/* Take one step of length `h` (s) from the current state.

   `work->k` holds x_dot there on entry and all stages on return, (stages, n); `work->x_end` is the state at the end,
   `work->y` scratch.  The inputs in the context are overwritten with those at the stages. */
FSM_LOCAL void fsm_runge_kutta_step(const struct fsm_run *run, double h)
{
    const struct fsm_method *method = run->method;
    const struct fsm_state *state = run->state;
    fsm_vector x = state->x, y = run->work->y;
    double t = state->clock->time;
    double *rates = run->work->k.at;
    int64_t n = x.n, stages = method->counts->stages, segment = state->counters->segment;
    bool inputs_vary = fsm_inputs_vary(run->inputs, segment);
    for (int64_t i = 1; i < stages; i++) {
        fsm_add_rates(method->a.at + i * stages, i, rates, h, x, y.at);
        double at = t + method->nodes.at[i] * h;
        if (inputs_vary) {
            fsm_write_inputs(run->inputs, at, segment, y, state->c);
        }
        fsm_rates_of(run->tables, state->counters->mode, at, y.at, state->c.at, rates + i * n);
    }
    fsm_add_rates(method->weights.at, stages, rates, h, x, run->work->x_end.at);
}

/* Write the state at the middle of the trial step of length `h` (s) into `work->x_mid`. */
FSM_LOCAL void fsm_middle_state(const struct fsm_run *run, double h)
{
    int64_t stages = run->method->counts->stages;
    const double *weights = run->method->weights.at + 2 * (stages + 1);
    fsm_add_rates(weights, stages + 1, run->work->k.at, h, run->state->x, run->work->x_mid.at);
}

/* Return the root mean square of the estimated error of the trial step over its tolerance; the options' mask leaves
   states out. */
FSM_LOCAL double fsm_error_norm(const struct fsm_run *run, double h)
{
    const struct fsm_options *options = run->options;
    fsm_vector x = run->state->x, x_end = run->work->x_end;
    int64_t n = x.n, stages = run->method->counts->stages;
    int64_t row = options->mask.n > 1 ? run->state->counters->mode : 0;
    const double *weights = run->method->weights.at + (stages + 1), *rates = run->work->k.at;
    double rtol = options->numbers->rtol;
    double square = 0.0;
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        if (AT(options->mask, row, j) == 0) {
            continue;
        }
        double total = 0.0;
        for (int64_t m = 0; m < stages + 1; m++) {
            total += weights[m] * rates[m * n + j];
        }
        double ratio = h * total / (options->atol.at[j] + rtol * fsm_larger(fabs(x.at[j]), fabs(x_end.at[j])));
        square += ratio * ratio;
        count++;
    }
    return sqrt(square / (double)fsm_most(count, 1));
}

/* Whether a step of fixed length `h` (s) tells nothing of where the motion goes.

   Derivatives at its end, before and after its last stage, then differ by more than all of the state and the
   mechanism's own units: the method is not stable at this length. */
FSM_LOCAL bool fsm_step_is_too_long(const struct fsm_run *run, double h)
{
    fsm_vector x = run->state->x, x_end = run->work->x_end, unit = run->tables->state_unit;
    const double *last = run->work->k.at + (run->method->counts->stages - 1) * x.n, *end = last + x.n;
    for (int64_t j = 0; j < unit.n; j++) {
        double size = unit.at[j] + fsm_smaller(fabs(x.at[j]), fabs(x_end.at[j]));
        if (h * fabs(end[j] - last[j]) > size) {
            return true;
        }
    }
    return false;
}

/* Return by how much to change the step after an accepted one (PI control).

   Hairer, Wanner, *Solving Ordinary Differential Equations II*, section IV.2, with beta = 0.4/order. */
FSM_LOCAL double fsm_step_factor(double error, double error_before, int64_t order)
{
    if (error < FSM_NO_ERROR) {
        return LARGEST;
    }
    double exponent = 0.4 * fsm_log(fsm_larger(error_before, 0.0001)) - 0.7 * fsm_log(error);
    return fsm_smaller(LARGEST, fsm_larger(SMALLEST, SAFETY * fsm_exp(exponent / (double)order)));
}

/* Return by how much to shorten a step whose error was too large. */
FSM_LOCAL double fsm_rejection_factor(double error, int64_t order)
{
    return fsm_larger(SMALLEST, SAFETY * fsm_pow(error, -1.0 / (double)order));
}

/* Return a first step length (s), `longest` at most, from the sizes of the state, its derivative and the change of that.

   `work->y` and `work->k` are overwritten.  Hairer, Norsett, Wanner, *Solving Ordinary Differential Equations I*,
   section II.4. */
FSM_LOCAL double fsm_first_step(const struct fsm_run *run, double longest)
{
    const struct fsm_state *state = run->state;
    fsm_vector x = state->x, x_dot = state->x_dot, y = run->work->y, k = run->work->k, atol = run->options->atol;
    double rtol = run->options->numbers->rtol;
    int64_t n = x.n;
    double d0 = 0.0, d1 = 0.0, d2 = 0.0;
    for (int64_t j = 0; j < n; j++) {
        double scale = atol.at[j] + rtol * fabs(x.at[j]);
        d0 += fsm_square(x.at[j] / scale);
        d1 += fsm_square(x_dot.at[j] / scale);
    }
    d0 = sqrt(d0 / (double)n);
    d1 = sqrt(d1 / (double)n);
    double unit = run->tables->tolerances->time_scale, h0 = FSM_SHORT * unit;
    if (d0 >= FSM_TELLS && d1 * unit >= FSM_TELLS) {
        h0 = 0.01 * d0 / d1;
    }
    h0 = fsm_smaller(h0, longest);
    for (int64_t j = 0; j < n; j++) {
        y.at[j] = x.at[j] + h0 * x_dot.at[j];
    }
    fsm_rates_of(run->tables, state->counters->mode, state->clock->time + h0, y.at, state->c.at, k.at);
    for (int64_t j = 0; j < n; j++) {
        d2 += fsm_square((k.at[j] - x_dot.at[j]) / (atol.at[j] + rtol * fabs(x.at[j])));
    }
    d2 = sqrt(d2 / (double)n) / h0;
    double steepest = fsm_larger(d1 * unit, d2 * unit * unit), h1;
    if (steepest <= FSM_FLAT) {
        h1 = fsm_larger(FSM_SHORT * unit, h0 * 0.001);
    } else {
        h1 = fsm_pow(0.01 / steepest, 1.0 / (double)run->method->counts->order) * unit;
    }
    double h = fsm_smaller(100.0 * h0, h1);
    return fsm_is_finite(h) ? fsm_smaller(h, longest) : fsm_smaller(h0, longest);
}

/* -- Dense output of implicit methods, along which guards are watched.

   The step of an implicit method is taken by a solver outside.  What the runtime then does with its dense output is what it
   does with a tableau: trial steps of any length, their ends projected, guards known by value and slope at start, middle
   and end.  A trial step is read off the polynomial instead of being taken. */

/* Write the state at `t` on the dense output into `x`. */
FSM_LOCAL void fsm_dense_state(const struct fsm_method *method, double t, fsm_vector x)
{
    int64_t n = x.n;
    double s = (t - method->dense.at[FSM_DENSE_END]) / method->dense.at[FSM_DENSE_LENGTH];
    int64_t degree = method->counts->degree;
    for (int64_t j = 0; j < n; j++) {
        double total = method->dense.at[FSM_DENSE_COEFFICIENTS + degree * n + j];
        for (int64_t d = degree - 1; d > -1; d--) {
            total = total * s + method->dense.at[FSM_DENSE_COEFFICIENTS + d * n + j];
        }
        x.at[j] = total;
    }
}

/* -- Steps of implicit methods for stiff models, which a solver outside takes.

   Its steps are read off their dense output (trial_step.c) and followed as those of an explicit method are: guards are
   watched and located by the same functions, and transitions are the same. */

/* Do one part of an implicit step.

   `what`: FSM_SERVE_DERIVATIVE writes x_dot at `t` and `work->y` into `work->k`; FSM_SERVE_FOLLOW accepts the dense output
   up to `t`, to the next event, or as far as guards are known, where a step must end at `target` (s); FSM_SERVE_CHART
   changes to a better chart; FSM_SERVE_LOOK looks for change points ahead of a step of length `target` (s), and writes
   the length that keeps clear of them into `work->y.at[0]`. */
FSM_API enum fsm_status fsm_implicit_step(const struct fsm_run *run, int64_t what, double t, double target)
{
    switch (what) {
    case FSM_SERVE_DERIVATIVE: {
        struct fsm_state *state = run->state;
        struct fsm_work *work = run->work;
        fsm_update_inputs(run->inputs, t, state->counters->segment, work->y, state->c);
        if (state->rank->lands != 0.0) {
            fsm_land(run, t, work->y, FSM_INFINITY);
        }
        state->spent.at[state->counters->mode]++;
        fsm_rates_of(run->tables, state->counters->mode, t, work->y.at, state->c.at, work->k.at);
        return FSM_CONTINUE;
    }
    case FSM_SERVE_CHART:
        return fsm_choose_chart(run);
    case FSM_SERVE_LOOK:
        return fsm_look(run, target, &run->work->y.at[0]);
    default: {
        enum fsm_status status = fsm_find_and_accept(run, t, target);
        fsm_look_at_far_here(run);
        return status;
    }
    }
}

/* -- Projection of drift, landing on rows, consistency of constraints. */

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
    const struct fsm_terms *terms = fsm_terms_at(run, t, x);
    double tolerance = tables->tolerances->projection;
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
    int64_t mode = run->state->counters->mode;
    const struct fsm_terms *terms = fsm_terms_at(run, run->state->clock->time, run->state->x);
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
    int64_t mode = run->state->counters->mode;
    const struct fsm_terms *terms = fsm_terms_at(run, t, x);
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

/* Whether steps of the mode, embedded online, are proved without the slopes that take differences: they prove nothing. */
FSM_LOCAL bool fsm_proves_without_differences(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    int64_t mode = run->state->counters->mode, first = tables->mode_guard_start.at[mode];
    bool proves = fsm_is_online(tables, mode) && fsm_has_enclosures(tables, mode);
    for (int64_t j = 0; proves && j < fsm_guard_count(tables, mode); j++) {
        proves = tables->guard_enclosure.at[first + j] != -1 || fsm_knows_slope(tables, mode, j);
    }
    return proves;
}

#define FSM_FALLS 0.5 // part of its value at the start: a guard below it falls fast, such as a force at the end of a face

/* Whether a guard whose slope takes differences is close to zero, beyond it, or falls fast, in the middle or at the end of the
   trial step. */
FSM_LOCAL bool fsm_differences_matter(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    const struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, first = tables->mode_guard_start.at[mode], most = tables->sizes->max_guards;
    int64_t at = state->x.n + tables->sizes->n_u + 1;
    for (int64_t j = 0; j < fsm_guard_count(tables, mode); j++) {
        double sign = state->armed.at[j] == FSM_GUARD_WAITING ? -1.0 : 1.0;
        double small = fsm_larger(fsm_guard_gap_tolerance(tables, first + j),
                                  FSM_PROOF_RESTING * state->guards.at[2 * most + j]);
        small = fsm_larger(small, FSM_FALLS * sign * state->guards.at[j]);
        double middle = sign * run->work->full_mid.at[at + j], end = sign * run->work->full_end.at[at + j];
        if (!(middle > small && end > small) && !fsm_knows_slope(tables, mode, j)) {
            return true;
        }
    }
    return false;
}
