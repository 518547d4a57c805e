/* Arithmetic of intervals.

   Bounds are rounded outwards: every operation is followed by a widening of one unit in the last place, those with
   functions of the runtime's library by as many as their errors (elementary.h).  A bound that is not a number becomes none,
   so that infinities need no care. */

#ifndef FSM_INTERVALS_H
#define FSM_INTERVALS_H

#include "enclosure.h"

#define WIDEN       (2.0 * FSM_EPS) // of a result, for its rounding
#define WIDEN_MORE  (8.0 * FSM_EPS) // for that of functions

static const struct fsm_interval LINE = {-FSM_INFINITY, FSM_INFINITY};
static const struct fsm_interval ZERO = {0.0, 0.0};

static inline struct fsm_interval outward_by(double low, double high, double part)
{
    low -= part * fabs(low);
    high += part * fabs(high);
    return low <= high ? (struct fsm_interval){low, high} : LINE;
}

static inline struct fsm_interval outward(double low, double high)
{
    return outward_by(low, high, WIDEN);
}

static inline struct fsm_interval i_neg(struct fsm_interval a)
{
    return (struct fsm_interval){-a.high, -a.low};
}

static inline struct fsm_interval i_add(struct fsm_interval a, struct fsm_interval b)
{
    return outward(a.low + b.low, a.high + b.high);
}

static inline struct fsm_interval i_sub(struct fsm_interval a, struct fsm_interval b)
{
    return outward(a.low - b.high, a.high - b.low);
}

static inline bool is_zero(struct fsm_interval a)
{
    return a.low == 0.0 && a.high == 0.0;
}

static inline double least_of(double a, double b)
{
    return a < b ? a : b;
}

static inline double most_of(double a, double b)
{
    return a > b ? a : b;
}

static inline double magnitude(struct fsm_interval a)
{
    return most_of(-a.low, a.high);
}

/* Write the product of two intervals, one of whose bounds may be infinite. */
static void put_unbounded_product(double al, double ah, double bl, double bh, struct fsm_interval *out)
{
    double low, high;
    if (al >= 0.0) {
        low = bl >= 0.0 ? al * bl : ah * bl;
        high = bh >= 0.0 ? ah * bh : al * bh;
    } else if (ah <= 0.0) {
        low = bh >= 0.0 ? al * bh : ah * bh;
        high = bl >= 0.0 ? ah * bl : al * bl;
    } else if (bl >= 0.0) {
        low = al * bh;
        high = ah * bh;
    } else if (bh <= 0.0) {
        low = ah * bl;
        high = al * bl;
    } else {
        low = least_of(al * bh, ah * bl);
        high = most_of(al * bl, ah * bh);
    }
    low -= WIDEN * fabs(low);
    high += WIDEN * fabs(high);
    if (!(low <= high)) { // zero times a bound that there is not
        bool zero = (al == 0.0 && ah == 0.0) || (bl == 0.0 && bh == 0.0);
        low = zero ? 0.0 : -FSM_INFINITY;
        high = zero ? 0.0 : FSM_INFINITY;
    }
    out->low = low;
    out->high = high;
}

/* The product of two intervals, without branches where it is finite. */
static inline struct fsm_interval i_mul(struct fsm_interval a, struct fsm_interval b)
{
    double p = a.low * b.low, q = a.low * b.high, r = a.high * b.low, s = a.high * b.high;
    struct fsm_interval product;
    if (!(fabs(p) + fabs(q) + fabs(r) + fabs(s) < FSM_INFINITY)) {
        put_unbounded_product(a.low, a.high, b.low, b.high, &product);
        return product;
    }
    double low = least_of(least_of(p, q), least_of(r, s)), high = most_of(most_of(p, q), most_of(r, s));
    return (struct fsm_interval){low - WIDEN * fabs(low), high + WIDEN * fabs(high)};
}

static inline struct fsm_interval i_scale(double factor, struct fsm_interval a)
{
    return factor >= 0.0 ? (struct fsm_interval){factor * a.low, factor * a.high}
                         : (struct fsm_interval){factor * a.high, factor * a.low};
}

static inline struct fsm_interval i_square(struct fsm_interval a)
{
    double low = a.low > 0.0 ? a.low : a.high < 0.0 ? -a.high : 0.0, high = magnitude(a);
    struct fsm_interval r = outward(low * low, high * high);
    return r.low < 0.0 ? (struct fsm_interval){0.0, r.high} : r;
}

/* The reciprocal, without its value at zero: half a line where zero is an end, all numbers where it is inside. */
static inline struct fsm_interval i_reciprocal(struct fsm_interval a)
{
    if (a.low > 0.0 || a.high < 0.0) {
        return outward(1.0 / a.high, 1.0 / a.low);
    }
    if (a.low == 0.0 && a.high > 0.0) {
        return (struct fsm_interval){(1.0 - WIDEN) / a.high, FSM_INFINITY};
    }
    if (a.high == 0.0 && a.low < 0.0) {
        return (struct fsm_interval){-FSM_INFINITY, (1.0 - WIDEN) / a.low};
    }
    return LINE;
}

static inline struct fsm_interval i_meet(struct fsm_interval a, struct fsm_interval b)
{
    return (struct fsm_interval){most_of(a.low, b.low), least_of(a.high, b.high)};
}

static inline struct fsm_interval symmetric(double size)
{
    return (struct fsm_interval){-size, size};
}

/* Whether there are no bounds: beyond a pole a quantity may have jumped from one infinity to the other. */
static inline bool is_line(struct fsm_interval a)
{
    return a.low == -FSM_INFINITY && a.high == FSM_INFINITY;
}

#endif
