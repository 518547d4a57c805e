/* What a page calls of the runtime: a machine with a log of its transitions, and the operations of kernels that
   WebAssembly has no instruction for.  The other exports are named in fsm_dyn/exports/html.py. */

#include "fsm_kernels.h"
#include "fsm_machine.c"

#define EXPORT(name) __attribute__((export_name(name)))

/* Transitions since the log was read last: `most` at most, each of `width` numbers; later ones are only counted.

   A record: time (s), source, target, reason, guards fired, FSM_MAX_FIRED guards of FSM_GUARD_WIDTH numbers, impulses
   (n_rows,), speeds before and after (n_u,). */
struct fsm_log {
    int64_t n_rows, n_u, count, most, width;
    double records[];
};

static int64_t record_width(const struct fsm_sizes *s)
{
    return 5 + FSM_MAX_FIRED * FSM_GUARD_WIDTH + s->n_rows + 2 * s->n_u;
}

static void log_transition(void *data, const struct fsm_transition *transition)
{
    struct fsm_log *log = data;
    if (log->count++ >= log->most) {
        return;
    }
    double *record = log->records + (log->count - 1) * log->width;
    *record++ = transition->time;
    *record++ = (double)transition->source;
    *record++ = (double)transition->target;
    *record++ = (double)transition->reason;
    *record++ = (double)transition->n_fired;
    memcpy(record, transition->fired, FSM_MAX_FIRED * FSM_GUARD_WIDTH * sizeof(double));
    record += FSM_MAX_FIRED * FSM_GUARD_WIDTH;
    memcpy(record, transition->impulse, (size_t)log->n_rows * sizeof(double));
    memcpy(record + log->n_rows, transition->u_before, (size_t)log->n_u * sizeof(double));
    memcpy(record + log->n_rows + log->n_u, transition->u_after, (size_t)log->n_u * sizeof(double));
}

/* Let a machine write its transitions to a log. */
EXPORT("fsm_log_open") void fsm_log_open(struct fsm_machine *machine, const struct fsm_model *model, struct fsm_log *log, int32_t most)
{
    const struct fsm_sizes *s = model->tables->sizes;
    *log = (struct fsm_log){.n_rows = s->n_rows, .n_u = s->n_u, .most = most, .width = record_width(s)};
    fsm_machine_listen(machine, (struct fsm_listener){.data = log, .transition = log_transition});
}

/* Let all inputs run linearly to these values, shape (n_w,), in the next call of fsm_machine_advance. */
EXPORT("fsm_lead_inputs") void fsm_lead_inputs(struct fsm_machine *machine, const double *values)
{
    for (int64_t i = 0; i < machine->tables.sizes->n_w; i++) {
        fsm_machine_set_input(machine, i, values[i]);
    }
}

/* Write the inputs of the model's schedule at the time `t` (s) into a context, of which the rest is the machine's. */
EXPORT("fsm_schedule_at") void fsm_schedule_at(const struct fsm_machine *machine, double t, double *context)
{
    const struct fsm_input_tables *schedule = &machine->schedule;
    int64_t segment = machine->model->segment;
    while (fsm_next_breakpoint(schedule, segment) <= t) {
        segment = schedule->next_hard.at[segment];
    }
    memcpy(context, machine->state.c.at, (size_t)machine->state.c.n * sizeof(double));
    fsm_write_inputs(schedule, t, segment, machine->state.x, (fsm_vector){context, machine->state.c.n});
}

/* Set a parameter of the running machine and return 1, or 0 if it cannot have this value: forces may jump, so contact
   states are decided again. */
EXPORT("fsm_change_parameter") int32_t fsm_change_parameter(struct fsm_machine *machine, int32_t parameter, double value)
{
    if (!fsm_machine_set_parameter(machine, parameter, value)) {
        return 0;
    }
    machine->jumped = true;
    return 1;
}

/* Write what the kernel of the present mode gives: x_dot, speeds, pivot, guards, slopes, multipliers. */
EXPORT("fsm_evaluate_mode") void fsm_evaluate_mode(const struct fsm_machine *machine, double *out)
{
    const struct fsm_state *state = &machine->state;
    machine->tables.mode_full.at[state->counters->mode](state->clock->time, state->x.at, state->c.at, out);
}

EXPORT("kernel_sign") double exported_sign(double a)
{
    return kernel_sign(a);
}

EXPORT("kernel_min") double exported_min(double a, double b)
{
    return kernel_min(a, b);
}

EXPORT("kernel_max") double exported_max(double a, double b)
{
    return kernel_max(a, b);
}

EXPORT("kernel_mod") double exported_mod(double a, double b)
{
    return kernel_mod(a, b);
}
