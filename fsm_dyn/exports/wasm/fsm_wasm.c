/* What a page calls of the runtime: a machine with a log of its transitions, and the operations of kernels that
   WebAssembly has no instruction for.  The other exports are named in fsm_dyn/exports/wasm_build.py. */

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

/* Bytes of a log of `most` transitions. */
EXPORT("fsm_log_bytes") int32_t fsm_log_bytes(const struct fsm_model *model, int32_t most)
{
    return (int32_t)((int64_t)sizeof(struct fsm_log) + 8 * most * record_width(model->tables->sizes));
}

/* Let a machine write its transitions to a log. */
EXPORT("fsm_log_open") void fsm_log_open(struct fsm_machine *machine, const struct fsm_model *model, struct fsm_log *log, int32_t most)
{
    const struct fsm_sizes *s = model->tables->sizes;
    *log = (struct fsm_log){.n_rows = s->n_rows, .n_u = s->n_u, .most = most, .width = record_width(s)};
    fsm_machine_listen(machine, (struct fsm_listener){.data = log, .transition = log_transition});
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
