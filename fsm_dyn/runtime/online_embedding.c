/* Embedding of a mode online. */

#include "online.h"
#include "elementary.h"

/* -- Elimination and the reduced equations of a mode embedded online, for mechanisms of few speeds.

   Full loops over a few entries cost less than lists of those that can differ from zero (online_pivoting.c).  The operations
   are the same, in the same order, and those with a zero beside them. */

/* Eliminate `rank` rows of `columns` entries, `width` apart, in the order they stand.

   Factors stay below the diagonal, and on it the inverse pivots: a division costs as much as ten products. */
FSM_LOCAL void fsm_eliminate_few(double *w, int64_t at, int64_t rank, int64_t width, int64_t columns)
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
FSM_LOCAL void fsm_substitute_back_few(double *w, int64_t at, int64_t rank, int64_t width, int64_t first,
                                       int64_t columns)
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

/* Write `SᵀMT` and `Sᵀ(f - M c)`; S is in the columns behind the rank of the matrix at `test`. */
FSM_LOCAL void fsm_reduce_few(struct fsm_online_mode *o, int64_t test, int64_t test_width)
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

/* Solve the reduced equations into `right`; return the smallest pivot scaled (1 for one equation). */
FSM_LOCAL double fsm_solve_reduced_few(struct fsm_online_mode *o, int64_t n, bool general, bool judge)
{
    double *w = o->room.at;
    int64_t *chart = o->chart.at, U = o->sizes->n_u;
    int64_t at_scales = chart[FSM_ONLINE_AT_SCALES], at_mass = chart[FSM_ONLINE_AT_MASS],
            at_right = chart[FSM_ONLINE_AT_RIGHT];
    double least = 1.0;
    for (int64_t k = 0; k < n; k++) {
        if (general && k + 1 < n) {
            fsm_exchange_reduced(w, chart, k, n, U);
        }
        double pivot = w[at_mass + k * U + k];
        if (judge) {
            least = fsm_smaller(least, fabs(pivot) * w[at_scales + k] / fsm_larger(w[at_scales + U + k], FSM_TINIEST));
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

/* -- The reduced equations of a mode embedded online, one for each independent speed: weighed and solved. */

/* Write scales of columns and norms of rows of the reduced equations. */
FSM_LOCAL void fsm_weigh(struct fsm_online_mode *o, int64_t n, bool general)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_M = chart[FSM_ONLINE_AT_M], at_scales = chart[FSM_ONLINE_AT_SCALES], at_mass = chart[FSM_ONLINE_AT_MASS];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    for (int64_t j = 0; j < n; j++) {
        double inertia = w[at_M + chart[FSM_ONLINE_LISTS + 2 * R + rank + j] * (U + 1)];
        w[at_scales + j] = (general && inertia > 0.0) ? 1.0 / sqrt(inertia) : 1.0;
    }
    for (int64_t i = 0; i < n; i++) {
        w[at_scales + U + i] = fabs(w[at_mass + i * U + i]);
        if (general) {
            double total = 0.0;
            for (int64_t e = o->reduced_begin.at[i]; e < o->reduced_begin.at[i + 1]; e++) {
                int64_t j = o->reduced_columns.at[e];
                double entry = w[at_mass + i * U + j] * w[at_scales + j];
                total += entry * entry;
            }
            w[at_scales + U + i] = sqrt(total);
        }
    }
}

/* Bring the row with the largest entry in column `k` up: friction makes the equations unsymmetric. */
FSM_LOCAL void fsm_exchange_reduced(double *w, int64_t *chart, int64_t k, int64_t n, int64_t U)
{
    int64_t at_scales = chart[FSM_ONLINE_AT_SCALES], at_mass = chart[FSM_ONLINE_AT_MASS],
            at_right = chart[FSM_ONLINE_AT_RIGHT];
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
    fsm_swap_entries(w, at_scales + U + k, at_scales + U + best);
}

/* Eliminate from row `i` of the reduced equations what stands before its diagonal. */
static void eliminate_reduced_row(struct fsm_online_mode *o, int64_t i)
{
    double *w = o->room.at, *mass = w + o->chart.at[FSM_ONLINE_AT_MASS], *right = w + o->chart.at[FSM_ONLINE_AT_RIGHT];
    const int64_t *begin = o->reduced_begin.at, *behind = o->reduced_behind.at, *columns = o->reduced_columns.at;
    int64_t U = o->sizes->n_u;
    for (int64_t e = begin[i]; e < behind[i] - 1; e++) {
        int64_t k = columns[e];
        double factor = mass[i * U + k] * mass[k * U + k];
        if (factor == 0.0) {
            continue;
        }
        for (int64_t j = behind[k]; j < begin[k + 1]; j++) {
            mass[i * U + columns[j]] -= factor * mass[k * U + columns[j]];
        }
        right[i] -= factor * right[k];
    }
}

/* Eliminate column `k` of the reduced equations, whose rows were exchanged, from the rows below. */
static void eliminate_reduced_column(struct fsm_online_mode *o, int64_t k, int64_t n)
{
    double *w = o->room.at, *mass = w + o->chart.at[FSM_ONLINE_AT_MASS], *right = w + o->chart.at[FSM_ONLINE_AT_RIGHT];
    const int64_t *columns = o->reduced_columns.at;
    int64_t U = o->sizes->n_u;
    for (int64_t i = k + 1; i < n; i++) {
        double factor = mass[i * U + k] * mass[k * U + k];
        if (factor == 0.0) {
            continue;
        }
        for (int64_t j = o->reduced_behind.at[k]; j < o->reduced_begin.at[k + 1]; j++) {
            mass[i * U + columns[j]] -= factor * mass[k * U + columns[j]];
        }
        right[i] -= factor * right[k];
    }
}

/* Solve the reduced equations into `right`; return the smallest pivot scaled (1 for one equation). */
FSM_LOCAL double fsm_solve_reduced(struct fsm_online_mode *o, int64_t n, bool general, bool judge)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_scales = chart[FSM_ONLINE_AT_SCALES], at_mass = chart[FSM_ONLINE_AT_MASS],
            at_right = chart[FSM_ONLINE_AT_RIGHT], U = o->sizes->n_u;
    double least = 1.0;
    if (U <= FSM_FEW_SPEEDS) {
        return fsm_solve_reduced_few(o, n, general, judge);
    }
    for (int64_t k = 0; k < n; k++) {
        if (general && k + 1 < n) {
            fsm_exchange_reduced(w, chart, k, n, U);
        } else if (!general) {
            eliminate_reduced_row(o, k);
        }
        double pivot = w[at_mass + k * U + k];
        if (judge) {
            least = fsm_smaller(least, fabs(pivot) * w[at_scales + k] / fsm_larger(w[at_scales + U + k], FSM_TINIEST));
        }
        w[at_mass + k * U + k] = 1.0 / pivot;
        if (general) {
            eliminate_reduced_column(o, k, n);
        }
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        double total = w[at_right + k];
        for (int64_t e = o->reduced_behind.at[k]; e < o->reduced_begin.at[k + 1]; e++) {
            int64_t j = o->reduced_columns.at[e];
            total -= w[at_mass + k * U + j] * w[at_right + j];
        }
        w[at_right + k] = total * w[at_mass + k * U + k];
    }
    return least;
}

/* -- Online embedding: any active set, worked out at run time from the compiled unconstrained terms.

   What a mode's own kernels do in a fixed order of elimination is done here numerically (docs/theory.md, "Online
   embedding"): with the rows held, `A u + b = 0`, split into dependent and independent speeds, `u = T u_I + e` and a
   test basis `S` with `SᵀG = 0` give `(SᵀMT) u̇_I = Sᵀ(f - M c)`, Gillespie (2003) eqs (43)-(46) and Figure 2. Which
   rows and which dependent speeds is the *chart*, chosen by chart when a mode is first evaluated in a run or its pivot
   falls below the chart threshold, never in between.  The work is bounded by the numbers of rows and speeds, and
   nothing is allocated. */

/* Eliminate the rows held, in the order they stand, with one entry more at column `extra` if that is not below zero.

   Factors stay below the diagonal, and on it the inverse pivots: a division costs as much as ten products. */
static void eliminate(const struct fsm_online_mode *o, double *rows, int64_t width, int64_t extra)
{
    const int64_t *begin = o->held_begin.at, *behind = o->held_behind.at, *columns = o->held_columns.at;
    int64_t rank = o->chart.at[FSM_ONLINE_RANK], U = o->sizes->n_u;
    if (U <= FSM_FEW_SPEEDS) {
        fsm_eliminate_few(rows, 0, rank, width, extra >= 0 ? U + 1 : U);
        return;
    }
    for (int64_t i = 0; i < rank; i++) {
        double *row = rows + i * width;
        for (int64_t e = begin[i]; e < behind[i] - 1; e++) {
            int64_t k = columns[e];
            const double *pivot = rows + k * width;
            double factor = row[k] * pivot[k];
            row[k] = factor;
            if (factor == 0.0) {
                continue;
            }
            for (int64_t j = behind[k]; j < begin[k + 1]; j++) {
                row[columns[j]] -= factor * pivot[columns[j]];
            }
            if (extra >= 0) {
                row[extra] -= factor * pivot[extra];
            }
        }
        row[i] = 1.0 / row[i];
    }
}

/* Solve the eliminated rows for the columns of independent speeds and column `extra` if that is not below zero. */
static void substitute_back(const struct fsm_online_mode *o, double *rows, int64_t width, int64_t extra)
{
    const int64_t *begin = o->held_begin.at, *rest = o->held_rest.at, *columns = o->held_columns.at;
    int64_t rank = o->chart.at[FSM_ONLINE_RANK], U = o->sizes->n_u;
    if (U <= FSM_FEW_SPEEDS) {
        fsm_substitute_back_few(rows, 0, rank, width, rank, extra >= 0 ? U + 1 : U);
        return;
    }
    for (int64_t k = rank - 1; k >= 0; k--) {
        double *row = rows + k * width;
        double inverse = row[k];
        for (int64_t e = o->held_behind.at[k]; e < rest[k]; e++) {
            int64_t m = columns[e];
            const double *known = rows + m * width;
            double factor = row[m];
            if (factor == 0.0) {
                continue;
            }
            for (int64_t j = rest[m]; j < begin[m + 1]; j++) {
                row[columns[j]] -= factor * known[columns[j]];
            }
            if (extra >= 0) {
                row[extra] -= factor * known[extra];
            }
        }
        for (int64_t j = rest[k]; j < begin[k + 1]; j++) {
            row[columns[j]] *= inverse;
        }
        if (extra >= 0) {
            row[extra] *= inverse;
        }
    }
}

/* Eliminate the rows held and recompute the dependent speeds. */
FSM_LOCAL void fsm_eliminate_held_rows(struct fsm_online_mode *o, double t, const double *x, const double *c)
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
    const int64_t *speeds = chart + FSM_ONLINE_LISTS + 2 * R, *columns = o->held_columns.at;
    int64_t width = U + 2;
    for (int64_t k = 0; k < rank; k++) {
        int64_t row = chart[FSM_ONLINE_LISTS + k];
        for (int64_t e = o->held_begin.at[k]; e < o->held_begin.at[k + 1]; e++) {
            w[at_P + k * width + columns[e]] = w[at_A + row * U + speeds[columns[e]]];
        }
        w[at_P + k * width + U] = w[at_b + row];
    }
    eliminate(o, w + at_P, width, U);
    substitute_back(o, w + at_P, width, U);
    for (int64_t k = 0; k < rank; k++) {
        double speed = -w[at_P + k * width + U];
        for (int64_t e = o->held_rest.at[k]; e < o->held_begin.at[k + 1]; e++) {
            speed -= w[at_P + k * width + columns[e]] * w[at_x + n_q + speeds[columns[e]]];
        }
        w[at_x + n_q + speeds[k]] = speed;
    }
}

/* Write Gᵀ of the rows held, speeds in the order of the chart, to `w[out:]`: sliding contacts push off their normals,
   and what shares the load pushes with the rows kept. */
FSM_LOCAL void fsm_force_rows(struct fsm_online_mode *o, int64_t out)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows;
    const int64_t *speeds = chart + FSM_ONLINE_LISTS + 2 * R, *columns = o->held_columns.at;
    for (int64_t k = 0; k < chart[FSM_ONLINE_RANK]; k++) {
        int64_t row = at_A + chart[FSM_ONLINE_LISTS + k] * U, contact = chart[FSM_ONLINE_LISTS + R + k];
        int64_t first = o->held_begin.at[k], last = o->held_begin.at[k + 1];
        for (int64_t e = first; e < last; e++) {
            w[out + k * U + columns[e]] = w[row + speeds[columns[e]]];
        }
        int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
        for (int64_t i = 0; i < tangents; i++) {
            int64_t tangent = at_A + (AT(o->contact_rows, contact, 1) + i) * U;
            double ratio = fsm_friction_ratio(o, contact, i);
            for (int64_t e = first; e < last; e++) {
                w[out + k * U + columns[e]] -= ratio * w[tangent + speeds[columns[e]]];
            }
        }
        for (int64_t e = first; e < last && chart[FSM_ONLINE_SHARED] > 0; e++) {
            w[out + k * U + columns[e]] += fsm_shared_entry(o, k, speeds[columns[e]]);
        }
    }
}

/* Add `load` times row `row` of A to the forces of the mode. */
static void add_row(struct fsm_online_mode *o, int64_t row, double load)
{
    double *w = o->room.at, *force = w + o->chart.at[FSM_ONLINE_AT_FORCE];
    const double *entries = w + o->chart.at[FSM_ONLINE_AT_A] + row * o->sizes->n_u;
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        int64_t i = o->row_columns.at[e];
        force[i] += load * entries[i];
    }
}

/* Forces of the mode: those of the loads, of compressed contacts, and friction whose size is known. */
static void applied(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_f = chart[FSM_ONLINE_AT_F], at_elastic = chart[FSM_ONLINE_AT_ELASTIC],
            at_force = chart[FSM_ONLINE_AT_FORCE];
    const struct fsm_sizes *s = o->sizes;
    int64_t U = s->n_u;
    for (int64_t i = 0; i < U; i++) {
        w[at_force + i] = w[at_f + i];
    }
    if (chart[FSM_ONLINE_PUSHES] == 0) {
        return;
    }
    for (int64_t b = 0; b < chart[FSM_ONLINE_BUSY]; b++) {
        int64_t k = chart[FSM_ONLINE_LISTS + 2 * s->n_rows + U + b];
        int64_t code = o->states.at[k], flags = o->contact_flags.at[k];
        if ((flags & FSM_FLAG_RIGID) != 0 || (flags & FSM_FLAG_SWITCHED) != 0) {
            continue;
        }
        double load = 1.0;
        if ((flags & FSM_FLAG_COMPLIANT) != 0) {
            load = w[at_elastic + k];
            add_row(o, AT(o->contact_rows, k, 0), load);
        }
        int64_t tangents = code >= FSM_CONTACT_SLIDING ? fsm_tangent_count(o, k) : 0;
        for (int64_t part = 0; part < tangents; part++) {
            add_row(o, AT(o->contact_rows, k, 1) + part, -(load * fsm_friction_ratio(o, k, part)));
        }
    }
}

/* Write row `i` of `M T` and of `f - M c`, and where no rows are held those of M and f. */
static void move_row(struct fsm_online_mode *o, int64_t i)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t U = o->sizes->n_u, rank = chart[FSM_ONLINE_RANK], width = U + 2;
    const int64_t *speeds = chart + FSM_ONLINE_LISTS + 2 * o->sizes->n_rows, *columns = o->held_columns.at;
    const double *mass = w + chart[FSM_ONLINE_AT_M] + i * U;
    double *moved = w + chart[FSM_ONLINE_AT_MT] + i * U;
    double total = w[chart[FSM_ONLINE_AT_FORCE] + i];
    for (int64_t e = o->moved_begin.at[i]; e < o->moved_begin.at[i + 1]; e++) {
        moved[o->moved_columns.at[e]] = mass[speeds[rank + o->moved_columns.at[e]]];
    }
    for (int64_t e = o->tied_begin.at[i]; e < o->tied_begin.at[i + 1]; e++) {
        int64_t k = o->tied_columns.at[e];
        const double *held = w + chart[FSM_ONLINE_AT_P] + k * width;
        double inertia = mass[speeds[k]];
        total += inertia * held[U + 1];
        for (int64_t j = o->held_rest.at[k]; j < o->held_begin.at[k + 1]; j++) {
            moved[columns[j] - rank] -= inertia * held[columns[j]];
        }
    }
    w[chart[FSM_ONLINE_AT_G] + i] = total;
}

/* Write `SᵀMT` and `Sᵀ(f - M c)`; S is in the columns behind the rank of the matrix at `test`. */
static void reduce(struct fsm_online_mode *o, int64_t test, int64_t test_width)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_MT = chart[FSM_ONLINE_AT_MT], at_mass = chart[FSM_ONLINE_AT_MASS];
    int64_t at_right = chart[FSM_ONLINE_AT_RIGHT], at_g = chart[FSM_ONLINE_AT_G];
    int64_t U = o->sizes->n_u, rank = chart[FSM_ONLINE_RANK];
    const int64_t *speeds = chart + FSM_ONLINE_LISTS + 2 * o->sizes->n_rows;
    if (U <= FSM_FEW_SPEEDS) {
        fsm_reduce_few(o, test, test_width);
        return;
    }
    for (int64_t i = 0; i < U; i++) {
        move_row(o, i);
    }
    for (int64_t i = 0; i < U - rank; i++) {
        int64_t speed = speeds[rank + i];
        for (int64_t e = o->reduced_begin.at[i]; e < o->reduced_begin.at[i + 1]; e++) {
            int64_t j = o->reduced_columns.at[e];
            w[at_mass + i * U + j] = w[at_MT + speed * U + j];
        }
        w[at_right + i] = w[at_g + speed];
    }
    for (int64_t k = 0; k < rank; k++) {
        int64_t other = speeds[k];
        for (int64_t e = o->held_rest.at[k]; e < o->held_begin.at[k + 1]; e++) {
            int64_t column = o->held_columns.at[e], i = column - rank;
            double weight = w[test + k * test_width + column];
            if (weight == 0.0) {
                continue;
            }
            for (int64_t m = o->moved_begin.at[other]; m < o->moved_begin.at[other + 1]; m++) {
                int64_t j = o->moved_columns.at[m];
                w[at_mass + i * U + j] -= weight * w[at_MT + other * U + j];
            }
            w[at_right + i] -= weight * w[at_g + other];
        }
    }
}

/* Exchange two entries. */
FSM_LOCAL void fsm_swap_entries(double *array, int64_t i, int64_t j)
{
    double kept = array[i];
    array[i] = array[j];
    array[j] = kept;
}

/* Work out the accelerations at `AT_U_DOT` from the terms and slip directions in the workspace; returns the smallest
   pivot as fsm_accelerate. */
static double solve_accelerations(struct fsm_online_mode *o, bool judge)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_gamma = chart[FSM_ONLINE_AT_GAMMA], at_P = chart[FSM_ONLINE_AT_P], at_H = chart[FSM_ONLINE_AT_H],
            at_right = chart[FSM_ONLINE_AT_RIGHT],
            at_u_dot = chart[FSM_ONLINE_AT_U_DOT];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R, width = U + 2;
    applied(o);
    const int64_t *lists = o->held_columns.at;
    for (int64_t k = 0; k < rank; k++) {
        w[at_P + k * width + U + 1] = w[at_gamma + chart[FSM_ONLINE_LISTS + k]];
        for (int64_t e = o->held_begin.at[k]; e < o->held_behind.at[k] - 1; e++) {
            int64_t m = lists[e];
            w[at_P + k * width + U + 1] -= w[at_P + k * width + m] * w[at_P + m * width + U + 1];
        }
    }
    for (int64_t k = rank - 1; k >= 0; k--) {
        double *row = w + at_P + k * width;
        for (int64_t e = o->held_behind.at[k]; e < o->held_rest.at[k]; e++) {
            row[U + 1] -= row[lists[e]] * w[at_P + lists[e] * width + U + 1];
        }
        row[U + 1] *= row[k];
    }
    bool general = chart[FSM_ONLINE_SLIDES] == 1;
    int64_t test = at_P, test_width = width;
    if (general) {
        test = at_H;
        test_width = U;
        fsm_online_shares(o);
        fsm_force_rows(o, at_H);
        eliminate(o, w + at_H, U, -1);
        substitute_back(o, w + at_H, U, -1);
    }
    reduce(o, test, test_width);
    judge = judge && U - rank > 1;
    if (judge) {
        fsm_weigh(o, U - rank, general);
    }
    double least = fsm_solve_reduced(o, U - rank, general, judge);
    for (int64_t j = 0; j < U - rank; j++) {
        w[at_u_dot + chart[columns + rank + j]] = w[at_right + j];
    }
    for (int64_t k = 0; k < rank; k++) {
        double total = -w[at_P + k * width + U + 1];
        for (int64_t e = o->held_rest.at[k]; e < o->held_begin.at[k + 1]; e++) {
            total -= w[at_P + k * width + lists[e]] * w[at_right + lists[e] - rank];
        }
        w[at_u_dot + chart[columns + k]] = total;
    }
    return least;
}

/* Whether contact `k` is a bearing that slides. */
static bool slides_in_bearing(const struct fsm_online_mode *o, int64_t k)
{
    return (o->contact_flags.at[k] & FSM_FLAG_LOADED) != 0 && o->states.at[k] >= FSM_CONTACT_SLIDING;
}

/* Return the load of a bearing, from the multipliers in the workspace. */
FSM_LOCAL double fsm_online_load(const struct fsm_online_mode *o, int64_t k)
{
    const double *multipliers = o->room.at + o->chart.at[FSM_ONLINE_AT_MULTIPLIERS];
    int64_t first = AT(o->contact_rows, k, 2), second = AT(o->contact_rows, k, 3);
    return fsm_hypot(multipliers[first], second < 0 ? 0.0 : multipliers[second]);
}

/* Load the bearings that slide by the multipliers, each way times its load; returns the largest change as a fraction. */
static double load_bearings(struct fsm_online_mode *o, const double *c)
{
    double *way = o->room.at + o->chart.at[FSM_ONLINE_AT_WAY];
    double largest = FSM_TINIEST, change = 0.0;
    for (int64_t k = 0; k < o->states.n; k++) {
        if (slides_in_bearing(o, k)) {
            double *own = way + 2 * k, load = fsm_online_load(o, k);
            int64_t count = fsm_tangent_count(o, k);
            change = fsm_larger(change, fabs(load - fsm_hypot(own[0], count == 2 ? own[1] : 0.0)));
            largest = fsm_larger(largest, load);
            fsm_online_slip_direction(o, c, k, own);
            for (int64_t i = 0; i < count; i++) {
                own[i] *= load;
            }
        }
    }
    return change / largest;
}

/* Work out speeds and accelerations of a mode at `AT_X AT_Q_DOT AT_U_DOT` of the workspace, by the program for the motion
   or that for the motion and what guards look at.  Where bearings slide, again until their loads agree.

   Returns
   -------
   float
       The smallest pivot of the reduced equations, scaled, where it is asked for by `judge`; 1 otherwise. */
FSM_LOCAL double fsm_accelerate(struct fsm_online_mode *o, double t, const double *x, const double *c,
                                enum fsm_online_program program, bool judge)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at, *way = w + chart[FSM_ONLINE_AT_WAY];
    fsm_eliminate_held_rows(o, t, x, c);
    if (chart[FSM_ONLINE_RANK] == 0 && chart[FSM_ONLINE_PUSHES] == 1) {
        o->programs.at[FSM_ONLINE_ROWS](t, w + chart[FSM_ONLINE_AT_X], c, w + chart[FSM_ONLINE_AT_A]);
    }
    o->programs.at[program](t, w + chart[FSM_ONLINE_AT_X], c, w + chart[FSM_ONLINE_AT_Q_DOT]);
    fsm_online_slip_directions(o, c);
    bool loaded = false;
    for (int64_t k = 0; k < o->states.n; k++) {
        if (slides_in_bearing(o, k)) {
            way[2 * k] = 0.0;
            way[2 * k + 1] = 0.0;
            loaded = true;
        }
    }
    double least = solve_accelerations(o, judge);
    for (int64_t pass = 0; loaded && pass < FSM_LOAD_PASSES; pass++) {
        fsm_online_multipliers(o);
        loaded = load_bearings(o, c) > FSM_LOAD_AGREES;
        least = solve_accelerations(o, judge);
    }
    return least;
}
