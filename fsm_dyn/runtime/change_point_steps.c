/* Steps near change points: length and acceptance (docs/theory.md, "Change points"). */

#include "elementary.h"
#include "stepping.h"

/* Look for change points ahead of an implicit step of length `h` (s).

   `length`: of the step that keeps clear of them, `h` at most (s).  Returns FSM_CONTINUE, or FSM_UNDETERMINED where the
   mechanism rests in a change point. */
FSM_LOCAL enum fsm_status fsm_look(const struct fsm_run *run, double h, double *length)
{
    struct fsm_rank *rank = run->state->rank;
    *length = h;
    if ((run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_RANKS) == 0) {
        return FSM_CONTINUE;
    }
    if (fsm_look_ahead(run) && fsm_rests_in_change_point(run)) {
        return FSM_UNDETERMINED;
    }
    rank->lands = fsm_is_near(rank, h, FSM_NEAR) ? 1.0 : 0.0;
    *length = fsm_clear_length(rank->ahead, h, fsm_passing_fraction(0, false));
    return FSM_CONTINUE;
}

/* Return the length of a step that keeps clear of change points (s); `passes`: whether it passes one.

   It is `h` at most, but where rounding asks for a longer step over a change point (fsm_least_passage). */
FSM_LOCAL double fsm_keep_clear(const struct fsm_run *run, double h, bool *passes)
{
    const struct fsm_method_counts *method = run->method->counts;
    struct fsm_rank *rank = run->state->rank;
    double passage = h, left = 0.0;
    if (method->adaptive != 0) {
        double rtol = run->options->numbers->rtol;
        passage = h * fsm_least_passage(h * rank->rate, rtol);
        left = fsm_least_left(run->tables, rtol);
    }
    rank->lands = fsm_is_near(rank, h, left) ? 1.0 : 0.0;
    *passes = fsm_is_in_change_point(rank);
    if (*passes) { // it starts in one
        return passage;
    }
    if (!(rank->ahead < 1.5 * passage)) {
        return h;
    }
    bool guards = fsm_guard_count(run->tables, run->state->counters->mode) > 0;
    double length = fsm_clear_length(rank->ahead, passage, fsm_passing_fraction(method->stages, guards));
    *passes = length > rank->ahead;
    return *passes ? length : fsm_smaller(length, h);
}

/* Whether a step near a change point is accepted as it is: rounding would make a shorter one no better. */
static bool at_floor(const struct fsm_run *run, const struct fsm_trial *trial)
{
    const struct fsm_rank *rank = run->state->rank;
    double rtol = run->options->numbers->rtol;
    if (!trial->passes) {
        return trial->error <= fsm_allowance(rank, trial->h, rtol);
    }
    double longer = fsm_least_passage(trial->h * rank->rate, rtol);
    return (trial->error < 4.0 * fsm_pow(longer, 6.0) && longer > 1.0) ||
           fsm_is_rounding(trial->error, trial->h, rank->tried_error, rank->tried_step);
}

/* Estimate the error of a trial step (`trial->error`); return whether it is accepted, made shorter, or retaken at the
   length tried before, whatever its error. */
FSM_LOCAL enum fsm_verdict fsm_judge(const struct fsm_run *run, struct fsm_trial *trial, bool finite)
{
    struct fsm_rank *rank = run->state->rank;
    trial->error = finite ? fsm_error_norm(run, trial->h) : 10000.0;
    if (trial->error <= 1.0) {
        return FSM_ACCEPT;
    }
    if (!finite || !(trial->error > 1.0) || rank->lands == 0.0) {
        return FSM_SHORTEN;
    }
    if (trial->forced || at_floor(run, trial)) {
        rank->worst = fsm_larger(rank->worst, trial->error);
        return FSM_ACCEPT;
    }
    bool rounding = fsm_is_rounding(trial->error, trial->h, trial->rejected_error, trial->rejected);
    return !trial->passes && rounding ? FSM_RETAKE : FSM_SHORTEN;
}

/* Return by how much to shorten a rejected step: one over a change point by a little, as rounding grows then. */
FSM_LOCAL double fsm_shorter(const struct fsm_run *run, const struct fsm_trial *trial)
{
    double factor = fsm_rejection_factor(trial->error, run->method->counts->order);
    if (!trial->passes) {
        return factor;
    }
    run->state->rank->tried_step = trial->h;
    run->state->rank->tried_error = trial->error;
    return fsm_larger(factor, 0.7);
}
