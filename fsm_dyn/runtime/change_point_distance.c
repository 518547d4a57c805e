/* Distance of a step from a change point, and effect of rounding on its error there (docs/theory.md, "Change points").

   All of it follows from what fsm_assess has found of the rows: what is left of them and when rank is lost. */

#include "elementary.h"
#include "stepping.h"

#define CLOSEST  1e-5            // what is left of the rows at the ends of steps over a change point, at least
#define ROUNDING (2.0 * FSM_EPS) // rounding of a step, over the square of what is left of the rows a step away

/* Whether the run starts in a change point from here, see fsm_evaluate_limit. */
FSM_LOCAL bool fsm_is_in_change_point(const struct fsm_rank *rank)
{
    return rank->active > 0.0 && rank->behind == 0.0;
}

/* Return what must be left of a row for the speeds after an event: rounding enters them divided by its square. */
static double least_left_at_event(double rtol)
{
    return fsm_smaller(sqrt(FSM_EPS / rtol), FSM_TINY);
}

/* Whether an event that was not located in a step of length `h` (s) is in the change point ahead of it. */
FSM_LOCAL bool fsm_is_event_in_change_point(const struct fsm_rank *rank, double h, double rtol)
{
    return rank->ahead * rank->rate < least_left_at_event(rtol) && h < 4.0 * rank->ahead;
}

/* Whether the current state, that of an event, is in a change point; what is known of the rank is renewed close to one. */
FSM_LOCAL bool fsm_has_event_in_change_point(const struct fsm_run *run)
{
    const struct fsm_rank *rank = run->state->rank;
    bool ranks = (run->tables->mode_flags.at[run->state->counters->mode] & FSM_MODE_RANKS) != 0;
    if (!ranks || !(fsm_smaller(fabs(rank->ahead), fabs(rank->behind)) * rank->rate < FSM_NEAR)) {
        return false;
    }
    double independent = rank->independent;
    fsm_assess(run);
    double left = fsm_smaller(fabs(rank->ahead), fabs(rank->behind)) * rank->rate;
    return rank->independent < independent || left < least_left_at_event(run->options->numbers->rtol);
}

/* Whether no more than `left` is left of a row that is about to vanish, or has just done so.

   A row of which little is left all the time is not: the time in which it would vanish is long beside that in which
   rows change. */
FSM_LOCAL bool fsm_is_weak(const struct fsm_rank *rank, double left)
{
    double distance = fsm_smaller(rank->ahead, fabs(rank->behind));
    bool vanishes = distance * rank->change < FSM_TURNED || rank->sigma < FSM_TINY;
    return distance * rank->rate < left && vanishes;
}

/* Whether a change point is so near that the stages of a step of length `h` are put on the rows.

   Where little is left of a row, a stage that is off the rows by its own error has that error divided by what is left;
   that is made up for by the step being short, except near the change point.

   `left`: what is left of a row below which it is divided by too little whatever the step, see fsm_least_left. */
FSM_LOCAL bool fsm_is_near(const struct fsm_rank *rank, double h, double left)
{
    double distance = fsm_smaller(rank->ahead, fabs(rank->behind));
    bool steps = distance < FSM_NEAR_STEPS * h || (distance < FSM_FAR_STEPS * h && fsm_is_weak(rank, FSM_NEAR));
    return steps || fsm_is_weak(rank, left);
}

/* Return what must be left of a row so that the residual of its projection, over the square of it, does not show.

   `rtol`: relative tolerance of the run. */
FSM_LOCAL double fsm_least_left(const struct fsm_tables *tables, double rtol)
{
    return fsm_smaller(FSM_NEAR, sqrt(10.0 * tables->tolerances->projection / tables->tolerances->length_scale / rtol));
}

/* Return the length of a step, `h` at most, whose nodes keep clear of a change point `ahead` (s) from here.

   The step that passes it has it at `fraction` of its length, between nodes; the one before ends in time. */
FSM_LOCAL double fsm_clear_length(double ahead, double h, double fraction)
{
    if (ahead >= 1.5 * h || ahead < 0.1 * h) {
        return h;
    }
    if (ahead <= fraction * h) {
        return ahead / fraction;
    }
    if (fraction < 0.5) {
        return fsm_larger(ahead - fraction * h, 0.5 * ahead);
    }
    return fsm_larger(ahead - 0.5 * h, 0.02 * h);
}

/* Return where in a step a change point is farthest from the method's nodes, and from its middle if watched. */
FSM_LOCAL double fsm_passing_fraction(int64_t stages, bool guards)
{
    if (stages == 6) { // Dormand and Prince: nodes at 0.3 and 0.8
        return guards ? 0.65 : 0.55;
    }
    return stages == 4 ? 0.75 : 0.4;
}

/* Return by how much longer than its error asks for a step over a change point should be, 1 or more.

   Rounding enters accelerations divided by the cube of what is left of the rows, so that of a step whose nodes keep
   clear by a quarter of its length grows as its inverse square; its own error grows as its sixth power.  Where both
   are equal, no other length has less.

   `turn`: how much of the rows is left a step from the change point; `rtol`: relative tolerance of the run. */
FSM_LOCAL double fsm_least_passage(double turn, double rtol)
{
    double rounding = ROUNDING / (rtol * fsm_larger(turn * turn, FSM_TINIEST));
    return fsm_pow(fsm_larger(1.0, fsm_smaller(rounding, 1000000.0)), 0.125);
}

/* Return what rounding may do to the estimated error of a step of length `h`, 1 where it does nothing.

   As in fsm_least_passage, for the end of the step that is nearest to a change point. */
FSM_LOCAL double fsm_allowance(const struct fsm_rank *rank, double h, double rtol)
{
    double distance = fsm_smaller(fsm_smaller(fabs(rank->ahead), fabs(rank->behind)), fabs(rank->ahead - h));
    double left = distance * rank->rate;
    if (left < CLOSEST) {
        return 1.0;
    }
    return fsm_larger(1.0, 0.1 * ROUNDING * h * rank->rate / (rtol * fsm_third_power(left)));
}

/* Whether a shorter step (`h`) than one rejected before (`tried`) has an error that does not shrink as its own.

   That of a method falls with the fifth power at least; rounding near a change point does not. */
FSM_LOCAL bool fsm_is_rounding(double error, double h, double tried_error, double tried)
{
    return 0.0 < h && h < tried && error > tried_error * fsm_pow(h / tried, 2.5);
}

/* Remember whether the step from `t` to `t_end` passes the change point ahead, and how long it is to the next.

   `error`: estimated error of the step in units of its tolerance. */
FSM_LOCAL void fsm_note_passage(struct fsm_rank *rank, double t, double t_end, double error)
{
    rank->passes_at = FSM_INFINITY;
    if (t + rank->ahead < t_end) {
        rank->passes_at = t + rank->ahead;
        rank->tried_step = 0.0;
        rank->tried_error = fsm_larger(error, rank->worst);
        rank->worst = 0.0;
    }
    rank->ahead -= t_end - t;
    rank->behind -= t_end - t;
}
