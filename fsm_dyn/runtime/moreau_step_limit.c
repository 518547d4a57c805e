/* Limit on the time step with compressed compliant contacts (docs/theory.md, "Time stepping"). */

#include "time_stepping.h"

#define FSM_RADIANS  1.0
#define FSM_RELATIVE 1e-6 // of the depth, or of the speed, by which forces are differenced

/* The compressed contacts at the middle of a step, and how their forces respond to each other's motion. */
struct compression {
    fsm_indices contact; // (n,)
    fsm_indices rows;    // (n,)
    fsm_vector force;    // (n,): (N)
    fsm_vector stiff;    // (n,): row sums of |S| (1/s²)
    fsm_vector damped;   // (n,): row sums of |D| (1/s)
};

static struct compression list_compressed(const struct fsm_time_step *step)
{
    int64_t count = step->free_side.n, n = 0;
    fsm_indices contact = fsm_arena_indices(step->arena, count), rows = fsm_arena_indices(step->arena, count);
    for (int64_t k = 0; k < count; k++) {
        if (fsm_presses(step, k)) {
            contact.at[n] = k;
            rows.at[n++] = AT(step->tables->contact_rows, k, 0);
        }
    }
    struct compression compression = {.contact = fsm_indices_first(contact, n),
                                      .rows = fsm_indices_first(rows, n),
                                      .force = fsm_arena_vector(step->arena, n),
                                      .stiff = fsm_arena_vector(step->arena, n),
                                      .damped = fsm_arena_vector(step->arena, n)};
    for (int64_t i = 0; i < n; i++) {
        compression.force.at[i] = step->terms->elastic.at[contact.at[i]];
    }
    return compression;
}

/* Evaluate the terms at `x` and add the changes of the forces, divided by `by`, to the row sums `sums` (n,). */
static void add_differences(const struct fsm_time_step *step, const struct compression *compression, fsm_vector x,
                            double by, fsm_vector sums)
{
    step->tables->terms.at[0](step->middle_time, x.at, step->context.at, step->terms->whole.at);
    for (int64_t i = 0; i < sums.n; i++) {
        double force = step->terms->elastic.at[compression->contact.at[i]];
        sums.at[i] += fabs((force - compression->force.at[i]) / by);
    }
}

/* Return the longest step (s) that resolves the motion of the compressed contacts; inf where there is none.

   With `S_ij = -dF_i / dp_j` for the force F_i of contact i and a displacement along the response of the system to a
   unit force of contact j, and `D` likewise for speeds, the largest row sums bound the square of the frequency,
   `w² <= max_i sum_j |S_ij|`, and the damping, `d <= max_i sum_j |D_ij|` (Gershgorin).  The step may last FSM_RADIANS of
   the faster of the two motions, `h (d/2 + sqrt(d²/4 + w²)) <= FSM_RADIANS`.

   The terms are those at the middle of the step, before and after. */
FSM_LOCAL double fsm_longest_step(const struct fsm_time_step *step, const struct fsm_bilateral_system *bilateral)
{
    const struct fsm_terms *terms = step->terms;
    int64_t n_q = step->tables->sizes->n_q, n_u = step->u.n;
    fsm_vector x = step->middle;
    fsm_mark top = fsm_arena_mark(step->arena);
    struct compression compression = list_compressed(step);
    int64_t n = compression.rows.n;
    if (n == 0) {
        fsm_arena_release(step->arena, top);
        return FSM_INFINITY;
    }
    struct fsm_response response = fsm_unit_responses(step->arena, terms, bilateral, compression.rows, n_u);
    fsm_vector depth = fsm_arena_vector(step->arena, n), moved = fsm_arena_copy(step->arena, x);
    fsm_matrix W = fsm_arena_matrix(step->arena, n_q, n_u);
    for (int64_t i = 0; i < n; i++) {
        depth.at[i] = -terms->residual.at[compression.rows.at[i]];
    }
    for (int64_t i = 0; i < n_q; i++) {
        fsm_put(fsm_row(W, i), fsm_row_part(terms->W, i, n_u));
    }
    for (int64_t j = 0; j < n; j++) {
        double yielding = AT(response.K, j, j);
        if (yielding <= 0.0) {
            continue;
        }
        double by = -FSM_RELATIVE * depth.at[j] / yielding; // deeper, so that the contact stays compressed
        for (int64_t i = 0; i < n_q; i++) {
            for (int64_t m = 0; m < n_u; m++) {
                moved.at[i] += by * AT(W, i, m) * AT(response.motions, j, m);
            }
        }
        add_differences(step, &compression, moved, by, compression.stiff);
        fsm_put(moved, x);
        by = -FSM_RELATIVE / yielding;
        for (int64_t m = 0; m < n_u; m++) {
            moved.at[n_q + m] += by * AT(response.motions, j, m);
        }
        add_differences(step, &compression, moved, by, compression.damped);
        fsm_put(moved, x);
    }
    double square = 0.0, damping = 0.0;
    for (int64_t i = 0; i < n; i++) {
        square = fsm_larger(square, compression.stiff.at[i]);
        damping = fsm_larger(damping, compression.damped.at[i]);
    }
    step->tables->terms.at[0](step->middle_time, x.at, step->context.at, terms->whole.at);
    fsm_arena_release(step->arena, top);
    double rate = 0.5 * damping + sqrt(0.25 * damping * damping + square);
    return rate > 0.0 ? FSM_RADIANS / rate : FSM_INFINITY;
}
