/* Saved states of an exported machine on arbitrary bytes, for libFuzzer: states at the events of the model's own schedule are
   tampered with and restored; what is accepted resolves the event and continues.

   FSM_FUZZED is the model.  An input: which state, whether it is sealed again, then edits of 11 bytes each. */

#include "fsm_machine.c" // first: what the system declares follows from it

#include <stdlib.h>

#define STATES     48   // kept
#define MOST_STEPS 60   // of a machine that continues
#define HEADER     FSM_SAVED_HEADER
#define LENGTH     3 // words of the header
#define CHECK_SUM  7
#define DIGEST     0xfeedbeef

extern const struct fsm_model FSM_FUZZED;

static struct fsm_machine *machine;
static const fsm_indices no_modes_online = {NULL, 0};
static uint64_t *states[STATES];
static int64_t lengths[STATES], count;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void keep_state(void)
{
    int64_t n = fsm_save(&machine->run, no_modes_online, DIGEST, NULL, 0);
    states[count] = malloc((size_t)n * sizeof(uint64_t));
    lengths[count] = fsm_save(&machine->run, no_modes_online, DIGEST, states[count], n);
    count++;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    int64_t bytes = fsm_machine_bytes(&FSM_FUZZED);
    machine = fsm_machine_create(&FSM_FUZZED, malloc((size_t)bytes), bytes);
    keep_state();
    while (count < STATES && fsm_machine_advance_to_event(machine, FSM_FUZZED.until) == FSM_PAUSED) {
        keep_state();
    }
    if (count < 3) {
        abort();
    }
    return 0;
}

/* Carry one edit out; there is room for one word more.  Return the new length. */
static int64_t edit(uint64_t *words, int64_t n, const uint8_t *data, int64_t first)
{
    uint64_t value;
    memcpy(&value, data + 3, sizeof value);
    int64_t at = first + (data[1] | data[2] << 8) % (n - first);
    size_t behind = (size_t)(n - at) * sizeof *words;
    switch (data[0] % 5) {
    case 0:
        words[at] = value;
        return n;
    case 1:
        words[at] ^= (uint64_t)1 << value % 64;
        return n;
    case 2:
        words[at] = fsm_word_of(fsm_number_of(words[at]) * (double)(int8_t)data[3]);
        return n;
    case 3:
        memmove(words + at, words + at + 1, behind - sizeof *words);
        return n - 1;
    default:
        memmove(words + at + 1, words + at, behind);
        return n + 1;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    int64_t number = data[0] % count, n = lengths[number], edits = (int64_t)(size - 2) / 11;
    bool sealed = data[1] % 8 != 0;
    uint64_t *words = malloc((size_t)(n + edits) * sizeof *words);
    memcpy(words, states[number], (size_t)n * sizeof *words);
    for (int64_t i = 0; i < edits && n > HEADER + 1; i++) {
        n = edit(words, n, data + 2 + 11 * i, sealed ? HEADER : 0);
    }
    if (sealed) {
        words[LENGTH] = (uint64_t)n;
        words[CHECK_SUM] = check_sum(words, n);
    }
    fsm_machine_restart(machine);
    uint64_t *exact = malloc((size_t)n * sizeof *words); // so that reading beyond the end is found
    memcpy(exact, words, (size_t)n * sizeof *words);
    if (fsm_restore(&machine->run, no_modes_online, DIGEST, exact, n) == FSM_RESTORE_RESTORED) {
        machine->state.counters->steps = machine->state.counters->rejected = 0;
        machine->option_counts.max_steps = MOST_STEPS;
        enum fsm_status status = fsm_machine_advance(machine, fsm_machine_time(machine) + 0.05);
        if (fsm_status_text((int64_t)status) == NULL) {
            abort();
        }
        for (int64_t i = 0; i < machine->state.x.n && status == FSM_DONE; i++) {
            if (!isfinite(fsm_machine_state(machine)[i])) {
                abort();
            }
        }
    }
    free(exact);
    free(words);
    return 0;
}
