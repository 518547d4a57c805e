/* Input signals over time: tables of polynomial pieces, and kernels. */

#include "stepping.h"

/* Write the inputs and their three rates at `t` (s) into the context `c`, where any of them varies.

   `segment` begins at the last breakpoint at which a step had to end; the smooth pieces up to the next one are
   searched from there, and the limit from the left is taken at the next one. */
FSM_LOCAL void fsm_update_inputs(const struct fsm_input_tables *inputs, double t, int64_t segment, fsm_vector x,
                                 fsm_vector c)
{
    if (inputs->counts->constant == 0) {
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
