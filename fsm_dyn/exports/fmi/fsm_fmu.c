/* Instances: making, variables, failures, copies. */

#include "fsm_fmu.h"

static const char *const EVENTS[] = {"", "closes", "opens", "slides", "sticks", "happens", "leaves the face"};

FSM_LOCAL struct fmu_places fmu_places(void)
{
    const struct fsm_sizes *s = fsm_fmu_model->tables->sizes;
    struct fmu_places at = {.parameters = 1};
    at.inputs = at.parameters + s->n_p;
    at.outputs = at.inputs + s->n_w;
    at.states = at.outputs + fsm_fmu_model->n_outputs;
    at.mode = at.states + s->n_q + s->n_u;
    at.contacts = at.mode + 1;
    at.derivatives = at.contacts + s->n_contacts;
    at.indicators = at.derivatives + s->n_q + s->n_u;
    at.end = at.indicators + fsm_fmu_indicators;
    return at;
}

/* Log a transition: time, modes, guards. */
static void report_transition(void *data, const struct fsm_transition *transition)
{
    struct fmu *fmu = data;
    if (!fmu->logs) {
        return;
    }
    const struct fsm_model *model = fsm_fmu_model;
    char text[512];
    int used = snprintf(text, sizeof text, "%.12g s: %s -> %s", fmu->begin + transition->time,
                        model->mode_names[transition->source], model->mode_names[transition->target]);
    for (int64_t i = 0; i < transition->n_fired && used > 0 && (size_t)used < sizeof text; i++) {
        const double *guard = transition->fired + i * FSM_GUARD_WIDTH;
        bool written = (int)guard[0] == FSM_EVENT_WRITTEN;
        const char *who = written ? "transition" : model->contact_names[(int)guard[1]];
        used += snprintf(text + used, sizeof text - (size_t)used, ", %s %s", who, EVENTS[(int)guard[0]]);
    }
    fmu->report(fmu, false, "logEvents", text);
}

FSM_LOCAL struct fmu *fmu_create(const char *name, const char *token)
{
    if (token == NULL || strcmp(token, fsm_fmu_token) != 0) {
        return NULL;
    }
    int64_t bytes = fsm_machine_bytes(fsm_fmu_model);
    struct fmu *fmu = calloc(1, sizeof *fmu);
    void *memory = calloc(1, (size_t)bytes);
    if (fmu == NULL || memory == NULL) {
        free(fmu);
        free(memory);
        return NULL;
    }
    fmu->machine = fsm_machine_create(fsm_fmu_model, memory, bytes);
    fmu->phase = FMU_INSTANTIATED;
    fsm_machine_listen(fmu->machine, (struct fsm_listener){.data = fmu, .transition = report_transition});
    snprintf(fmu->name, sizeof fmu->name, "%s", name == NULL ? "" : name);
    return fmu;
}

FSM_LOCAL void fmu_free(struct fmu *fmu)
{
    if (fmu != NULL) {
        free(fmu->machine);
        free(fmu);
    }
}

FSM_LOCAL void fmu_error(struct fmu *fmu, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fmu->report(fmu, true, "logStatusError", text);
}

FSM_LOCAL bool fmu_allows(struct fmu *fmu, int phases, const char *function)
{
    if (fmu == NULL) {
        return false;
    }
    if (((int)fmu->phase & phases) == 0) {
        fmu_error(fmu, "%s is not allowed in this state", function);
        return false;
    }
    return true;
}

FSM_LOCAL double fmu_time(const struct fmu *fmu)
{
    return fmu->begin + fsm_machine_time(fmu->machine);
}

FSM_LOCAL int64_t fmu_state_count(void)
{
    return fsm_fmu_model->tables->sizes->n_q + fsm_fmu_model->tables->sizes->n_u;
}

/* Whether an array of the importer has the length that it must have. */
FSM_LOCAL bool fmu_has_length(struct fmu *fmu, size_t n, int64_t length)
{
    if (n != (size_t)length) {
        fmu_error(fmu, "an array has %lu numbers, not %ld", (unsigned long)n, (long)length);
        return false;
    }
    return true;
}

FSM_LOCAL bool fmu_set_time(struct fmu *fmu, double time)
{
    if (!(fabs(time) <= DBL_MAX)) {
        fmu_error(fmu, "the time cannot be %g", time);
        return false;
    }
    fsm_machine_place(fmu->machine, time - fmu->begin, fsm_machine_state(fmu->machine));
    fmu->stale = true;
    return true;
}

FSM_LOCAL bool fmu_set_states(struct fmu *fmu, const double *x)
{
    for (int64_t i = 0; i < fmu_state_count(); i++) {
        if (!(fabs(x[i]) <= DBL_MAX)) {
            fmu_error(fmu, "the state %s cannot be %g", fsm_fmu_model->state_names[i], x[i]);
            return false;
        }
    }
    fsm_machine_place(fmu->machine, fsm_machine_time(fmu->machine), x);
    fmu->stale = true;
    return true;
}

/* Evaluate at the time and state that were set, unless that is done. */
FSM_LOCAL bool fmu_evaluate(struct fmu *fmu)
{
    if (!fmu->stale) {
        return true;
    }
    fmu->stale = false;
    if (!fsm_machine_evaluate(fmu->machine)) {
        fmu_error(fmu, "the derivatives at %.12g s are not finite", fmu_time(fmu));
        return false;
    }
    return true;
}

/* An event indicator: the value of its guard, and 1 in a mode without that. */
static double indicator(const struct fmu *fmu, int64_t number)
{
    int64_t first, count;
    const double *guards = fsm_machine_guards(fmu->machine, &first, &count);
    for (int64_t j = 0; j < count; j++) {
        if (fsm_fmu_indicator_of[first + j] == number) {
            return guards[j];
        }
    }
    return 1.0;
}

/* Write all event indicators. */
FSM_LOCAL void fmu_indicators(const struct fmu *fmu, double *values)
{
    int64_t first, count;
    const double *guards = fsm_machine_guards(fmu->machine, &first, &count);
    for (int64_t i = 0; i < fsm_fmu_indicators; i++) {
        values[i] = 1.0;
    }
    for (int64_t j = 0; j < count; j++) {
        values[fsm_fmu_indicator_of[first + j]] = guards[j];
    }
}

FSM_LOCAL bool fmu_get_real(struct fmu *fmu, int64_t reference, double *value)
{
    struct fmu_places at = fmu_places();
    bool is_real = (reference >= 0 && reference < at.mode) || (reference >= at.derivatives && reference < at.end);
    if (is_real && reference >= at.inputs && !fmu_evaluate(fmu)) {
        return false;
    }
    if (!is_real) {
        fmu_error(fmu, "no real variable has the value reference %ld", (long)reference);
        return false;
    }
    if (reference == 0) {
        *value = fmu_time(fmu);
    } else if (reference < at.outputs) { // parameters and inputs stand next to each other in the context
        *value = fsm_machine_context(fmu->machine)[reference - at.parameters];
    } else if (reference < at.states) {
        *value = fsm_machine_output(fmu->machine, reference - at.outputs);
    } else if (reference < at.mode) {
        *value = fsm_machine_state(fmu->machine)[reference - at.states];
    } else if (reference < at.indicators) {
        *value = fsm_machine_rates(fmu->machine)[reference - at.derivatives];
    } else {
        *value = indicator(fmu, reference - at.indicators);
    }
    return true;
}

FSM_LOCAL bool fmu_set_real(struct fmu *fmu, int64_t reference, double value)
{
    struct fmu_places at = fmu_places();
    if (!(fabs(value) <= DBL_MAX)) {
        fmu_error(fmu, "the variable with value reference %ld cannot be %g", (long)reference, value);
        return false;
    }
    if (reference >= at.parameters && reference < at.inputs) {
        fsm_machine_set_parameter(fmu->machine, reference - at.parameters, value);
        fmu->stale = fmu->phase == FMU_CONTINUOUS;
    } else if (reference >= at.inputs && reference < at.outputs && fmu->phase == FMU_CONTINUOUS) {
        fsm_machine_follow_input(fmu->machine, reference - at.inputs, value);
        fmu->stale = true;
    } else if (reference >= at.inputs && reference < at.outputs) {
        fsm_machine_hold_input(fmu->machine, reference - at.inputs, value);
    } else {
        fmu_error(fmu, "the variable with value reference %ld cannot be set", (long)reference);
        return false;
    }
    return true;
}

FSM_LOCAL bool fmu_get_integer(struct fmu *fmu, int64_t reference, int64_t *value)
{
    struct fmu_places at = fmu_places();
    if (reference < at.mode || reference >= at.derivatives) {
        fmu_error(fmu, "no integer variable has the value reference %ld", (long)reference);
        return false;
    }
    bool is_mode = reference == at.mode;
    *value = is_mode ? fsm_machine_mode(fmu->machine) + 1
                     : (int64_t)fsm_machine_contact(fmu->machine, reference - at.contacts);
    return true;
}

/* Accept a status, or report why the run ended; false where it failed. */
FSM_LOCAL bool fmu_judge(struct fmu *fmu, enum fsm_status status)
{
    if (status == FSM_STOPPED) {
        fmu->stopped = true;
    } else if (status != FSM_DONE && status != FSM_PAUSED) {
        fmu_error(fmu, "%s at %.12g s: %s", fsm_status_text((int64_t)status), fmu_time(fmu),
                  fsm_status_sentence((int64_t)status));
        fmu->phase = FMU_FAILED;
        return false;
    }
    return true;
}

/* Decide the contact states at the start. */
FSM_LOCAL bool fmu_finish_initialization(struct fmu *fmu)
{
    return fmu_judge(fmu, fsm_machine_advance(fmu->machine, fsm_machine_time(fmu->machine)));
}

/* Make the transitions that are due now; `jumped`: whether a state has another value after. */
FSM_LOCAL bool fmu_resolve(struct fmu *fmu, bool *jumped)
{
    *jumped = false;
    if (fmu->stopped) {
        return true;
    }
    if (!fmu->exchange) {
        return fmu_finish_initialization(fmu);
    }
    size_t bytes = (size_t)fmu_state_count() * sizeof(double);
    const double *x = fsm_machine_state(fmu->machine);
    double *before = malloc(bytes);
    if (before == NULL) {
        fmu_error(fmu, "there is no memory");
        return false;
    }
    memcpy(before, x, bytes);
    fmu->stale = false;
    bool good = fmu_judge(fmu, fsm_machine_resolve(fmu->machine));
    *jumped = memcmp(before, x, bytes) != 0;
    free(before);
    return good;
}

/* A step of the importer's integrator was kept; `due`: it passed an event. */
FSM_LOCAL bool fmu_end_step(struct fmu *fmu, bool *due)
{
    fmu->stale = false;
    enum fsm_status status = fsm_machine_end_step(fmu->machine);
    *due = status == FSM_PAUSED;
    return fmu_judge(fmu, status);
}

FSM_LOCAL void fmu_reset(struct fmu *fmu)
{
    fsm_machine_restart(fmu->machine);
    fmu->phase = FMU_INSTANTIATED;
    fmu->stopped = fmu->stale = false;
    fmu->begin = 0.0;
}

FSM_LOCAL size_t fmu_copy_bytes(const struct fmu *fmu)
{
    return sizeof(struct fmu_copy) + (size_t)fsm_machine_saved_bytes(fmu->machine);
}

/* FNV-1a of the model's token and of all bytes of a copy behind its seal: copies that are damaged, or another model's. */
static uint64_t seal_of(const struct fmu *fmu, const void *bytes)
{
    uint64_t seal = 14695981039346656037u;
    for (const char *token = fsm_fmu_token; *token != 0; token++) {
        seal = (seal ^ (uint64_t)(unsigned char)*token) * 1099511628211u;
    }
    const unsigned char *byte = bytes;
    for (size_t i = sizeof(uint64_t); i < fmu_copy_bytes(fmu); i++) {
        seal = (seal ^ (uint64_t)byte[i]) * 1099511628211u;
    }
    return seal;
}

FSM_LOCAL void fmu_copy_out(const struct fmu *fmu, void *bytes)
{
    struct fmu_copy *copy = bytes;
    memset(copy, 0, sizeof *copy);
    copy->phase = fmu->phase;
    copy->stopped = fmu->stopped;
    copy->exchange = fmu->exchange;
    copy->begin = fmu->begin;
    fsm_machine_save(fmu->machine, copy->machine);
    copy->seal = seal_of(fmu, bytes);
}

/* Whether a block of fmu_copy_bytes is a copy of an instance of this model. */
FSM_LOCAL bool fmu_copy_is_whole(const struct fmu *fmu, const void *bytes)
{
    uint64_t seal;
    memcpy(&seal, bytes, sizeof seal);
    return seal == seal_of(fmu, bytes);
}

FSM_LOCAL bool fmu_copy_in(struct fmu *fmu, const void *bytes)
{
    const struct fmu_copy *copy = bytes;
    if (copy->exchange != fmu->exchange) {
        fmu_error(fmu, "a state of model exchange is none of co-simulation");
        return false;
    }
    fmu->phase = copy->phase;
    fmu->stopped = copy->stopped;
    fmu->begin = copy->begin;
    fsm_machine_restore(fmu->machine, copy->machine);
    fmu->stale = fmu->phase == FMU_CONTINUOUS;
    return true;
}
