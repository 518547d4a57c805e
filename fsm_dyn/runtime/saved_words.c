/* Words of a saved state, and saved steps of implicit methods. */

#include "saved_state.h"

/* -- The format of a saved state (saved_state.h): header, sections, check sum, and the digest of the tables' layout. */

#define FSM_HASH_START 0xcbf29ce484222325ULL
#define FSM_HASH_PRIME 0x100000001b3ULL

#define SENTENCE(name, number, sentence)                                                                               \
    case FSM_RESTORE_##name:                                                                                           \
        return sentence;

/* Return what was found when a state was restored, as text; NULL for a number that is no result. */
FSM_API const char *fsm_restored_sentence(int64_t result)
{
    switch (result) {
        FSM_RESTORE_RESULTS(SENTENCE)
    default:
        return NULL;
    }
}

#undef SENTENCE

/* Both steps can be undone, so two inputs that differ in one word never hash alike (Fowler, Noll and Vo, by words). */
static uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * FSM_HASH_PRIME;
    return hash ^ (hash >> 32);
}

static uint64_t hash_indices(uint64_t hash, const int64_t *at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        hash = hash_word(hash, (uint64_t)at[i]);
    }
    return hash;
}

static uint64_t hash_codes(uint64_t hash, const int8_t *at, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        hash = hash_word(hash, (uint64_t)at[i]);
    }
    return hash;
}

/* Return the check sum of a saved state of `count` words. */
static uint64_t check_sum(const uint64_t *words, int64_t count)
{
    uint64_t hash = FSM_HASH_START;
    for (int64_t i = 0; i < count; i++) {
        hash = i == FSM_SAVED_HEADER - 1 ? hash : hash_word(hash, words[i]);
    }
    return hash;
}

/* Return a digest of all that the tables say beside modes, guards and addresses. */
static uint64_t layout_digest(const struct fsm_tables *tables)
{
    const struct fsm_sizes *s = tables->sizes;
    const int64_t sizes[] = {s->n_q,       s->n_u,    s->n_k,           s->n_p,     s->n_w,        s->n_contacts,
                             s->n_memory,  s->n_rows, s->n_transitions, s->n_terms, s->sequential, s->on_inconsistent,
                             s->on_several, s->n_controllers};
    uint64_t hash = hash_indices(FSM_HASH_START, sizes, (int64_t)(sizeof sizes / sizeof sizes[0]));
    const double *tolerances = (const double *)tables->tolerances;
    for (int64_t i = 0; i < tables->tolerances_count; i++) {
        hash = hash_word(hash, fsm_word_of(tolerances[i]));
    }
    hash = hash_indices(hash, tables->row_role.at, tables->row_role.n);
    hash = hash_codes(hash, tables->row_positional.at, tables->row_positional.n);
    hash = hash_indices(hash, tables->contact_flags.at, tables->contact_flags.n);
    hash = hash_indices(hash, tables->contact_rows.at, tables->contact_rows.n * tables->contact_rows.m);
    hash = hash_indices(hash, tables->contact_ends.at, tables->contact_ends.n * tables->contact_ends.m);
    hash = hash_indices(hash, tables->contact_outline.at, tables->contact_outline.n);
    hash = hash_codes(hash, tables->transition_states.at, tables->transition_states.n * tables->transition_states.m);
    return hash_indices(hash, tables->quaternions.at, tables->quaternions.n);
}

FSM_LOCAL void fsm_put_word(struct fsm_saved_writer *writer, uint64_t word)
{
    if (writer->count < writer->room) {
        writer->at[writer->count] = word;
    }
    writer->count++;
}

FSM_LOCAL void fsm_put_integer(struct fsm_saved_writer *writer, int64_t value)
{
    fsm_put_word(writer, (uint64_t)value);
}

FSM_LOCAL void fsm_put_number(struct fsm_saved_writer *writer, double value)
{
    fsm_put_word(writer, fsm_word_of(value));
}

/* Begin a section of `n` words. */
FSM_LOCAL void fsm_begin_section(struct fsm_saved_writer *writer, enum fsm_saved_section number, int64_t n)
{
    fsm_put_integer(writer, (int64_t)number);
    fsm_put_integer(writer, n);
}

FSM_LOCAL void fsm_put_numbers(struct fsm_saved_writer *writer, enum fsm_saved_section number, fsm_vector values)
{
    fsm_begin_section(writer, number, values.n);
    for (int64_t i = 0; i < values.n; i++) {
        fsm_put_number(writer, values.at[i]);
    }
}

FSM_LOCAL void fsm_put_integers(struct fsm_saved_writer *writer, enum fsm_saved_section number, fsm_indices values)
{
    fsm_begin_section(writer, number, values.n);
    for (int64_t i = 0; i < values.n; i++) {
        fsm_put_integer(writer, values.at[i]);
    }
}

/* Write the header of a saved state; its length and check sum follow in fsm_finish_saving. */
FSM_LOCAL struct fsm_saved_writer fsm_begin_saving(const struct fsm_tables *tables, uint64_t model,
                                                   enum fsm_saved_kind kind, uint64_t *words, int64_t room)
{
    struct fsm_saved_writer writer = {words, room, 0};
    fsm_put_word(&writer, FSM_SAVED_MAGIC);
    fsm_put_integer(&writer, FSM_SAVED_VERSION);
    fsm_put_word(&writer, FSM_SAVED_BYTE_ORDER);
    fsm_put_word(&writer, 0);
    fsm_put_word(&writer, model);
    fsm_put_word(&writer, layout_digest(tables));
    fsm_put_integer(&writer, (int64_t)kind);
    fsm_put_word(&writer, 0);
    return writer;
}

/* Write length and check sum if all words had room; return how many words there are. */
FSM_LOCAL int64_t fsm_finish_saving(const struct fsm_saved_writer *writer)
{
    if (writer->count <= writer->room) {
        writer->at[3] = (uint64_t)writer->count;
        writer->at[FSM_SAVED_HEADER - 1] = check_sum(writer->at, writer->count);
    }
    return writer->count;
}

/* Whether the sections of a saved state fill it exactly. */
static bool has_whole_sections(const uint64_t *words, int64_t count)
{
    int64_t at = FSM_SAVED_HEADER;
    while (count - at >= 2) {
        if (words[at + 1] > (uint64_t)(count - at - 2)) {
            return false;
        }
        at += 2 + (int64_t)words[at + 1];
    }
    return at == count;
}

/* Check header, check sum and sections of what is to be restored into these tables. */
FSM_LOCAL enum fsm_restored fsm_check_saved(const struct fsm_tables *tables, uint64_t model, enum fsm_saved_kind kind,
                                            const uint64_t *words, int64_t count)
{
    uint64_t magic = FSM_SAVED_MAGIC, swapped = 0;
    for (int i = 0; i < 8; i++) {
        swapped |= ((magic >> (8 * i)) & 0xff) << (8 * (7 - i));
    }
    if (count > 0 && words[0] == swapped) {
        return FSM_RESTORE_OTHER_BYTE_ORDER;
    }
    if (count < 1 || words[0] != magic) {
        return FSM_RESTORE_NOT_SAVED;
    }
    if (count < FSM_SAVED_HEADER) {
        return FSM_RESTORE_DAMAGED;
    }
    if (words[1] != FSM_SAVED_VERSION) {
        return FSM_RESTORE_OTHER_VERSION;
    }
    if (words[2] != FSM_SAVED_BYTE_ORDER || words[3] != (uint64_t)count ||
        words[FSM_SAVED_HEADER - 1] != check_sum(words, count) || !has_whole_sections(words, count)) {
        return FSM_RESTORE_DAMAGED;
    }
    if (words[6] != (uint64_t)kind) {
        return FSM_RESTORE_OTHER_KIND;
    }
    if (words[4] != model) {
        return FSM_RESTORE_OTHER_MODEL;
    }
    return words[5] == layout_digest(tables) ? FSM_RESTORE_RESTORED : FSM_RESTORE_OTHER_LAYOUT;
}

/* Find the first section of a number in a state that was checked; false where it has not `n` words (n < 0: any). */
FSM_LOCAL bool fsm_find_section(const uint64_t *words, enum fsm_saved_section number, int64_t n, struct fsm_saved_part *part)
{
    int64_t count = (int64_t)words[3];
    for (int64_t at = FSM_SAVED_HEADER; at < count; at += 2 + (int64_t)words[at + 1]) {
        if (words[at] == (uint64_t)number) {
            *part = (struct fsm_saved_part){words + at + 2, (int64_t)words[at + 1]};
            return n < 0 || part->n == n;
        }
    }
    return false;
}

/* Read a section of numbers as long as `values`, finite or infinite, never not a number; copy them if `write`. */
FSM_LOCAL bool fsm_take_numbers(const uint64_t *words, enum fsm_saved_section number, fsm_vector values, bool write)
{
    struct fsm_saved_part part;
    if (!fsm_find_section(words, number, values.n, &part)) {
        return false;
    }
    for (int64_t i = 0; i < part.n; i++) {
        double value = fsm_number_of(part.at[i]);
        if (value != value) {
            return false;
        }
        if (write) {
            values.at[i] = value;
        }
    }
    return true;
}

FSM_LOCAL bool fsm_in_range(int64_t value, int64_t least, int64_t most)
{
    return least <= value && value <= most;
}

/* -- Saving and restoring a run by time stepping between two of its steps (saved_state.h). */

#define FSM_REPORT_NUMBERS ((int64_t)(sizeof(struct fsm_time_stepping_report) / sizeof(double)))

/* Write the whole state of a run after the step that wrote row `run->row`, into at most `room` words.

   `step`: number of this step from the beginning of the run; `model`: a digest of the model.  Returns how many words the
   state has; where they are more than `room` it was not saved. */
FSM_API int64_t fsm_save_steps(const struct fsm_tables *tables, const struct fsm_time_stepping *run, int64_t step,
                               uint64_t model, uint64_t *words, int64_t room)
{
    struct fsm_saved_writer writer = fsm_begin_saving(tables, model, FSM_SAVED_STEPS, words, room);
    fsm_begin_section(&writer, FSM_SECTION_STEP, 2);
    fsm_put_integer(&writer, step);
    fsm_put_integer(&writer, run->segment);
    fsm_put_numbers(&writer, FSM_SECTION_X, fsm_row(run->x, run->row));
    fsm_put_numbers(&writer, FSM_SECTION_CONTEXT, fsm_row(run->c, run->row));
    fsm_begin_section(&writer, FSM_SECTION_CODES, run->codes.m + run->free_side.n);
    for (int64_t k = 0; k < run->codes.m; k++) {
        fsm_put_integer(&writer, AT(run->codes, run->row, k));
    }
    for (int64_t k = 0; k < run->free_side.n; k++) {
        fsm_put_integer(&writer, run->free_side.at[k]);
    }
    fsm_put_numbers(&writer, FSM_SECTION_REPORT, (fsm_vector){(double *)run->report, FSM_REPORT_NUMBERS});
    return fsm_finish_saving(&writer);
}

/* Read all sections into row 0, and write them if all of them have been found good before. */
static bool take_steps(struct fsm_time_stepping *run, int64_t *step, int64_t segments, const uint64_t *words,
                       bool write)
{
    struct fsm_saved_part place, codes;
    int64_t n_contacts = run->codes.m;
    if (!fsm_find_section(words, FSM_SECTION_STEP, 2, &place) ||
        !fsm_find_section(words, FSM_SECTION_CODES, n_contacts + run->free_side.n, &codes) ||
        !fsm_take_numbers(words, FSM_SECTION_X, fsm_row(run->x, 0), write) ||
        !fsm_take_numbers(words, FSM_SECTION_CONTEXT, fsm_row(run->c, 0), write) ||
        !fsm_take_numbers(words, FSM_SECTION_REPORT, (fsm_vector){(double *)run->report, FSM_REPORT_NUMBERS}, write) ||
        !fsm_in_range((int64_t)place.at[0], 0, INT64_MAX / 4) || !fsm_in_range((int64_t)place.at[1], 0, segments - 1)) {
        return false;
    }
    for (int64_t k = 0; k < codes.n; k++) {
        int64_t most = k < n_contacts ? FSM_CONTACT_SLIDING_UNDER : 1;
        if (!fsm_in_range((int64_t)codes.at[k], 0, most)) {
            return false;
        }
    }
    for (int64_t k = 0; write && k < codes.n; k++) {
        int8_t *target = k < n_contacts ? &run->codes.at[k] : &run->free_side.at[k - n_contacts];
        *target = (int8_t)codes.at[k];
    }
    if (write) {
        *step = (int64_t)place.at[0];
        run->segment = (int64_t)place.at[1];
        run->row = 0;
    }
    return true;
}

/* Give a run by time stepping the state that fsm_save_steps wrote, in its row 0; see fsm_restore.

   `step`: number of the step that wrote it; `segments`: how many the input tables have. */
FSM_API enum fsm_restored fsm_restore_steps(const struct fsm_tables *tables, struct fsm_time_stepping *run,
                                            int64_t *step, int64_t segments, uint64_t model, const uint64_t *words,
                                            int64_t count)
{
    enum fsm_restored result = fsm_check_saved(tables, model, FSM_SAVED_STEPS, words, count);
    if (result != FSM_RESTORE_RESTORED) {
        return result;
    }
    if (!take_steps(run, step, segments, words, false)) {
        return FSM_RESTORE_OUT_OF_RANGE;
    }
    take_steps(run, step, segments, words, true);
    return FSM_RESTORE_RESTORED;
}
