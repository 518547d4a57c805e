/* Saved state of a run, as words in memory of the caller, from which it continues bit for bit.

   A saved state is an array of words of 64 bits in the byte order of the machine, without an address in it:

       0  FSM_SAVED_MAGIC          4  digest of the model, the caller's      then sections: number, count, so many words
       1  FSM_SAVED_VERSION        5  digest of the tables' layout           (enum fsm_saved_section); a section of a number
       2  FSM_SAVED_BYTE_ORDER     6  enum fsm_saved_kind                    that is not known is skipped
       3  number of words          7  check sum of all other words

   Numbers are doubles or integers of 64 bits.  Modes are named by their contact states, and by which of the charts with
   these states they are; guards by their place in the mode; so the tables restored into may number modes differently. */

#ifndef FSM_SAVED_STATE_H
#define FSM_SAVED_STATE_H

#include "online.h"
#include "time_stepping.h"

#define FSM_SAVED_MAGIC      0x45544154534d5346ULL // "FSMSTATE" if the lowest byte comes first
#define FSM_SAVED_BYTE_ORDER 0x0102030405060708ULL
#define FSM_SAVED_VERSION    2 // to be raised when the meaning of a section or of a field in it changes
#define FSM_SAVED_HEADER     8 // words

/* What came of restoring a state: name, number, what was found. */
#define FSM_RESTORE_RESULTS(X)                                                                                         \
    X(RESTORED, 0, "the state is restored")                                                                            \
    X(LACKS_MODE, 1, "a mode of the saved state is missing in the tables")                                             \
    X(NOT_SAVED, 2, "these bytes are not a saved state")                                                               \
    X(OTHER_VERSION, 3, "the state was saved by a version of the runtime whose format differs")                        \
    X(OTHER_BYTE_ORDER, 4, "the state was saved on a machine with another byte order")                                 \
    X(DAMAGED, 5, "the saved state is damaged: its length or its check sum is wrong")                                  \
    X(OTHER_KIND, 6, "the saved state is of the other kind of integration: event-driven, or time stepping")            \
    X(OTHER_MODEL, 7, "the state was saved of another model")                                                          \
    X(OTHER_LAYOUT, 8, "the tables have other sizes, contacts or tolerances than those of the saved state")            \
    X(OTHER_METHOD, 9, "the state was saved with another method of integration")                                       \
    X(OUT_OF_RANGE, 10, "a number of the saved state is out of range")

#define FSM_RESTORE_ENTRY(name, number, sentence) FSM_RESTORE_##name = number,
/* Results of restoring a state. */
enum fsm_restored { FSM_RESTORE_RESULTS(FSM_RESTORE_ENTRY) };
#undef FSM_RESTORE_ENTRY

/* Kinds of integration. */
enum fsm_saved_kind {
    FSM_SAVED_RUN = 0,
    FSM_SAVED_STEPS = 1, // time stepping
};

/* Sections; of integers unless they say otherwise. */
enum fsm_saved_section {
    FSM_SECTION_METHOD = 1,    // struct fsm_method_counts
    FSM_SECTION_CLOCK = 2,     // doubles, struct fsm_clock
    FSM_SECTION_COUNTERS = 3,  // struct fsm_counters, the mode zero
    FSM_SECTION_X = 4,         // doubles
    FSM_SECTION_X_DOT = 5,     // doubles
    FSM_SECTION_CONTEXT = 6,   // doubles
    FSM_SECTION_MODE = 7,      // the current mode, FSM_MODE_WORDS
    FSM_SECTION_GUARDS = 8,    // doubles: values, slopes, tolerances of its guards, values and slopes of those fired
    FSM_SECTION_ARMED = 9,     // status of its guards, enum fsm_guard_status
    FSM_SECTION_FIRED = 10,    // fired guards, by their place in the mode
    FSM_SECTION_LIMITS = 11,   // struct fsm_state
    FSM_SECTION_HISTORY = 12,  // FSM_RING_LENGTH entries: the ended mode, then the columns as doubles
    FSM_SECTION_DRIFT = 13,    // doubles
    FSM_SECTION_RANK = 14,     // doubles: struct fsm_rank, sizes and weights of the rows
    FSM_SECTION_DECISION = 15, // contacts implied by others, then the candidates tried last, as doubles
    FSM_SECTION_ONLINE = 16,   // modes embedded online whose chart is chosen, one after the other (saved_state.c)
    FSM_SECTION_STEP = 17,     // time stepping: number of the step, segment of the inputs
    FSM_SECTION_CODES = 18,    // time stepping: contact states, then the sides of contacts
    FSM_SECTION_REPORT = 19,   // doubles, struct fsm_time_stepping_report
    FSM_SECTION_SPENT = 20,    // modes with evaluations, each with their number
    FSM_SECTION_CONDITIONS = 21, // doubles: enum fsm_condition_column of every user-defined transition
};

/* Words to name a mode: the number among the charts with these contact states, then the states. */
#define FSM_MODE_WORDS(tables) (1 + (tables)->sizes->n_contacts)

/* Words being written, as many of them as there is room for; `count` of them are wanted. */
struct fsm_saved_writer {
    uint64_t *at;
    int64_t room, count;
};

/* The words of one section, or of its rest. */
struct fsm_saved_part {
    const uint64_t *at;
    int64_t n;
};

static inline uint64_t fsm_word_of(double number)
{
    union {
        double number;
        uint64_t word;
    } both = {number};
    return both.word;
}

static inline double fsm_number_of(uint64_t word)
{
    union {
        uint64_t word;
        double number;
    } both = {word};
    return both.number;
}

/* saved_words.c */
FSM_API const char *fsm_restored_sentence(int64_t result);
FSM_LOCAL void fsm_put_word(struct fsm_saved_writer *writer, uint64_t word);
FSM_LOCAL void fsm_put_integer(struct fsm_saved_writer *writer, int64_t value);
FSM_LOCAL void fsm_put_number(struct fsm_saved_writer *writer, double value);
FSM_LOCAL void fsm_begin_section(struct fsm_saved_writer *writer, enum fsm_saved_section number, int64_t n);
FSM_LOCAL void fsm_put_numbers(struct fsm_saved_writer *writer, enum fsm_saved_section number, fsm_vector values);
FSM_LOCAL void fsm_put_integers(struct fsm_saved_writer *writer, enum fsm_saved_section number, fsm_indices values);
FSM_LOCAL struct fsm_saved_writer fsm_begin_saving(const struct fsm_tables *tables, uint64_t model,
                                                   enum fsm_saved_kind kind, uint64_t *words, int64_t room);
FSM_LOCAL int64_t fsm_finish_saving(const struct fsm_saved_writer *writer);
FSM_LOCAL enum fsm_restored fsm_check_saved(const struct fsm_tables *tables, uint64_t model, enum fsm_saved_kind kind,
                                            const uint64_t *words, int64_t count);
FSM_LOCAL bool fsm_find_section(const uint64_t *words, enum fsm_saved_section number, int64_t n, struct fsm_saved_part *part);
FSM_LOCAL bool fsm_take_numbers(const uint64_t *words, enum fsm_saved_section number, fsm_vector values, bool write);
FSM_LOCAL bool fsm_in_range(int64_t value, int64_t least, int64_t most);

/* saved_state.c */
FSM_LOCAL void fsm_put_mode(struct fsm_saved_writer *writer, const struct fsm_tables *tables, int64_t mode);
FSM_LOCAL enum fsm_restored fsm_find_saved_mode(const struct fsm_tables *tables, struct fsm_saved_part part,
                                                fsm_codes wanted, int64_t *mode);
FSM_LOCAL void fsm_put_history(struct fsm_saved_writer *writer, const struct fsm_run *run);
FSM_LOCAL enum fsm_restored fsm_take_history(const struct fsm_run *run, const uint64_t *words,
                                             const struct fsm_counters *counters, bool write);
FSM_LOCAL void fsm_put_evaluations(struct fsm_saved_writer *writer, const struct fsm_run *run);
FSM_LOCAL enum fsm_restored fsm_take_evaluations(const struct fsm_run *run, const uint64_t *words, bool write);
FSM_LOCAL void fsm_put_online_modes(struct fsm_saved_writer *writer, const struct fsm_tables *tables,
                                    fsm_indices online, fsm_indices order);
FSM_LOCAL enum fsm_restored fsm_take_online_modes(const struct fsm_run *run, fsm_indices online, const uint64_t *words,
                                                  bool write);

/* saved_state.c, saved_words.c */
FSM_API int64_t fsm_save(const struct fsm_run *run, fsm_indices online, fsm_indices order, uint64_t model,
                         uint64_t *words, int64_t room);
FSM_API enum fsm_restored fsm_restore(const struct fsm_run *run, fsm_indices online, uint64_t model,
                                      const uint64_t *words, int64_t count);
FSM_API int64_t fsm_save_steps(const struct fsm_tables *tables, const struct fsm_time_stepping *run, int64_t step,
                               uint64_t model, uint64_t *words, int64_t room);
FSM_API enum fsm_restored fsm_restore_steps(const struct fsm_tables *tables, struct fsm_time_stepping *run,
                                            int64_t *step, int64_t segments, uint64_t model, const uint64_t *words,
                                            int64_t count);

#endif
