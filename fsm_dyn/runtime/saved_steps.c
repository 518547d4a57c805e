/* Saving and restoring a run by time stepping between two of its steps (saved_state.h). */

#include "saved_state.h"

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
