/* Inputs from their tables, and samples of controllers. */

#include "stepping.h"

/* -- Input signals over time: tables of polynomial pieces, and kernels. */

/* Whether all inputs are constant up to the next breakpoint at which a step ends. */
static bool are_constant(const struct fsm_input_tables *inputs, int64_t segment)
{
    if (inputs->kernels.n > 0 || inputs->next_hard.at[segment] != segment + 1) {
        return false;
    }
    const double *piece = &AT3(inputs->pieces, segment, 0, 0);
    bool constant = true;
    for (int64_t i = 0; i < inputs->counts->n_inputs && constant; i++) {
        constant = piece[4 * i + 1] == 0.0 && piece[4 * i + 2] == 0.0 && piece[4 * i + 3] == 0.0;
    }
    return constant;
}

/* Whether any input varies within a segment: what is constant was written into the context where the segment began. */
FSM_LOCAL bool fsm_inputs_vary(const struct fsm_input_tables *inputs, int64_t segment)
{
    return inputs->counts->constant == 0 && !are_constant(inputs, segment);
}

/* Write the inputs and their three rates at `t` (s) into the context `c`, where any of them varies.

   `segment` begins at the last breakpoint at which a step had to end; the smooth pieces up to the next one are
   searched from there, and the limit from the left is taken at the next one. */
FSM_LOCAL void fsm_update_inputs(const struct fsm_input_tables *inputs, double t, int64_t segment, fsm_vector x,
                                 fsm_vector c)
{
    if (fsm_inputs_vary(inputs, segment)) {
        fsm_write_inputs(inputs, t, segment, x, c);
    }
}

/* Do what fsm_update_inputs does, constant inputs included. */
FSM_LOCAL void fsm_write_inputs(const struct fsm_input_tables *inputs, double t, int64_t segment, fsm_vector x,
                                fsm_vector c)
{
    int64_t n_w = inputs->counts->n_inputs;
    int64_t at = inputs->counts->n_parameters;
    int64_t third = c.n - n_w;
    int64_t low = segment;
    int64_t high = inputs->next_hard.at[segment];
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (inputs->start.at[middle] <= t) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double d = t - inputs->origin.at[low];
    for (int64_t i = 0; i < n_w; i++) {
        double a1 = AT3(inputs->pieces, low, i, 1);
        double a2 = AT3(inputs->pieces, low, i, 2);
        double a3 = AT3(inputs->pieces, low, i, 3);
        c.at[at + i] = AT3(inputs->pieces, low, i, 0) + d * (a1 + d * (a2 + d * a3));
        c.at[at + n_w + i] = a1 + d * (2.0 * a2 + d * 3.0 * a3);
        c.at[at + 2 * n_w + i] = 2.0 * a2 + 6.0 * a3 * d;
        c.at[third + i] = 6.0 * a3;
    }
    for (int64_t k = 0; k < inputs->kernels.n; k++) {
        inputs->kernels.at[k](t, x.at, c.at, inputs->out.at);
        int64_t first = inputs->kernel_start.at[k];
        int64_t m = inputs->kernel_start.at[k + 1] - first;
        for (int64_t i = 0; i < m; i++) {
            int64_t number = inputs->kernel_inputs.at[first + i];
            for (int64_t rate = 0; rate < 3; rate++) {
                c.at[at + rate * n_w + number] = inputs->out.at[rate * m + i];
            }
            c.at[third + number] = inputs->out.at[3 * m + i];
        }
    }
}

/* Return the time (s) of the next breakpoint at which a step must end, infinity if there is none. */
FSM_LOCAL double fsm_next_breakpoint(const struct fsm_input_tables *inputs, int64_t segment)
{
    int64_t after = inputs->next_hard.at[segment];
    if (after >= inputs->start.n) {
        return FSM_INFINITY;
    }
    return inputs->start.at[after];
}

/* Return the segment that begins at the breakpoint after `segment`, which a step has reached.

   Where a program jumps between neighbouring numbers, each has a breakpoint: the segment is the one behind them, and the
   time (s) becomes its begin. */
FSM_LOCAL int64_t fsm_enter_segment(const struct fsm_input_tables *inputs, int64_t segment, double *time)
{
    segment = inputs->next_hard.at[segment];
    double next = fsm_next_breakpoint(inputs, segment);
    while (next < FSM_INFINITY && next - *time <= FSM_NEIGHBOUR * fabs(next)) {
        segment = inputs->next_hard.at[segment];
        *time = next;
        next = fsm_next_breakpoint(inputs, segment);
    }
    return segment;
}

/* -- Instants at which a run jumps because of the time: breakpoints of the inputs, and samples of controllers.

   A controller's state, its outputs and the instant of its next sample are memory; one kernel computes all memory after a
   sample from the values before it.  The instants of the controllers are the last entries of the memory. */

#define FSM_SEEN_AGAIN 4 // decisions in one instant after which a guard that is zero again is left to the next one

/* Return the instants of the next samples (s), a view of the context. */
static fsm_vector next_samples(const struct fsm_sizes *sizes, fsm_vector c)
{
    int64_t end = fsm_memory_at(sizes) + sizes->n_memory;
    return fsm_vector_part(c, end - sizes->n_controllers, end);
}

/* Return the time (s) of the next sample of any controller, infinity if there is none. */
static double next_sample(const struct fsm_sizes *sizes, fsm_vector c)
{
    fsm_vector next = next_samples(sizes, c);
    double first = FSM_INFINITY;
    for (int64_t i = 0; i < next.n; i++) {
        first = fsm_smaller(first, next.at[i]);
    }
    return first;
}

/* Sample the controllers that are due at `time` (s) up to `slack` (s) later, in the state `x` and the context `c`.

   What is due within the slack is sampled together; `time` becomes the instant of the last of them if that is later.
   Returns FSM_DONE where none is due, FSM_CONTINUE, or FSM_CHATTERING where one has no next instant after this one. */
FSM_LOCAL enum fsm_status fsm_sample(const struct fsm_tables *tables, struct fsm_work *work, double slack, double *time,
                                     fsm_vector x, fsm_vector c)
{
    const struct fsm_sizes *sizes = tables->sizes;
    fsm_vector next = next_samples(sizes, c);
    double now = *time;
    if (!(next_sample(sizes, c) - now <= slack)) {
        return FSM_DONE;
    }
    for (int64_t i = 0; i < next.n; i++) {
        if (next.at[i] - now <= slack) {
            *time = fsm_larger(*time, next.at[i]);
        }
    }
    fsm_vector after = fsm_vector_first(work->c_after, sizes->n_memory);
    tables->sample.at[0](*time, x.at, c.at, after.at);
    fsm_put(fsm_vector_part(c, fsm_memory_at(sizes), fsm_memory_at(sizes) + sizes->n_memory), after);
    return next_sample(sizes, c) > *time ? FSM_CONTINUE : FSM_CHATTERING;
}

/* Sample the controllers that are due at the current state; see fsm_sample. */
FSM_LOCAL enum fsm_status fsm_sample_here(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    double slack = FSM_NEIGHBOUR * fabs(state->clock->time);
    return fsm_sample(run->tables, run->work, slack, &state->clock->time, state->x, state->c);
}

/* Return the next instant (s) after which inputs or outputs of controllers may jump, infinity if there is none. */
FSM_API double fsm_next_jump(const struct fsm_run *run)
{
    double breakpoint = fsm_next_breakpoint(run->inputs, run->state->counters->segment);
    return fsm_smaller(breakpoint, next_sample(run->tables->sizes, run->state->c));
}

/* Make the contact states be decided again, for `reason` and without a guard that fired. */
FSM_LOCAL void fsm_decide_again(struct fsm_counters *counters, enum fsm_reason reason)
{
    counters->phase = FSM_PHASE_RESOLVING;
    counters->reason = reason;
    counters->fired = 0;
}

/* Return when armed guard `j` of the present mode is zero (s from now), infinity where that is not in this instant.

   `value`, `slope`: of the guard.  A gap that closes is zero within its tolerance: the decision that follows would close
   it, too. */
static double reached(const struct fsm_run *run, int64_t j, double value, double slope)
{
    const struct fsm_tables *tables = run->tables;
    int64_t guard = tables->mode_guard_start.at[run->state->counters->mode] + j;
    if (run->state->armed.at[j] != FSM_GUARD_ARMED || !(slope < 0.0)) {
        return FSM_INFINITY;
    }
    double latest = -slope * tables->tolerances->coincidence;
    if (tables->guard_event.at[guard] == FSM_EVENT_CLOSES) {
        int64_t contact = tables->guard_contact.at[guard], row = AT(tables->contact_rows, contact, 0);
        bool strikes = (tables->contact_flags.at[contact] & (FSM_FLAG_RIGID | FSM_FLAG_NO_GAP)) == FSM_FLAG_RIGID &&
                       slope < -fsm_speed_tolerance(tables, row);
        latest = strikes ? fsm_larger(latest, fsm_gap_tolerance(tables, row)) : latest;
    }
    return value <= latest ? -value / slope : FSM_INFINITY;
}

/* Make the event of the guards that are zero here the next thing to do; return whether there is one.

   One that is met again after its own event stays with the decision that follows. */
static bool begin_event_here(const struct fsm_run *run)
{
    struct fsm_state *state = run->state;
    int64_t mode = state->counters->mode, n_g = fsm_guard_count(run->tables, mode), lead = FSM_NO_EVENT;
    bool again = state->clock->event_time == state->clock->time && state->counters->instant >= FSM_SEEN_AGAIN;
    if (n_g == 0 || again) {
        return false;
    }
    const double *values = run->work->full_end.at + state->x.n + run->tables->sizes->n_u + 1;
    fsm_full_of(run->tables, mode, state->clock->time, state->x.at, state->c.at, run->work->full_end.at);
    double soonest = FSM_INFINITY;
    for (int64_t j = 0; j < n_g; j++) {
        double when = reached(run, j, values[j], values[n_g + j]);
        if (when < soonest) {
            soonest = when;
            lead = j;
        }
    }
    if (lead != FSM_NO_EVENT) {
        fsm_collect_fired(run, lead);
        fsm_begin_event(run);
    }
    return lead != FSM_NO_EVENT;
}

/* Let inputs and then controllers jump that are due at the current time; returns FSM_CONTINUE or a failure.

   Where contact states are decided again, contacts that close and conditions that are met in this instant come first, as
   events: a sample sees the speeds after an impact. */
FSM_LOCAL enum fsm_status fsm_jump(const struct fsm_run *run)
{
    const struct fsm_input_tables *inputs = run->inputs;
    struct fsm_state *state = run->state;
    struct fsm_counters *counters = state->counters;
    double time = state->clock->time;
    bool enters = time >= fsm_next_breakpoint(inputs, counters->segment);
    int64_t segment = enters ? fsm_enter_segment(inputs, counters->segment, &time) : counters->segment;
    bool decides = enters && inputs->decides.at[segment] != 0;
    bool samples = next_sample(run->tables->sizes, state->c) - time <= FSM_NEIGHBOUR * fabs(time);
    if ((decides || samples) && begin_event_here(run)) {
        return FSM_CONTINUE;
    }
    if (enters) {
        state->clock->time = time;
        counters->segment = segment;
        fsm_write_inputs(inputs, time, segment, state->x, state->c);
    }
    if (samples && fsm_sample_here(run) != FSM_CONTINUE) {
        return FSM_CHATTERING;
    }
    if (decides || samples) {
        fsm_decide_again(counters, decides ? FSM_REASON_INPUT_JUMP : FSM_REASON_SAMPLE);
    } else if (enters && !fsm_evaluate_here(run)) {
        return FSM_NON_FINITE;
    }
    return FSM_CONTINUE;
}
