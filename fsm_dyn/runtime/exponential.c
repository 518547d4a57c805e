/* Exponentials, logarithms, powers and hyperbolic functions.

   exp goes by a table of 2^(i / 64), log by a table of short reciprocals, both with a tail of a second double, so that
   a power is right to the last bit except for few: Tang (1989, 1990), *Table-driven implementation of the exponential
   function* and *... of the logarithm function*, ACM Transactions on Mathematical Software 15 and 16. */

#include "elementary.h"
#include "elementary_tables.h"

#define FSM_LARGEST_EXPONENT  710.0  // beyond, exp is infinite
#define FSM_SMALLEST_EXPONENT -746.0 // below, exp is zero
#define FSM_EVEN              0x1p53 // from here on every number is an even integer

/* `sum 2^power`. */
struct exponential {
    struct fsm_sum sum;
    int64_t power;
};

/* Return c[0] + c[1] x + ... + c[n - 1] x^(n - 1). */
static inline double polynomial(const double *c, int64_t n, double x)
{
    double value = c[n - 1];
    for (int64_t i = n - 2; i >= 0; i--) {
        value = value * x + c[i];
    }
    return value;
}

/* Return the exponential of a number within the limits, given with its tail; about 60 bits are right. */
static inline struct exponential exponential_of(double x, double tail)
{
    double n = floor(x * FSM_STEPS + 0.5);
    int64_t steps = (int64_t)n;
    struct fsm_sum r = fsm_two_sum(x - n * FSM_STEP_HIGH, tail - n * FSM_STEP_LOW);
    double square = r.high * r.high;
    const double *c = fsm_exponential;
    double series = (c[0] + r.high * c[1]) + square * (c[2] + r.high * c[3]);
    double beyond = r.low + 0.5 * square + r.high * square * series;
    const double *power = fsm_powers[steps & 63];
    struct fsm_sum sum = fsm_fast_two_sum(power[0], power[0] * (r.high + beyond) + power[1]);
    return (struct exponential){sum, (steps - (steps & 63)) / 64};
}

FSM_API double fsm_exp(double x)
{
    if (!(x < FSM_LARGEST_EXPONENT)) {
        return isnan(x) ? x : FSM_INFINITY;
    }
    if (x < FSM_SMALLEST_EXPONENT) {
        return 0.0;
    }
    struct exponential e = exponential_of(x, 0.0);
    return fsm_scaled(e.sum.high, e.power);
}

/* Return exp x - 1 for |x| <= 44. */
static struct fsm_sum growth(double x)
{
    if (fabs(x) <= 0.25) {
        struct fsm_sum square = fsm_two_square(x), sum = fsm_fast_two_sum(x, 0.5 * square.high);
        double beyond = x * square.high * polynomial(fsm_small_exponential, 12, x);
        return fsm_fast_two_sum(sum.high, sum.low + (0.5 * square.low + beyond));
    }
    struct exponential e = exponential_of(x, 0.0);
    struct fsm_sum sum = fsm_two_sum(fsm_scaled(e.sum.high, e.power), -1.0);
    return fsm_fast_two_sum(sum.high, sum.low + fsm_scaled(e.sum.low, e.power));
}

FSM_API double fsm_expm1(double x)
{
    if (fabs(x) < 0x1p-54 || isnan(x)) {
        return x;
    }
    if (x < -44.0) {
        return -1.0;
    }
    return x < 44.0 ? growth(x).high : fsm_exp(x);
}

/* Return the logarithm of a positive number to about 67 bits. */
static struct fsm_sum logarithm(double x)
{
    double power = 0.0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        power = -54.0;
    }
    uint64_t bits = fsm_bits(x);
    power += (double)((int64_t)(bits >> 52) - 1023);
    const double *row = fsm_logarithms[bits >> 45 & 127];
    bits = (bits & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m = fsm_from_bits(bits), high = fsm_from_bits(bits & ~(uint64_t)0x7ffffffu);
    struct fsm_sum r = fsm_two_sum(high * row[0] - 1.0, (m - high) * row[0]);
    struct fsm_sum square = fsm_two_square(r.high);
    const double *p = fsm_logarithm;
    double z = r.high, w = square.high;
    double series =
        (p[0] + z * p[1]) + w * (p[2] + z * p[3]) + w * w * ((p[4] + z * p[5]) + w * (p[6] + z * p[7]) + w * w * p[8]);
    double beyond = z * w * series - z * r.low;
    struct fsm_sum a = fsm_fast_two_sum(power * FSM_LN2_HIGH, row[1]), b = fsm_fast_two_sum(a.high, z);
    struct fsm_sum c = fsm_fast_two_sum(b.high, -0.5 * w);
    double low = power * FSM_LN2_LOW + row[2] + (r.low - 0.5 * square.low) + beyond;
    return fsm_fast_two_sum(c.high, a.low + b.low + c.low + low);
}

FSM_API double fsm_log(double x)
{
    if (!(x > 0.0) || isinf(x)) {
        return x == 0.0 ? -FSM_INFINITY : x < 0.0 ? FSM_NAN : x;
    }
    return logarithm(x).high;
}

/* Return |x|^y where x is zero or infinite or y is infinite, neither is NaN, and y is not 0. */
static double power_at_the_edge(double x, double y)
{
    if (x == 0.0 || isinf(x)) {
        return (x == 0.0) == (y > 0.0) ? 0.0 : FSM_INFINITY;
    }
    return x == 1.0 ? 1.0 : (x > 1.0) == (y > 0.0) ? FSM_INFINITY : 0.0;
}

FSM_API double fsm_pow(double x, double y)
{
    if (y == 0.0 || x == 1.0) {
        return 1.0;
    }
    if (isnan(x) || isnan(y)) {
        return x + y;
    }
    bool integer = floor(y) == y, odd = integer && fabs(y) < FSM_EVEN && ((int64_t)y & 1);
    double sign = signbit(x) && odd ? -1.0 : 1.0, base = fabs(x);
    if (x == 0.0 || isinf(x) || isinf(y)) {
        return sign * power_at_the_edge(base, y);
    }
    if (x < 0.0 && !integer) {
        return FSM_NAN;
    }
    struct fsm_sum l = logarithm(base);
    double estimate = y * l.high;
    if (!(fabs(estimate) >= 0x1p-60)) {
        return sign;
    }
    if (!(estimate < FSM_LARGEST_EXPONENT) || estimate < FSM_SMALLEST_EXPONENT) {
        return sign * (estimate > 0.0 ? FSM_INFINITY : 0.0);
    }
    struct fsm_sum p = fsm_two_product(y, l.high);
    struct exponential e = exponential_of(p.high, p.low + y * l.low);
    return sign * fsm_scaled(e.sum.high, e.power);
}

FSM_API double fsm_sinh(double x)
{
    double a = fabs(x);
    if (a < 0x1p-27 || !isfinite(x)) {
        return x;
    }
    if (a > 40.0) {
        struct exponential e = exponential_of(fsm_smaller(a, 2.0 * FSM_LARGEST_EXPONENT), 0.0);
        return copysign(fsm_scaled(e.sum.high, e.power - 1), x);
    }
    struct fsm_sum e = growth(a), one = fsm_two_sum(1.0, e.high);
    one = fsm_fast_two_sum(one.high, one.low + e.low);
    struct fsm_sum part = fsm_divide_sums(e, one), sum = fsm_fast_two_sum(e.high, part.high);
    return copysign(0.5 * (sum.high + (sum.low + (e.low + part.low))), x);
}

FSM_API double fsm_cosh(double x)
{
    if (!isfinite(x)) {
        return fabs(x);
    }
    struct exponential e = exponential_of(fsm_smaller(fabs(x), 2.0 * FSM_LARGEST_EXPONENT), 0.0);
    if (fabs(x) > 40.0) {
        return fsm_scaled(e.sum.high, e.power - 1);
    }
    struct fsm_sum large = {fsm_scaled(e.sum.high, e.power), fsm_scaled(e.sum.low, e.power)};
    struct fsm_sum small = fsm_divide_sums((struct fsm_sum){1.0, 0.0}, large);
    struct fsm_sum sum = fsm_fast_two_sum(large.high, small.high);
    return 0.5 * (sum.high + (sum.low + (large.low + small.low)));
}

FSM_API double fsm_tanh(double x)
{
    double a = fabs(x);
    if (a < 0x1p-27 || isnan(x)) {
        return x;
    }
    if (a > 22.0) {
        return copysign(1.0, x);
    }
    struct fsm_sum e = growth(2.0 * a), two = fsm_two_sum(2.0, e.high);
    two = fsm_fast_two_sum(two.high, two.low + e.low);
    return copysign(fsm_divide_sums(e, two).high, x);
}
