/* Runs the model's own schedule at a fixed tick; prints its transitions, its end, and the instructions of its ticks. */

#include "@prefix@.h"
#include "board.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK       ((fsm_real)1e-3) // s
#define MOST_TICKS 65536

/* All that a machine takes: nothing is allocated while it runs. */
static int64_t memory[@PREFIX@_BYTES / sizeof(int64_t)];

/* Instructions of the ticks without a transition, and of those with one. */
static uint32_t instructions[2][MOST_TICKS];
static int32_t ticks[2];

static int32_t transitions; // of the present tick

/* A number, and its bits as a double. */
static void print_number(fsm_real number)
{
    double value = (double)number;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    printf("%.9f %08lx%08lx", value, (unsigned long)(bits >> 32), (unsigned long)(bits & 0xffffffffu));
}

/* Kept here, and printed when the tick has been measured. */
static struct {
    fsm_real time;
    int64_t source, target;
} seen[64];

static void note_transition(void *data, const struct fsm_transition *transition)
{
    (void)data;
    if (transitions < 64) {
        seen[transitions].time = transition->time;
        seen[transitions].source = transition->source;
        seen[transitions].target = transition->target;
    }
    transitions++;
}

static void print_transitions(const struct fsm_model *model)
{
    for (int32_t i = 0; i < transitions && i < 64; i++) {
        print_number(seen[i].time);
        printf(" %s -> %s\n", model->mode_names[seen[i].source], model->mode_names[seen[i].target]);
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static void print_instructions(const char *which, uint32_t *counts, int32_t n)
{
    if (n > 0) {
        qsort(counts, (size_t)n, sizeof *counts, compare);
        printf("instructions %s: ticks %ld median %lu worst %lu\n", which, (long)n, (unsigned long)counts[n / 2],
               (unsigned long)counts[n - 1]);
    }
}

int main(void)
{
    const struct fsm_model *model = &@prefix@_model;
    struct fsm_machine *machine = fsm_machine_create(model, memory, (int64_t)sizeof memory);
    if (machine == NULL) {
        printf("too little memory\n");
        return 1;
    }
    fsm_machine_listen(machine, (struct fsm_listener){.transition = note_transition});
    enum fsm_status status = FSM_DONE;
    fsm_real end = model->until;
    for (int32_t k = 1; status == FSM_DONE && fsm_machine_time(machine) < end && k <= MOST_TICKS; k++) {
        fsm_real until = (fsm_real)k * TICK < end ? (fsm_real)k * TICK : end;
        transitions = 0;
        uint32_t before = board_counter();
        status = fsm_machine_advance(machine, until);
        uint32_t after = board_counter();
        int which = transitions > 0;
        instructions[which][ticks[which]++] = (uint32_t)((uint64_t)(after - before) * 5 / 128);
        print_transitions(model);
    }
    printf("%s at ", fsm_status_text((int64_t)status));
    print_number(fsm_machine_time(machine));
    printf(" in %s\n", model->mode_names[fsm_machine_mode(machine)]);
    for (int64_t i = 0; model->state_names[i] != NULL; i++) {
        printf("%s = ", model->state_names[i]);
        print_number(fsm_machine_state(machine)[i]);
        printf("\n");
    }
    printf("stack %lu bytes\n", (unsigned long)board_stack());
    print_instructions("without a transition", instructions[0], ticks[0]);
    print_instructions("with a transition", instructions[1], ticks[1]);
    return status == FSM_DONE || status == FSM_STOPPED ? 0 : 1;
}
