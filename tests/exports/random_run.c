/* Runs an exported model from any start under any schedule and notes its transitions, for comparisons bit for bit. */

#include "fsm_machine.h"

#include <string.h>

struct noted {
    double *at; // time, source, target, and the speeds after, of each transition
    int64_t n, most, n_u;
};

static void note(void *data, const struct fsm_transition *transition)
{
    struct noted *noted = data;
    if (noted->n < noted->most) {
        double *row = noted->at + noted->n * (3 + noted->n_u);
        row[0] = transition->time;
        row[1] = (double)transition->source;
        row[2] = (double)transition->target;
        memcpy(row + 3, transition->u_after, (size_t)noted->n_u * sizeof(double));
    }
    noted->n++;
}

/* `end`: the time reached, then the state; `rows`: room for `*n` transitions, whose number it becomes. */
FSM_API int64_t random_run(const struct fsm_model *exported, void *memory, int64_t bytes, const double *x,
                           const double *c, int64_t mode, const struct fsm_input_tables *schedule, int64_t segment,
                           struct fsm_tolerances *tolerances, const double *atol, double rtol, double until,
                           double *end, double *rows, int64_t *n)
{
    struct fsm_tables tables = *exported->tables;
    struct fsm_model model = *exported;
    tables.tolerances = tolerances;
    model.tables = &tables;
    model.x = x, model.c = c, model.mode = mode, model.schedule = schedule, model.segment = segment;
    model.atol = atol, model.rtol = rtol, model.until = until;
    struct fsm_machine *machine = fsm_machine_create(&model, memory, bytes);
    struct noted noted = {rows, 0, *n, tables.sizes->n_u};
    if (machine == NULL) {
        return -1;
    }
    fsm_machine_listen(machine, (struct fsm_listener){.data = &noted, .transition = note});
    int64_t status = (int64_t)fsm_machine_advance(machine, until);
    end[0] = fsm_machine_time(machine);
    memcpy(end + 1, fsm_machine_state(machine), (size_t)(tables.sizes->n_q + tables.sizes->n_u) * sizeof(double));
    *n = noted.n;
    return status;
}
