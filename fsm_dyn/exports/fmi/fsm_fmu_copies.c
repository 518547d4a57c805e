/* Copies of instances, in memory and as bytes. */

#include "fsm_fmu.h"

static size_t rates_bytes(void)
{
    return (size_t)fsm_fmu_model->tables->sizes->n_w * sizeof(double);
}

static size_t low_bytes(void)
{
    return (size_t)fsm_fmu_model->tables->sizes->max_guards;
}

/* Where the rates begin in a copy; behind them is which guards are low. */
static size_t rates_at(const struct fmu *fmu)
{
    return sizeof(struct fmu_copy) + (size_t)fsm_machine_saved_bytes(fmu->machine);
}

FSM_LOCAL size_t fmu_copy_bytes(const struct fmu *fmu)
{
    return rates_at(fmu) + rates_bytes() + low_bytes();
}

/* FNV-1a of the model's token and of all bytes of a copy behind its seal: shows what is damaged, or another model's. */
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

/* Copy an instance to `*copy`, which is made where it is NULL. */
FSM_LOCAL bool fmu_copy_out(struct fmu *fmu, void **copy, const char *function)
{
    if (!fmu_allows(fmu, FMU_READABLE, function) || !fmu_has_room(fmu, copy, function)) {
        return false;
    }
    if (*copy == NULL) {
        *copy = malloc(fmu_copy_bytes(fmu));
    }
    if (*copy == NULL) {
        fmu_error(fmu, "there is no memory");
        return false;
    }
    struct fmu_copy *out = *copy;
    memset(out, 0, sizeof *out);
    out->phase = fmu->phase;
    out->stopped = fmu->stopped;
    out->exchange = fmu->exchange;
    out->begin = fmu->begin;
    out->due = fmu->watch.due;
    out->due_guard = fmu->watch.guard;
    fsm_machine_save(fmu->machine, out->machine);
    char *rates = (char *)out + rates_at(fmu);
    memcpy(rates, fmu->rates, rates_bytes());
    memcpy(rates + rates_bytes(), fmu->watch.low, low_bytes());
    out->seal = seal_of(fmu, out);
    return true;
}

FSM_LOCAL bool fmu_copy_in(struct fmu *fmu, const void *bytes, const char *function)
{
    const struct fmu_copy *copy = bytes;
    if (!fmu_has_room(fmu, bytes, function)) {
        return false;
    }
    if (copy->exchange != fmu->exchange) {
        fmu_error(fmu, "a state of model exchange is none of co-simulation");
        return false;
    }
    if (!fsm_machine_restore(fmu->machine, copy->machine)) {
        fmu_error(fmu, "%s: the state is none of this unit, or it was damaged", function);
        return false;
    }
    fmu->phase = copy->phase;
    fmu->stopped = copy->stopped;
    fmu->begin = copy->begin;
    fmu->watch.due = copy->due;
    fmu->watch.guard = copy->due_guard;
    const char *rates = (const char *)bytes + rates_at(fmu);
    memcpy(fmu->rates, rates, rates_bytes());
    memcpy(fmu->watch.low, rates + rates_bytes(), low_bytes());
    fmu->stale = true;
    return true;
}

FSM_LOCAL bool fmu_serialize(struct fmu *fmu, const void *copy, void *bytes, size_t size, const char *function)
{
    if (!fmu_has_room(fmu, copy, function) || !fmu_has_room(fmu, bytes, function)) {
        return false;
    }
    if (size != fmu_copy_bytes(fmu)) {
        fmu_error(fmu, "%s: the serialized state takes %lu bytes", function, (unsigned long)fmu_copy_bytes(fmu));
        return false;
    }
    memcpy(bytes, copy, size);
    return true;
}

FSM_LOCAL bool fmu_deserialize(struct fmu *fmu, const void *bytes, size_t size, void **copy, const char *function)
{
    if (!fmu_has_room(fmu, bytes, function) || !fmu_has_room(fmu, copy, function)) {
        return false;
    }
    uint64_t seal = 0;
    memcpy(&seal, bytes, size < sizeof seal ? size : sizeof seal);
    if (size != fmu_copy_bytes(fmu) || seal != seal_of(fmu, bytes)) {
        fmu_error(fmu, "the serialized state is damaged, or that of another model");
        return false;
    }
    if (*copy == NULL) {
        *copy = malloc(size);
    }
    if (*copy == NULL) {
        fmu_error(fmu, "there is no memory");
        return false;
    }
    memcpy(*copy, bytes, size);
    return true;
}
