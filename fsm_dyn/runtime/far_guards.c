/* Guards left out of steps: gaps of round shapes that are far apart are not evaluated until one may have come near.

   The gap of two round shapes, and of a round shape and a fixed line or plane, changes by no more than the centres move.
   Where all gaps are known, those above a distance of twice what the next step may need are marked.  At each step the
   centres alone show that none of them can have come so near that the search for an event would look at it
   (fsm_is_clear): the step is the one taken with all of them, bit for bit.  Where they do not show it, and before
   anything else is done with guards, all are evaluated.  A Verlet list: L. Verlet, Physical Review 159 (1967) 98. */

#include "stepping.h"


#ifndef FSM_RESERVE
#define FSM_RESERVE 2.0 // times what the present step needs, from which on a gap counts as far; tests set more
#endif
#define FSM_ROUNDING 1.01 // times what centres move, for rounding

enum { CHOSEN, START, MIDDLE, END }; // states in `work->centres`

/* Whether guards of the present mode may be left out at all. */
static bool may_leave_out(const struct fsm_run *run)
{
    int64_t mode = run->state->counters->mode;
    return run->work->far_count > 0 && run->tables->shape_centres.n > 0 && run->tables->mode_core.at[mode] != NULL;
}

static bool is_active(const struct fsm_run *run)
{
    return run->work->far_count > 0 && run->work->far->active != 0.0;
}

/* Return how many guards of the present mode steps look at; `numbers`: which, NULL where it is all. */
FSM_LOCAL int64_t fsm_guards_looked_at(const struct fsm_run *run, const int64_t **numbers)
{
    *numbers = is_active(run) ? run->work->near.at + 1 : NULL;
    return is_active(run) ? run->work->near.at[0] : fsm_guard_count(run->tables, run->state->counters->mode);
}

/* Write what the full kernel gives at a state into `out`; zeros for guards that are left out. */
FSM_LOCAL void fsm_evaluate_guards(const struct fsm_run *run, double t, fsm_vector x, double *out)
{
    const struct fsm_tables *tables = run->tables;
    const double *c = run->state->c.at;
    int64_t mode = run->state->counters->mode;
    run->state->counters->work_done++;
    if (!is_active(run)) {
        fsm_call_mode(tables, mode, run->work->notes->plain != 0 ? FSM_ONLINE_PLAIN : FSM_ONLINE_FULL, t, x.at, c, out);
        return;
    }
    int64_t first = tables->mode_guard_start.at[mode], n_g = fsm_guard_count(tables, mode);
    double *values = out + x.n + tables->sizes->n_u + 1, both[2];
    tables->mode_core.at[mode](t, x.at, c, out);
    for (int64_t i = 1; i <= run->work->near.at[0]; i++) {
        int64_t j = run->work->near.at[i];
        if (tables->guard_kernels.at[first + j] != NULL) {
            tables->guard_kernels.at[first + j](t, x.at, c, both);
            values[j] = both[0];
            values[n_g + j] = both[1];
        }
    }
}

static double *centres_at(const struct fsm_run *run, int64_t place)
{
    return run->work->centres.at + place * 6 * run->tables->sizes->n_shapes;
}

/* Write positions and velocities of centres at a time (s) and state whose speeds are at `u`. */
static void find_centres(const struct fsm_run *run, double t, fsm_vector x, const double *u, int64_t place)
{
    int64_t n_q = run->tables->sizes->n_q;
    for (int64_t i = 0; i < x.n; i++) {
        run->work->y.at[i] = i < n_q ? x.at[i] : u[i - n_q];
    }
    run->tables->shape_centres.at[0](t, run->work->y.at, run->state->c.at, centres_at(run, place));
}

/* Return the largest distance (m) between centres at two states. */
static double farthest_moved(const struct fsm_run *run, int64_t from, int64_t to)
{
    const double *a = centres_at(run, from), *b = centres_at(run, to);
    double most = 0.0;
    for (int64_t i = 0; i < 6 * run->tables->sizes->n_shapes; i += 6) {
        double square = fsm_square(b[i] - a[i]) + fsm_square(b[i + 1] - a[i + 1]) + fsm_square(b[i + 2] - a[i + 2]);
        most = square > most || square != square ? square : most;
    }
    return sqrt(most);
}

/* Return the largest speed (m/s) of a centre at one state. */
static double fastest(const struct fsm_run *run, int64_t place)
{
    const double *a = centres_at(run, place);
    double most = 0.0;
    for (int64_t i = 0; i < 6 * run->tables->sizes->n_shapes; i += 6) {
        double square = fsm_square(a[i + 3]) + fsm_square(a[i + 4]) + fsm_square(a[i + 5]);
        most = square > most || square != square ? square : most;
    }
    return sqrt(most);
}

/* Return how far above zero (m) a gap must be at the start of the step of length `h` (s) in the workspace not to be looked
   at there.  The centres are found first: those of the start, the middle and the end. */
static double distance_needed(const struct fsm_run *run, double h)
{
    const struct fsm_state *state = run->state;
    const struct fsm_work *work = run->work;
    int64_t n_q = run->tables->sizes->n_q, n = state->x.n;
    double t = state->clock->time;
    find_centres(run, t, state->x, state->x.at + n_q, START);
    find_centres(run, t + 0.5 * h, work->x_mid, work->full_mid.at + n, MIDDLE);
    find_centres(run, t + h, work->x_end, work->full_end.at + n, END);
    double change = 2.0 * (farthest_moved(run, START, MIDDLE) + farthest_moved(run, START, END));
    double steepest = 2.0 * h * (fastest(run, START) + fastest(run, MIDDLE) + fastest(run, END));
    return FSM_ROUNDING * (change + FSM_CLEAR * (change + steepest));
}

/* Whether the guards that are left out cannot fire in the step of length `h` (s) whose middle and end are in the workspace,
   and would not be looked at: three states tell that of the interpolants, enclosures of the motion between. */
static bool far_are_clear(const struct fsm_run *run, double h)
{
    if (!is_active(run)) {
        return true;
    }
    double needed = distance_needed(run, h);
    return run->work->far->distance > 2.0 * FSM_ROUNDING * farthest_moved(run, CHOSEN, START) + needed &&
           fsm_proves_unevaluated(run, h, run->work->is_far.at);
}

/* Choose which guards are left out of the next steps, from the gaps at the start of the step of length `h` (s) in the
   workspace, unless some are; fewer than half of those that may be would save nothing. */
static void choose_far(const struct fsm_run *run, double h)
{
    struct fsm_work *work = run->work;
    if (is_active(run) || !may_leave_out(run)) {
        return;
    }
    const struct fsm_tables *tables = run->tables;
    const struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, first = tables->mode_guard_start.at[mode];
    int64_t count = 0, far = 0, near = 0;
    double distance = FSM_RESERVE * distance_needed(run, h);
    for (int64_t j = 0; j < fsm_guard_count(tables, mode); j++) {
        bool may = tables->guard_kernels.at[first + j] != NULL;
        bool is = may && state->armed.at[j] == FSM_GUARD_ARMED && state->guards.at[j] > distance;
        work->is_far.at[j] = is ? 1 : 0;
        count += may ? 1 : 0;
        far += is ? 1 : 0;
        if (!is) {
            work->near.at[1 + near] = j;
            near++;
        }
    }
    work->near.at[0] = near;
    if (2 * far < count || !fsm_is_finite(distance)) {
        return;
    }
    for (int64_t i = 0; i < 6 * tables->sizes->n_shapes; i++) {
        centres_at(run, CHOSEN)[i] = centres_at(run, START)[i];
    }
    work->far->distance = distance;
    work->far->active = 1.0;
}

/* Evaluate at the current state the guards that were left out; none are from now on. */
FSM_LOCAL void fsm_look_at_far_here(const struct fsm_run *run)
{
    if (!is_active(run)) {
        return;
    }
    const struct fsm_tables *tables = run->tables;
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, first = tables->mode_guard_start.at[mode];
    double both[2], *slopes = state->guards.at + tables->sizes->max_guards;
    for (int64_t j = 0; j < fsm_guard_count(tables, mode); j++) {
        if (run->work->is_far.at[j] != 0) {
            tables->guard_kernels.at[first + j](state->clock->time, state->x.at, state->c.at, both);
            state->guards.at[j] = both[0];
            slopes[j] = both[1];
        }
    }
    run->work->far->active = 0.0;
}

/* Evaluate all guards at the start, the middle and the end of the step of length `h` (s) to `t_end` in the workspace, as if
   none had been left out. */
static void look_at_all(const struct fsm_run *run, double h, double t_end)
{
    if (!is_active(run)) {
        return;
    }
    struct fsm_state *state = run->state;
    struct fsm_work *work = run->work;
    int64_t segment = state->counters->segment;
    double t = state->clock->time;
    fsm_write_inputs(run->inputs, t, segment, state->x, state->c);
    fsm_look_at_far_here(run);
    fsm_update_inputs(run->inputs, t_end, segment, work->x_end, state->c);
    fsm_evaluate_guards(run, t_end, work->x_end, work->full_end.at);
    fsm_evaluate_middle(run, h);
}

/* Find the first event of the step of length `h` (s) to `t_end` in the workspace as fsm_first_event does, guards that are
   left out included: where there is one, none are left out any more, else it may be chosen which are from now on. */
FSM_LOCAL double fsm_first_event_of_all(const struct fsm_run *run, double h, double t_end, int64_t *guard)
{
    if (!far_are_clear(run, h)) {
        look_at_all(run, h, t_end);
    }
    double fraction = fsm_first_event(run, h, guard);
    if (*guard == FSM_NO_EVENT) {
        choose_far(run, h);
    } else {
        look_at_all(run, h, t_end);
    }
    return fraction;
}
