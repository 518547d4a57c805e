/* Runs the model's own schedule and prints its transitions, its end, and its outputs there. */

#include "@prefix@.h"

#include <stdio.h>

/* All that a machine takes: nothing is allocated while it runs. */
static int64_t memory[@PREFIX@_BYTES / sizeof(int64_t)];

static const char *const events[] = {"", "closes", "opens", "slides", "sticks", "happens", "leaves the face"};

static void print_transition(void *data, const struct fsm_transition *transition)
{
    const struct fsm_model *model = &@prefix@_model;
    const struct fsm_machine *machine = data;
    printf("%.17g %s -> %s", (double)transition->time, fsm_machine_mode_name(machine, transition->source),
           fsm_machine_mode_name(machine, transition->target));
    for (int64_t i = 0; i < transition->n_fired; i++) {
        const fsm_real *guard = transition->fired + i * FSM_GUARD_WIDTH;
        bool written = (int)guard[0] == FSM_EVENT_TRANSITION;
        printf(" [%s %s]", written ? "transition" : model->contact_names[(int)guard[1]], events[(int)guard[0]]);
    }
    printf("\n");
}

static void print_phase(void *data, fsm_real time, int64_t phase)
{
    printf("phase %.17g %s\n", (double)time, fsm_machine_phase_name(data, phase));
}

int main(void)
{
    const struct fsm_model *model = &@prefix@_model;
    struct fsm_machine *machine = fsm_machine_create(model, memory, (int64_t)sizeof memory);
    if (machine == NULL) {
        fprintf(stderr, "%ld bytes are needed\n", (long)fsm_machine_bytes(model));
        return 1;
    }
    fsm_machine_listen(machine, (struct fsm_listener){.data = machine, .transition = print_transition, .phase = print_phase});
    enum fsm_status status = fsm_machine_advance(machine, model->until);
    printf("%s at %.17g s in %s\n", fsm_status_text((int64_t)status), (double)fsm_machine_time(machine),
           fsm_machine_mode_name(machine, fsm_machine_mode(machine)));
    for (int64_t i = 0; model->state_names[i] != NULL; i++) {
        printf("%s = %.17g\n", model->state_names[i], (double)fsm_machine_state(machine)[i]);
    }
    for (int64_t i = 0; model->output_names[i] != NULL; i++) {
        printf("output %s = %.17g\n", model->output_names[i], (double)fsm_machine_output(machine, i));
    }
    int64_t event, subject, undecided = fsm_machine_undecided(machine, &event, &subject);
    if (undecided > 0) {
        bool written = event == FSM_EVENT_TRANSITION;
        printf("%ld steps were halved as bounds of the guard of '%s %s' were too wide to decide it\n", (long)undecided,
               written ? "transition" : model->contact_names[subject], events[event]);
    }
    if (status == FSM_MODE_NOT_LISTED) {
        for (int64_t k = 0; model->contact_names[k] != NULL; k++) {
            printf("mode that is missing: contact %s, state %d\n", model->contact_names[k], (int)fsm_machine_missing(machine, k));
        }
    }
    return status == FSM_DONE || status == FSM_STOPPED ? 0 : 1;
}
