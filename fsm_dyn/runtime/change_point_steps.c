/* Steps near change points: how long they are, and when one is accepted (docs/theory.md, "Change points"). */

#include "stepping.h"

// what becomes of a trial step
#define FSM_ACCEPT 0

static bool at_floor(struct fsm_state *state, const struct fsm_options *options, double h, double error, bool passes);

/* Look for change points ahead of an implicit step of length `h`.

   Returns
   -------
   status : int
       `GOING`, or `UNDETERMINED` where the mechanism rests in a change point.
   length : float
       Length of the step that keeps clear of them, `h` at most (s). */
FSM_LOCAL int64_t fsm_look(const struct fsm_tables *tables, struct fsm_state *state, struct fsm_work *work, double t,
                           double h, double *out1)
{
    int64_t mode = state->counters->mode;
    struct fsm_rank *rank = state->rank;
    if ((tables->mode_flags.at[mode] & FSM_MODE_RANKS) == 0) {
        *out1 = h;
        return FSM_CONTINUE;
    }
    bool seen = fsm_look_ahead(work, tables, t, state->x, state->x_dot, state->c, mode, rank);
    if (seen && fsm_rests_in_change_point(work, tables, t, state->x, state->c, mode, rank)) {
        *out1 = h;
        return FSM_UNDETERMINED;
    }
    rank->lands = fsm_is_near(rank, h, FSM_NEAR) ? 1.0 : 0.0;
    *out1 = fsm_clear_length(rank->ahead, h, fsm_passing_fraction(0, false));
    return FSM_CONTINUE;
}

/* Return the length of a step that keeps clear of change points, and whether it passes one.

   It is `h` at most, but where rounding asks for a longer step over a change point (least_passage). */
FSM_LOCAL double fsm_keep_clear(const struct fsm_tables *tables, const struct fsm_method *method,
                                const struct fsm_options *options, struct fsm_state *state, double h,
                                bool *passes_found)
{
    struct fsm_rank *rank = state->rank;
    double passage = h, left = 0.0;
    if (method->counts->adaptive != 0) {
        double rtol = options->numbers->rtol;
        passage = h * fsm_least_passage(h * rank->rate, rtol);
        left = fsm_least_left(tables, rtol);
    }
    rank->lands = fsm_is_near(rank, h, left) ? 1.0 : 0.0;
    if (!(rank->ahead < 1.5 * passage)) {
        *passes_found = false;
        return h;
    }
    bool guards = fsm_guard_count(tables, state->counters->mode) > 0;
    double length = fsm_clear_length(rank->ahead, passage, fsm_passing_fraction(method->counts->stages, guards));
    bool passes = length > rank->ahead;
    *passes_found = passes;
    return passes ? length : fsm_smaller(length, h);
}

/* Return whether a trial step is accepted, made shorter, or retaken at the length tried before, and its error.

   Parameters
   ----------
   passes, forced : bool
       Whether it passes a change point; whether it is accepted near one whatever its error.
   tried, tried_error : float
       Length (s) and error of the step that was rejected before it. */
FSM_LOCAL int64_t fsm_judge(const struct fsm_method *method, const struct fsm_options *options, struct fsm_state *state,
                            struct fsm_work *work, double h, int64_t row, bool passes, bool forced, double tried,
                            double tried_error, bool finite, double *error_found)
{
    if (!finite) {
        *error_found = 10000.0;
        return FSM_SHORTEN;
    }
    double rtol = options->numbers->rtol;
    double error = fsm_error_norm(method, h, state->x, work->x_end, work->k, rtol, options->atol, options->mask, row);
    if (error <= 1.0) {
        *error_found = error;
        return FSM_ACCEPT;
    }
    if (!(error > 1.0) || state->rank->lands == 0.0) {
        *error_found = error;
        return FSM_SHORTEN;
    }
    if (forced || at_floor(state, options, h, error, passes)) {
        state->rank->worst = fsm_larger(state->rank->worst, error);
        *error_found = error;
        return FSM_ACCEPT;
    }
    if (!passes && fsm_is_rounding(error, h, tried_error, tried)) {
        *error_found = error;
        return FSM_RETAKE;
    }
    *error_found = error;
    return FSM_SHORTEN;
}

/* Whether a step near a change point is accepted as it is: rounding would make a shorter one no better. */
static bool at_floor(struct fsm_state *state, const struct fsm_options *options, double h, double error, bool passes)
{
    struct fsm_rank *rank = state->rank;
    if (!passes) {
        return error <= fsm_allowance(rank, h, options->numbers->rtol);
    }
    double longer = fsm_least_passage(h * rank->rate, options->numbers->rtol);
    return (error < 4.0 * pow(longer, 6.0) && longer > 1.0) ||
           fsm_is_rounding(error, h, rank->tried_error, rank->tried_step);
}

/* Return by how much to shorten a rejected step: one over a change point by a little, as rounding grows then. */
FSM_LOCAL double fsm_shorter(struct fsm_state *state, double h, double error, int64_t order, bool passes)
{
    double factor = fsm_rejection_factor(error, order);
    if (!passes) {
        return factor;
    }
    state->rank->tried_step = h;
    state->rank->tried_error = error;
    return fsm_larger(factor, 0.7);
}
