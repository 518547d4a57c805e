/* Instances: making, failures, variables. */

#include "fsm_exchange.c"

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
    at.phase = at.contacts + s->n_contacts;
    at.derivatives = at.phase + (fsm_fmu_model->phases == NULL ? 0 : 1);
    at.indicators = at.derivatives + s->n_q + s->n_u;
    at.end = at.indicators + fsm_fmu_indicators;
    return at;
}

/* Why contact states are decided, apart from guards. */
static const char *const REASONS[] = {", at the start", "", ", as inputs or parameters jump", ", at a Zeno time",
                                      ", as redundant constraints are inconsistent",
                                      ", as a controller is sampled"};

FSM_LOCAL const char *fmu_event_name(int64_t event)
{
    return EVENTS[event];
}

/* Log a transition: time, modes, reason, guards with their values. */
static void report_transition(void *data, const struct fsm_transition *transition)
{
    struct fmu *fmu = data;
    if (!fmu->logs) {
        return;
    }
    const struct fsm_model *model = fsm_fmu_model;
    char text[512];
    int used = snprintf(text, sizeof text, "%.15g s: %s -> %s%s", fmu->begin + transition->time,
                        fsm_machine_mode_name(fmu->machine, transition->source),
                        fsm_machine_mode_name(fmu->machine, transition->target),
                        REASONS[transition->reason]);
    for (int64_t i = 0; i < transition->n_fired && used > 0 && (size_t)used < sizeof text; i++) {
        const double *guard = transition->fired + i * FSM_GUARD_WIDTH;
        bool written = (int)guard[0] == FSM_EVENT_TRANSITION;
        const char *who = written ? "transition" : model->contact_names[(int)guard[1]];
        used +=
            snprintf(text + used, sizeof text - (size_t)used, ", %s %s (%.3g)", who, EVENTS[(int)guard[0]], guard[3]);
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
    double *rates = calloc((size_t)fsm_fmu_model->tables->sizes->n_w + 1, sizeof *rates);
    int8_t *low = calloc((size_t)fsm_fmu_model->tables->sizes->max_guards + 1, sizeof *low);
    double *start = calloc((size_t)fmu_state_count() + 1, sizeof *start);
    int8_t *given = calloc((size_t)fmu_state_count() + 1, sizeof *given);
    if (fmu == NULL || memory == NULL || rates == NULL || low == NULL || start == NULL || given == NULL) {
        free(fmu);
        free(memory);
        free(rates);
        free(low);
        free(start);
        free(given);
        return NULL;
    }
    fmu->start = start;
    fmu->given = given;
    fmu->machine = fsm_machine_create(fsm_fmu_model, memory, bytes);
    fmu->rates = rates;
    fmu->watch.low = low;
    fsm_machine_listen(fmu->machine, (struct fsm_listener){.data = fmu, .transition = report_transition});
    snprintf(fmu->name, sizeof fmu->name, "%s", name == NULL ? "" : name);
    fmu_reset(fmu);
    return fmu;
}

FSM_LOCAL void fmu_free(struct fmu *fmu)
{
    if (fmu != NULL) {
        free(fmu->machine);
        free(fmu->rates);
        free(fmu->watch.low);
        free(fmu->start);
        free(fmu->given);
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

/* Whether the importer gave a place for what a function writes, or reads. */
FSM_LOCAL bool fmu_has_room(struct fmu *fmu, const void *place, const char *function)
{
    if (place == NULL) {
        fmu_error(fmu, "%s has nowhere to write to, or nothing to read", function);
    }
    return place != NULL;
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

FSM_LOCAL double fmu_time(const struct fmu *fmu)
{
    return fmu->begin + fsm_machine_time(fmu->machine);
}

FSM_LOCAL int64_t fmu_state_count(void)
{
    return fsm_fmu_model->tables->sizes->n_q + fsm_fmu_model->tables->sizes->n_u;
}

/* Evaluate at the time and state that were set, unless that is done. */
FSM_LOCAL bool fmu_evaluate(struct fmu *fmu)
{
    if (!fmu->stale) {
        return true;
    }
    if (!fsm_machine_evaluate(fmu->machine)) {
        fmu_error(fmu, "the derivatives at %.12g s are not finite", fmu_time(fmu));
        return false;
    }
    fmu->stale = false;
    return true;
}

/* Write all event indicators: 1 in a mode without the guard. */
FSM_LOCAL void fmu_indicators(const struct fmu *fmu, double *values)
{
    int64_t count = fsm_machine_guard_count(fmu->machine);
    for (int64_t i = 0; i < fsm_fmu_indicators; i++) {
        values[i] = 1.0;
    }
    for (int64_t j = 0; j < count; j++) {
        values[fsm_fmu_indicator_of[fsm_machine_guard(fmu->machine, j)]] = fsm_machine_indicator(fmu->machine, &fmu->watch, j);
    }
}

/* One event indicator. */
static double indicator(const struct fmu *fmu, int64_t number)
{
    int64_t count = fsm_machine_guard_count(fmu->machine);
    for (int64_t j = 0; j < count; j++) {
        if (fsm_fmu_indicator_of[fsm_machine_guard(fmu->machine, j)] == number) {
            return fsm_machine_indicator(fmu->machine, &fmu->watch, j);
        }
    }
    return 1.0;
}

FSM_LOCAL bool fmu_get_integer(struct fmu *fmu, int64_t reference, int64_t *value)
{
    struct fmu_places at = fmu_places();
    if (reference < at.mode || reference >= at.derivatives) {
        fmu_error(fmu, "no integer variable has the value reference %ld", (long)reference);
        return false;
    }
    if (reference == at.mode) {
        *value = fsm_machine_mode_item(fmu->machine);
    } else if (reference < at.phase) {
        *value = (int64_t)fsm_machine_contact(fmu->machine, reference - at.contacts);
    } else {
        *value = fsm_machine_phase(fmu->machine) + 1;
    }
    return true;
}

/* Whether a value reference is that of a boolean input. */
static bool switches(int64_t reference)
{
    struct fmu_places at = fmu_places();
    bool is_input = reference >= at.inputs && reference < at.outputs;
    return is_input && fsm_fmu_model->input_moves[reference - at.inputs] == FSM_INPUT_SWITCHES;
}

FSM_LOCAL bool fmu_is_boolean(int64_t reference)
{
    return switches(reference) && !fsm_fmu_reals;
}

static bool get_real(struct fmu *fmu, int64_t reference, double *value)
{
    struct fmu_places at = fmu_places();
    bool is_real = (reference >= 0 && reference < at.mode && !fmu_is_boolean(reference)) || (reference >= at.derivatives && reference < at.end);
    bool is_computed = is_real && reference >= at.outputs && fmu->phase != FMU_INSTANTIATED;
    if (is_computed && !fmu_evaluate(fmu)) {
        return false;
    }
    if (fsm_fmu_reals && reference >= at.mode && reference < at.derivatives) {
        int64_t code = 0;
        bool good = fmu_get_integer(fmu, reference, &code);
        *value = (double)code;
        return good;
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

/* Set a parameter where that is possible. */
static bool set_parameter(struct fmu *fmu, int64_t number, double value)
{
    const char *name = fsm_fmu_model->parameter_names[number];
    if (fsm_fmu_model->tunable[number] == 0) {
        fmu_error(fmu, "the start depends on the parameter %s, so it is set when the unit is made", name);
        return false;
    }
    if (fmu->phase == FMU_CONTINUOUS) {
        fmu_error(fmu, "the parameter %s is set in event mode", name);
        return false;
    }
    bool begins = ((int)fmu->phase & (FMU_INSTANTIATED | FMU_INITIALIZATION)) != 0;
    if (!begins && fsm_fmu_model->start_reads != NULL && fsm_fmu_model->start_reads[number] == FSM_START_ALONE) {
        fmu_error(fmu, "only the start depends on the parameter %s, and the run has begun", name);
        return false;
    }
    // what the importer gave holds against what the parameter says
    fmu->starts_elsewhere = fmu->starts_elsewhere || (begins && memchr(fmu->given, 1, (size_t)fmu_state_count()) != NULL);
    if (!fsm_machine_set_parameter(fmu->machine, number, value)) {
        fmu_error(fmu,
                  "the parameter %s cannot be %.17g: it is from %.17g to %.17g, and keeps restitutions of contacts from 0"
                  " to 1 and kinetic friction up to the static one",
                  name, value, fsm_fmu_model->lowest[number], fsm_fmu_model->highest[number]);
        return false;
    }
    return true;
}

/* Set a parameter if that is possible, else leave it: parameters that are possible together come in any order. */
static void try_parameter(struct fmu *fmu, int64_t reference, double value)
{
    struct fmu_places at = fmu_places();
    if (reference >= at.parameters && reference < at.inputs && fmu->phase != FMU_CONTINUOUS && fabs(value) <= DBL_MAX) {
        fmu->stale = true;
        fsm_machine_set_parameter(fmu->machine, reference - at.parameters, value);
    }
}

/* Take a coordinate or speed of the start; others follow when all values of a call are known. */
static bool set_start(struct fmu *fmu, int64_t number, double value)
{
    if (((int)fmu->phase & (FMU_INSTANTIATED | FMU_INITIALIZATION)) == 0 || fsm_fmu_model->start_states == NULL) {
        fmu_error(fmu, "%s cannot be set %s", fsm_fmu_model->state_names[number],
                  fsm_fmu_model->start_states == NULL ? "in this unit: its start is solved for at the export"
                                                      : "once the run has begun");
        return false;
    }
    fmu->start[number] = value;
    fmu->given[number] = 1;
    fmu->starts_elsewhere = true;
    return true;
}

/* Assemble the start from what was given, in any number of calls. */
static bool assemble(struct fmu *fmu)
{
    if (!fmu->starts_elsewhere) {
        return true;
    }
    size_t n = (size_t)fmu_state_count();
    fmu->starts_elsewhere = false;
    const double *now = fsm_machine_state(fmu->machine);
    for (size_t i = 0; i < n; i++) {
        fmu->start[i] = fmu->given[i] != 0 ? fmu->start[i] : now[i];
    }
    if (!fsm_machine_start(fmu->machine, fmu->start, fmu->given)) {
        memset(fmu->given, 0, n);
        fmu_error(fmu, "the values given at the start contradict the constraints, or those that hold there");
        return false;
    }
    return true;
}

/* Set an input; a boolean one, as 0 or 1, in event mode: elsewhere it keeps its value, which importers set again. */
static bool set_input(struct fmu *fmu, int64_t input, double value)
{
    const char *name = fsm_fmu_model->input_names[input];
    fmu->rates[input] = 0.0;
    if (fmu->phase != FMU_CONTINUOUS) {
        bool good = fsm_machine_hold_input(fmu->machine, input, value);
        if (!good) {
            fmu_error(fmu, "the boolean input %s cannot be %g", name, value);
        }
        return good;
    }
    if (fsm_fmu_model->input_moves[input] == FSM_INPUT_SWITCHES) {
        if (fsm_machine_context(fmu->machine)[fmu_places().inputs - fmu_places().parameters + input] == value) {
            return true;
        }
        fmu_error(fmu, "the boolean input %s is set in event mode", name);
        return false;
    }
    fsm_machine_follow_input(fmu->machine, input, value);
    return true;
}

static bool set_real(struct fmu *fmu, int64_t reference, double value)
{
    struct fmu_places at = fmu_places();
    if (!(fabs(value) <= DBL_MAX) || fmu_is_boolean(reference)) {
        fmu_error(fmu, "the variable with value reference %ld cannot be %g", (long)reference, value);
        return false;
    }
    fmu->stale = true;
    if (reference >= at.parameters && reference < at.inputs) {
        return set_parameter(fmu, reference - at.parameters, value);
    }
    if (reference >= at.states && reference < at.mode) {
        return set_start(fmu, reference - at.states, value);
    }
    if (reference < at.inputs || reference >= at.outputs) {
        fmu_error(fmu, "the variable with value reference %ld cannot be set", (long)reference);
        return false;
    }
    return set_input(fmu, reference - at.inputs, value);
}

FSM_LOCAL bool fmu_get_reals(struct fmu *fmu, const uint32_t *references, size_t n, double *values,
                             const char *function)
{
    bool good = fmu_allows(fmu, FMU_READABLE, function);
    good = good && (n == 0 || (fmu_has_room(fmu, references, function) && fmu_has_room(fmu, values, function)));
    for (size_t i = 0; good && i < n; i++) {
        good = get_real(fmu, (int64_t)references[i], &values[i]);
    }
    return good;
}

FSM_LOCAL bool fmu_set_reals(struct fmu *fmu, const uint32_t *references, size_t n, const double *values,
                             const char *function)
{
    bool good = fmu_allows(fmu, FMU_WRITABLE, function);
    good = good && (n == 0 || (fmu_has_room(fmu, references, function) && fmu_has_room(fmu, values, function)));
    for (size_t i = 0; good && n > 1 && i < n; i++) {
        try_parameter(fmu, (int64_t)references[i], values[i]);
    }
    for (size_t i = 0; good && i < n; i++) {
        good = set_real(fmu, (int64_t)references[i], values[i]);
    }
    return good && assemble(fmu);
}


FSM_LOCAL bool fmu_get_boolean(struct fmu *fmu, int64_t reference, bool *value)
{
    if (!fmu_is_boolean(reference)) {
        fmu_error(fmu, "no boolean variable has the value reference %ld", (long)reference);
        return false;
    }
    *value = fsm_machine_context(fmu->machine)[reference - fmu_places().parameters] != 0.0;
    return true;
}

FSM_LOCAL bool fmu_set_boolean(struct fmu *fmu, int64_t reference, bool value)
{
    if (!fmu_is_boolean(reference)) {
        fmu_error(fmu, "no boolean variable has the value reference %ld", (long)reference);
        return false;
    }
    fmu->stale = true;
    return set_input(fmu, reference - fmu_places().inputs, value ? 1.0 : 0.0);
}
