/* Saved state of a run: written, checked, restored. */

#include <string.h>

#include "saved_state.h"

/* -- Modes in a saved state: by their contact states, so that the tables restored into may number them differently. */

/* Whether two modes have the same contact states. */
static bool same_states(const struct fsm_tables *tables, int64_t one, int64_t other)
{
    const fsm_code_table *states = &tables->mode_states;
    return memcmp(states->at + one * states->m, states->at + other * states->m, (size_t)states->m) == 0;
}

/* Write the words that name a mode: which of the charts with its contact states it is, and these. */
FSM_LOCAL void fsm_put_mode(struct fsm_saved_writer *writer, const struct fsm_tables *tables, int64_t mode)
{
    int64_t chart = 0;
    for (int64_t other = 0; other < mode; other++) {
        chart += same_states(tables, other, mode);
    }
    fsm_put_integer(writer, chart);
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        fsm_put_integer(writer, AT(tables->mode_states, mode, k));
    }
}

/* Find the mode that words name; where it is missing its contact states are left in `wanted`. */
FSM_LOCAL enum fsm_restored fsm_find_saved_mode(const struct fsm_tables *tables, struct fsm_saved_part part,
                                                fsm_codes wanted, int64_t *mode)
{
    if (part.n < FSM_MODE_WORDS(tables)) {
        return FSM_RESTORE_OUT_OF_RANGE;
    }
    int64_t chart = (int64_t)part.at[0];
    const uint64_t *states = part.at + 1;
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        if (!fsm_in_range((int64_t)states[k], FSM_CONTACT_FREE, FSM_CONTACT_SLIDING_UNDER)) {
            return FSM_RESTORE_OUT_OF_RANGE;
        }
        wanted.at[k] = (int8_t)states[k];
    }
    int64_t found = 0;
    for (*mode = 0; *mode < tables->mode_states.n; (*mode)++) {
        int64_t k = 0;
        while (k < wanted.n && AT(tables->mode_states, *mode, k) == wanted.at[k]) {
            k++;
        }
        if (k == wanted.n && found++ == chart) {
            return FSM_RESTORE_RESTORED;
        }
    }
    return found == 0 && chart == 0 ? FSM_RESTORE_LACKS_MODE : FSM_RESTORE_OUT_OF_RANGE;
}

/* Write the ring of the last transitions, in its own order; entries that are forgotten are zero. */
FSM_LOCAL void fsm_put_history(struct fsm_saved_writer *writer, const struct fsm_run *run)
{
    const struct fsm_state *state = run->state;
    fsm_begin_section(writer, FSM_SECTION_HISTORY, FSM_RING_LENGTH * (FSM_MODE_WORDS(run->tables) + FSM_RING_WIDTH));
    for (int64_t i = 0; i < FSM_RING_LENGTH; i++) {
        const double *entry = state->history.at + i * FSM_RING_WIDTH;
        bool kept = i < state->counters->history;
        fsm_put_mode(writer, run->tables, kept ? (int64_t)entry[FSM_RING_MODE] : 0);
        for (int64_t j = 0; j < FSM_RING_WIDTH; j++) {
            fsm_put_number(writer, !kept || j == FSM_RING_MODE ? 0.0 : entry[j]);
        }
    }
}

/* Read the ring of the last transitions; `counters`: those of the saved state. */
FSM_LOCAL enum fsm_restored fsm_take_history(const struct fsm_run *run, const uint64_t *words,
                                             const struct fsm_counters *counters, bool write)
{
    const struct fsm_tables *tables = run->tables;
    int64_t width = FSM_MODE_WORDS(tables) + FSM_RING_WIDTH;
    struct fsm_saved_part part;
    if (!fsm_find_section(words, FSM_SECTION_HISTORY, FSM_RING_LENGTH * width, &part)) {
        return FSM_RESTORE_OUT_OF_RANGE;
    }
    for (int64_t i = 0; i < FSM_RING_LENGTH; i++) {
        struct fsm_saved_part name = {part.at + i * width, width};
        const uint64_t *columns = name.at + FSM_MODE_WORDS(tables);
        double contact = fsm_number_of(columns[FSM_RING_CONTACT]);
        int64_t mode = 0;
        if (i < counters->history) {
            enum fsm_restored found = fsm_find_saved_mode(tables, name, run->work->wanted, &mode);
            if (found != FSM_RESTORE_RESTORED) {
                return found;
            }
            if (!(contact >= -1.0 && contact < (double)tables->sizes->n_contacts) || contact != floor(contact)) {
                return FSM_RESTORE_OUT_OF_RANGE;
            }
        }
        for (int64_t j = 0; write && j < FSM_RING_WIDTH; j++) {
            double value = j == FSM_RING_MODE ? (double)mode : fsm_number_of(columns[j]);
            run->state->history.at[i * FSM_RING_WIDTH + j] = i < counters->history ? value : 0.0;
        }
    }
    return FSM_RESTORE_RESTORED;
}

/* Write how many evaluations were made in each mode. */
FSM_LOCAL void fsm_put_evaluations(struct fsm_saved_writer *writer, const struct fsm_run *run)
{
    int64_t n = 0;
    fsm_indices spent = run->state->spent;
    for (int64_t mode = 0; mode < run->tables->sizes->n_modes; mode++) {
        n += spent.at[mode] > 0;
    }
    fsm_begin_section(writer, FSM_SECTION_SPENT, n * (FSM_MODE_WORDS(run->tables) + 1));
    for (int64_t mode = 0; mode < run->tables->sizes->n_modes; mode++) {
        if (spent.at[mode] > 0) {
            fsm_put_mode(writer, run->tables, mode);
            fsm_put_integer(writer, spent.at[mode]);
        }
    }
}

/* Read how many evaluations were made in each mode; none in those that are not named. */
FSM_LOCAL enum fsm_restored fsm_take_evaluations(const struct fsm_run *run, const uint64_t *words, bool write)
{
    struct fsm_saved_part part;
    int64_t named = FSM_MODE_WORDS(run->tables);
    if (!fsm_find_section(words, FSM_SECTION_SPENT, -1, &part) || part.n % (named + 1) != 0) {
        return FSM_RESTORE_OUT_OF_RANGE;
    }
    for (int64_t mode = 0; write && mode < run->state->spent.n; mode++) {
        run->state->spent.at[mode] = 0;
    }
    for (; part.n > 0; part.at += named + 1, part.n -= named + 1) {
        int64_t mode;
        enum fsm_restored found = fsm_find_saved_mode(run->tables, part, run->work->wanted, &mode);
        if (found != FSM_RESTORE_RESTORED) {
            return found;
        }
        if (!fsm_in_range((int64_t)part.at[named], 1, INT64_MAX / 4) || mode >= run->state->spent.n) {
            return FSM_RESTORE_OUT_OF_RANGE;
        }
        if (write) {
            run->state->spent.at[mode] = (int64_t)part.at[named];
        }
    }
    return FSM_RESTORE_RESTORED;
}

/* Return the mode embedded online behind a mode, NULL where it has kernels of its own. */
static struct fsm_online_mode *online_mode(fsm_indices online, int64_t mode)
{
    return mode < online.n ? (struct fsm_online_mode *)(intptr_t)online.at[mode] : NULL;
}

/* Whether the contact states of mode `one` come before those of `other`. */
static bool comes_before(const struct fsm_tables *tables, int64_t one, int64_t other)
{
    const fsm_code_table *states = &tables->mode_states;
    return memcmp(states->at + one * states->m, states->at + other * states->m, (size_t)states->m) < 0;
}

/* Let entry `i` of a heap, whose largest entry comes first, sink to its place among the first `n`. */
static void sink(const struct fsm_tables *tables, fsm_indices order, int64_t i, int64_t n)
{
    for (int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && comes_before(tables, order.at[child], order.at[child + 1])) {
            child++;
        }
        if (!comes_before(tables, order.at[i], order.at[child])) {
            return;
        }
        fsm_swap_indices(order.at, i, child);
        i = child;
    }
}

/* List the modes with a chart chosen online by their contact states in `order` (n_modes,); return how many there are. */
static int64_t order_online_modes(const struct fsm_tables *tables, fsm_indices online, fsm_indices order)
{
    int64_t n = 0;
    for (int64_t mode = 0; mode < tables->mode_states.n && mode < online.n; mode++) {
        const struct fsm_online_mode *o = online_mode(online, mode);
        if (o != NULL && fsm_online_choices(o)[0] != 0) {
            order.at[n++] = mode;
        }
    }
    for (int64_t i = n / 2 - 1; i >= 0; i--) {
        sink(tables, order, i, n);
    }
    for (int64_t last = n - 1; last > 0; last--) {
        fsm_swap_indices(order.at, 0, last);
        sink(tables, order, 0, last);
    }
    return n;
}

/* Words of a mode embedded online beside its name: rank (and, in units, the redundant rows that share the load), active
   rows, level of the alarm; then rows and speeds. */
#define FSM_ONLINE_WORDS 3
#define FSM_SHARED_UNIT  ((int64_t)1 << 32)

/* Write the charts chosen online: they are kept until a mode's pivot falls below the chart threshold, also while it is
   left. */
FSM_LOCAL void fsm_put_online_modes(struct fsm_saved_writer *writer, const struct fsm_tables *tables,
                                    fsm_indices online, fsm_indices order)
{
    int64_t n_u = tables->sizes->n_u, n = 0, count = order_online_modes(tables, online, order);
    for (int64_t i = 0; i < count; i++) {
        const int64_t *chosen = fsm_online_choices(online_mode(online, order.at[i]));
        n += FSM_MODE_WORDS(tables) + FSM_ONLINE_WORDS + chosen[FSM_ONLINE_ACTIVE - FSM_ONLINE_CHOSEN] + n_u;
    }
    fsm_begin_section(writer, FSM_SECTION_ONLINE, n);
    for (int64_t i = 0; i < count; i++) {
        const struct fsm_online_mode *o = online_mode(online, order.at[i]);
        const int64_t *chosen = fsm_online_choices(o), *rows = chosen + FSM_ONLINE_CHOICE_COUNT;
        int64_t active = chosen[FSM_ONLINE_ACTIVE - FSM_ONLINE_CHOSEN];
        const int64_t *speeds = rows + (o->owner.n > 0 ? active : 2 * tables->sizes->n_rows);
        fsm_put_mode(writer, tables, order.at[i]);
        fsm_put_integer(writer, chosen[FSM_ONLINE_RANK - FSM_ONLINE_CHOSEN] +
                                    FSM_SHARED_UNIT * chosen[FSM_ONLINE_SHARED - FSM_ONLINE_CHOSEN]);
        fsm_put_integer(writer, active);
        fsm_put_number(writer, o->limits->level);
        for (int64_t k = 0; k < active; k++) {
            fsm_put_integer(writer, rows[k]);
        }
        for (int64_t j = 0; j < n_u; j++) {
            fsm_put_integer(writer, speeds[j]);
        }
    }
}

/* Give a mode embedded online its saved chart, which counts as chosen if `write`; return how many words it has, 0 where
   they do not fit the mode. */
static int64_t take_chart(struct fsm_online_mode *o, struct fsm_saved_part part, bool write)
{
    int64_t *chart = o->chart.at, *lists = chart + FSM_ONLINE_LISTS;
    int64_t n_u = o->sizes->n_u, n_rows = o->sizes->n_rows;
    fsm_forget_chart(o);
    fsm_own_arrays(o);
    fsm_list_rows(o);
    int64_t active = chart[FSM_ONLINE_ACTIVE];
    if (part.n < FSM_ONLINE_WORDS + active + n_u) {
        return 0;
    }
    int64_t rank = (int64_t)part.at[0] % FSM_SHARED_UNIT, shared = (int64_t)part.at[0] / FSM_SHARED_UNIT;
    double level = fsm_number_of(part.at[2]);
    if (!fsm_in_range(rank, 0, fsm_least(active, n_u)) || part.at[1] != (uint64_t)active || level != level ||
        !fsm_in_range(shared, 0, active - rank) ||
        !fsm_reorder(lists, lists + n_rows, part.at + FSM_ONLINE_WORDS, active) ||
        !fsm_reorder(lists + 2 * n_rows, NULL, part.at + FSM_ONLINE_WORDS + active, n_u)) {
        return 0;
    }
    chart[FSM_ONLINE_RANK] = rank;
    chart[FSM_ONLINE_SHARED] = shared;
    o->limits->level = level;
    fsm_list_nonzero(o);
    chart[FSM_ONLINE_CHOSEN] = write ? 1 : 0;
    fsm_keep_chart(o);
    return FSM_ONLINE_WORDS + active + n_u;
}

/* Read the charts chosen online; other modes have none then. */
FSM_LOCAL enum fsm_restored fsm_take_online_modes(const struct fsm_run *run, fsm_indices online, const uint64_t *words,
                                                  bool write)
{
    struct fsm_saved_part part;
    if (!fsm_find_section(words, FSM_SECTION_ONLINE, -1, &part)) {
        return FSM_RESTORE_OUT_OF_RANGE;
    }
    for (int64_t mode = 0; mode < online.n; mode++) {
        if (online_mode(online, mode) != NULL) {
            fsm_forget_chart(online_mode(online, mode));
        }
    }
    while (part.n > 0) {
        int64_t mode, named = FSM_MODE_WORDS(run->tables);
        enum fsm_restored found = fsm_find_saved_mode(run->tables, part, run->work->wanted, &mode);
        if (found != FSM_RESTORE_RESTORED) {
            return found;
        }
        struct fsm_online_mode *o = online_mode(online, mode);
        int64_t n = o == NULL ? 0 : take_chart(o, (struct fsm_saved_part){part.at + named, part.n - named}, write);
        if (n == 0) {
            return FSM_RESTORE_OUT_OF_RANGE;
        }
        part.at += named + n;
        part.n -= named + n;
    }
    return FSM_RESTORE_RESTORED;
}

/* -- Saving and restoring an event-driven run between two turns of its loop (saved_state.h).

   What is saved is all that the next turns depend on, and nothing else: workspace that every turn fills again is left
   out, rows and transitions recorded are the caller's. */

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

   `online` (n_modes,): addresses of the modes embedded online (struct fsm_online_mode), 0 for others; `order`: as many,
   scratch; `model`: a digest
   of the model, which fsm_restore compares.  Returns how many words the state has; where they are more than `room` it
   was not saved. */
FSM_API int64_t fsm_save(const struct fsm_run *run, fsm_indices online, fsm_indices order, uint64_t model,
                         uint64_t *words, int64_t room)
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
    fsm_put_online_modes(&writer, tables, online, order);
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
