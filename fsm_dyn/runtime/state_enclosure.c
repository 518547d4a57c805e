/* Enclosures of states: the motion of one that is recorded of a step, a quartic, and its bounds on a piece of it. */

#include "stepping.h"

/* Write the recorded motion of a state in the trial step of length `h` (s): coefficients of its way from the start, those
   of its rate, its value at the start.  Neither is a difference of values, which are rounded more coarsely. */
FSM_LOCAL void fsm_record_state(const struct fsm_run *run, int64_t i, double h, double *motion)
{
    const struct fsm_work *work = run->work;
    double x0 = run->state->x.at[i], begin = run->state->x_dot.at[i], end = work->full_end.at[i];
    double way = work->x_end.at[i] - x0, half = work->x_mid.at[i] - x0;
    double *b = motion, *rates = motion + 5;
    b[0] = 0.0;
    b[1] = 0.25 * h * begin;
    b[3] = way - 0.25 * h * end;
    b[4] = way;
    b[2] = (16.0 * half - 4.0 * (b[1] + b[3]) - way) / 6.0;
    rates[0] = begin;
    rates[1] = 4.0 / h * (b[2] - b[1]);
    rates[2] = 4.0 / h * (b[3] - b[2]);
    rates[3] = end;
    motion[9] = x0;
}

/* Bound a state and its speed in the trial step of length `h` (s).

   In most steps nothing else is asked of its motion.  The coefficients are those of fsm_record_state except for their
   roundings, for which there is room. */
FSM_LOCAL void fsm_bound_state(const struct fsm_run *run, int64_t i, double h, double *least, double *most, double *speed)
{
    const struct fsm_work *work = run->work;
    double x0 = run->state->x.at[i], way = work->x_end.at[i] - x0;
    double first = 0.25 * h * run->state->x_dot.at[i], last = 0.25 * h * work->full_end.at[i], third = way - last;
    double second = (16.0 * (work->x_mid.at[i] - x0) - 4.0 * (first + third) - way) * (1.0 / 6.0);
    double low = fsm_smaller(fsm_smaller(0.0, first), fsm_smaller(third, way));
    double high = fsm_larger(fsm_larger(0.0, first), fsm_larger(third, way));
    double fast = fsm_larger(fsm_larger(fabs(first), fabs(last)), fsm_larger(fabs(second - first), fabs(third - second)));
    low = fsm_smaller(low, second);
    high = fsm_larger(high, second);
    double room = fast == 0.0 ? 0.0 : 2.0 * FSM_EPS * (fabs(x0) + 32.0 * fsm_larger(-low, high));
    *least = x0 + low - room;
    *most = x0 + high + room;
    *speed = 4.0 / h * fast * (1.0 + 256.0 * FSM_EPS);
}

/* The jet of a state on the piece [a, b] of the step of length `h` (s), a point where both are equal.

   Rates are those of the coefficients of the rate: differences of values on so short a piece would be roundings. */
FSM_LOCAL struct fsm_jet fsm_enclose_state(const double *motion, double h, double a, double b)
{
    double c[5], d[4], e[4], fast = 0.0;
    for (int64_t m = 0; m < 5; m++) {
        c[m] = motion[m];
    }
    for (int64_t m = 0; m < 4; m++) {
        d[m] = motion[5 + m];
        fast = fsm_larger(fast, fabs(d[m]));
    }
    for (int64_t level = 1; level < 5 && a > 0.0; level++) {
        for (int64_t m = 0; m < 5 - level; m++) {
            c[m] += a * (c[m + 1] - c[m]);
        }
        for (int64_t m = 0; m < 4 - level; m++) {
            d[m] += a * (d[m + 1] - d[m]);
        }
    }
    double value = motion[9] + c[0];
    if (a == b) {
        return (struct fsm_jet){{value, value}, {d[0], d[0]}, {0.0, 0.0}};
    }
    double rest = 1.0 - a, ratio = rest > 0.0 ? (b - a) / rest : 0.0, w = (b - a) * h;
    e[0] = d[0];
    for (int64_t level = 1; level < 4; level++) {
        for (int64_t m = 0; m < 4 - level; m++) {
            d[m] += ratio * (d[m + 1] - d[m]);
        }
        e[level] = d[0];
    }
    double way = 0.0, low = 0.0, high = 0.0;
    struct fsm_interval rate = {e[0], e[0]}, second = {FSM_INFINITY, -FSM_INFINITY};
    for (int64_t m = 0; m < 4; m++) {
        way += 0.25 * w * e[m];
        low = fsm_smaller(low, way);
        high = fsm_larger(high, way);
        rate = fsm_hull(rate, (struct fsm_interval){e[m], e[m]});
        if (m > 0) {
            double turn = e[m] - e[m - 1];
            second = fsm_hull(second, (struct fsm_interval){turn, turn});
        }
    }
    double first = 8.0 * FSM_EPS * fast, size = fsm_larger(fabs(value + low), fabs(value + high));
    double room = fast == 0.0 ? 0.0 : 2.0 * FSM_EPS * size + w * first;
    return (struct fsm_jet){{value + low - room, value + high + room},
                            {rate.low - first, rate.high + first},
                            {3.0 / w * (second.low - 2.0 * first), 3.0 / w * (second.high + 2.0 * first)}};
}
