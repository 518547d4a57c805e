/* Elimination and the reduced equations of a mode embedded online, for mechanisms of few speeds.

   Full loops over a few entries cost less than lists of those that can differ from zero (online_sparsity.c).  The operations
   are the same, in the same order, and those with a zero beside them. */

#include "online.h"

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
