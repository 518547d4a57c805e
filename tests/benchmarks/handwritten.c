/* Simulations written by hand for one mechanism each: what a general program is measured against.

   Fixed steps of Runge and Kutta's method of order 4; the event in a step is found by Newton's method on the step itself
   (safeguarded by bisection), the impact is a line of its own.  `rows` receives every step: time, state. */

#include <math.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline)) // the field and the guard are known where they are used

typedef void (*field)(const double *p, const double *x, double *dx);
typedef double (*guard)(const double *p, const double *x);

INLINE void step(field f, const double *p, int n, const double *x, double h, double *after)
{
    double k1[4], k2[4], k3[4], k4[4], at[4];
    f(p, x, k1);
    for (int i = 0; i < n; i++) {
        at[i] = x[i] + 0.5 * h * k1[i];
    }
    f(p, at, k2);
    for (int i = 0; i < n; i++) {
        at[i] = x[i] + 0.5 * h * k2[i];
    }
    f(p, at, k3);
    for (int i = 0; i < n; i++) {
        at[i] = x[i] + h * k3[i];
    }
    f(p, at, k4);
    for (int i = 0; i < n; i++) {
        after[i] = x[i] + h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
    }
}

/* The part of a step after which the guard is zero, and the state there; `rate`: derivative of the guard. */
INLINE double locate(field f, guard g, guard rate, const double *p, int n, const double *x, double h, double *there)
{
    double low = 0.0, high = h, at = h - g(p, there) / rate(p, there); // from the end: a guard may be zero at the start
    if (!(at > low && at < high)) {
        at = 0.5 * h;
    }
    for (int i = 0; i < 60; i++) {
        step(f, p, n, x, at, there);
        double value = g(p, there), next = at - value / rate(p, there);
        if (value > 0.0) {
            low = at;
        } else {
            high = at;
        }
        if (fabs(next - at) <= 1e-13) {
            break;
        }
        at = next > low && next < high ? next : 0.5 * (low + high);
    }
    return at;
}

INLINE void put(double *rows, int64_t *count, int n, double t, const double *x)
{
    double *row = rows + *count * (n + 1);
    row[0] = t;
    for (int i = 0; i < n; i++) {
        row[1 + i] = x[i];
    }
    (*count)++;
}

INLINE void take(double *x, const double *after, int n)
{
    for (int i = 0; i < n; i++) {
        x[i] = after[i];
    }
}

/* The bouncing ball: g, e; x = (y, v); Zeno: at rest below the speed `p[2]`. */
INLINE void fall(const double *p, const double *x, double *dx)
{
    dx[0] = x[1];
    dx[1] = -p[0];
}

INLINE double height(const double *p, const double *x)
{
    (void)p;
    return x[0];
}

INLINE double climb(const double *p, const double *x)
{
    (void)p;
    return x[1];
}

int64_t ball(const double *p, const double *start, double until, double h, double *rows, int64_t *impacts)
{
    double x[2] = {start[0], start[1]}, after[2], t = 0.0;
    int64_t count = 0;
    *impacts = 0;
    put(rows, &count, 2, t, x);
    while (t < until) {
        double now = fmin(h, until - t);
        step(fall, p, 2, x, now, after);
        if (after[0] < 0.0) {
            now = locate(fall, height, climb, p, 2, x, now, after);
            after[0] = 0.0;
            after[1] = -p[1] * after[1];
            (*impacts)++;
            if (after[1] < p[2]) {
                after[1] = 0.0;
                put(rows, &count, 2, t + now, after);
                put(rows, &count, 2, until, after);
                return count;
            }
        }
        t += now;
        take(x, after, 2);
        put(rows, &count, 2, t, x);
    }
    return count;
}

/* The block on the belt: k, m, static and kinetic friction (N), speed of the belt; x = (x, v). */
INLINE void slip(const double *p, const double *x, double *dx)
{
    dx[0] = x[1];
    dx[1] = (-p[0] * x[0] + p[3]) / p[1]; // it lags behind, and friction pulls it on
}

INLINE void carried(const double *p, const double *x, double *dx)
{
    (void)x;
    dx[0] = p[4];
    dx[1] = 0.0;
}

INLINE double lag(const double *p, const double *x)
{
    return p[4] - x[1];
}

INLINE double lag_rate(const double *p, const double *x)
{
    return (p[0] * x[0] - p[3]) / p[1];
}

INLINE double grip(const double *p, const double *x)
{
    return p[2] - p[0] * x[0];
}

INLINE double grip_rate(const double *p, const double *x)
{
    (void)x;
    return -p[0] * p[4];
}

int64_t belt(const double *p, const double *start, double until, double h, double *rows, int64_t *changes)
{
    double x[2] = {start[0], start[1]}, after[2], t = 0.0;
    int64_t count = 0;
    int sticks = 1, leaves = 0;
    *changes = 0;
    put(rows, &count, 2, t, x);
    while (t < until) {
        double now = fmin(h, until - t);
        if (sticks) {
            step(carried, p, 2, x, now, after);
            if (!(grip(p, after) > 0.0)) {
                now = locate(carried, grip, grip_rate, p, 2, x, now, after);
                sticks = 0;
                leaves = 1;
                (*changes)++;
            }
        } else {
            step(slip, p, 2, x, now, after);
            if (!(lag(p, after) > 0.0) && !leaves) {
                now = locate(slip, lag, lag_rate, p, 2, x, now, after);
                after[1] = p[4];
                sticks = 1;
                (*changes)++;
            }
            leaves = 0; // the speed lags behind after a first step
        }
        t += now;
        take(x, after, 2);
        put(rows, &count, 2, t, x);
    }
    return count;
}

/* The rimless wheel: g, l, slope, alpha; x = (lean, spin). */
INLINE void fall_over(const double *p, const double *x, double *dx)
{
    dx[0] = x[1];
    dx[1] = p[0] / p[1] * sin(x[0] + p[2]);
}

INLINE double next_spoke(const double *p, const double *x)
{
    return p[3] - x[0];
}

INLINE double next_spoke_rate(const double *p, const double *x)
{
    (void)p;
    return -x[1];
}

int64_t wheel(const double *p, const double *start, double until, double h, double *rows, int64_t *impacts)
{
    double x[2] = {start[0], start[1]}, after[2], t = 0.0;
    int64_t count = 0;
    *impacts = 0;
    put(rows, &count, 2, t, x);
    while (t < until) {
        double now = fmin(h, until - t);
        step(fall_over, p, 2, x, now, after);
        if (after[0] > p[3]) {
            now = locate(fall_over, next_spoke, next_spoke_rate, p, 2, x, now, after);
            after[0] = -p[3];
            after[1] *= cos(2.0 * p[3]);
            (*impacts)++;
        }
        t += now;
        take(x, after, 2);
        put(rows, &count, 2, t, x);
    }
    return count;
}

/* The leg: m1, m2, l1, l2, g, e; x = (hip, knee, rates). */
INLINE void terms(const double *p, const double *x, double M[3], double f[2])
{
    double s = p[1] * p[2] * p[3] * 0.5, c = cos(x[1]), shank = p[1] * p[3] * p[3] / 3.0;
    M[2] = shank;
    M[1] = -(shank + s * c);
    M[0] = p[0] * p[2] * p[2] / 3.0 + p[1] * p[2] * p[2] + shank + 2.0 * s * c;
    double turn = s * sin(x[1]), lower = p[1] * p[4] * 0.5 * p[3] * sin(x[0] - x[1]);
    f[0] = turn * (2.0 * x[2] * x[3] - x[3] * x[3]) - (0.5 * p[0] + p[1]) * p[4] * p[2] * sin(x[0]) - lower;
    f[1] = -turn * x[2] * x[2] + lower;
}

INLINE void swing(const double *p, const double *x, double *dx)
{
    double M[3], f[2];
    terms(p, x, M, f);
    double d = M[0] * M[2] - M[1] * M[1];
    dx[0] = x[2];
    dx[1] = x[3];
    dx[2] = (M[2] * f[0] - M[1] * f[1]) / d;
    dx[3] = (M[0] * f[1] - M[1] * f[0]) / d;
}

INLINE void swing_straight(const double *p, const double *x, double *dx)
{
    double M[3], f[2];
    terms(p, x, M, f);
    dx[0] = x[2];
    dx[1] = 0.0;
    dx[2] = f[0] / M[0];
    dx[3] = 0.0;
}

INLINE double bend(const double *p, const double *x)
{
    (void)p;
    return x[1];
}

INLINE double press(const double *p, const double *x)
{
    double M[3], f[2];
    terms(p, x, M, f);
    return M[1] * f[0] / M[0] - f[1]; // the stop pushes the knee to bend
}

INLINE double bend_rate(const double *p, const double *x)
{
    (void)p;
    return x[3];
}

/* How fast the stop's moment changes, from a difference along the motion. */
INLINE double press_rate(const double *p, const double *x)
{
    double dx[4], ahead[4];
    swing_straight(p, x, dx);
    for (int i = 0; i < 4; i++) {
        ahead[i] = x[i] + 1e-6 * dx[i];
    }
    return (press(p, ahead) - press(p, x)) / 1e-6;
}

int64_t knee(const double *p, const double *start, double until, double h, double *rows, int64_t *impacts)
{
    double x[4] = {start[0], start[1], start[2], start[3]}, after[4], t = 0.0;
    int64_t count = 0;
    int straight = 0;
    *impacts = 0;
    put(rows, &count, 4, t, x);
    while (t < until) {
        double now = fmin(h, until - t);
        if (straight) {
            step(swing_straight, p, 4, x, now, after);
            if (press(p, after) < 0.0) {
                now = locate(swing_straight, press, press_rate, p, 4, x, now, after);
                straight = 0;
            }
        } else {
            step(swing, p, 4, x, now, after);
            if (after[1] < 0.0) {
                now = locate(swing, bend, bend_rate, p, 4, x, now, after);
                double M[3], unused[2];
                terms(p, after, M, unused);
                double before = after[3], rebound = -p[5] * before;
                straight = rebound < 1e-4;
                after[1] = 0.0;
                after[3] = straight ? 0.0 : rebound;
                after[2] -= M[1] / M[0] * (after[3] - before);
                (*impacts)++;
            }
        }
        t += now;
        take(x, after, 4);
        put(rows, &count, 4, t, x);
    }
    return count;
}
