/* On-line embedding: any active set, worked out at run time from the compiled unconstrained terms.

   What a mode's own kernels do in a fixed order of elimination is done here numerically (docs/theory.md, "On-line
   embedding"): with the rows held, `A u + b = 0`, split into dependent and independent speeds, `u = T u_I + e` and a
   test basis `S` with `SᵀG = 0` give `(SᵀMT) u̇_I = Sᵀ(f - M c)`, Gillespie (2003) eqs (43)-(46) and Figure 2.
   Which rows and which dependent speeds is the *chart*, chosen by chart when a mode is
   first evaluated in a run or its pivot sounds the alarm, never in between.  The work is bounded by the numbers of rows
   and speeds, and nothing is allocated. */

#include "online.h"

static void exchange(double *w, int64_t *chart, int64_t k, int64_t n, int64_t U);

/* Eliminate `rank` rows of `columns` entries, `width` apart, in the order they stand.

   Factors stay below the diagonal, and on it the inverse pivots: a division costs as much as ten products. */
FSM_LOCAL void fsm_eliminate(double *w, int64_t at, int64_t rank, int64_t width, int64_t columns)
{
    for (int64_t k = 0; k < rank; k++) {
        double inverse = 1.0 / w[at + k * width + k];
        w[at + k * width + k] = inverse;
        for (int64_t i = k + 1; i < rank; i++) {
            double factor = w[at + i * width + k] * inverse;
            w[at + i * width + k] = factor;
            if (factor != 0.0) {
                for (int64_t j = k + 1; j < columns; j++) {
                    w[at + i * width + j] -= factor * w[at + k * width + j];
                }
            }
        }
    }
}

/* Solve the eliminated rows for the columns from `first` on, in place. */
FSM_LOCAL void fsm_substitute_back(double *w, int64_t at, int64_t rank, int64_t width, int64_t first, int64_t columns)
{
    for (int64_t back = 0; back < rank; back++) {
        int64_t k = rank - 1 - back;
        double inverse = w[at + k * width + k];
        for (int64_t m = k + 1; m < rank; m++) {
            double factor = w[at + k * width + m];
            if (factor != 0.0) {
                for (int64_t j = first; j < columns; j++) {
                    w[at + k * width + j] -= factor * w[at + m * width + j];
                }
            }
        }
        for (int64_t j = first; j < columns; j++) {
            w[at + k * width + j] *= inverse;
        }
    }
}

/* Eliminate the rows held and recompute the dependent speeds. */
static void eliminate_active_rows(struct fsm_online_mode *o, double t, const double *x, const double *c)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_b = chart[FSM_ONLINE_AT_B], at_x = chart[FSM_ONLINE_AT_X],
            at_P = chart[FSM_ONLINE_AT_P];
    int64_t n_q = o->sizes->n_q, U = o->sizes->n_u, R = o->sizes->n_rows;
    for (int64_t i = 0; i < n_q + U; i++) {
        w[at_x + i] = x[i];
    }
    int64_t rank = chart[FSM_ONLINE_RANK];
    if (rank == 0) {
        return;
    }
    o->programs.at[FSM_ONLINE_ROWS](t, w + at_x, c, w + at_A);
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    int64_t width = U + 2;
    for (int64_t k = 0; k < rank; k++) {
        int64_t row = chart[FSM_ONLINE_LISTS + k];
        for (int64_t j = 0; j < U; j++) {
            w[at_P + k * width + j] = w[at_A + row * U + chart[columns + j]];
        }
        w[at_P + k * width + U] = w[at_b + row];
    }
    fsm_eliminate(w, at_P, rank, width, U + 1);
    fsm_substitute_back(w, at_P, rank, width, rank, U + 1);
    for (int64_t k = 0; k < rank; k++) {
        double speed = -w[at_P + k * width + U];
        for (int64_t j = rank; j < U; j++) {
            speed -= w[at_P + k * width + j] * w[at_x + n_q + chart[columns + j]];
        }
        w[at_x + n_q + chart[columns + k]] = speed;
    }
}

/* Write Gᵀ, speeds in the order of the chart, to `w[out:]`: sliding contacts push off their normals. */
FSM_LOCAL void fsm_force_rows(struct fsm_online_mode *o, int64_t out)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows;
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    for (int64_t k = 0; k < chart[FSM_ONLINE_RANK]; k++) {
        int64_t row = chart[FSM_ONLINE_LISTS + k], contact = chart[FSM_ONLINE_LISTS + R + k];
        for (int64_t j = 0; j < U; j++) {
            w[out + k * U + j] = w[at_A + row * U + chart[columns + j]];
        }
        int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
        for (int64_t i = 0; i < tangents; i++) {
            int64_t tangent = AT(o->contact_rows, contact, 1) + i;
            double ratio = fsm_friction_ratio(o, contact, i);
            for (int64_t j = 0; j < U; j++) {
                w[out + k * U + j] -= ratio * w[at_A + tangent * U + chart[columns + j]];
            }
        }
    }
}

/* Forces of the mode: those of the loads, of compressed contacts, and friction whose size is known. */
static void applied(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_f = chart[FSM_ONLINE_AT_F], at_elastic = chart[FSM_ONLINE_AT_ELASTIC],
            at_force = chart[FSM_ONLINE_AT_FORCE];
    const struct fsm_sizes *s = o->sizes;
    int64_t U = s->n_u;
    for (int64_t i = 0; i < U; i++) {
        w[at_force + i] = w[at_f + i];
    }
    if (chart[FSM_ONLINE_PUSHES] == 0) {
        return;
    }
    int64_t row;
    for (int64_t b = 0; b < chart[FSM_ONLINE_BUSY]; b++) {
        int64_t k = chart[FSM_ONLINE_LISTS + 2 * s->n_rows + U + b];
        int64_t code = o->states.at[k], kind = o->contact_kind.at[k];
        if (kind == FSM_KIND_GAP || kind == FSM_KIND_LOCK) {
            continue;
        }
        double load = 1.0;
        if (kind == FSM_KIND_COMPLIANT) {
            load = w[at_elastic + k];
            row = AT(o->contact_rows, k, 0);
            for (int64_t i = 0; i < U; i++) {
                w[at_force + i] += load * w[at_A + row * U + i];
            }
        }
        int64_t tangents = code >= FSM_CONTACT_SLIDING ? fsm_tangent_count(o, k) : 0;
        for (int64_t part = 0; part < tangents; part++) {
            row = AT(o->contact_rows, k, 1) + part;
            double friction = load * fsm_friction_ratio(o, k, part);
            for (int64_t i = 0; i < U; i++) {
                w[at_force + i] -= friction * w[at_A + row * U + i];
            }
        }
    }
}

/* Write `SᵀMT` and `Sᵀ(f - M c)`; S is in the columns behind the rank of the matrix at `test`. */
static void reduce(struct fsm_online_mode *o, int64_t test, int64_t test_width)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_M = chart[FSM_ONLINE_AT_M], at_P = chart[FSM_ONLINE_AT_P], at_MT = chart[FSM_ONLINE_AT_MT],
            at_mass = chart[FSM_ONLINE_AT_MASS];
    int64_t at_right = chart[FSM_ONLINE_AT_RIGHT], at_force = chart[FSM_ONLINE_AT_FORCE], at_g = chart[FSM_ONLINE_AT_G];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R, width = o->sizes->n_u + 2,
            unheld = o->sizes->n_u - chart[FSM_ONLINE_RANK];
    if (rank == 0) {
        for (int64_t i = 0; i < U * U; i++) {
            w[at_mass + i] = w[at_M + i];
        }
        for (int64_t i = 0; i < U; i++) {
            w[at_right + i] = w[at_force + i];
        }
        return;
    }
    for (int64_t i = 0; i < U; i++) {
        int64_t row = at_M + i * U;
        double total = w[at_force + i];
        for (int64_t k = 0; k < rank; k++) {
            total += w[row + chart[columns + k]] * w[at_P + k * width + U + 1];
        }
        w[at_g + i] = total;
        for (int64_t j = 0; j < unheld; j++) {
            total = w[row + chart[columns + rank + j]];
            for (int64_t k = 0; k < rank; k++) {
                total -= w[row + chart[columns + k]] * w[at_P + k * width + rank + j];
            }
            w[at_MT + i * U + j] = total;
        }
    }
    for (int64_t i = 0; i < unheld; i++) {
        int64_t speed = chart[columns + rank + i];
        for (int64_t j = 0; j < unheld; j++) {
            w[at_mass + i * U + j] = w[at_MT + speed * U + j];
        }
        w[at_right + i] = w[at_g + speed];
        for (int64_t k = 0; k < rank; k++) {
            double weight = w[test + k * test_width + rank + i];
            if (weight != 0.0) {
                int64_t other = chart[columns + k];
                for (int64_t j = 0; j < unheld; j++) {
                    w[at_mass + i * U + j] -= weight * w[at_MT + other * U + j];
                }
                w[at_right + i] -= weight * w[at_g + other];
            }
        }
    }
}

/* Write scales of columns and norms of rows of the reduced equations over MT, which is no longer needed. */
static void weigh(struct fsm_online_mode *o, int64_t n, bool general)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_M = chart[FSM_ONLINE_AT_M], at_MT = chart[FSM_ONLINE_AT_MT], at_mass = chart[FSM_ONLINE_AT_MASS];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    for (int64_t j = 0; j < n; j++) {
        double inertia = w[at_M + chart[FSM_ONLINE_LISTS + 2 * R + rank + j] * (U + 1)];
        w[at_MT + j] = (general && inertia > 0.0) ? 1.0 / sqrt(inertia) : 1.0;
    }
    for (int64_t i = 0; i < n; i++) {
        w[at_MT + U + i] = fabs(w[at_mass + i * U + i]);
        if (general) {
            double total = 0.0;
            for (int64_t j = 0; j < n; j++) {
                double entry = w[at_mass + i * U + j] * w[at_MT + j];
                total += entry * entry;
            }
            w[at_MT + U + i] = sqrt(total);
        }
    }
}

/* Solve the reduced equations into `right`; return the smallest pivot scaled (1 for one equation). */
static double solve_reduced(double *w, int64_t *chart, int64_t n, int64_t U, bool general, bool judge)
{
    int64_t at_MT = chart[FSM_ONLINE_AT_MT], at_mass = chart[FSM_ONLINE_AT_MASS], at_right = chart[FSM_ONLINE_AT_RIGHT];
    double least = 1.0;
    for (int64_t k = 0; k < n; k++) {
        if (general && k + 1 < n) {
            exchange(w, chart, k, n, U);
        }
        double pivot = w[at_mass + k * U + k];
        if (judge) {
            least = fsm_smaller(least, fabs(pivot) * w[at_MT + k] / fsm_larger(w[at_MT + U + k], 1e-300));
        }
        double inverse = 1.0 / pivot;
        w[at_mass + k * U + k] = inverse;
        for (int64_t i = k + 1; i < n; i++) {
            double factor = w[at_mass + i * U + k] * inverse;
            if (factor != 0.0) {
                for (int64_t j = k + 1; j < n; j++) {
                    w[at_mass + i * U + j] -= factor * w[at_mass + k * U + j];
                }
                w[at_right + i] -= factor * w[at_right + k];
            }
        }
    }
    for (int64_t back = 0; back < n; back++) {
        int64_t k = n - 1 - back;
        double total = w[at_right + k];
        for (int64_t j = k + 1; j < n; j++) {
            total -= w[at_mass + k * U + j] * w[at_right + j];
        }
        w[at_right + k] = total * w[at_mass + k * U + k];
    }
    return least;
}

/* Bring the row with the largest entry in column `k` up: friction makes the equations unsymmetric. */
static void exchange(double *w, int64_t *chart, int64_t k, int64_t n, int64_t U)
{
    int64_t at_MT = chart[FSM_ONLINE_AT_MT], at_mass = chart[FSM_ONLINE_AT_MASS], at_right = chart[FSM_ONLINE_AT_RIGHT];
    int64_t best = k;
    for (int64_t i = k + 1; i < n; i++) {
        if (fabs(w[at_mass + i * U + k]) > fabs(w[at_mass + best * U + k])) {
            best = i;
        }
    }
    if (best == k) {
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        fsm_swap_entries(w, at_mass + k * U + j, at_mass + best * U + j);
    }
    fsm_swap_entries(w, at_right + k, at_right + best);
    fsm_swap_entries(w, at_MT + U + k, at_MT + U + best);
}

/* Exchange two entries. */
FSM_LOCAL void fsm_swap_entries(double *array, int64_t i, int64_t j)
{
    double kept = array[i];
    array[i] = array[j];
    array[j] = kept;
}

/* Work out speeds and accelerations of a mode at `AT_X AT_Q_DOT AT_U_DOT` of the workspace.

   Returns
   -------
   float
       The smallest pivot of the reduced equations, scaled, where it is asked for by `judge`; 1 otherwise. */
FSM_LOCAL double fsm_accelerate(struct fsm_online_mode *o, double t, const double *x, const double *c, bool judge)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_q_dot = chart[FSM_ONLINE_AT_Q_DOT], at_gamma = chart[FSM_ONLINE_AT_GAMMA],
            at_x = chart[FSM_ONLINE_AT_X];
    int64_t at_P = chart[FSM_ONLINE_AT_P], at_H = chart[FSM_ONLINE_AT_H], at_right = chart[FSM_ONLINE_AT_RIGHT],
            at_u_dot = chart[FSM_ONLINE_AT_U_DOT];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R, width = U + 2;
    eliminate_active_rows(o, t, x, c);
    if (rank == 0 && chart[FSM_ONLINE_PUSHES] == 1) {
        o->programs.at[FSM_ONLINE_ROWS](t, w + at_x, c, w + at_A);
    }
    o->programs.at[FSM_ONLINE_MOTION](t, w + at_x, c, w + at_q_dot);
    fsm_online_slip_directions(o, c);
    applied(o);
    for (int64_t k = 0; k < rank; k++) {
        w[at_P + k * width + U + 1] = w[at_gamma + chart[FSM_ONLINE_LISTS + k]];
        for (int64_t m = 0; m < k; m++) {
            w[at_P + k * width + U + 1] -= w[at_P + k * width + m] * w[at_P + m * width + U + 1];
        }
    }
    fsm_substitute_back(w, at_P, rank, width, U + 1, U + 2);
    bool general = chart[FSM_ONLINE_SLIDES] == 1;
    int64_t test = at_P, test_width = width;
    if (general) {
        test = at_H;
        test_width = U;
        fsm_force_rows(o, at_H);
        fsm_eliminate(w, at_H, rank, U, U);
        fsm_substitute_back(w, at_H, rank, U, rank, U);
    }
    reduce(o, test, test_width);
    judge = judge && U - rank > 1;
    if (judge) {
        weigh(o, U - rank, general);
    }
    double least = solve_reduced(w, chart, U - rank, U, general, judge);
    for (int64_t j = 0; j < U - rank; j++) {
        w[at_u_dot + chart[columns + rank + j]] = w[at_right + j];
    }
    for (int64_t k = 0; k < rank; k++) {
        double total = -w[at_P + k * width + U + 1];
        for (int64_t j = 0; j < U - rank; j++) {
            total -= w[at_P + k * width + rank + j] * w[at_right + j];
        }
        w[at_u_dot + chart[columns + k]] = total;
    }
    return least;
}
