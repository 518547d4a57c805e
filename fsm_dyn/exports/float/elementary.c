/* Elementary functions of floats, computed in floats.

   Of the platform's library only what is exact there is called (sqrtf, fabsf, floorf, fmodf, copysignf).  Polynomials are
   those of S. L. Moshier's Cephes library (single precision).  Errors are below 4 units in the last place, or 1e-7 where a
   sine or cosine of a large angle is small, and beyond 8192 rad below a unit in the last place of the argument.  Special
   values are those of C99. */

#include "elementary.h"

#include <string.h>

#define FSM_FLOAT_PI         3.14159265358979f
#define FSM_MANY_TURNS       8192.0f         // rad: up to here quarter turns are taken away exactly enough
#define FSM_LINEAR           0x1p-13f        // below, x - x^3 / 6 rounds to x
#define FSM_LARGEST_EXPONENT 88.7228317f     // beyond, exp is infinite
#define FSM_LEAST_EXPONENT   -103.972076f    // below, exp is zero
#define FSM_LN2_HIGH         0.693359375f    // with few bits, so that its product with a small integer is exact
#define FSM_LN2_LOW          -2.12194440e-4f // what is left of ln 2

/* A number as an unevaluated sum: `high` is the sum rounded, `low` what is left. */
struct fsm_sum {
    float high, low;
};

static struct fsm_sum fsm_two_sum(float a, float b)
{
    float sum = a + b, part = sum - a;
    return (struct fsm_sum){sum, (a - (sum - part)) + (b - part)};
}

/* Return the leading 12 bits of a number: products with them and with what is left are exact. */
static float fsm_leading(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xfffff000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static struct fsm_sum fsm_two_product(float a, float b)
{
    float product = a * b, ah = fsm_leading(a), al = a - ah, bh = fsm_leading(b), bl = b - bh;
    return (struct fsm_sum){product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

/* Return 2^power for a power from -126 to 127. */
static float fsm_power_of_two(int32_t power)
{
    uint32_t bits = (uint32_t)(power + 127) << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Return `x 2^power`, rounded once where the result is subnormal. */
static float fsm_scaled(float x, int32_t power)
{
    if (power > 127) {
        return x * fsm_power_of_two(127) * fsm_power_of_two(power - 127);
    }
    if (power < -126) {
        return x * fsm_power_of_two(power + 60) * fsm_power_of_two(-60);
    }
    return x * fsm_power_of_two(power);
}

/* Bring an angle into |r| <= pi / 4; return the number of quarter turns taken away, modulo 4. */
static int32_t fsm_quarter_turns(float x, float *r)
{
    if (fabsf(x) > FSM_MANY_TURNS) {
        x = fmodf(x, 2.0f * FSM_FLOAT_PI);
    }
    float n = floorf(x * (2.0f / FSM_FLOAT_PI) + 0.5f);
    // pi / 2 in three parts (Cody and Waite)
    *r = ((x - n * 1.5703125f) - n * 4.837512969970703125e-4f) - n * 7.549789954891882e-8f;
    return (int32_t)n & 3;
}

/* Return the sine and the cosine of |r| <= pi / 4. */
static float fsm_short_sine(float r)
{
    if (fabsf(r) < FSM_LINEAR) {
        return r;
    }
    float z = r * r;
    return ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
}

static float fsm_short_cosine(float r)
{
    float z = r * r;
    return ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
}

FSM_API void fsm_sin_cos(float x, float *both)
{
    float r;
    if (!isfinite(x)) {
        both[0] = both[1] = x - x;
        return;
    }
    int32_t turns = fsm_quarter_turns(x, &r);
    float s = fsm_short_sine(r), c = fsm_short_cosine(r);
    both[0] = turns == 0 ? s : turns == 1 ? c : turns == 2 ? -s : -c;
    both[1] = turns == 0 ? c : turns == 1 ? -s : turns == 2 ? -c : s;
}

FSM_API float fsm_sin(float x)
{
    float both[2];
    fsm_sin_cos(x, both);
    return both[0];
}

FSM_API float fsm_cos(float x)
{
    float both[2];
    fsm_sin_cos(x, both);
    return both[1];
}

FSM_API float fsm_tan(float x)
{
    float both[2];
    fsm_sin_cos(x, both);
    return both[0] / both[1];
}

FSM_API float fsm_atan(float x)
{
    float a = fabsf(x), begin = 0.0f;
    if (a > 2.414213562373095f) { // tan 3 pi / 8
        begin = 0.5f * FSM_FLOAT_PI;
        a = -1.0f / a;
    } else if (a > 0.4142135623730950f) { // tan pi / 8
        begin = 0.25f * FSM_FLOAT_PI;
        a = (a - 1.0f) / (a + 1.0f);
    }
    float z = a * a;
    float series = ((8.05374449538e-2f * z - 1.38776856032e-1f) * z + 1.99777106478e-1f) * z - 3.33329491539e-1f;
    return copysignf(begin + (series * z * a + a), x);
}

FSM_API float fsm_atan2(float y, float x)
{
    if (isnan(x) || isnan(y)) {
        return x + y;
    }
    float a = fabsf(y), b = fabsf(x), angle;
    if (isinf(a) && isinf(b)) {
        angle = 0.25f * FSM_FLOAT_PI;
    } else {
        angle = a == 0.0f ? 0.0f : b == 0.0f ? 0.5f * FSM_FLOAT_PI : fsm_atan(a / b);
    }
    return copysignf(signbit(x) ? FSM_FLOAT_PI - angle : angle, y);
}

/* Return the arcsine of 0 <= a <= 1 / 2. */
static float fsm_short_arcsine(float a)
{
    float z = a * a;
    float series = (((4.2163199048e-2f * z + 2.4181311049e-2f) * z + 4.5470025998e-2f) * z + 7.4953002686e-2f) * z;
    return (series + 1.6666752422e-1f) * z * a + a;
}

FSM_API float fsm_asin(float x)
{
    float a = fabsf(x);
    if (!(a <= 1.0f)) {
        return FSM_NAN;
    }
    float angle = a > 0.5f ? 0.5f * FSM_FLOAT_PI - 2.0f * fsm_short_arcsine(sqrtf(0.5f * (1.0f - a)))
                           : fsm_short_arcsine(a);
    return copysignf(angle, x);
}

FSM_API float fsm_acos(float x)
{
    if (!(fabsf(x) <= 1.0f)) {
        return FSM_NAN;
    }
    if (x > 0.5f) {
        return 2.0f * fsm_short_arcsine(sqrtf(0.5f * (1.0f - x)));
    }
    return x < -0.5f ? FSM_FLOAT_PI - 2.0f * fsm_short_arcsine(sqrtf(0.5f * (1.0f + x)))
                     : 0.5f * FSM_FLOAT_PI - fsm_asin(x);
}

/* Return exp r - 1 for |r| <= ln 2 / 2. */
static float fsm_growth(float r)
{
    float series = ((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f;
    return ((series * r + 1.6666665459e-1f) * r + 5.0000001201e-1f) * r * r + r;
}

/* Return the exponential of a number that is given with its tail. */
static float fsm_exponential(float x, float tail)
{
    if (!(x < FSM_LARGEST_EXPONENT)) {
        return isnan(x) ? x : FSM_INFINITY;
    }
    if (x < FSM_LEAST_EXPONENT) {
        return 0.0f;
    }
    float n = floorf(x * 1.44269504088896f + 0.5f);
    float r = ((x - n * FSM_LN2_HIGH) - n * FSM_LN2_LOW) + tail;
    return fsm_scaled(fsm_growth(r) + 1.0f, (int32_t)n);
}

FSM_API float fsm_exp(float x)
{
    return fsm_exponential(x, 0.0f);
}

FSM_API float fsm_expm1(float x)
{
    if (fabsf(x) < 0x1p-24f || isnan(x)) {
        return x;
    }
    return fabsf(x) < 0.34f ? fsm_growth(x) : fsm_exp(x) - 1.0f;
}

/* Return the logarithm of a positive, finite number, as a sum. */
static struct fsm_sum fsm_logarithm(float x)
{
    float power = 0.0f;
    if (x < 0x1p-126f) {
        x *= 0x1p24f;
        power = -24.0f;
    }
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    power += (float)((int32_t)(bits >> 23) - 127);
    bits = (bits & 0x7fffffu) | 0x3f800000u;
    memcpy(&x, &bits, sizeof x);
    if (x > 1.41421356237f) {
        x *= 0.5f;
        power += 1.0f;
    }
    float m = x - 1.0f;
    struct fsm_sum square = fsm_two_product(m, m);
    float series = ((7.0376836292e-2f * m - 1.1514610310e-1f) * m + 1.1676998740e-1f) * m - 1.2420140846e-1f;
    series = ((series * m + 1.4249322787e-1f) * m - 1.6668057665e-1f) * m + 2.0000714765e-1f;
    series = ((series * m - 2.4999993993e-1f) * m + 3.3333331174e-1f) * m * square.high;
    struct fsm_sum a = fsm_two_sum(power * FSM_LN2_HIGH, m), b = fsm_two_sum(a.high, -0.5f * square.high);
    float low = (a.low + b.low) - 0.5f * square.low + (power * FSM_LN2_LOW + series);
    return fsm_two_sum(b.high, low);
}

FSM_API float fsm_log(float x)
{
    if (!(x > 0.0f) || isinf(x)) {
        return x == 0.0f ? -FSM_INFINITY : x < 0.0f ? FSM_NAN : x;
    }
    return fsm_logarithm(x).high;
}

/* Return |x|^y where x is zero or infinite or y is infinite, neither is NaN, and y is not 0. */
static float fsm_power_at_the_edge(float x, float y)
{
    if (x == 0.0f || isinf(x)) {
        return (x == 0.0f) == (y > 0.0f) ? 0.0f : FSM_INFINITY;
    }
    return x == 1.0f ? 1.0f : (x > 1.0f) == (y > 0.0f) ? FSM_INFINITY : 0.0f;
}

FSM_API float fsm_pow(float x, float y)
{
    if (y == 0.0f || x == 1.0f) {
        return 1.0f;
    }
    if (isnan(x) || isnan(y)) {
        return x + y;
    }
    bool integer = floorf(y) == y, odd = integer && fabsf(y) < 0x1p24f && ((int32_t)y & 1);
    float sign = signbit(x) && odd ? -1.0f : 1.0f, base = fabsf(x);
    if (x == 0.0f || isinf(x) || isinf(y)) {
        return sign * fsm_power_at_the_edge(base, y);
    }
    if (x < 0.0f && !integer) {
        return FSM_NAN;
    }
    struct fsm_sum l = fsm_logarithm(base);
    float estimate = y * l.high;
    if (!(fabsf(estimate) < 200.0f)) {
        return sign * (estimate > 0.0f ? FSM_INFINITY : 0.0f);
    }
    struct fsm_sum p = fabsf(y) < 0x1p60f && fabsf(y) > 0x1p-60f ? fsm_two_product(y, l.high)
                                                                 : (struct fsm_sum){estimate, 0.0f};
    return sign * fsm_exponential(p.high, p.low + y * l.low);
}

FSM_API float fsm_sinh(float x)
{
    float a = fabsf(x);
    if (a < FSM_LINEAR) {
        return x;
    }
    if (a <= 1.0f) {
        float z = x * x;
        return ((2.03721912945e-4f * z + 8.33028376239e-3f) * z + 1.66667160211e-1f) * z * x + x;
    }
    float e = fsm_exponential(a - FSM_LN2_HIGH, -FSM_LN2_LOW); // half of exp a
    return copysignf(e - 0.25f / e, x);
}

FSM_API float fsm_cosh(float x)
{
    float e = fsm_exponential(fabsf(x) - FSM_LN2_HIGH, -FSM_LN2_LOW);
    return e + 0.25f / e;
}

FSM_API float fsm_tanh(float x)
{
    float a = fabsf(x);
    if (a < FSM_LINEAR) {
        return x;
    }
    if (a < 0.625f) {
        float z = x * x;
        float series = ((-5.70498872745e-3f * z + 2.06390887954e-2f) * z - 5.37397155531e-2f) * z + 1.33314422036e-1f;
        return (series * z - 3.33332819422e-1f) * z * x + x;
    }
    return isnan(x) ? x : copysignf(1.0f - 2.0f / (fsm_exp(2.0f * a) + 1.0f), x);
}

FSM_API float fsm_hypot(float x, float y)
{
    float large = fsm_larger(fabsf(x), fabsf(y)), small = fsm_smaller(fabsf(x), fabsf(y));
    if (isinf(x) || isinf(y)) {
        return FSM_INFINITY;
    }
    if (isnan(x) || isnan(y) || large == 0.0f) {
        return fabsf(x) + fabsf(y);
    }
    float scale = large > 0x1p60f ? 0x1p-80f : large < 0x1p-60f ? 0x1p80f : 1.0f;
    large *= scale;
    small *= scale;
    return sqrtf(large * large + small * small) / scale;
}
