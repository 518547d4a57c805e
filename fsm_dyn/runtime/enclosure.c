/* Interval arithmetic on values and their first two rates (jets), and the interpreter of programs for it.

   Where a value or a rate jumps, its rate is unbounded; a second rate bounds the curvature between kinks, and is unbounded on
   the side to which the slope jumps at one.

   R. E. Moore, R. B. Kearfott, M. J. Cloud, Introduction to Interval Analysis, SIAM 2009, chapters 2, 5 and 6. */

#include <string.h>

#include "elementary.h"
#include "intervals.h"

#define LARGEST_ARG     1e8  // of sines; beyond that their bounds are -1 and 1
#define LARGEST_INTEGER 1e15 // of floor; beyond that their numbers are not told apart

/* The jet of f(x) from the intervals of f(x), f'(x) and f''(x). */
static inline struct fsm_jet chain(const struct fsm_jet *x, struct fsm_interval f, struct fsm_interval slope,
                                   struct fsm_interval bend)
{
    if (is_line(f)) {
        return (struct fsm_jet){LINE, LINE, LINE};
    }
    return (struct fsm_jet){
        f, i_mul(slope, x->rate),
        is_zero(x->rate) ? i_mul(slope, x->second)
                         : i_add(i_mul(slope, x->second), i_mul(bend, i_square(x->rate)))};
}

/* The jet of a quantity that may jump: it has a value, and no bounds on rates unless it is a single one. */
static inline struct fsm_jet step_jet(double low, double high)
{
    bool constant = low == high;
    return (struct fsm_jet){{low, high}, constant ? ZERO : LINE, constant ? ZERO : LINE};
}

static inline double sign_of(double a)
{
    return a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : 0.0;
}

/* Whether `shift` plus a whole number lies in [low, high]. */
static bool holds_whole(double low, double high, double shift)
{
    double room = 4.0 * FSM_EPS * (1.0 + most_of(fabs(low), fabs(high))), above = high - shift, below = low - shift;
    double most = floor(above + room), least = -floor(room - below);
    return most >= least;
}

/* Bounds of cosine (`turn` 0) or sine (`turn` a quarter) of an interval, in turns where extrema are looked for. */
static struct fsm_interval i_wave(struct fsm_interval a, double at_low, double at_high, double turn)
{
    const double circle = 2.0 * FSM_PI;
    double low = a.low / circle, high = a.high / circle;
    struct fsm_interval r = outward_by(least_of(at_low, at_high), most_of(at_low, at_high), 0.0);
    r.low = holds_whole(low, high, turn + 0.5) ? -1.0 : most_of(r.low - WIDEN_MORE, -1.0);
    r.high = holds_whole(low, high, turn) ? 1.0 : least_of(r.high + WIDEN_MORE, 1.0);
    return r;
}

static void i_sin_cos(struct fsm_interval a, struct fsm_interval *sine, struct fsm_interval *cosine)
{
    if (!(a.high - a.low < 2.0 * FSM_PI) || !(magnitude(a) < LARGEST_ARG)) {
        *sine = *cosine = symmetric(1.0);
        return;
    }
    double low[2], high[2];
    fsm_sin_cos(a.low, low);
    if (a.low == a.high) {
        high[0] = low[0];
        high[1] = low[1];
    } else {
        fsm_sin_cos(a.high, high);
    }
    *sine = i_wave(a, low[0], high[0], 0.25);
    *cosine = i_wave(a, low[1], high[1], 0.0);
}

static struct fsm_jet jet_of_product(const struct fsm_jet *x, const struct fsm_jet *y)
{
    return (struct fsm_jet){
        i_mul(x->value, y->value),
        i_add(i_mul(x->value, y->rate), i_mul(x->rate, y->value)),
        i_add(i_add(i_mul(x->value, y->second), i_mul(x->second, y->value)), i_scale(2.0, i_mul(x->rate, y->rate)))};
}

static struct fsm_jet jet_of_square(const struct fsm_jet *x)
{
    return (struct fsm_jet){i_square(x->value), i_scale(2.0, i_mul(x->value, x->rate)),
                            i_scale(2.0, i_add(i_square(x->rate), i_mul(x->value, x->second)))};
}

static inline void divide(const struct fsm_jet *x, const struct fsm_jet *y, int64_t order, struct fsm_jet *out)
{
    struct fsm_interval k = i_reciprocal(y->value);
    if (is_line(k)) {
        *out = (struct fsm_jet){LINE, LINE, LINE};
        return;
    }
    struct fsm_interval value = i_mul(x->value, k), rate = LINE, second = LINE;
    if (order > 0) {
        rate = i_mul(i_sub(x->rate, i_mul(value, y->rate)), k);
    }
    if (order > 1) {
        struct fsm_interval rates = i_scale(2.0, i_mul(rate, y->rate));
        second = i_mul(i_sub(i_sub(x->second, rates), i_mul(value, y->second)), k);
    }
    out->value = value;
    out->rate = rate;
    out->second = second;
}

static struct fsm_jet jet_of_root(const struct fsm_jet *x)
{
    struct fsm_interval v = {sqrt(most_of(x->value.low, 0.0)), sqrt(most_of(x->value.high, 0.0))};
    v = outward(v.low, v.high);
    v.low = most_of(v.low, 0.0);
    struct fsm_interval k = i_scale(0.5, i_reciprocal(v));
    return chain(x, v, k, i_scale(-0.5, i_mul(k, i_reciprocal(x->value))));
}

/* The distance |v|: |v|' lies within |v'|, and -|v''| <= |v|'' <= |v'|^2 / |v| + |v''|; it is convex where v'' is zero. */
static struct fsm_jet jet_of_norm(const struct fsm_jet *const *parts, int64_t count)
{
    struct fsm_interval square = ZERO, product = ZERO;
    double speed = 0.0, bend = 0.0;
    for (int64_t i = 0; i < count; i++) {
        square = i_add(square, i_square(parts[i]->value));
        product = i_add(product, i_mul(parts[i]->value, parts[i]->rate));
        speed += fsm_square(magnitude(parts[i]->rate));
        bend += fsm_square(magnitude(parts[i]->second));
    }
    struct fsm_interval v = outward(sqrt(most_of(square.low, 0.0)), sqrt(square.high));
    v.low = most_of(v.low, 0.0);
    double fast = sqrt(speed) * (1.0 + WIDEN_MORE), turn = sqrt(bend) * (1.0 + WIDEN_MORE);
    struct fsm_interval rate = i_meet(i_mul(product, i_reciprocal(v)), symmetric(fast));
    double most = v.low > 0.0 ? fast * fast / v.low + turn : FSM_INFINITY;
    return (struct fsm_jet){v, rate, {-turn, most * (1.0 + WIDEN_MORE)}};
}

FSM_LOCAL struct fsm_jet fsm_jet_absolute(const struct fsm_jet *x)
{
    if (x->value.low >= 0.0) {
        return *x;
    }
    if (x->value.high <= 0.0) {
        return (struct fsm_jet){i_neg(x->value), i_neg(x->rate), i_neg(x->second)};
    }
    return (struct fsm_jet){
        {0.0, magnitude(x->value)}, symmetric(magnitude(x->rate)), {-magnitude(x->second), FSM_INFINITY}};
}

/* The larger (`sign` 1) or smaller (-1) of two: at a crossing the slope jumps up, or down. */
static struct fsm_jet jet_of_extreme(const struct fsm_jet *x, const struct fsm_jet *y, bool larger)
{
    if (larger ? x->value.low >= y->value.high : x->value.high <= y->value.low) {
        return *x;
    }
    if (larger ? y->value.low >= x->value.high : y->value.high <= x->value.low) {
        return *y;
    }
    struct fsm_jet r = {ZERO, fsm_hull(x->rate, y->rate), fsm_hull(x->second, y->second)};
    if (larger) {
        r.value = (struct fsm_interval){most_of(x->value.low, y->value.low), most_of(x->value.high, y->value.high)};
        r.second.high = FSM_INFINITY;
    } else {
        r.value = (struct fsm_interval){least_of(x->value.low, y->value.low), least_of(x->value.high, y->value.high)};
        r.second.low = -FSM_INFINITY;
    }
    return r;
}

static struct fsm_interval power_of(double base_low, double base_high, double n)
{
    double a = fsm_pow(base_low, n), b = fsm_pow(base_high, n);
    return outward_by(least_of(a, b), most_of(a, b), WIDEN_MORE);
}

/* x^n for a number n. */
static struct fsm_interval i_power(struct fsm_interval x, double n)
{
    if (n == 0.0) {
        return (struct fsm_interval){1.0, 1.0};
    }
    bool whole = floor(n) == n, even = whole && fmod(n, 2.0) == 0.0;
    if (!whole) {
        double low = most_of(x.low, 0.0);
        return x.high >= 0.0 ? power_of(low, most_of(x.high, 0.0), n) : LINE;
    }
    if (x.low > 0.0 || x.high < 0.0) {
        return power_of(x.low, x.high, n);
    }
    if (n < 0.0) {
        return even ? (struct fsm_interval){0.0, FSM_INFINITY} : LINE;
    }
    return even ? (struct fsm_interval){0.0, power_of(magnitude(x), magnitude(x), n).high} : power_of(x.low, x.high, n);
}

static struct fsm_jet jet_of_exponential(const struct fsm_jet *x)
{
    struct fsm_interval v = outward_by(fsm_exp(x->value.low), fsm_exp(x->value.high), WIDEN_MORE);
    v.low = most_of(v.low, 0.0);
    return chain(x, v, v, v);
}

static struct fsm_jet jet_of_logarithm(const struct fsm_jet *x)
{
    if (!(x->value.high > 0.0)) {
        return (struct fsm_jet){LINE, LINE, LINE};
    }
    double low = x->value.low > 0.0 ? fsm_log(x->value.low) : -FSM_INFINITY;
    struct fsm_interval k = i_reciprocal((struct fsm_interval){most_of(x->value.low, 0.0), x->value.high});
    return chain(x, outward_by(low, fsm_log(x->value.high), WIDEN_MORE), k, i_neg(i_square(k)));
}

static struct fsm_jet jet_of_power(const struct fsm_jet *x, const struct fsm_jet *y)
{
    if (y->value.low == y->value.high && is_zero(y->rate) && is_zero(y->second)) {
        double n = y->value.low;
        struct fsm_interval slope = i_scale(n, i_power(x->value, n - 1.0));
        struct fsm_interval bend = i_scale(n * (n - 1.0), i_power(x->value, n - 2.0));
        return chain(x, i_power(x->value, n), outward(slope.low, slope.high), outward_by(bend.low, bend.high, WIDEN_MORE));
    }
    if (!(x->value.low > 0.0)) {
        return (struct fsm_jet){LINE, LINE, LINE};
    }
    struct fsm_jet logarithm = jet_of_logarithm(x), exponent = jet_of_product(y, &logarithm);
    return jet_of_exponential(&exponent);
}

/* The angle of the vector (x, y), whose rate is (x y' - y x') / (x^2 + y^2). */
static struct fsm_jet jet_of_angle(const struct fsm_jet *y, const struct fsm_jet *x)
{
    bool cut = x->value.low <= 0.0 && y->value.low <= 0.0 && y->value.high >= 0.0;
    if (cut) {
        bool still = x->value.high < 0.0 && is_zero(y->value) && is_zero(y->rate) && is_zero(y->second);
        return (struct fsm_jet){symmetric(FSM_PI * (1.0 + WIDEN_MORE)), still ? ZERO : LINE, still ? ZERO : LINE};
    }
    double a = fsm_atan2(y->value.low, x->value.low), b = fsm_atan2(y->value.low, x->value.high);
    double c = fsm_atan2(y->value.high, x->value.low), d = fsm_atan2(y->value.high, x->value.high);
    struct fsm_jet r;
    r.value = outward_by(least_of(least_of(a, b), least_of(c, d)), most_of(most_of(a, b), most_of(c, d)), WIDEN_MORE);
    struct fsm_jet xx = jet_of_square(x), yy = jet_of_square(y);
    struct fsm_interval k = i_reciprocal(i_add(xx.value, yy.value));
    r.rate = i_mul(i_sub(i_mul(x->value, y->rate), i_mul(y->value, x->rate)), k);
    r.second = i_mul(i_sub(i_sub(i_mul(x->value, y->second), i_mul(y->value, x->second)),
                           i_mul(r.rate, i_add(xx.rate, yy.rate))), k);
    return r;
}

static struct fsm_jet jet_of_remainder(const struct fsm_jet *x, const struct fsm_jet *y)
{
    struct fsm_jet quotient;
    divide(x, y, 0, &quotient);
    double first = floor(quotient.value.low), last = floor(quotient.value.high);
    struct fsm_interval range = {least_of(y->value.low, 0.0), most_of(y->value.high, 0.0)};
    if (!(first == last) || !(fabs(first) < LARGEST_INTEGER)) {
        return (struct fsm_jet){range, LINE, LINE};
    }
    struct fsm_interval whole = {first, first};
    return (struct fsm_jet){i_meet(i_sub(x->value, i_mul(whole, y->value)), range),
                            i_sub(x->rate, i_mul(whole, y->rate)), i_sub(x->second, i_mul(whole, y->second))};
}

static struct fsm_jet jet_of_truth(bool certain, bool possible)
{
    return step_jet(certain ? 1.0 : 0.0, possible ? 1.0 : 0.0);
}

static bool surely_true(const struct fsm_jet *x)
{
    return x->value.low > 0.0 || x->value.high < 0.0;
}

static bool surely_false(const struct fsm_jet *x)
{
    return is_zero(x->value);
}

static struct fsm_jet jet_of_comparison(enum fsm_enclosed_operation op, const struct fsm_jet *x, const struct fsm_jet *y)
{
    struct fsm_interval a = x->value, b = y->value;
    bool one = a.low == a.high && b.low == b.high && a.low == b.low, apart = a.high < b.low || b.high < a.low;
    switch (op) {
    case FSM_OP_LT:
        return jet_of_truth(a.high < b.low, a.low < b.high);
    case FSM_OP_LE:
        return jet_of_truth(a.high <= b.low, a.low <= b.high);
    case FSM_OP_EQ:
        return jet_of_truth(one, !apart);
    default:
        return jet_of_truth(apart, !one);
    }
}

static struct fsm_jet jet_of_choice(const struct fsm_jet *condition, const struct fsm_jet *x, const struct fsm_jet *y)
{
    if (surely_true(condition)) {
        return *x;
    }
    if (surely_false(condition)) {
        return *y;
    }
    bool same = x->value.low == x->value.high && y->value.low == y->value.high && x->value.low == y->value.low;
    return (struct fsm_jet){fsm_hull(x->value, y->value), same ? fsm_hull(x->rate, y->rate) : LINE, LINE};
}

static struct fsm_jet jet_of_tangent(const struct fsm_jet *x)
{
    struct fsm_interval sine, cosine;
    i_sin_cos(x->value, &sine, &cosine);
    struct fsm_interval v = LINE;
    if (cosine.low > 0.0 || cosine.high < 0.0) {
        v = outward_by(fsm_tan(x->value.low), fsm_tan(x->value.high), WIDEN_MORE);
    }
    struct fsm_interval slope = i_add((struct fsm_interval){1.0, 1.0}, i_square(v));
    return chain(x, v, slope, i_scale(2.0, i_mul(v, slope)));
}

/* Arcsine (`sign` 1) or arccosine (-1), of the part within [-1, 1]. */
static struct fsm_jet jet_of_arc(const struct fsm_jet *x, double sign)
{
    double low = most_of(x->value.low, -1.0), high = least_of(x->value.high, 1.0);
    if (!(low <= high)) {
        return (struct fsm_jet){LINE, LINE, LINE};
    }
    struct fsm_interval v = sign > 0.0 ? outward_by(fsm_asin(low), fsm_asin(high), WIDEN_MORE)
                                       : outward_by(fsm_acos(high), fsm_acos(low), WIDEN_MORE);
    struct fsm_interval part = {low, high};
    struct fsm_interval rest = i_sub((struct fsm_interval){1.0, 1.0}, i_square(part));
    struct fsm_interval root = {sqrt(most_of(rest.low, 0.0)) * (1.0 - WIDEN), sqrt(most_of(rest.high, 0.0)) * (1.0 + WIDEN)};
    struct fsm_interval k = i_reciprocal(root), slope = i_scale(sign, k);
    return chain(x, v, slope, i_mul(slope, i_mul(part, i_square(k))));
}

static struct fsm_jet jet_of_hyperbolic(enum fsm_enclosed_operation op, const struct fsm_jet *x)
{
    double low = x->value.low, high = x->value.high;
    struct fsm_interval sine = outward_by(fsm_sinh(low), fsm_sinh(high), WIDEN_MORE);
    double near = low > 0.0 ? low : high < 0.0 ? -high : 0.0;
    struct fsm_interval cosine = outward_by(fsm_cosh(near), fsm_cosh(magnitude(x->value)), WIDEN_MORE);
    if (op == FSM_OP_SINH) {
        return chain(x, sine, cosine, sine);
    }
    if (op == FSM_OP_COSH) {
        return chain(x, cosine, sine, cosine);
    }
    struct fsm_interval v = outward_by(fsm_tanh(low), fsm_tanh(high), WIDEN_MORE);
    struct fsm_interval slope = i_sub((struct fsm_interval){1.0, 1.0}, i_square(v));
    slope.low = most_of(slope.low, 0.0);
    return chain(x, v, slope, i_scale(-2.0, i_mul(v, slope)));
}

static struct fsm_jet jet_of_arctangent(const struct fsm_jet *x)
{
    struct fsm_interval v = outward_by(fsm_atan(x->value.low), fsm_atan(x->value.high), WIDEN_MORE);
    struct fsm_interval k = i_reciprocal(i_add((struct fsm_interval){1.0, 1.0}, i_square(x->value)));
    return chain(x, v, k, i_scale(-2.0, i_mul(x->value, i_square(k))));
}

static struct fsm_jet jet_of_sine(enum fsm_enclosed_operation op, const struct fsm_jet *x)
{
    struct fsm_interval sine, cosine;
    i_sin_cos(x->value, &sine, &cosine);
    return op == FSM_OP_SIN ? chain(x, sine, cosine, i_neg(sine)) : chain(x, cosine, i_neg(sine), i_neg(cosine));
}

/* All operations but those that the interpreter does itself. */
static struct fsm_jet jet_of(enum fsm_enclosed_operation op, const struct fsm_jet *x, const struct fsm_jet *y,
                             const struct fsm_jet *z)
{
    bool both, either;
    switch (op) {
    case FSM_OP_POW:
        return jet_of_power(x, y);
    case FSM_OP_SQRT:
        return jet_of_root(x);
    case FSM_OP_EXP:
        return jet_of_exponential(x);
    case FSM_OP_LOG:
        return jet_of_logarithm(x);
    case FSM_OP_SIN:
    case FSM_OP_COS:
        return jet_of_sine(op, x);
    case FSM_OP_TAN:
        return jet_of_tangent(x);
    case FSM_OP_ASIN:
        return jet_of_arc(x, 1.0);
    case FSM_OP_ACOS:
        return jet_of_arc(x, -1.0);
    case FSM_OP_ATAN:
        return jet_of_arctangent(x);
    case FSM_OP_ATAN2:
        return jet_of_angle(x, y);
    case FSM_OP_SINH:
    case FSM_OP_COSH:
    case FSM_OP_TANH:
        return jet_of_hyperbolic(op, x);
    case FSM_OP_ABS:
        return fsm_jet_absolute(x);
    case FSM_OP_SIGN:
        return step_jet(sign_of(x->value.low), sign_of(x->value.high));
    case FSM_OP_FLOOR:
        return step_jet(floor(x->value.low), floor(x->value.high));
    case FSM_OP_MOD:
        return jet_of_remainder(x, y);
    case FSM_OP_MIN:
    case FSM_OP_MAX:
        return jet_of_extreme(x, y, op == FSM_OP_MAX);
    case FSM_OP_LT:
    case FSM_OP_LE:
    case FSM_OP_EQ:
    case FSM_OP_NE:
        return jet_of_comparison(op, x, y);
    case FSM_OP_AND:
        both = surely_true(x) && surely_true(y);
        return jet_of_truth(both, !surely_false(x) && !surely_false(y));
    case FSM_OP_OR:
        either = surely_true(x) || surely_true(y);
        return jet_of_truth(either, !surely_false(x) || !surely_false(y));
    case FSM_OP_NOT:
        return jet_of_truth(surely_false(x), !surely_true(x));
    case FSM_OP_WHERE:
        return jet_of_choice(x, y, z);
    case FSM_OP_NORM:
        return jet_of_norm((const struct fsm_jet *const[]){x, y, z}, x == z ? 2 : 3);
    default:
        return (struct fsm_jet){LINE, LINE, LINE};
    }
}

/* Up to which rate a jet is evaluated: `order` 0, 1 or 2.  There are no bounds of rates beyond.

   Jets are written part by part: copies of them as a whole would wait for their parts to be stored. */
static inline void add(const struct fsm_jet *x, const struct fsm_jet *y, int64_t order, struct fsm_jet *out)
{
    out->value = i_add(x->value, y->value);
    out->rate = order > 0 ? i_add(x->rate, y->rate) : LINE;
    out->second = order > 1 ? i_add(x->second, y->second) : LINE;
}

static inline void subtract(const struct fsm_jet *x, const struct fsm_jet *y, int64_t order, struct fsm_jet *out)
{
    out->value = i_sub(x->value, y->value);
    out->rate = order > 0 ? i_sub(x->rate, y->rate) : LINE;
    out->second = order > 1 ? i_sub(x->second, y->second) : LINE;
}

static inline void multiply(const struct fsm_jet *x, const struct fsm_jet *y, int64_t order, struct fsm_jet *out)
{
    struct fsm_interval a = x->value, b = y->value;
    out->value = i_mul(a, b);
    out->rate = out->second = LINE;
    if (order == 0) {
        return;
    }
    if (is_zero(x->rate) && is_zero(x->second)) {
        out->rate = i_mul(a, y->rate);
        out->second = order > 1 ? i_mul(a, y->second) : LINE;
    } else if (is_zero(y->rate) && is_zero(y->second)) {
        out->rate = i_mul(b, x->rate);
        out->second = order > 1 ? i_mul(b, x->second) : LINE;
    } else {
        out->rate = i_add(i_mul(a, y->rate), i_mul(x->rate, b));
        if (order > 1) {
            struct fsm_interval rates = i_scale(2.0, i_mul(x->rate, y->rate));
            out->second = i_add(i_add(i_mul(a, y->second), i_mul(x->second, b)), rates);
        }
    }
}

static inline void square(const struct fsm_jet *x, int64_t order, struct fsm_jet *out)
{
    struct fsm_interval a = x->value;
    out->value = i_square(a);
    out->rate = order > 0 ? i_scale(2.0, i_mul(a, x->rate)) : LINE;
    out->second = order > 1 ? i_scale(2.0, i_add(i_square(x->rate), i_mul(a, x->second))) : LINE;
}

static inline void run_instruction(int64_t word, const struct fsm_jet *jets, int64_t order, struct fsm_jet *out)
{
    const int64_t mask = (1 << FSM_OPERAND_BITS) - 1;
    enum fsm_enclosed_operation op = (enum fsm_enclosed_operation)(word & 255);
    const struct fsm_jet *x = jets + ((word >> 8) & mask), *y = jets + ((word >> (8 + FSM_OPERAND_BITS)) & mask);
    switch (op) {
    case FSM_OP_NEG:
        out->value = i_neg(x->value);
        out->rate = i_neg(x->rate);
        out->second = i_neg(x->second);
        break;
    case FSM_OP_ADD:
        add(x, y, order, out);
        break;
    case FSM_OP_SUB:
        subtract(x, y, order, out);
        break;
    case FSM_OP_MUL:
        if (x == y) {
            square(x, order, out);
        } else {
            multiply(x, y, order, out);
        }
        break;
    case FSM_OP_DIV:
        divide(x, y, order, out);
        break;
    default:
        *out = jet_of(op, x, y, jets + ((word >> (8 + 2 * FSM_OPERAND_BITS)) & mask));
    }
}

static struct fsm_jet jet_of_number(double value)
{
    return (struct fsm_jet){{value, value}, ZERO, ZERO};
}

static void put_fixed(const struct fsm_enclosure *p, struct fsm_jet *jets)
{
    struct fsm_jet *next = jets + p->moving + p->fixed;
    for (int64_t i = 0; i < p->constants; i++) {
        *next++ = jet_of_number(p->numbers[i]);
    }
    for (int64_t i = 0; i < p->fixed_operations; i++, next++) {
        run_instruction(p->code[i], jets, 0, next);
        next->rate = next->second = ZERO;
    }
}

/* Write what does not change in a mode: fixed arguments, from the context `c` that follows a state of length `n_x`,
   constants, and operations on these. */
FSM_LOCAL void fsm_enclose_fixed(const struct fsm_enclosure *p, const double *c, int64_t n_x, struct fsm_jet *jets)
{
    for (int64_t i = p->moving; i < p->moving + p->fixed; i++) {
        jets[i] = jet_of_number(c[p->arguments[i] - 1 - n_x]);
    }
    put_fixed(p, jets);
}

/* The same for any values between -1 and 1 of the fixed arguments `begin` up to (not including) `end`. */
FSM_LOCAL void fsm_enclose_any(const struct fsm_enclosure *p, int64_t begin, int64_t end, struct fsm_jet *jets)
{
    for (int64_t i = p->moving; i < p->moving + p->fixed; i++) {
        if (p->arguments[i] >= begin && p->arguments[i] < end) {
            jets[i].value = symmetric(1.0);
        }
    }
    put_fixed(p, jets);
}

/* Narrow a jet by that of the middle: a value or a rate differs from it by no more than its own rate does times `reach`. */
static inline void narrow(struct fsm_jet *jet, const struct fsm_jet *middle, double reach)
{
    double rate = reach * magnitude(jet->second), value;
    if (rate < FSM_INFINITY) {
        jet->rate = i_meet(jet->rate, i_add(middle->rate, symmetric(rate)));
    }
    value = reach * magnitude(jet->rate);
    if (value < FSM_INFINITY) {
        jet->value = i_meet(jet->value, i_add(middle->value, symmetric(value)));
    }
}

/* Sine and cosine of a number, kept for the next operation on the same operand. */
struct wave {
    int64_t operand;
    double angle, sine, cosine;
};

/* Bounds of a function on an interval about `angle`, from the function and its derivative there, both waves. */
static inline struct fsm_interval about(double angle, double function, double derivative, struct fsm_interval a)
{
    double r = most_of(a.high - angle, angle - a.low) * (1.0 + WIDEN);
    double off = fabs(derivative) * r + 0.5 * r * r + WIDEN_MORE;
    return (struct fsm_interval){most_of(function - off, -1.0), least_of(function + off, 1.0)};
}

/* The jet of a sine or cosine about the angle of a wave. */
static inline void put_wave(enum fsm_enclosed_operation op, const struct wave *w, const struct fsm_jet *x, int64_t order,
                            struct fsm_jet *out)
{
    struct fsm_interval sine = about(w->angle, w->sine, w->cosine, x->value);
    struct fsm_interval cosine = about(w->angle, w->cosine, w->sine, x->value);
    struct fsm_interval f = op == FSM_OP_SIN ? sine : cosine, slope = op == FSM_OP_SIN ? cosine : i_neg(sine);
    out->value = f;
    out->rate = order > 0 ? i_mul(slope, x->rate) : LINE;
    out->second = order > 1 ? i_sub(i_mul(slope, x->second), i_mul(f, i_square(x->rate))) : LINE;
}

/* Evaluate a sine or cosine on a piece and in its middle with one call of the function. */
static void run_wave(int64_t word, struct wave *w, int64_t order, const struct fsm_jet *jets, const struct fsm_jet *middle,
                     struct fsm_jet *out, struct fsm_jet *out_middle)
{
    int64_t operand = (word >> 8) & ((1 << FSM_OPERAND_BITS) - 1);
    struct fsm_interval at = middle[operand].value;
    if (operand != w->operand) {
        double both[2];
        w->operand = operand;
        w->angle = 0.5 * (at.low + at.high);
        if (!(fabs(w->angle) < LARGEST_ARG)) { // no bounds but -1 and 1
            *w = (struct wave){-1, 0.0, 0.0, 0.0};
            run_instruction(word, jets, order, out);
            run_instruction(word, middle, order, out_middle);
            return;
        }
        fsm_sin_cos(w->angle, both);
        w->sine = both[0];
        w->cosine = both[1];
    }
    enum fsm_enclosed_operation op = (enum fsm_enclosed_operation)(word & 255);
    put_wave(op, w, jets + operand, order, out);
    put_wave(op, w, middle + operand, order - 1, out_middle);
}

/* Return the next of `n` operations from `i` on that is `needed`, `n` if there is none; NULL: all are.

   Of many contacts few are near: zeros are passed over eight at a time. */
static inline int64_t next_needed(const int8_t *needed, int64_t i, int64_t n)
{
    if (needed == NULL || i >= n || needed[i] != 0) {
        return i;
    }
    for (uint64_t eight = 0; eight == 0 && i + 8 <= n; i += eight == 0 ? 8 : 0) {
        memcpy(&eight, needed + i, sizeof eight);
    }
    while (i < n && needed[i] == 0) {
        i++;
    }
    return i;
}

/* Evaluate the operations that are `needed` (operations,), NULL for all, up to the rate of `order` 1 or 2; the arguments'
   jets are in `jets`.

   `middle`: jets of the arguments in the middle of the piece, `reach` (s) from its ends, with room for those of the
   operations, by which those of the piece are narrowed (the mean value form) and which are evaluated up to a rate less;
   NULL where there is none.  Returns how many operations were evaluated. */
FSM_LOCAL int64_t fsm_enclose(const struct fsm_enclosure *p, const int8_t *needed, int64_t order, struct fsm_jet *jets,
                              struct fsm_jet *middle, double reach)
{
    int64_t evaluated = 0;
    const int64_t *code = p->code + p->fixed_operations;
    int64_t first = fsm_enclosure_size(p) - p->operations;
    struct wave wave = {-1, 0.0, 0.0, 0.0};
    for (int64_t i = next_needed(needed, 0, p->operations); i < p->operations; i = next_needed(needed, i + 1, p->operations)) {
        struct fsm_jet *out = jets + first + i, *out_middle = middle == NULL ? NULL : middle + first + i;
        int64_t op = code[i] & 255;
        evaluated++;
        if (middle == NULL) {
            run_instruction(code[i], jets, order, out);
            continue;
        }
        if (op == FSM_OP_SIN || op == FSM_OP_COS) {
            run_wave(code[i], &wave, order, jets, middle, out, out_middle);
        } else {
            run_instruction(code[i], jets, order, out);
            run_instruction(code[i], middle, order - 1, out_middle);
        }
        narrow(out, out_middle, reach);
    }
    return evaluated;
}

static inline int moves(struct fsm_jet const *jets, int64_t operand)
{
    return jets[operand].rate.low < jets[operand].rate.high;
}

/* Evaluate the first rates of the operations that are `needed`, whose values are known, where those of arguments are zero
   or lie about it: an operation does not change on whose operands none acts. */
FSM_LOCAL void fsm_enclose_rates(const struct fsm_enclosure *p, const int8_t *needed, struct fsm_jet *jets)
{
    const int64_t *code = p->code + p->fixed_operations, mask = (1 << FSM_OPERAND_BITS) - 1;
    struct fsm_jet *results = jets + fsm_enclosure_size(p) - p->operations;
    for (int64_t i = next_needed(needed, 0, p->operations); i < p->operations; i = next_needed(needed, i + 1, p->operations)) {
        struct fsm_jet *out = results + i;
        int64_t x = (code[i] >> 8) & mask, y = (code[i] >> (8 + FSM_OPERAND_BITS)) & mask;
        int64_t z = (code[i] >> (8 + 2 * FSM_OPERAND_BITS)) & mask;
        if (moves(jets, x) || moves(jets, y) || moves(jets, z)) {
            run_instruction(code[i], jets, 1, out);
        } else {
            out->rate = ZERO;
        }
    }
}

/* Evaluate the values alone of the operations that are `needed`, at a point: rates become zero.  Returns how many. */
FSM_LOCAL int64_t fsm_enclose_values(const struct fsm_enclosure *p, const int8_t *needed, struct fsm_jet *jets)
{
    const int64_t *code = p->code + p->fixed_operations, mask = (1 << FSM_OPERAND_BITS) - 1;
    struct fsm_jet *results = jets + fsm_enclosure_size(p) - p->operations;
    struct wave wave = {-1, 0.0, 0.0, 0.0};
    int64_t evaluated = 0;
    for (int64_t i = next_needed(needed, 0, p->operations); i < p->operations; i = next_needed(needed, i + 1, p->operations)) {
        struct fsm_jet *out = results + i;
        const struct fsm_jet *x = jets + ((code[i] >> 8) & mask), *y = jets + ((code[i] >> (8 + FSM_OPERAND_BITS)) & mask);
        int64_t op = code[i] & 255;
        evaluated++;
        if (op == FSM_OP_ADD) {
            out->value = i_add(x->value, y->value);
        } else if (op == FSM_OP_SUB) {
            out->value = i_sub(x->value, y->value);
        } else if (op == FSM_OP_MUL && x != y) {
            out->value = i_mul(x->value, y->value);
        } else if (op == FSM_OP_SIN || op == FSM_OP_COS) {
            struct fsm_jet same;
            run_wave(code[i], &wave, 0, jets, jets, out, &same);
        } else {
            run_instruction(code[i], jets, 0, out);
        }
        out->rate = out->second = ZERO;
    }
    return evaluated;
}

FSM_LOCAL void fsm_narrow(struct fsm_jet *jet, const struct fsm_jet *middle, double reach)
{
    narrow(jet, middle, reach);
}

FSM_LOCAL struct fsm_interval fsm_less_product(struct fsm_interval a, struct fsm_interval x, struct fsm_interval y)
{
    return i_sub(a, i_mul(x, y));
}

FSM_LOCAL struct fsm_jet fsm_jet_product(const struct fsm_jet *x, const struct fsm_jet *y)
{
    struct fsm_jet product;
    multiply(x, y, 2, &product);
    return product;
}

/* x + y, or x - y where `sign` is -1. */
FSM_LOCAL struct fsm_jet fsm_jet_sum(const struct fsm_jet *x, const struct fsm_jet *y, double sign)
{
    return (struct fsm_jet){i_add(x->value, i_scale(sign, y->value)), i_add(x->rate, i_scale(sign, y->rate)),
                            i_add(x->second, i_scale(sign, y->second))};
}

/* The root of x^2 + y^2. */
FSM_LOCAL struct fsm_jet fsm_jet_norm(const struct fsm_jet *x, const struct fsm_jet *y)
{
    const struct fsm_jet *parts[2] = {x, y};
    return jet_of_norm(parts, 2);
}
