/* Location of events along a step, by quintics. */

#include "stepping.h"

/* -- Falling zero crossing of a guard within one step.

   A guard is known by value and slope at the start, the middle and the end of the step, hence as a quintic in
   `s = (t - t0) / h`, kept in Bernstein form: its coefficients bound it, their sign changes bound the number of
   its roots, and halving an interval is a handful of averages.  All roots are isolated from left to right, so that
   two crossings in one step, roots near the start and touching roots are ordinary cases.

   Farouki and Rajan (1987), *On the numerical condition of polynomials in Bernstein form*, CAGD 4. */

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

/* -- Event location within a trial step, on the solution of the method itself. */

#define FSM_MOST_ITERATIONS  60 // to refine one event
#define FSM_MOST_REFINEMENTS 8  // of ever earlier events in one trial step
#define FSM_JUST_BEFORE      1e-3 // part of a step to the end of a face, so long before which forces are looked at
#define FSM_SHORT_WHILE      1e4 // length of the step that shows how slopes change, in tolerances of coincidence
#define FSM_FLIGHTS          5   // durations of the shortest flight that begins that the next step lasts at most; with 2,
                                 // its middle would be the very instant in which the flight ends
#define FSM_JUMP             1e3 // times the change of a guard by its slopes from which it jumps
#define FSM_SHORTEST         64  // roundings of the time in the step over a jump, more than in the least step
#define FSM_MOST_RETAKES     40 // in one trial step, after which no other guard is looked for but a shorter step taken

/* Return how finely an instant near `t` is located (s). */
FSM_LOCAL double fsm_clock_resolution(const struct fsm_tables *tables, double t)
{
    return fsm_larger(tables->tolerances->time, 4.0 * FSM_EPS * fabs(t));
}

/* Return how low a guard can be between two values if nowhere steeper than there; 0 where it need not turn.

   It turns if it falls (or stands) and then rises, or if it lost more on the way than either slope explains. */
static double lowest(double a, double a_slope, double b, double b_slope, double length)
{
    double mean = (b - a) / length;
    bool falls_and_rises = a_slope <= 0.0 && 0.0 < b_slope;
    if (!falls_and_rises && mean >= fsm_smaller(a_slope, b_slope)) {
        return 0.0;
    }
    double steepest = fsm_larger(fabs(mean), fsm_larger(fabs(a_slope), fabs(b_slope)));
    return 0.5 * (a + b - steepest * length);
}

/* Whether a guard that turns between two known values may have been below zero at the turn.

   A gap that shrinks and grows again as one passes a corner is nearly two straight lines; no polynomial shows how low
   they meet.  Where it could meet zero at the slopes it is known to have, the step is too long to tell. */
static bool may_cross(const struct fsm_run *run, int64_t j, double h, double tolerance)
{
    const struct fsm_state *state = run->state;
    const struct fsm_work *work = run->work;
    int64_t most = run->tables->sizes->max_guards;
    int64_t n_g = fsm_guard_count(run->tables, state->counters->mode);
    int64_t at = state->x.n + run->tables->sizes->n_u + 1;
    double middle = work->full_mid.at[at + j], middle_slope = work->full_mid.at[at + n_g + j];
    double first = lowest(state->guards.at[j], state->guards.at[most + j], middle, middle_slope, 0.5 * h);
    double second = lowest(middle, middle_slope, work->full_end.at[at + j], work->full_end.at[at + n_g + j], 0.5 * h);
    return fsm_smaller(first, second) < -tolerance;
}

/* Whether a guard is so far above zero, for how it changes in the trial step of length `h` (s), that it cannot fire there.

   Let `E` be what its three values differ by at most, `D` its steepest slope times `h`, `least` the smallest value.  The
   coefficients of its quintic are at least `least - 1.6 E - 1.2 D`, those of the sextic that stands for the quintic's error
   at least `least - 3.6 E - 2.7 D`; and nowhere steeper than there it turns at `least - E / 2 - D / 4` at the lowest.  So
   where `least` exceeds FSM_CLEAR times `E + D`, fsm_surely_positive is true and may_cross false, with more than a quarter
   of `least` for rounding: neither need be worked out.  Sums stand for `E` and `D`, which they are not below: they are
   not finite where anything in them is not. */
FSM_LOCAL bool fsm_is_clear(double start, double start_slope, double middle, double middle_slope, double end,
                            double end_slope, double h)
{
    double change = fabs(middle - start) + fabs(end - start);
    double steepest = h * (fabs(start_slope) + fabs(middle_slope) + fabs(end_slope));
    return start > change + FSM_CLEAR * (change + steepest);
}

/* Return how close to each other (s) events of the present step are one. */
static double together(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    return fsm_larger(tables->tolerances->coincidence, fsm_clock_resolution(tables, run->state->clock->time));
}

/* Find which guard fires first in the trial step of length `h` (s); return where, as a fraction of it.

   `guard`: its number in the mode, or FSM_NO_EVENT; FSM_INTERPOLANT_UNRELIABLE where a guard comes so near zero between its
   known values that the estimated error of its interpolant decides, or fires unseen by it: then the fraction is that of the
   step to take instead.  A bound of a range is left only where it is seen to
   be, in the middle or at the end: a motion within its ranges takes the steps that it takes without them. */
FSM_LOCAL double fsm_first_event(const struct fsm_run *run, double h, int64_t *guard)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t mode = state->counters->mode;
    int64_t n_g = fsm_guard_count(tables, mode);
    int64_t most = tables->sizes->max_guards;
    int64_t first = tables->mode_guard_start.at[mode];
    int64_t at = state->x.n + tables->sizes->n_u + 1;
    double *here = state->guards.at;
    double *slopes = state->guards.at + most;
    double *tolerances = slopes + most;
    double *middle = work->full_mid.at + at;
    double *end = work->full_end.at + at;
    double best = FSM_NONE;
    int64_t which = FSM_NO_EVENT;
    const int64_t *numbers;
    int64_t count = fsm_guards_looked_at(run, &numbers);
    for (int64_t i = 0; i < count; i++) {
        int64_t j = numbers == NULL ? i : numbers[i];
        bool waiting = state->armed.at[j] == FSM_GUARD_WAITING;
        if (work->notes->plain != 0 && !fsm_knows_slope(tables, mode, j)) {
            continue; // it is proved, or is not seen to fire
        }
        if (!waiting && fsm_is_clear(here[j], slopes[j], middle[j], middle[n_g + j], end[j], end[n_g + j], h)) {
            continue;
        }
        if (middle[j] > 0.0 && end[j] > 0.0 && fsm_is_bound(tables, first + j)) {
            continue;
        }
        double sixth;
        double size =
            fsm_quintic(here[j], slopes[j], middle[j], middle[n_g + j], end[j], end[n_g + j], h, work->roots, &sixth);
        double tolerance = tolerances[j] + 16.0 * FSM_EPS * size;
        if (!waiting && fsm_surely_positive(work->roots, tolerance, sixth)) {
            if (which == FSM_NO_EVENT && may_cross(run, j, h, tolerance)) {
                which = FSM_INTERPOLANT_UNRELIABLE;
            }
            continue;
        }
        double root = fsm_first_crossing(work->roots, tolerance, waiting);
        if (root <= 1.0) {
            root = fsm_back_to_zero(work->roots, tolerance, root);
        }
        if (root < best) {
            best = root;
            which = j;
        } else if (which == FSM_NO_EVENT && root > 1.0 && !waiting) {
            which = FSM_INTERPOLANT_UNRELIABLE;
        }
    }
    *guard = which;
    if (which == FSM_INTERPOLANT_UNRELIABLE) {
        return 0.5;
    }
    if (which != FSM_NO_EVENT && (1.0 - best) * h > together(run)) {
        return best; // the step that ends there is looked at again
    }
    double part = fsm_prove_step(run, h);
    if (part >= 1.0) {
        return best;
    }
    *guard = FSM_INTERPOLANT_UNRELIABLE;
    return part;
}

/* Whether guard `j` rises within the trial step: one that waits has not fired unless it did.

   It counts as risen above its tolerance: where it fired before, it may be above zero by rounding. */
static bool rises(const struct fsm_run *run, int64_t j, double h)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t n_g = fsm_guard_count(tables, state->counters->mode), most = tables->sizes->max_guards;
    double *here = state->guards.at;
    int64_t at = state->x.n + tables->sizes->n_u + 1;
    double *middle = work->full_mid.at + at;
    double *end = work->full_end.at + at;
    double sixth;
    fsm_quintic(here[j], here[most + j], middle[j], middle[n_g + j], end[j], end[n_g + j], h, work->roots, &sixth);
    double highest = work->roots.at[0];
    for (int64_t i = 1; i < 6; i++) {
        highest = fsm_larger(highest, work->roots.at[i]);
    }
    return highest > here[2 * most + j];
}

/* Return how far from zero guard `j` may be where its event is located: what closes fast crosses the tolerance of a gap
   within the resolution of the clock. */
static double largest_at_event(const struct fsm_run *run, int64_t j)
{
    const struct fsm_tables *tables = run->tables;
    int64_t number = tables->mode_guard_start.at[run->state->counters->mode] + j;
    bool closes = tables->guard_event.at[number] == FSM_EVENT_CLOSES;
    return closes ? 0.5 * fsm_guard_gap_tolerance(tables, number) : FSM_INFINITY;
}

/* What is known of a guard about its zero: the longest step at whose end it is above zero, and the shortest one where it is not. */
struct bracket {
    double low, high;    // lengths of these steps (s)
    double above, below; // its values there; `below` is not a number where `high` was not tried
};

/* Whether a guard jumps through zero in a bracket that cannot be narrowed: its slopes do not explain the change.

   A `where`, `floor`, `mod` or `sign` of coordinates in a condition or in a load does so. */
static bool jumps(const struct bracket *bracket, double slope, double tolerance)
{
    double change = bracket->above - bracket->below;
    return change > FSM_JUMP * (fabs(slope) * (bracket->high - bracket->low) + tolerance);
}

/* Take the trial step of length `h` (s) and put its end on the rows; return whether that could be done. */
static bool retake(const struct fsm_run *run, double h)
{
    double t_end = run->state->clock->time + h;
    fsm_trial_step(run, h, t_end);
    run->state->counters->retakes++;
    return fsm_end_is_finite(run) && fsm_project_end(run, t_end) == FSM_CONTINUE;
}

/* Return where the event of guard `j` is in a bracket that cannot be narrowed, `h` (s) being its end that was tried last.

   A guard that jumps has fired behind the jump alone: before it nothing is met yet.  `before`: set to the end of the bracket
   there. */
static double end_of_bracket(const struct fsm_run *run, int64_t j, double h, double slope, const struct bracket *bracket,
                             double *before)
{
    double tolerance = run->state->guards.at[2 * run->tables->sizes->max_guards + j];
    if (!jumps(bracket, slope, tolerance)) {
        return slope <= 0.0 ? h : -1.0;
    }
    *before = bracket->low;
    return h == bracket->high || retake(run, bracket->high) ? bracket->high : -1.0;
}

/* Retake the step with other lengths until guard `j` is zero at its end.

   `h`, `limit`: first guess of the length, and the longest one (s), that of the step in the workspace, at whose end the guard
   may be at or below zero.  `before`: set to the length up to a jump of the guard through zero, -1 where it does not jump.
   Returns the length of the step to the event, whose end is in the workspace; -1 where the guard does not fall through
   zero after all. */
static double find_zero(const struct fsm_run *run, int64_t j, double h, double limit, double *before)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t most = tables->sizes->max_guards;
    int64_t n_g = fsm_guard_count(tables, state->counters->mode);
    int64_t at = state->x.n + tables->sizes->n_u + 1;
    double t = state->clock->time;
    double close_to = fsm_clock_resolution(tables, t), finest = 4.0 * FSM_EPS * fsm_larger(fabs(t), fabs(t + limit));
    double near = largest_at_event(run, j);
    // a guard that starts a little below zero is zero where it starts; if it sinks from there it has no root to find,
    // and its tolerance is the mark
    double shift = 0.0;
    if (state->armed.at[j] == FSM_GUARD_ARMED && state->guards.at[j] <= 0.0) {
        shift = state->guards.at[most + j] > 0.0 ? -state->guards.at[j] : state->guards.at[2 * most + j];
    }
    bool negative = work->full_end.at[at + j] <= 0.0;
    struct bracket bracket = {0.0, limit, state->guards.at[j] + shift, negative ? work->full_end.at[at + j] + shift : FSM_NAN};
    *before = -1.0;
    double missed = FSM_INFINITY; // how far from zero the guard was, of which a step of Newton's leaves less than half
    for (int64_t pass = 0; pass < FSM_MOST_ITERATIONS; pass++) {
        if (!retake(run, h)) {
            return -1.0;
        }
        double value = work->full_end.at[at + j] + shift;
        double slope = work->full_end.at[at + n_g + j];
        if (value > 0.0) {
            bracket.low = h;
            bracket.above = value;
        } else {
            bracket.high = h;
            bracket.below = value;
            negative = true;
        }
        double newton = h, resolved = fabs(value) > near ? finest : close_to;
        if (slope < 0.0) {
            newton = h - value / slope;
            bool is_rounding = fabs(value) <= state->guards.at[2 * most + j] && fabs(value) > 0.5 * missed;
            if (is_rounding || fabs(newton - h) <= resolved) {
                return h;
            }
        }
        if (negative && bracket.high - bracket.low <= resolved) {
            return end_of_bracket(run, j, h, slope, &bracket, before);
        }
        if (slope < 0.0 && bracket.low < newton && newton < bracket.high) {
            h = newton;
            missed = fabs(value);
        } else if (negative) {
            h = 0.5 * (bracket.low + bracket.high);
            missed = FSM_INFINITY;
        } else {
            return -1.0;
        }
    }
    return -1.0;
}

/* As find_zero, of whose steps only the last one knows the slopes of all guards. */
static double refine_event(const struct fsm_run *run, int64_t j, double h, double limit, double *before)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    int64_t mode = run->state->counters->mode;
    work->notes->plain = fsm_is_online(tables, mode) && fsm_knows_slope(tables, mode, j);
    double length = find_zero(run, j, h, limit, before);
    if (work->notes->plain != 0 && length >= 0.0) {
        fsm_call_mode(tables, mode, FSM_ONLINE_SLOPES, run->state->clock->time + length, work->x_end.at, run->state->c.at,
                      work->full_end.at);
    }
    work->notes->plain = 0;
    return length;
}

/* Whether a guard is below zero just before a contact reaches the end of its face, `length` (s) from the step's start.

   Two contacts of one face may meet there.  The force of either has a pole where their distance is zero, and passes
   through zero on the way to it; at the end itself, where the rows are the same, nothing of that is seen.  If so, the
   trial step that ends just before is in the workspace, else that of `length`. */
static bool fires_just_before(const struct fsm_run *run, double length)
{
    struct fsm_state *state = run->state;
    int64_t most = run->tables->sizes->max_guards, n_g = fsm_guard_count(run->tables, state->counters->mode);
    int64_t at = state->x.n + run->tables->sizes->n_u + 1;
    double before = length * (1.0 - FSM_JUST_BEFORE), t = state->clock->time;
    fsm_trial_step(run, before, t + before);
    state->counters->retakes++;
    bool fires = false;
    if (fsm_end_is_finite(run) && fsm_project_end(run, t + before) == FSM_CONTINUE) {
        for (int64_t j = 0; j < n_g; j++) {
            double value = run->work->full_end.at[at + j];
            fires = fires || (state->armed.at[j] == FSM_GUARD_ARMED && value < -state->guards.at[2 * most + j]);
        }
    }
    if (!fires) {
        fsm_trial_step(run, length, t + length);
        fsm_project_end(run, t + length); // as it did when the event was located
    }
    fsm_evaluate_middle(run, fires ? before : length);
    return fires;
}

/* Say that an event was not found in a step of length `h` (s), which is returned, and that half of it is to be taken. */
static double give_up(double h, double *fraction, int64_t *guard)
{
    *fraction = 0.5;
    *guard = FSM_INTERPOLANT_UNRELIABLE;
    return h;
}

/* Write the slopes at the start of the step that take differences, if they are not known; `work->full_mid` is overwritten. */
FSM_LOCAL void fsm_take_differences_here(const struct fsm_run *run)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, n_g = fsm_guard_count(tables, mode);
    double t = state->clock->time, *slopes = state->guards.at + tables->sizes->max_guards, *full = run->work->full_mid.at;
    const double *found = full + state->x.n + tables->sizes->n_u + 1 + n_g;
    bool unknown = false;
    for (int64_t j = 0; j < n_g; j++) {
        unknown = unknown || slopes[j] == FSM_INFINITY;
    }
    if (!unknown) {
        return;
    }
    fsm_update_inputs(run->inputs, t, state->counters->segment, state->x, state->c);
    fsm_call_mode(tables, mode, FSM_ONLINE_FULL, t, state->x.at, state->c.at, full);
    for (int64_t j = 0; j < n_g; j++) {
        slopes[j] = slopes[j] == FSM_INFINITY ? found[j] : slopes[j];
    }
}

/* Write the slopes that take differences at the start, in the middle and at the end of the trial step of length `h` (s). */
FSM_LOCAL void fsm_take_differences(const struct fsm_run *run, double h, double t_end)
{
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    work->notes->plain = 0;
    fsm_take_differences_here(run);
    fsm_update_inputs(run->inputs, t_end, state->counters->segment, work->x_end, state->c);
    fsm_call_mode(run->tables, state->counters->mode, FSM_ONLINE_SLOPES, t_end, work->x_end.at, state->c.at,
                  work->full_end.at);
    fsm_evaluate_middle(run, h);
}

/* Locate the first event of a trial step of length `h` in which guard `j` was seen to fire.

   The shortened step is looked at again for guards that fire earlier, until none does.

   `fraction`: where in the step its interpolant does; `guard`: the guard that leads, or FSM_INTERPOLANT_UNRELIABLE.
   Returns the length from the start of the step to the event (s); the trial step of this length is in the workspace.  Where
   it is not the event, `fraction` becomes the part of it to take instead. */
FSM_LOCAL double fsm_locate(const struct fsm_run *run, double h, double *fraction, int64_t j, int64_t *guard)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    double close_to = together(run), shortest = fsm_larger(close_to, FSM_SHORTEST * FSM_EPS * fabs(state->clock->time));
    int64_t most = state->counters->retakes + FSM_MOST_RETAKES;
    for (int64_t pass = 0; pass < FSM_MOST_REFINEMENTS; pass++) {
        if (state->counters->retakes > most) {
            return give_up(h, fraction, guard);
        }
        double before, length = refine_event(run, j, *fraction * h, h, &before);
        if (length < 0.0) {
            return give_up(h, fraction, guard);
        }
        if (before > shortest) { // up to there no guard knows of the jump, and in the step behind it is all there is
            *fraction = (before - 0.5 * shortest) / length;
            *guard = FSM_INTERPOLANT_UNRELIABLE;
            return length;
        }
        fsm_evaluate_middle(run, length);
        if (before >= 0.0) {
            *guard = j;
            return length;
        }
        // one that waits cannot have risen and fallen in so short a time: it is the zero that it started from
        if (state->armed.at[j] == FSM_GUARD_WAITING && (length <= close_to || !rises(run, j, length))) {
            return give_up(h, fraction, guard);
        }
        if (length <= close_to) {
            *guard = j;
            return length;
        }
        int64_t first = tables->mode_guard_start.at[state->counters->mode], earlier;
        if (tables->guard_event.at[first + j] == FSM_EVENT_LEAVES && fires_just_before(run, length)) {
            length *= 1.0 - FSM_JUST_BEFORE;
        }
        *fraction = fsm_first_event(run, length, &earlier);
        if (earlier == FSM_NO_EVENT || (earlier >= 0 && (1.0 - *fraction) * length <= close_to)) {
            *guard = j;
            return length;
        }
        if (earlier == FSM_INTERPOLANT_UNRELIABLE) {
            *guard = FSM_INTERPOLANT_UNRELIABLE;
            return length;
        }
        h = length;
        j = earlier;
    }
    return give_up(h, fraction, guard);
}

/* Return a guard other than a bound of a range among those that fired, or the leading one, `lead`, if there are bounds alone.

   A coordinate that a contact turns back at its bound has not left its range; where it leaves is decided after the contacts. */
static int64_t without_bounds(const struct fsm_run *run, int64_t lead)
{
    struct fsm_state *state = run->state;
    int64_t kept = 0;
    for (int64_t k = 0; k < state->counters->fired; k++) {
        if (!fsm_is_bound(run->tables, state->fired.at[k])) {
            state->fired.at[kept++] = state->fired.at[k];
        }
    }
    state->counters->fired = kept > 0 ? kept : 1;
    return kept > 0 ? state->fired.at[0] : lead;
}

/* List the leading guard and all armed ones that reach zero in the same instant in `state.fired`. */
FSM_LOCAL void fsm_collect_fired(const struct fsm_run *run, int64_t lead)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t mode = state->counters->mode;
    int64_t n_g = fsm_guard_count(tables, mode);
    int64_t most = tables->sizes->max_guards;
    int64_t first = tables->mode_guard_start.at[mode];
    int64_t at = state->x.n + tables->sizes->n_u + 1;
    double close_to = tables->tolerances->coincidence;
    int64_t count = 1;
    state->fired.at[0] = first + lead;
    for (int64_t j = 0; j < n_g; j++) {
        double value = work->full_end.at[at + j];
        double slope = work->full_end.at[at + n_g + j];
        if (j != lead && state->armed.at[j] == FSM_GUARD_ARMED && slope < 0.0 && value <= -slope * close_to) {
            state->fired.at[count] = first + j;
            count++;
        }
    }
    state->counters->fired = count;
    state->fired.at[0] = without_bounds(run, first + lead);
    for (int64_t k = 0; k < state->counters->fired; k++) {
        int64_t j = state->fired.at[k] - first;
        state->guards.at[3 * most + k] = work->full_end.at[at + j];
        state->guards.at[4 * most + k] = work->full_end.at[at + n_g + j];
    }
}

/* Return how long (s) a step of length `h` from the current state may last, by the gaps of outlines that open from zero and
   will be back there soon.

   A step is known by its ends and its middle: where a corner passes from face to face meanwhile, these do not show a
   flight that is over before. */
FSM_LOCAL double fsm_longest_flight(const struct fsm_run *run, double h)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, most = tables->sizes->max_guards;
    int64_t n_g = fsm_guard_count(tables, mode), first = tables->mode_guard_start.at[mode];
    int64_t slopes_at = state->x.n + tables->sizes->n_u + 1 + n_g;
    double brief = FSM_SHORT_WHILE * tables->tolerances->coincidence, longest = h;
    bool known = false;
    for (int64_t j = 0; j < n_g && h > brief; j++) {
        double slope = state->guards.at[most + j];
        bool outline = tables->guard_event.at[first + j] == FSM_EVENT_CLOSES &&
                       tables->contact_outline.at[tables->guard_contact.at[first + j]] >= 0;
        bool opens = outline && state->armed.at[j] == FSM_GUARD_ARMED &&
                     fabs(state->guards.at[j]) <= tables->tolerances->gap && slope > tables->tolerances->speed;
        if (!opens) {
            continue;
        }
        if (!known) {
            run->work->notes->plain = 1; // the slopes of gaps take no differences
            fsm_trial_step(run, brief, state->clock->time + brief);
            run->work->notes->plain = 0;
            known = true;
        }
        double fall = (slope - run->work->full_end.at[slopes_at + j]) / brief;
        if (fall > 0.0) {
            longest = fsm_smaller(longest, FSM_FLIGHTS * 2.0 * slope / fall);
        }
    }
    if (known) {
        fsm_write_inputs(run->inputs, state->clock->time, state->counters->segment, state->x, state->c);
    }
    return longest;
}
