/* Directional derivatives, by the tangents of the kernels; in modes embedded online, which have none, by differences. */

#include "fsm_fmu.h"

#define FMU_PROBE 1e-6 // change of the state, relative or in SI units, by which a mode embedded online is differenced

/* A direction and what changes along it: behind the state its direction, then that of the inputs. */
struct direction {
    double *x;       // n, n, n_w
    double *rates;   // n, n_u, guards of the mode, n_rows
    double *outputs; // n_outputs
    double *motion;  // n + n_u + n_rows, and as much for its direction, then that of the inputs
};

/* Write the seed of a state or an input; false for other variables. */
static bool add_seed(struct fmu *fmu, double *x, uint32_t reference, double seed)
{
    struct fmu_places at = fmu_places();
    int64_t n = fmu_state_count(), known = (int64_t)reference;
    if (known >= at.states && known < at.mode) {
        x[n + known - at.states] += seed;
    } else if (known >= at.inputs && known < at.outputs && !fmu_is_boolean(known)) {
        x[2 * n + known - at.inputs] += seed;
    } else {
        fmu_error(fmu, "there are no derivatives by the variable with value reference %ld", (long)known);
        return false;
    }
    return true;
}

/* Read the derivative of a state, a derivative, an output or an event indicator; false for other variables. */
static bool read_change(struct fmu *fmu, const struct direction *along, uint32_t reference, double *change)
{
    struct fmu_places at = fmu_places();
    int64_t unknown = (int64_t)reference;
    *change = 0.0;
    if (unknown >= at.outputs && unknown < at.states) {
        *change = along->outputs[unknown - at.outputs];
    } else if (unknown >= at.states && unknown < at.mode) {
        *change = along->x[fmu_state_count() + unknown - at.states];
    } else if (unknown >= at.derivatives && unknown < at.indicators) {
        *change = along->rates[unknown - at.derivatives];
    } else if (unknown >= at.indicators && unknown < at.end) {
        int64_t count = fsm_machine_guard_count(fmu->machine);
        for (int64_t j = 0; j < count; j++) {
            if (fsm_fmu_indicator_of[fsm_machine_guard(fmu->machine, j)] == unknown - at.indicators) {
                *change = along->rates[fmu_state_count() + fsm_fmu_model->tables->sizes->n_u + j];
            }
        }
    } else {
        fmu_error(fmu, "there are no derivatives of the variable with value reference %ld", (long)unknown);
        return false;
    }
    return true;
}

/* Difference the kernel of a mode that was embedded online along a direction; false without memory.

   The machine is put back as it was, with the chart that it had. */
static bool difference_online(const struct fmu *fmu, const struct direction *along)
{
    const struct fsm_sizes *s = fsm_fmu_model->tables->sizes;
    int64_t n = fmu_state_count(), width = n + s->n_u + 1 + 2 * s->max_guards + s->n_rows;
    int64_t guards = fsm_machine_guard_count(fmu->machine);
    const double *x = fsm_machine_state(fmu->machine), *inputs = fsm_machine_context(fmu->machine) + s->n_p;
    double *copy = malloc((size_t)fsm_machine_saved_bytes(fmu->machine)), *room = calloc((size_t)(2 * width), sizeof *room);
    double largest = 0.0; // of the direction, relative to state and inputs
    for (int64_t i = 0; i < n + s->n_w; i++) {
        double value = i < n ? x[i] : inputs[i - n];
        largest = fmax(largest, fabs(along->x[n + i]) / fmax(1.0, fabs(value)));
    }
    double h = FMU_PROBE / (largest > 0.0 ? largest : 1.0);
    bool good = copy != NULL && room != NULL;
    if (good) {
        fsm_machine_save(fmu->machine, copy);
        for (int64_t side = 0; side < 2; side++) {
            fsm_machine_probe(fmu->machine, along->x + n, side == 0 ? -h : h, room + side * width);
            fsm_machine_restore(fmu->machine, copy);
        }
        for (int64_t i = 0; i < n + s->n_u + guards + s->n_rows; i++) {
            int64_t at = i < n + s->n_u ? i : i + 1;            // the pivot precedes the guards
            at = i < n + s->n_u + guards ? at : at + guards; // and their slopes the multipliers
            along->rates[i] = (room[width + at] - room[at]) / (2.0 * h);
        }
    }
    free(copy);
    free(room);
    return good;
}

/* Run the tangent of the outputs of connections, which change with the rates of the speeds and with the multipliers too. */
static void run_pin_tangent(const struct fmu *fmu, const struct direction *along)
{
    const struct fsm_sizes *s = fsm_fmu_model->tables->sizes;
    int64_t n = fmu_state_count(), length = n + s->n_u + s->n_rows, guards = fsm_machine_guard_count(fmu->machine);
    double *y = along->motion, *change = y + length;
    memcpy(y, fsm_machine_motion(fmu->machine), (size_t)length * sizeof(double));
    memcpy(change, along->x + n, (size_t)n * sizeof(double));
    memcpy(change + n, along->rates + s->n_q, (size_t)s->n_u * sizeof(double));
    memcpy(change + n + s->n_u, along->rates + n + s->n_u + guards, (size_t)s->n_rows * sizeof(double));
    memcpy(change + length, along->x + 2 * n, (size_t)s->n_w * sizeof(double));
    fsm_fmu_pin_tangent(fsm_machine_time(fmu->machine), y, fsm_machine_context(fmu->machine),
                        along->outputs + fsm_fmu_model->n_outputs - fsm_fmu_model->n_pins);
}

/* Run the tangents; dependent speeds change with those that they follow from. */
static bool run_tangents(const struct fmu *fmu, const struct direction *along)
{
    const struct fsm_sizes *s = fsm_fmu_model->tables->sizes;
    int64_t n = fmu_state_count();
    const double *c = fsm_machine_context(fmu->machine);
    double t = fsm_machine_time(fmu->machine);
    memcpy(along->x, fsm_machine_state(fmu->machine), (size_t)n * sizeof(double));
    if (fsm_machine_is_exported(fmu->machine)) {
        fsm_fmu_tangents[fsm_machine_mode(fmu->machine)](t, along->x, c, along->rates);
    } else if (!difference_online(fmu, along)) {
        return false;
    }
    memcpy(along->x + n + s->n_q, along->rates + n, (size_t)s->n_u * sizeof(double));
    fsm_fmu_output_tangent(t, along->x, c, along->outputs);
    if (fsm_fmu_pin_tangent != NULL) {
        run_pin_tangent(fmu, along);
    }
    return true;
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
    size_t of_rates = states + (size_t)s->n_u + (size_t)s->max_guards + (size_t)s->n_rows;
    size_t of_outputs = (size_t)fsm_fmu_model->n_outputs, of_motion = 2 * of_rates + (size_t)s->n_w;
    double *room = calloc(of_x + of_rates + of_outputs + of_motion + 1, sizeof *room);
    if (room == NULL) {
        fmu_error(fmu, "there is no memory");
        return false;
    }
    struct direction along = {room, room + of_x, room + of_x + of_rates, room + of_x + of_rates + of_outputs};
    bool good = true;
    for (size_t i = 0; good && i < m; i++) {
        good = add_seed(fmu, along.x, knowns[i], seed[i]);
    }
    if (good && !run_tangents(fmu, &along)) {
        fmu_error(fmu, "there is no memory");
        good = false;
    }
    for (size_t i = 0; good && i < n; i++) {
        good = read_change(fmu, &along, unknowns[i], &sensitivity[i]);
    }
    free(room);
    return good;
}
