/* Quality of the chart of a mode embedded online: pivots, and consistency of redundant rows. */

#include "online.h"

/* Return the square of a row's norm, speeds in units of the root of their inertia. */
static double weighted_norm(const struct fsm_online_mode *o, int64_t row)
{
    int64_t U = o->sizes->n_u;
    const double *M = o->room.at + o->chart.at[FSM_ONLINE_AT_M];
    const double *entries = o->room.at + o->chart.at[FSM_ONLINE_AT_A] + row * U;
    double total = 0.0;
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        int64_t j = o->row_columns.at[e];
        double inertia = M[j * (U + 1)];
        total += entries[j] * entries[j] / (inertia > 0.0 ? inertia : 1.0);
    }
    return total;
}

/* Return how much there is of a row, 1 at most: its norm in the mechanism's own units.

   Among rows of which some are redundant one may vanish while all together keep their rank, which its own norm does not
   show. */
FSM_LOCAL double fsm_part_of_row(const struct fsm_online_mode *o, int64_t row)
{
    const double *entries = o->room.at + o->chart.at[FSM_ONLINE_AT_A] + row * o->sizes->n_u;
    double total = 0.0;
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        int64_t j = o->row_columns.at[e];
        total += fsm_square(entries[j] * o->state_unit.at[o->sizes->n_q + j]);
    }
    double whole = o->limits->length_scale / o->limits->time_scale * o->row_unit.at[row];
    return fsm_smaller(sqrt(total) / whole, 1.0);
}

/* Return the smallest scaled pivot of the rows, `least` at most; 0 where a row left out holds something now. */
FSM_LOCAL double fsm_row_pivots(struct fsm_online_mode *o, double least)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_M = chart[FSM_ONLINE_AT_M], at_P = chart[FSM_ONLINE_AT_P],
            at_H = chart[FSM_ONLINE_AT_H];
    int64_t at_Q = chart[FSM_ONLINE_AT_Q];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R, width = U + 2;
    if (chart[FSM_ONLINE_SLIDES] == 1) {
        fsm_force_rows(o, at_Q);
    }
    double inertia;
    for (int64_t k = 0; k < rank; k++) {
        inertia = w[at_M + chart[columns + k] * (U + 1)];
        double size = inertia > 0.0 ? sqrt(inertia) : 1.0;
        double norm = sqrt(weighted_norm(o, chart[FSM_ONLINE_LISTS + k])) * size;
        double part = rank < chart[FSM_ONLINE_ACTIVE] ? fsm_part_of_row(o, chart[FSM_ONLINE_LISTS + k]) : 1.0;
        least = fsm_smaller(least, part / fsm_larger(fabs(w[at_P + k * width + k]) * norm, FSM_TINIEST));
        if (chart[FSM_ONLINE_SLIDES] == 1) {
            double total = 0.0;
            for (int64_t e = o->held_begin.at[k]; e < o->held_begin.at[k + 1]; e++) {
                int64_t j = o->held_columns.at[e];
                double mass = w[at_M + chart[columns + j] * (U + 1)];
                total += w[at_Q + k * U + j] * w[at_Q + k * U + j] / (mass > 0.0 ? mass : 1.0);
            }
            least = fsm_smaller(least, 1.0 / fsm_larger(fabs(w[at_H + k * U + k]) * sqrt(total) * size, FSM_TINIEST));
        }
    }
    for (int64_t k = rank; k < chart[FSM_ONLINE_ACTIVE]; k++) {
        int64_t row = at_A + chart[FSM_ONLINE_LISTS + k] * U;
        double rest = 0.0;
        for (int64_t j = rank; j < U; j++) {
            double left = w[row + chart[columns + j]];
            for (int64_t m = 0; m < rank; m++) {
                left -= w[row + chart[columns + m]] * w[at_P + m * width + j];
            }
            inertia = w[at_M + chart[columns + j] * (U + 1)];
            rest += left * left / (inertia > 0.0 ? inertia : 1.0);
        }
        if (rest > o->limits->redundancy * o->limits->redundancy * weighted_norm(o, chart[FSM_ONLINE_LISTS + k])) {
            return 0.0;
        }
    }
    return least;
}
