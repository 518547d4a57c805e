/* How good the chart of a mode embedded on line is: its pivots, and whether rows left out are still implied. */

#include "online.h"

/* Return the square of a row's norm, speeds in units of the root of their inertia. */
static double weighted_norm(double *w, int64_t *chart, int64_t row, int64_t U)
{
    int64_t at_M = chart[FSM_ONLINE_AT_M];
    double total = 0.0;
    for (int64_t j = 0; j < U; j++) {
        double inertia = w[at_M + j * (U + 1)];
        total += w[row + j] * w[row + j] / (inertia > 0.0 ? inertia : 1.0);
    }
    return total;
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
        double norm = sqrt(weighted_norm(w, chart, at_A + chart[FSM_ONLINE_LISTS + k] * U, U)) * size;
        least = fsm_smaller(least, 1.0 / fsm_larger(fabs(w[at_P + k * width + k]) * norm, 1e-300));
        if (chart[FSM_ONLINE_SLIDES] == 1) {
            double total = 0.0;
            for (int64_t j = 0; j < U; j++) {
                double mass = w[at_M + chart[columns + j] * (U + 1)];
                total += w[at_Q + k * U + j] * w[at_Q + k * U + j] / (mass > 0.0 ? mass : 1.0);
            }
            least = fsm_smaller(least, 1.0 / fsm_larger(fabs(w[at_H + k * U + k]) * sqrt(total) * size, 1e-300));
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
        if (rest > FSM_NO_LONGER_REDUNDANT * FSM_NO_LONGER_REDUNDANT * weighted_norm(w, chart, row, U)) {
            return 0.0;
        }
    }
    return least;
}
