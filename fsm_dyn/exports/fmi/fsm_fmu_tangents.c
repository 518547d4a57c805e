/* Directional derivatives, by the tangents of the kernels. */

#include "fsm_fmu.h"

/* A direction and what changes along it: behind the state its direction, then that of the inputs. */
struct direction {
    double *x;       // n, n, n_w
    double *rates;   // n, n_u, guards of the mode
    double *outputs; // n_outputs
};

/* Write the seed of a state or an input; false for other variables. */
static bool add_seed(struct fmu *fmu, double *x, uint32_t reference, double seed)
{
    struct fmu_places at = fmu_places();
    int64_t n = fmu_state_count(), known = (int64_t)reference;
    if (known >= at.states && known < at.mode) {
        x[n + known - at.states] += seed;
    } else if (known >= at.inputs && known < at.outputs) {
        x[2 * n + known - at.inputs] += seed;
    } else {
        fmu_error(fmu, "there are no derivatives by the variable with value reference %ld", (long)known);
        return false;
    }
    return true;
}

/* Read the derivative of a derivative, an output or an event indicator; false for other variables. */
static bool read_change(struct fmu *fmu, const struct direction *along, uint32_t reference, double *change)
{
    struct fmu_places at = fmu_places();
    int64_t unknown = (int64_t)reference, first;
    *change = 0.0;
    if (unknown >= at.outputs && unknown < at.states) {
        *change = along->outputs[unknown - at.outputs];
    } else if (unknown >= at.derivatives && unknown < at.indicators) {
        *change = along->rates[unknown - at.derivatives];
    } else if (unknown >= at.indicators && unknown < at.end) {
        int64_t count = fsm_machine_guards(fmu->machine, &first);
        for (int64_t j = 0; j < count; j++) {
            if (fsm_fmu_indicator_of[first + j] == unknown - at.indicators) {
                *change = along->rates[fmu_state_count() + fsm_fmu_model->tables->sizes->n_u + j];
            }
        }
    } else {
        fmu_error(fmu, "there are no derivatives of the variable with value reference %ld", (long)unknown);
        return false;
    }
    return true;
}

/* Run the tangents; dependent speeds change with those that they follow from. */
static void run_tangents(const struct fmu *fmu, const struct direction *along)
{
    const struct fsm_sizes *s = fsm_fmu_model->tables->sizes;
    int64_t n = fmu_state_count();
    const double *c = fsm_machine_context(fmu->machine);
    double t = fsm_machine_time(fmu->machine);
    memcpy(along->x, fsm_machine_state(fmu->machine), (size_t)n * sizeof(double));
    fsm_fmu_tangents[fsm_machine_mode(fmu->machine)](t, along->x, c, along->rates);
    memcpy(along->x + n + s->n_q, along->rates + n, (size_t)s->n_u * sizeof(double));
    fsm_fmu_output_tangent(t, along->x, c, along->outputs);
}

/* Derivatives of `n` unknowns along the direction in which `m` knowns have the rates `seed`. */
FSM_LOCAL bool fmu_directional(struct fmu *fmu, const uint32_t *unknowns, size_t n, const uint32_t *knowns, size_t m,
                               const double *seed, double *sensitivity, const char *function)
{
    if (!fmu_allows(fmu, FMU_COMPUTED, function) ||
        (n > 0 && (!fmu_has_room(fmu, unknowns, function) || !fmu_has_room(fmu, sensitivity, function))) ||
        (m > 0 && (!fmu_has_room(fmu, knowns, function) || !fmu_has_room(fmu, seed, function))) || !fmu_evaluate(fmu)) {
        return false;
    }
    const struct fsm_sizes *s = fsm_fmu_model->tables->sizes;
    size_t states = (size_t)fmu_state_count(), of_x = 2 * states + (size_t)s->n_w;
    size_t of_rates = states + (size_t)s->n_u + (size_t)s->max_guards;
    double *room = calloc(of_x + of_rates + (size_t)fsm_fmu_model->n_outputs + 1, sizeof *room);
    if (room == NULL) {
        fmu_error(fmu, "there is no memory");
        return false;
    }
    struct direction along = {room, room + of_x, room + of_x + of_rates};
    bool good = true;
    for (size_t i = 0; good && i < m; i++) {
        good = add_seed(fmu, along.x, knowns[i], seed[i]);
    }
    if (good) {
        run_tangents(fmu, &along);
    }
    for (size_t i = 0; good && i < n; i++) {
        good = read_change(fmu, &along, unknowns[i], &sensitivity[i]);
    }
    free(room);
    return good;
}
