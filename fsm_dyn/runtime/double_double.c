/* Arithmetic with numbers of twice the precision, as sums of two doubles, without fused operations.

   Dekker (1971), *A floating-point technique for extending the available precision*, Numerische Mathematik 18;
   Knuth, *The Art of Computer Programming*, volume 2, section 4.2.2. */

#include "elementary.h"

#include <string.h>

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
