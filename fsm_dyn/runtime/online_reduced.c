/* The reduced equations of a mode embedded online, one for each independent speed: weighed and solved. */

#include "online.h"

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
