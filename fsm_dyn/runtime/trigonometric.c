/* Sine, cosine, tangent and their inverses.

   An argument is brought into |r| <= pi / 4 as a sum of two doubles: pi / 2 in four parts (Cody and Waite) up to 1.6e6, and
   with as many bits of 2 / pi as it takes beyond (Payne and Hanek 1983, *Radian reduction for trigonometric functions*,
   SIGNUM Newsletter 18).  Arctangents go by a table of steps of 1/64 and the addition theorem. */

#include "elementary.h"
#include "elementary_tables.h"

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
