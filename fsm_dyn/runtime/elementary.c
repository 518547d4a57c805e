/* Elementary functions, the same bits everywhere: double-double arithmetic, sines, exponentials. */

#include "elementary.h"
#include "elementary_tables.h"

#include <string.h>

/* -- Arithmetic with numbers of twice the precision, as sums of two doubles, without fused operations.

   Dekker (1971), *A floating-point technique for extending the available precision*, Numerische Mathematik 18;
   Knuth, *The Art of Computer Programming*, volume 2, section 4.2.2. */

FSM_LOCAL uint64_t fsm_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FSM_LOCAL double fsm_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Return `x 2^power`, rounded once where the result is subnormal; `|power|` at most 2200. */
FSM_LOCAL double fsm_scaled(double x, int64_t power)
{
    const double large = 0x1p1000, small = 0x1p-968; // steps that keep the last bits of a normal number
    for (; power > 1000; power -= 1000) {
        x *= large;
    }
    for (; power < -968; power += 968) {
        x *= small;
    }
    return x * fsm_from_bits((uint64_t)(power + 1023) << 52);
}

/* Return `a + b`. */
FSM_LOCAL struct fsm_sum fsm_two_sum(double a, double b)
{
    double sum = a + b, part = sum - a;
    return (struct fsm_sum){sum, (a - (sum - part)) + (b - part)};
}

/* Return `a + b`, where `|a| >= |b|` or `a` is zero. */
FSM_LOCAL struct fsm_sum fsm_fast_two_sum(double a, double b)
{
    double sum = a + b;
    return (struct fsm_sum){sum, b - (sum - a)};
}

/* Return the leading 26 bits of a number: products with them and with what is left are exact. */
static inline double leading(double x)
{
    return fsm_from_bits(fsm_bits(x) & ~(uint64_t)0x7ffffff);
}

/* Return `a b`, to within 2^-105 of it, where the product is neither infinite nor subnormal. */
FSM_LOCAL struct fsm_sum fsm_two_product(double a, double b)
{
    double product = a * b, ah = leading(a), al = a - ah, bh = leading(b), bl = b - bh;
    return (struct fsm_sum){product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

/* Return `a^2`, as well as that. */
FSM_LOCAL struct fsm_sum fsm_two_square(double a)
{
    double square = a * a, high = leading(a);
    return (struct fsm_sum){square, (high * high - square) + (a - high) * (a + high)};
}

FSM_LOCAL struct fsm_sum fsm_multiply_sums(struct fsm_sum a, struct fsm_sum b)
{
    struct fsm_sum p = fsm_two_product(a.high, b.high);
    return fsm_fast_two_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

FSM_LOCAL struct fsm_sum fsm_divide_sums(struct fsm_sum a, struct fsm_sum b)
{
    double quotient = a.high / b.high;
    struct fsm_sum p = fsm_two_product(quotient, b.high);
    double rest = ((a.high - p.high) - p.low) + a.low - quotient * b.low;
    return fsm_fast_two_sum(quotient, rest / b.high);
}

/* Return the square root of a sum that is not negative. */
FSM_LOCAL struct fsm_sum fsm_root(struct fsm_sum a)
{
    if (!(a.high > 0.0)) {
        return (struct fsm_sum){0.0 * a.high, 0.0};
    }
    double root = sqrt(a.high);
    struct fsm_sum p = fsm_two_square(root);
    return fsm_fast_two_sum(root, (((a.high - p.high) - p.low) + a.low) / (2.0 * root));
}

/* Return the length of (x, y). */
FSM_API double fsm_hypot(double x, double y)
{
    double large = fsm_larger(fabs(x), fabs(y)), small = fsm_smaller(fabs(x), fabs(y));
    if (isinf(x) || isinf(y)) {
        return FSM_INFINITY;
    }
    if (isnan(x) || isnan(y) || !(small > 0x1p-54 * large)) {
        return fabs(x) + fabs(y);
    }
    double scale = large > 0x1p400 ? 0x1p-700 : large < 0x1p-400 ? 0x1p700 : 1.0;
    large *= scale;
    small *= scale;
    struct fsm_sum p = fsm_two_square(large), r = fsm_two_square(small), s = fsm_fast_two_sum(p.high, r.high);
    s = fsm_root(fsm_fast_two_sum(s.high, s.low + (p.low + r.low)));
    return s.high / scale;
}

/* -- Sine, cosine, tangent and their inverses.

   An argument is brought into |r| <= pi / 4 as a sum of two doubles: pi / 2 in four parts (Cody and Waite) up to 1.6e6, and
   with as many bits of 2 / pi as it takes beyond (Payne and Hanek 1983, *Radian reduction for trigonometric functions*,
   SIGNUM Newsletter 18).  Arctangents go by a table of steps of 1/64 and the addition theorem. */

#define FSM_TO_INTEGER 0x1.8p52 // added and taken away again: rounds to the next integer
#define FSM_MANY_TURNS 0x1.9p20 // up to here the number of quarter turns has 20 bits
#define FSM_LINEAR     0x1p-27  // below, x - x^3 / 6 rounds to x
#define FSM_WORDS      8        // of 2 / pi that decide one remainder: 256 bits

/* Return c[0] + c[1] z + ... + c[6] z^6. */
static inline double seventh(const double *c, double z)
{
    double square = z * z;
    return (c[0] + z * c[1]) + square * (c[2] + z * c[3]) + square * square * ((c[4] + z * c[5]) + square * c[6]);
}

/* Return the remainder of `x`, not negative and above FSM_MANY_TURNS, and its number of quarter turns modulo 4. */
static int64_t large_remainder(double x, struct fsm_sum *r)
{
    uint64_t bits = fsm_bits(x), mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    int64_t exponent = (int64_t)(bits >> 52) - 1075; // x = mantissa 2^exponent
    int64_t first = exponent > 2 ? (exponent - 2) / 32 : 0, shift = exponent - 32 * first + 32;
    // product of the mantissa and the words from `first` on, the most significant word first
    uint32_t product[FSM_WORDS + 2];
    uint64_t low = mantissa & 0xffffffffu, high = mantissa >> 32, carry = 0;
    uint32_t before = 0; // the word below, for the upper half of the mantissa
    for (int64_t i = FSM_WORDS - 1; i >= -2; i--) {
        uint64_t word = i < 0 ? 0 : fsm_two_over_pi[first + i];
        uint64_t a = low * word, b = high * before;
        uint64_t sum = (a & 0xffffffffu) + (b & 0xffffffffu) + carry;
        product[i + 2] = (uint32_t)sum;
        carry = (a >> 32) + (b >> 32) + (sum >> 32);
        before = (uint32_t)word;
    }
    // with the point behind the first 32 bits, x 2 / pi is the product times 2^shift
    uint32_t fraction[FSM_WORDS];
    int64_t whole = 0;
    for (int64_t i = 0; i < FSM_WORDS; i++) {
        int64_t at = i + 1 + shift / 32, by = shift % 32;
        uint64_t here = at < FSM_WORDS + 2 ? product[at] : 0, next = at + 1 < FSM_WORDS + 2 ? product[at + 1] : 0;
        fraction[i] = (uint32_t)(((here << 32 | next) >> (32 - by)) & 0xffffffffu);
        if (i == 0) {
            whole = (int64_t)(((uint64_t)product[at - 1] << by | (by ? here >> (32 - by) : 0)) & 3u);
        }
    }
    bool negative = fraction[0] >> 31;
    struct fsm_sum sum = {0.0, 0.0};
    double unit = 0x1p-32;
    for (int64_t i = 0; i < FSM_WORDS; i++, unit *= 0x1p-32) {
        struct fsm_sum grown = fsm_two_sum(sum.high, (double)(negative ? ~fraction[i] : fraction[i]) * unit);
        sum = fsm_fast_two_sum(grown.high, grown.low + sum.low);
    }
    *r = fsm_multiply_sums(sum, (struct fsm_sum){FSM_HALF_PI_HIGH, FSM_HALF_PI_LOW});
    if (negative) {
        *r = (struct fsm_sum){-r->high, -r->low};
    }
    return (whole + negative) & 3;
}

/* Return the remainder of `x` after quarter turns, and how many of those modulo 4. */
static inline int64_t remainder_of(double x, struct fsm_sum *r)
{
    if (fabs(x) <= 0.78) {
        *r = (struct fsm_sum){x, 0.0};
        return 0;
    }
    if (fabs(x) > FSM_MANY_TURNS) {
        int64_t turns = large_remainder(fabs(x), r);
        if (x < 0.0) {
            *r = (struct fsm_sum){-r->high, -r->low};
            turns = -turns & 3;
        }
        return turns;
    }
    double n = (x * FSM_TWO_OVER_PI + FSM_TO_INTEGER) - FSM_TO_INTEGER;
    struct fsm_sum a = fsm_two_sum(x - n * FSM_HALF_PI_1, -n * FSM_HALF_PI_2);
    struct fsm_sum b = fsm_two_sum(a.high, -n * FSM_HALF_PI_3);
    *r = fsm_fast_two_sum(b.high, (a.low + b.low) - n * FSM_HALF_PI_4);
    return (int64_t)n & 3;
}

static inline struct fsm_sum sine(struct fsm_sum r)
{
    double z = r.high * r.high;
    return fsm_fast_two_sum(r.high, r.high * (z * seventh(fsm_sine, z)) + (r.low - 0.5 * z * r.low));
}

static inline struct fsm_sum cosine(struct fsm_sum r)
{
    struct fsm_sum z = fsm_two_square(r.high);
    struct fsm_sum c = fsm_fast_two_sum(1.0, -0.5 * z.high);
    double rest = z.high * z.high * seventh(fsm_cosine, z.high) - r.high * r.low;
    return fsm_fast_two_sum(c.high, c.low - 0.5 * z.low + rest);
}

static inline double turned(int64_t quarters, double along, double across)
{
    double value = quarters & 1 ? across : along;
    return quarters & 2 ? -value : value;
}

FSM_API double fsm_sin(double x)
{
    struct fsm_sum r;
    if (fabs(x) < FSM_LINEAR || !isfinite(x)) {
        return isinf(x) ? FSM_NAN : x;
    }
    int64_t quarters = remainder_of(x, &r);
    double value = quarters & 1 ? cosine(r).high : sine(r).high;
    return quarters & 2 ? -value : value;
}

FSM_API double fsm_cos(double x)
{
    struct fsm_sum r;
    if (!isfinite(x)) {
        return isinf(x) ? FSM_NAN : x;
    }
    int64_t quarters = remainder_of(x, &r) + 1;
    double value = quarters & 1 ? cosine(r).high : sine(r).high;
    return quarters & 2 ? -value : value;
}

/* Write sine and cosine of `x`: the same as one by one. */
FSM_API void fsm_sin_cos(double x, double *both)
{
    struct fsm_sum r;
    if (fabs(x) < FSM_LINEAR || !isfinite(x)) {
        both[0] = fsm_sin(x);
        both[1] = fsm_cos(x);
        return;
    }
    int64_t quarters = remainder_of(x, &r);
    double s = sine(r).high, c = cosine(r).high;
    both[0] = turned(quarters, s, c);
    both[1] = turned(quarters + 1, s, c);
}

FSM_API double fsm_tan(double x)
{
    struct fsm_sum r;
    if (fabs(x) < FSM_LINEAR || !isfinite(x)) {
        return isinf(x) ? FSM_NAN : x;
    }
    int64_t quarters = remainder_of(x, &r);
    struct fsm_sum s = sine(r), c = cosine(r);
    return quarters & 1 ? -fsm_divide_sums(c, s).high : fsm_divide_sums(s, c).high;
}

/* Return the angle of (x, y), both at least 0 and not both 0, neither very large nor very small. */
static struct fsm_sum angle(struct fsm_sum y, struct fsm_sum x)
{
    bool steep = y.high > x.high;
    struct fsm_sum q = steep ? fsm_divide_sums(x, y) : fsm_divide_sums(y, x), result;
    int64_t step = (int64_t)(64.0 * q.high + 0.5);
    double start = step < 8 ? 0.0 : (double)step / 64.0;
    // the rest of the angle is the arctangent of (q - start) / (1 + q start)
    double t = step < 8 ? q.high : ((q.high - start) + q.low) / (1.0 + q.high * start), z = t * t;
    double beyond = t * (z * (seventh(fsm_arctangent, z) + z * z * z * (z * z * z * z) * fsm_arctangent[7]));
    if (step < 8) {
        result = fsm_fast_two_sum(t, beyond + q.low);
    } else {
        struct fsm_sum sum = fsm_fast_two_sum(fsm_arctangents[step][0], t);
        result = fsm_fast_two_sum(sum.high, sum.low + (fsm_arctangents[step][1] + beyond));
    }
    if (steep) {
        struct fsm_sum rest = fsm_fast_two_sum(FSM_HALF_PI_HIGH, -result.high);
        result = fsm_fast_two_sum(rest.high, rest.low + (FSM_HALF_PI_LOW - result.low));
    }
    return result;
}

/* Return pi less an angle. */
static double supplement(struct fsm_sum angle)
{
    struct fsm_sum rest = fsm_fast_two_sum(2.0 * FSM_HALF_PI_HIGH, -angle.high);
    return rest.high + (rest.low + (2.0 * FSM_HALF_PI_LOW - angle.low));
}

/* Return the angle in [0, pi] of a point with |y|; at least one of the two is infinite, or zero. */
static double angle_at_the_edge(double x, double y)
{
    if (isinf(x) && isinf(y)) {
        return (x > 0.0 ? 0.5 : 1.5) * FSM_HALF_PI_HIGH;
    }
    if (isinf(y) || (x == 0.0 && y != 0.0)) {
        return FSM_HALF_PI_HIGH;
    }
    return signbit(x) ? 2.0 * FSM_HALF_PI_HIGH : 0.0;
}

FSM_API double fsm_atan2(double y, double x)
{
    double up = fabs(y), along = fabs(x), large = fsm_larger(up, along), small = fsm_smaller(up, along), value;
    if (isnan(x) || isnan(y)) {
        return x + y;
    }
    if (isinf(large) || small == 0.0) {
        value = angle_at_the_edge(x, up);
    } else if (small < 0x1p-60 * large) {
        struct fsm_sum q = {small / large, 0.0};
        value = up > along ? FSM_HALF_PI_HIGH : x > 0.0 ? q.high : supplement(q);
    } else {
        double scale = large > 0x1p900 ? 0x1p-200 : large < 0x1p-800 ? 0x1p700 : 1.0;
        struct fsm_sum found = angle((struct fsm_sum){up * scale, 0.0}, (struct fsm_sum){along * scale, 0.0});
        value = x > 0.0 ? found.high : supplement(found);
    }
    return copysign(value, y);
}

FSM_API double fsm_atan(double x)
{
    return fsm_atan2(x, 1.0);
}

/* Return sqrt(1 - x^2) for |x| <= 1. */
static struct fsm_sum complement(double x)
{
    return fsm_root(fsm_multiply_sums(fsm_two_sum(1.0, -x), fsm_two_sum(1.0, x)));
}

FSM_API double fsm_asin(double x)
{
    if (!(fabs(x) <= 1.0)) {
        return isnan(x) ? x : FSM_NAN;
    }
    if (fabs(x) < FSM_LINEAR) {
        return x;
    }
    return copysign(angle((struct fsm_sum){fabs(x), 0.0}, complement(x)).high, x);
}

FSM_API double fsm_acos(double x)
{
    if (!(fabs(x) <= 1.0)) {
        return isnan(x) ? x : FSM_NAN;
    }
    struct fsm_sum found = angle(complement(x), (struct fsm_sum){fabs(x), 0.0});
    return x < 0.0 ? supplement(found) : found.high;
}

/* -- Exponentials, logarithms, powers and hyperbolic functions.

   exp goes by a table of 2^(i / 64), log by a table of short reciprocals, both with a tail of a second double, so that
   a power is right to the last bit except for few: Tang (1989, 1990), *Table-driven implementation of the exponential
   function* and *... of the logarithm function*, ACM Transactions on Mathematical Software 15 and 16. */

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
