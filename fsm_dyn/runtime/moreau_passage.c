/* Bodies that pass through each other in a time step (docs/theory.md, "Time stepping").

   A step knows its gaps where it begins, in its middle and at its end; between these the configuration goes straight.  A
   gap that falls before and grows after may have been below zero in between, and one that is below zero and grows again
   belongs to a body whose middle has been passed: nothing held the bodies apart. */

#include "elementary.h"
#include "time_stepping.h"

#define FSM_MOST_HALVINGS 40 // in the search for the least gap of a part of a step

/* Whether contact `k` has a gap that nothing holds and that closes. */
static bool may_be_passed(const struct fsm_tables *tables, int64_t k)
{
    int64_t flags = tables->contact_flags.at[k];
    return (flags & (FSM_FLAG_RIGID | FSM_FLAG_COMPLIANT)) != 0 && (flags & (FSM_FLAG_TWO_SIDED | FSM_FLAG_GATED)) == 0;
}

/* Keep the gaps and their rates where a part of a step begins; the terms are those there, `u` the speeds.

   Of those that are below zero only what has just come through its face may be passed; others get a gap of zero. */
FSM_LOCAL void fsm_note_gaps(const struct fsm_time_step *step, fsm_vector u)
{
    for (int64_t k = 0; k < step->gaps.n; k++) {
        int64_t row = AT(step->tables->contact_rows, k, 0);
        double gap = may_be_passed(step->tables, k) ? step->terms->residual.at[row] : 0.0;
        bool coming = step->codes.at[k] == FSM_CONTACT_FREE && step->free_side.at[k] != 0 &&
                      fsm_within_face(step->tables, step->terms, k);
        step->gaps.at[k] = gap > 0.0 || coming ? gap : 0.0;
        step->rates.at[k] = step->gaps.at[k] != 0.0 ? fsm_row_speed(step->terms, row, u) : 0.0;
    }
}

/* Whether contact `k` is so far behind its face that it does not act from there, though within its ends. */
static bool is_beyond(const struct fsm_time_step *step, int64_t k)
{
    double small = step->tables->tolerances->gap;
    return (step->tables->contact_flags.at[k] & FSM_FLAG_LIMITED) != 0 && step->terms->reach.at[k] > small &&
           step->terms->aspect.at[k] < -FSM_LEVEL * small;
}

/* Evaluate the terms on the way from `x` along `rate` (n_q,), after `time` (s); `place` (n_q + n_u,) is written. */
static void go_along(const struct fsm_time_step *step, fsm_vector x, fsm_vector rate, double time, fsm_vector place)
{
    for (int64_t i = 0; i < rate.n; i++) {
        place.at[i] = x.at[i] + time * rate.at[i];
    }
    fsm_normalise_quaternions(step->tables, place);
    step->tables->terms.at[0](step->middle_time, place.at, step->context.at, step->terms->whole.at);
}

/* Return for how long contact `k` could have held bodies apart that pass through each other, on the way from `x` where
   `rate` (n_q,) leads in `length` (s); 0 where they do not meet on its face.

   That is from where its gap becomes negative to where it grows again, or acts no more. */
static double time_of_passage(const struct fsm_time_step *step, int64_t k, fsm_vector x, fsm_vector rate, double length)
{
    int64_t row = AT(step->tables->contact_rows, k, 0);
    double small = fsm_gap_tolerance(step->tables, row), low = 0.0, high = length;
    fsm_vector place = fsm_arena_copy(step->arena, x), u = fsm_vector_from(place, rate.n);
    bool meets = step->gaps.at[k] < 0.0;
    double met = meets ? step->gaps.at[k] / -step->rates.at[k] : length;
    for (int64_t pass = 0; !meets || pass < FSM_MOST_HALVINGS; pass++) {
        if (pass == FSM_MOST_HALVINGS) {
            return 0.0;
        }
        double at = 0.5 * (low + high);
        go_along(step, x, rate, at, place);
        bool deep = step->terms->residual.at[row] < -small;
        if (deep && met >= at) {
            met = at;
        }
        meets = meets || (deep && fsm_within_face(step->tables, step->terms, k));
        if (fsm_row_speed(step->terms, row, u) < 0.0 && !(deep && is_beyond(step, k))) {
            low = at;
        } else {
            high = at;
        }
    }
    double turned = high;
    low = 0.0;
    high = met;
    for (int64_t pass = 0; step->gaps.at[k] > 0.0 && pass < FSM_MOST_HALVINGS; pass++) {
        double at = 0.5 * (low + high);
        go_along(step, x, rate, at, place);
        if (step->terms->residual.at[row] < 0.0) {
            high = at;
        } else {
            low = at;
        }
    }
    return turned - (step->gaps.at[k] > 0.0 ? high : met);
}

/* Whether contact `k` may have been passed by the end of a part of a step, with the gap `gap` and its rate there. */
static bool seems_passed(const struct fsm_time_step *step, int64_t k, double gap, double rate, double length)
{
    double small = fsm_gap_tolerance(step->tables, AT(step->tables->contact_rows, k, 0));
    double first = step->gaps.at[k], first_rate = step->rates.at[k];
    if (!(first_rate < 0.0)) {
        return false;
    }
    (void)first, (void)rate, (void)length;
    return gap < -small && is_beyond(step, k);
}

/* Return a contact that is passed through from `x` (n_q + n_u,) on, along `rate` (n_q,) for `length` (s); -1 if none is.

   The terms are those where the way ends; where a gap is looked at on the way, they are evaluated again for `end`.
   `longest`: of a contact found the longest step in which it is met (s). */
FSM_LOCAL int64_t fsm_passed_through(const struct fsm_time_step *step, fsm_vector x, fsm_vector rate, double length,
                                     fsm_vector end, double *longest)
{
    const struct fsm_tables *tables = step->tables;
    fsm_vector u = fsm_vector_from(x, rate.n);
    fsm_indices seem = fsm_indices_first(fsm_arena_indices(step->arena, step->gaps.n), 0);
    for (int64_t k = 0; k < step->gaps.n; k++) {
        int64_t row = AT(tables->contact_rows, k, 0);
        if (step->gaps.at[k] != 0.0 &&
            seems_passed(step, k, step->terms->residual.at[row], fsm_row_speed(step->terms, row, u), length)) {
            seem.at[seem.n++] = k;
        }
    }
    int64_t found = -1;
    for (int64_t i = 0; i < seem.n && found < 0; i++) {
        *longest = time_of_passage(step, seem.at[i], x, rate, length);
        found = *longest > 0.0 ? seem.at[i] : -1;
    }
    if (seem.n > 0) {
        tables->terms.at[0](step->middle_time, end.at, step->context.at, step->terms->whole.at);
    }
    return found;
}
