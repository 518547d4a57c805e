/* Saving and restoring an event-driven run between two turns of its loop (saved_state.h).

   What is saved is all that the next turns depend on, and nothing else: workspace that every turn fills again is left
   out, rows and transitions recorded are the caller's. */

#include "saved_state.h"

#define FSM_SAVED_WORDS_OF(type) ((int64_t)(sizeof(type) / sizeof(int64_t)))

/* A structure of doubles, or of integers, as an array. */
#define AS_VECTOR(fields)  ((fsm_vector){(double *)(fields), FSM_SAVED_WORDS_OF(*(fields))})
#define AS_INDICES(fields) ((fsm_indices){(int64_t *)(fields), FSM_SAVED_WORDS_OF(*(fields))})

/* Number and values of a section of doubles. */
struct plain_section {
    enum fsm_saved_section number;
    fsm_vector values;
};
#define PLAIN_SECTIONS 7

/* List the sections that are arrays of doubles, copied as they are. */
static void list_plain_sections(const struct fsm_run *run, struct plain_section *sections)
{
    const struct fsm_state *state = run->state;
    int64_t rank = FSM_SAVED_WORDS_OF(*state->rank) + 2 * run->tables->sizes->n_rows;
    sections[0] = (struct plain_section){FSM_SECTION_CLOCK, AS_VECTOR(state->clock)};
    sections[1] = (struct plain_section){FSM_SECTION_X, state->x};
    sections[2] = (struct plain_section){FSM_SECTION_X_DOT, state->x_dot};
    sections[3] = (struct plain_section){FSM_SECTION_CONTEXT, state->c};
    sections[4] = (struct plain_section){FSM_SECTION_DRIFT, state->drift};
    sections[5] = (struct plain_section){FSM_SECTION_RANK, {(double *)state->rank, rank}};
    sections[6] = (struct plain_section){FSM_SECTION_CONDITIONS, state->conditions};
}

/* Write values, slopes and tolerances of the guards of the current mode, and values and slopes of those that fired. */
static void put_guards(struct fsm_saved_writer *writer, const struct fsm_run *run)
{
    const struct fsm_state *state = run->state;
    int64_t most = run->tables->sizes->max_guards, mode = state->counters->mode;
    int64_t n_g = fsm_guard_count(run->tables, mode), fired = state->counters->fired;
    fsm_begin_section(writer, FSM_SECTION_GUARDS, 3 * n_g + 2 * fired);
    for (int64_t part = 0; part < 5; part++) {
        for (int64_t j = 0; j < (part < 3 ? n_g : fired); j++) {
            fsm_put_number(writer, state->guards.at[part * most + j]);
        }
    }
    fsm_put_integers(writer, FSM_SECTION_ARMED, fsm_indices_first(state->armed, n_g));
    fsm_begin_section(writer, FSM_SECTION_FIRED, fired);
    for (int64_t k = 0; k < fired; k++) {
        fsm_put_integer(writer, state->fired.at[k] - run->tables->mode_guard_start.at[mode]);
    }
}

/* Write the whole state of a run that fsm_advance has returned from, into at most `room` words.

   `online` (n_modes,): addresses of the modes embedded online (struct fsm_online_mode), 0 for others; `model`: a digest
   of the model, which fsm_restore compares.  Returns how many words the state has; where they are more than `room` it
   was not saved. */
FSM_API int64_t fsm_save(const struct fsm_run *run, fsm_indices online, uint64_t model, uint64_t *words, int64_t room)
{
    const struct fsm_state *state = run->state;
    const struct fsm_tables *tables = run->tables;
    struct fsm_saved_writer writer = fsm_begin_saving(tables, model, FSM_SAVED_RUN, words, room);
    struct plain_section sections[PLAIN_SECTIONS];
    list_plain_sections(run, sections);
    for (int64_t i = 0; i < PLAIN_SECTIONS; i++) {
        fsm_put_numbers(&writer, sections[i].number, sections[i].values);
    }
    struct fsm_counters counters = *state->counters;
    counters.mode = counters.rows = counters.transitions = counters.passed = counters.work_done = 0;
    fsm_put_integers(&writer, FSM_SECTION_METHOD, AS_INDICES(run->method->counts));
    fsm_put_integers(&writer, FSM_SECTION_COUNTERS, AS_INDICES(&counters));
    fsm_begin_section(&writer, FSM_SECTION_MODE, FSM_MODE_WORDS(tables));
    fsm_put_mode(&writer, tables, state->counters->mode);
    put_guards(&writer, run);
    fsm_put_integers(&writer, FSM_SECTION_LIMITS, state->limits);
    fsm_put_history(&writer, run);
    fsm_begin_section(&writer, FSM_SECTION_DECISION, run->work->implied.n + run->work->log.n);
    for (int64_t k = 0; k < run->work->implied.n; k++) {
        fsm_put_integer(&writer, run->work->implied.at[k]);
    }
    for (int64_t k = 0; k < run->work->log.n; k++) {
        fsm_put_number(&writer, run->work->log.at[k]);
    }
    fsm_put_online_modes(&writer, tables, online);
    fsm_put_evaluations(&writer, run);
    return fsm_finish_saving(&writer);
}

/* Read the counters; false where one of them is out of range. */
static bool take_counters(const struct fsm_run *run, const uint64_t *words, struct fsm_counters *counters)
{
    struct fsm_saved_part part;
    fsm_indices values = AS_INDICES(counters);
    if (!fsm_find_section(words, FSM_SECTION_COUNTERS, values.n, &part)) {
        return false;
    }
    for (int64_t i = 0; i < values.n; i++) {
        values.at[i] = (int64_t)part.at[i];
        if (!fsm_in_range(values.at[i], 0, INT64_MAX / 4)) {
            return false;
        }
    }
    bool resolving = counters->phase == FSM_PHASE_RESOLVING;
    bool ends_train = resolving && counters->reason == FSM_REASON_ZENO;
    if (resolving && counters->reason == FSM_REASON_START && counters->started == 1) {
        return false; // the row of the start stands already, and is to be written over
    }
    return counters->phase <= FSM_PHASE_RESOLVING && counters->reason <= FSM_REASON_SAMPLE &&
           counters->segment < run->inputs->start.n && counters->started <= 1 && counters->asked <= 1 &&
           counters->cycle <= FSM_RING_LENGTH && (!ends_train || counters->cycle <= counters->history);
}

/* Whether all numbers of the clock that are used as times and lengths are such. */
static bool is_clock(const uint64_t *words)
{
    struct fsm_clock clock;
    return fsm_take_numbers(words, FSM_SECTION_CLOCK, AS_VECTOR(&clock), true) && fsm_is_finite(clock.time) &&
           fsm_is_finite(clock.begin) && fsm_is_finite(clock.step) && fsm_is_finite(clock.error);
}

/* Read the guards of `mode`: their numbers, which of them are armed, and which fired. */
static bool take_guards(const struct fsm_run *run, const uint64_t *words, int64_t mode, int64_t fired, bool write)
{
    struct fsm_state *state = run->state;
    int64_t most = run->tables->sizes->max_guards, n_g = fsm_guard_count(run->tables, mode);
    struct fsm_saved_part numbers, armed, listed;
    if (fired > n_g || !fsm_find_section(words, FSM_SECTION_GUARDS, 3 * n_g + 2 * fired, &numbers) ||
        !fsm_find_section(words, FSM_SECTION_ARMED, n_g, &armed) ||
        !fsm_find_section(words, FSM_SECTION_FIRED, fired, &listed)) {
        return false;
    }
    for (int64_t j = 0; j < n_g; j++) {
        if (!fsm_in_range((int64_t)armed.at[j], FSM_GUARD_WAITING, FSM_GUARD_ARMED)) {
            return false;
        }
    }
    for (int64_t k = 0; k < fired; k++) {
        if (!fsm_in_range((int64_t)listed.at[k], 0, n_g - 1)) {
            return false;
        }
    }
    const uint64_t *next = numbers.at;
    for (int64_t part = 0; write && part < 5; part++) {
        for (int64_t j = 0; j < (part < 3 ? n_g : fired); j++) {
            state->guards.at[part * most + j] = fsm_number_of(*next++);
        }
    }
    for (int64_t j = 0; write && j < n_g; j++) {
        state->armed.at[j] = (int64_t)armed.at[j];
    }
    for (int64_t k = 0; write && k < fired; k++) {
        state->fired.at[k] = run->tables->mode_guard_start.at[mode] + (int64_t)listed.at[k];
    }
    return true;
}

/* Read what contacts came to their limits by, which gaps others imply, and the candidates tried last. */
static bool take_contacts(const struct fsm_run *run, const uint64_t *words, bool write)
{
    struct fsm_saved_part limits, decision;
    fsm_indices kept = run->state->limits, implied = run->work->implied;
    fsm_vector log = run->work->log;
    if (!fsm_find_section(words, FSM_SECTION_LIMITS, kept.n, &limits) ||
        !fsm_find_section(words, FSM_SECTION_DECISION, implied.n + log.n, &decision)) {
        return false;
    }
    for (int64_t k = 0; k < kept.n; k++) {
        bool event = 2 * k < kept.n;
        if (!fsm_in_range((int64_t)limits.at[k], event ? 0 : -1, event ? FSM_EVENT_LEAVES : 1)) {
            return false;
        }
    }
    for (int64_t k = 0; k < implied.n; k++) {
        if (decision.at[k] > 1) {
            return false;
        }
    }
    for (int64_t k = 0; write && k < kept.n; k++) {
        kept.at[k] = (int64_t)limits.at[k];
    }
    for (int64_t k = 0; write && k < implied.n; k++) {
        implied.at[k] = (int64_t)decision.at[k];
    }
    for (int64_t k = 0; write && k < log.n; k++) {
        log.at[k] = fsm_number_of(decision.at[implied.n + k]);
    }
    return true;
}

/* Read all sections, and write them into the run if all of them have been found good before. */
static enum fsm_restored take_all(const struct fsm_run *run, fsm_indices online, const uint64_t *words, bool write)
{
    struct plain_section sections[PLAIN_SECTIONS];
    struct fsm_counters counters;
    struct fsm_saved_part name;
    int64_t mode;
    list_plain_sections(run, sections);
    for (int64_t i = 0; i < PLAIN_SECTIONS; i++) {
        if (!fsm_take_numbers(words, sections[i].number, sections[i].values, write)) {
            return FSM_RESTORE_OUT_OF_RANGE;
        }
    }
    if (!is_clock(words) || !take_counters(run, words, &counters) ||
        !fsm_find_section(words, FSM_SECTION_MODE, FSM_MODE_WORDS(run->tables), &name)) {
        return FSM_RESTORE_OUT_OF_RANGE;
    }
    enum fsm_restored result = fsm_find_saved_mode(run->tables, name, run->work->wanted, &mode);
    if (result != FSM_RESTORE_RESTORED) {
        return result;
    }
    if (!take_guards(run, words, mode, counters.fired, write) || !take_contacts(run, words, write)) {
        return FSM_RESTORE_OUT_OF_RANGE;
    }
    result = fsm_take_history(run, words, &counters, write);
    if (result == FSM_RESTORE_RESTORED) {
        result = fsm_take_online_modes(run, online, words, write);
    }
    if (result == FSM_RESTORE_RESTORED) {
        result = fsm_take_evaluations(run, words, write);
    }
    if (write) {
        counters.mode = mode;
        *run->state->counters = counters;
    }
    return result;
}

/* Whether the state was saved with the method of the run. */
static bool same_method(const struct fsm_run *run, const uint64_t *words)
{
    const struct fsm_method_counts *counts = run->method->counts;
    struct fsm_saved_part part;
    return fsm_find_section(words, FSM_SECTION_METHOD, FSM_SAVED_WORDS_OF(*counts), &part) &&
           part.at[0] == (uint64_t)counts->stages && part.at[1] == (uint64_t)counts->order &&
           part.at[2] == (uint64_t)counts->adaptive && part.at[3] == (uint64_t)counts->degree;
}

/* Give a run the state that fsm_save wrote, `count` words of it; nothing is recorded in it then.

   Returns FSM_RESTORE_RESTORED; FSM_RESTORE_LACKS_MODE where the caller has to add the mode with the contact states in
   `run->work->wanted` to the tables and call again; else why the words are refused.  The run is as it was then, but
   modes embedded online have lost their charts. */
FSM_API enum fsm_restored fsm_restore(const struct fsm_run *run, fsm_indices online, uint64_t model,
                                      const uint64_t *words, int64_t count)
{
    enum fsm_restored result = fsm_check_saved(run->tables, model, FSM_SAVED_RUN, words, count);
    if (result == FSM_RESTORE_RESTORED && !same_method(run, words)) {
        result = FSM_RESTORE_OTHER_METHOD;
    }
    if (result == FSM_RESTORE_RESTORED) {
        result = take_all(run, online, words, false);
    }
    return result == FSM_RESTORE_RESTORED ? take_all(run, online, words, true) : result;
}
