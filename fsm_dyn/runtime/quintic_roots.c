/* Falling zero crossing of a guard within one step.

   A guard is known by value and slope at the start, the middle and the end of the step, hence as a quintic in
   `s = (t - t0) / h`, kept in Bernstein form: its coefficients bound it, their sign changes bound the number of
   its roots, and halving an interval is a handful of averages.  All roots are isolated from left to right, so that
   two crossings in one step, roots near the start and touching roots are ordinary cases.

   Farouki and Rajan (1987), *On the numerical condition of polynomials in Bernstein form*, CAGD 4. */

#include "stepping.h"

#define FSM_ITEM          9      // of the stack: where an interval begins, its width, its coefficients
#define FSM_DEPTH         48     // halvings before a cluster of roots counts as one
#define FSM_ROOT_ROUNDING 1e-15  // of a root, as a part of the step
#define FSM_NARROWEST     1e-300 // width of an interval that shrinks without an end: a coefficient is not finite

/* Where things lie in the workspace, behind the quintic itself; the stack has room for FSM_DEPTH + 2 items. */
enum { FSM_SHIFTED = 7, FSM_SEXTIC = 14, FSM_STACK = 21 };

/* Write the Bernstein coefficients of the quintic of one guard into `work[:6]`.

   `g0 gm g1`, `s0 sm s1`: values and slopes (1/s) at the start, the middle and the end of the step of length `h` (s);
   `sixth`: estimate of the coefficient of `s^2 (s - 1/2)^2 (1 - s)^2` that the quintic lacks, from its own quartic and
   quintic coefficients (the symmetric and the skew part of what varies fast).

   Returns the largest coefficient in absolute value, which bounds the guard on the step. */
FSM_LOCAL double fsm_quintic(double g0, double s0, double gm, double sm, double g1, double s1, double h,
                             fsm_vector work, double *sixth)
{
    double b0 = g0;
    double b1 = g0 + 0.2 * h * s0;
    double b4 = g1 - 0.2 * h * s1;
    double b5 = g1;
    double total = (32.0 * gm - b0 - 5.0 * (b1 + b4) - b5) / 10.0;
    double difference = (3.2 * h * sm + b0 + 3.0 * (b1 - b4) - b5) / 2.0;
    double b2 = 0.5 * (total - difference);
    double b3 = 0.5 * (total + difference);
    work.at[0] = b0;
    work.at[1] = b1;
    work.at[2] = b2;
    work.at[3] = b3;
    work.at[4] = b4;
    work.at[5] = b5;
    double fifth = b5 - b0 + 5.0 * (b1 - b4) + 10.0 * (b3 - b2);
    double fourth = 5.0 * (b0 + b4 - 4.0 * (b1 + b3) + 6.0 * b2);
    double size = fsm_larger(fsm_larger(fabs(b0), fabs(b1)),
                             fsm_larger(fsm_larger(fabs(b2), fabs(b3)), fsm_larger(fabs(b4), fabs(b5))));
    // about the middle, so that the two are the skew and the symmetric part
    *sixth = fabs(fifth) + 0.5 * fabs(fourth + 2.5 * fifth);
    return size;
}

/* Count the sign changes of six coefficients, zero counting as negative. */
static int64_t variations(fsm_vector work, int64_t at)
{
    int64_t count = 0;
    for (int64_t i = 0; i < 5; i++) {
        if ((work.at[at + i] > 0.0) != (work.at[at + i + 1] > 0.0)) {
            count++;
        }
    }
    return count;
}

/* Write the two halves of the polynomial at `at` by de Casteljau's scheme; `right` may equal `at`. */
static void halve(fsm_vector work, int64_t at, int64_t degree, int64_t left, int64_t right)
{
    for (int64_t i = 0; i < degree + 1; i++) {
        work.at[right + i] = work.at[at + i];
    }
    work.at[left] = work.at[right];
    for (int64_t level = 1; level < degree + 1; level++) {
        for (int64_t i = 0; i < degree + 1 - level; i++) {
            work.at[right + i] = 0.5 * (work.at[right + i] + work.at[right + i + 1]);
        }
        work.at[left + level] = work.at[right];
    }
}

/* Replace the quintic at `at` by its restriction to [s, 1]. */
static void from_left(fsm_vector work, int64_t at, double s)
{
    for (int64_t level = 1; level < 6; level++) {
        for (int64_t i = 0; i < 6 - level; i++) {
            work.at[at + i] += s * (work.at[at + i + 1] - work.at[at + i]);
        }
    }
}

/* Return the one root in [0, 1] of the quintic at `at`, whose ends differ in sign, by guarded Newton steps. */
static double single_root(fsm_vector work, int64_t at)
{
    double b0 = work.at[at], b1 = work.at[at + 1], b2 = work.at[at + 2];
    double b3 = work.at[at + 3], b4 = work.at[at + 4], b5 = work.at[at + 5];
    double a1 = 5.0 * (b1 - b0);
    double a2 = 10.0 * (b2 - 2.0 * b1 + b0);
    double a3 = 10.0 * (b3 - 3.0 * (b2 - b1) - b0);
    double a4 = 5.0 * (b4 - 4.0 * (b3 + b1) + 6.0 * b2 + b0);
    double a5 = b5 - b0 - 5.0 * (b4 - b1) + 10.0 * (b3 - b2);
    double low = 0.0;
    double high = 1.0;
    bool falling = b0 > 0.0;
    double s = b0 / (b0 - b5);
    for (int64_t pass = 0; pass < 80; pass++) {
        double value = b0 + s * (a1 + s * (a2 + s * (a3 + s * (a4 + s * a5))));
        double slope = a1 + s * (2.0 * a2 + s * (3.0 * a3 + s * (4.0 * a4 + s * 5.0 * a5)));
        if ((value > 0.0) == falling) {
            low = s;
        } else {
            high = s;
        }
        double after = 0.5 * (low + high);
        if (slope != 0.0 && low < s - value / slope && s - value / slope < high) {
            after = s - value / slope;
        }
        if (fabs(after - s) <= FSM_ROOT_ROUNDING || high - low <= FSM_ROOT_ROUNDING) {
            return after;
        }
        s = after;
    }
    return s;
}

/* Return where the quintic at `work[at:at + 6]` first falls through zero on (0, 1], or FSM_NONE. */
static double first_fall(fsm_vector work, int64_t at)
{
    int64_t top = FSM_STACK;
    work.at[top] = 0.0;
    work.at[top + 1] = 1.0;
    for (int64_t i = 0; i < 6; i++) {
        work.at[top + 2 + i] = work.at[at + i];
    }
    while (top >= FSM_STACK) {
        double start = work.at[top];
        double width = work.at[top + 1];
        int64_t body = top + 2;
        int64_t changes = variations(work, body);
        bool first = work.at[body] > 0.0;
        if (changes == 0 || (changes == 1 && !first)) {
            top -= FSM_ITEM;
        } else if (changes == 1) {
            return start + width * single_root(work, body);
        } else if (top >= FSM_STACK + FSM_DEPTH * FSM_ITEM || width < FSM_NARROWEST) {
            if (first && !(work.at[body + 5] > 0.0)) {
                return start + width;
            }
            top -= FSM_ITEM;
        } else {
            // the right half stays below, the left half goes on top and is looked at first
            int64_t above = top + FSM_ITEM;
            halve(work, body, 5, above + 2, body);
            work.at[top] = start + 0.5 * width;
            work.at[top + 1] = 0.5 * width;
            work.at[above] = start;
            work.at[above + 1] = 0.5 * width;
            top = above;
        }
    }
    return FSM_NONE;
}

/* Return where the guard whose quintic lies in `work[:6]` fires, in (0, 1], or FSM_NONE.

   `tolerance`: how far below zero the guard must go; a touch that stays within has not fired, and the value returned is
   where it passes through `-tolerance`.  `waiting`: the guard is not armed and must first rise above `tolerance`. */
FSM_LOCAL double fsm_first_crossing(fsm_vector work, double tolerance, bool waiting)
{
    double begin = 0.0;
    for (int64_t i = 0; i < 6; i++) {
        work.at[FSM_SHIFTED + i] = work.at[i] + tolerance;
    }
    if (waiting) {
        for (int64_t i = 0; i < 6; i++) {
            work.at[FSM_SHIFTED + i] = tolerance - work.at[i];
        }
        begin = first_fall(work, FSM_SHIFTED);
        if (begin >= 1.0) {
            return FSM_NONE;
        }
        for (int64_t i = 0; i < 6; i++) {
            work.at[FSM_SHIFTED + i] = work.at[i] + tolerance;
        }
        from_left(work, FSM_SHIFTED, begin);
    }
    double root = first_fall(work, FSM_SHIFTED);
    if (root > 1.0) {
        return FSM_NONE;
    }
    return begin + (1.0 - begin) * root;
}

/* Return where the guard is zero, given where it passes `-tolerance`: one Newton step on its quintic.

   Where the guard is so flat that this would be a long way, the place given is returned. */
FSM_LOCAL double fsm_back_to_zero(fsm_vector work, double tolerance, double root)
{
    for (int64_t i = 0; i < 5; i++) {
        work.at[FSM_SHIFTED + i] = 5.0 * (work.at[i + 1] - work.at[i]);
    }
    for (int64_t level = 1; level < 5; level++) {
        for (int64_t i = 0; i < 5 - level; i++) {
            work.at[FSM_SHIFTED + i] += root * (work.at[FSM_SHIFTED + i + 1] - work.at[FSM_SHIFTED + i]);
        }
    }
    double slope = work.at[FSM_SHIFTED];
    if (slope >= 0.0 || tolerance > -0.001 * root * slope) {
        return root;
    }
    return root + tolerance / slope;
}

/* Whether the coefficients bound a sextic away from zero inside (its ends may be zero). */
static bool all_positive(fsm_vector work, int64_t at)
{
    for (int64_t i = 1; i < 6; i++) {
        if (!(work.at[at + i] > 0.0)) {
            return false;
        }
    }
    return work.at[at] >= 0.0 && work.at[at + 6] >= 0.0;
}

/* Whether the guard stays above `-tolerance` on the step even if its quintic errs by `sixth`.

   The error of the quintic is `sixth s^2 (s - 1/2)^2 (1 - s)^2` at most: nothing at the ends and the middle,
   where value and slope are known. */
FSM_LOCAL bool fsm_surely_positive(fsm_vector work, double tolerance, double sixth)
{
    int64_t b = FSM_SEXTIC;
    work.at[b] = work.at[0] + tolerance;
    for (int64_t i = 1; i < 6; i++) {
        work.at[b + i] = ((double)i * work.at[i - 1] + (double)(6 - i) * work.at[i]) / 6.0 + tolerance;
    }
    work.at[b + 6] = work.at[5] + tolerance;
    // Bernstein form of s^2 (s - 1/2)^2 (1 - s)^2 = (s^4 (1-s)^2 - 2 s^3 (1-s)^3 + s^2 (1-s)^4) / 4
    work.at[b + 2] -= sixth / 60.0;
    work.at[b + 3] += sixth / 40.0;
    work.at[b + 4] -= sixth / 60.0;
    if (all_positive(work, b)) {
        return true;
    }
    int64_t top = FSM_STACK;
    for (int64_t i = 0; i < 7; i++) {
        work.at[top + i] = work.at[b + i];
    }
    while (top >= FSM_STACK) {
        if (all_positive(work, top)) {
            top -= FSM_ITEM;
        } else if (top >= FSM_STACK + 12 * FSM_ITEM || !(work.at[top] >= 0.0 && work.at[top + 6] >= 0.0)) {
            return false;
        } else {
            halve(work, top, 6, top + FSM_ITEM, top);
            top += FSM_ITEM;
        }
    }
    return true;
}
