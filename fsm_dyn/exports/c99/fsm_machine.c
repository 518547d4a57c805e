/* The machine of an exported model: memory, inputs, and the answers to the requests of the runtime. */

#include "runtime/fsm_runtime.c"

#include "fsm_machine.h"

#include <string.h>

#define FSM_MACHINE_ROWS        64 // recorded before they are reported
#define FSM_MACHINE_TRANSITIONS 16
#define FSM_MACHINE_PASSAGES    8
#define FSM_MACHINE_INSTANT     100   // transitions at one time
#define FSM_WORST_PIVOT         1e-13 // of a chart that is kept because there is no other

/* Integers of the phases: the phase, whether one was decided, and the mode of the last row plus 1, 0 without one. */
enum { FSM_PHASE_NOW, FSM_PHASE_BEGUN, FSM_PHASE_ROW_MODE, FSM_PHASE_COUNTS };

struct fsm_machine {
    const struct fsm_model *model;
    struct fsm_listener listener;
    struct fsm_tables tables;
    struct fsm_sizes sizes; // of the tables: modes may be added
    struct {
        struct fsm_online_mode *modes; // NULL without spare modes
        int64_t *guards;               // of every guard in the tables, behind the listed ones: which of the parts it is
    } spare;
    struct {
        double *row;                    // the last one
        int64_t *counts;                // FSM_PHASE_COUNTS
        int8_t *truth;                  // which could begin and end when one was decided, shape (2, count)
        double *x, *c, *full, *margins; // to evaluate conditions
        int8_t *now, *then, *found;
    } phase;
    struct fsm_input_tables schedule, held;
    struct fsm_input_counts held_counts;
    bool holds;    // the inputs are set from outside
    bool changed;  // inputs or parameters were set since the last step
    bool jumped;   // an input has a new value: contact states are decided again
    double *goals; // values of the inputs at the end of the next call
    double *report;
    double *kept_start; // coordinates, speeds and slip directions, while another start is tried
    double *stated;     // coordinates and speeds of the start, twice, while parameters change it
    struct fsm_option_numbers option_numbers;
    struct fsm_option_counts option_counts;
    struct fsm_options options;
    struct fsm_state state;
    struct fsm_terms terms;
    struct fsm_work work;
    struct fsm_buffers buffers;
    struct fsm_run run;
};

/* FSM_MACHINE_HEAD is large enough. */
typedef char fsm_machine_fits[sizeof(struct fsm_machine) <= FSM_MACHINE_HEAD ? 1 : -1];

/* What is left of the caller's block; without memory it only counts. */
struct room {
    char *at;
    int64_t used;
};

static void *take(struct room *room, int64_t words)
{
    void *place = room->at == NULL ? NULL : room->at + room->used;
    room->used += 8 * words;
    return place;
}

/* Return `n` numbers; they need not be as long as a word. */
static double *take_numbers(struct room *room, int64_t n)
{
    return take(room, (n * (int64_t)sizeof(double) + 7) / 8);
}

static fsm_vector take_vector(struct room *room, int64_t n)
{
    return (fsm_vector){take_numbers(room, n), n};
}

static fsm_matrix take_matrix(struct room *room, int64_t n, int64_t m)
{
    return (fsm_matrix){take_numbers(room, n * m), n, m};
}

static fsm_indices take_indices(struct room *room, int64_t n)
{
    return (fsm_indices){take(room, n), n};
}

static fsm_codes take_codes(struct room *room, int64_t n)
{
    return (fsm_codes){take(room, (n + 7) / 8), n};
}

static int64_t context_length(const struct fsm_sizes *s)
{
    return s->n_p + 4 * s->n_w + s->n_contacts + s->n_memory;
}

/* Words of a structure. */
#define WORDS(type) ((int64_t)((sizeof(type) + 7) / 8))

/* Numbers in the place of an address. */
#define ADDRESS ((int64_t)((sizeof(void *) + sizeof(double) - 1) / sizeof(double)))

#include "fsm_spare_modes.c"
#include "fsm_phases.c"

/* Let the context have the address of its machine before it, see fsm_spare_modes.c. */
static void sign_context(struct fsm_machine *m)
{
    memcpy(m->state.c.at - ADDRESS, &m, sizeof m);
}

static void take_state(struct room *room, struct fsm_machine *m, const struct fsm_sizes *s)
{
    int64_t n = s->n_q + s->n_u, most = s->max_guards;
    struct fsm_state *state = &m->state;
    state->x = take_vector(room, n);
    state->x_dot = take_vector(room, n);
    state->c = take_vector(room, ADDRESS + context_length(s));
    state->c = (fsm_vector){state->c.at == NULL ? NULL : state->c.at + ADDRESS, state->c.n - ADDRESS};
    state->clock_count = WORDS(struct fsm_clock);
    state->clock = take(room, state->clock_count);
    state->counters_count = WORDS(struct fsm_counters);
    state->counters = take(room, state->counters_count);
    state->guards = take_vector(room, 5 * most);
    state->armed = take_indices(room, most);
    state->fired = take_indices(room, most);
    state->limits = take_indices(room, 2 * s->n_contacts);
    state->conditions = take_vector(room, FSM_CONDITION_WIDTH * s->n_transitions);
    state->spent = take_indices(room, s->n_modes + (m->model->spare == NULL ? 0 : m->model->spare->most));
    state->history = take_vector(room, FSM_RING_LENGTH * FSM_RING_WIDTH);
    state->drift = take_vector(room, 2);
    state->rank_count = (int64_t)((sizeof(struct fsm_rank) + sizeof(double[2]) * (size_t)s->n_rows + 7) / 8);
    state->rank = take(room, state->rank_count);
}

static void take_terms(struct room *room, struct fsm_machine *m, const struct fsm_sizes *s)
{
    struct fsm_terms *terms = &m->terms;
    terms->whole = take_vector(room, s->n_terms);
    int64_t n = s->n_u + s->n_k;
    double *at = terms->whole.at;
    fsm_vector *vectors[] = {
        &terms->b,           &terms->gamma,        &terms->residual, &terms->static_friction, &terms->kinetic_friction,
        &terms->restitution, &terms->tangential_restitution, &terms->closes_if,    &terms->elastic,  &terms->energies,        &terms->reach,
        &terms->reach_rate,  &terms->margin_slope, &terms->aspect,   &terms->firm,            &terms->when};
    int64_t lengths[] = {s->n_rows,     s->n_rows,     s->n_rows, s->n_contacts, s->n_contacts, s->n_contacts,
                         s->n_contacts, s->n_contacts, s->n_contacts, 2,         s->n_contacts, s->n_contacts, s->n_contacts,
                         s->n_contacts, s->n_contacts, s->n_transitions};
    if (at == NULL) {
        return; // counting: the views take no memory
    }
    terms->q_dot = (fsm_vector){at, s->n_q};
    terms->W = (fsm_matrix){at += s->n_q, s->n_q, n};
    terms->M = (fsm_matrix){at += s->n_q * n, n, n};
    terms->f = (fsm_vector){at += n * n, n};
    terms->A = (fsm_matrix){at += n, s->n_rows, n};
    at += s->n_rows * n;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        *vectors[i] = (fsm_vector){at, lengths[i]};
        at += lengths[i];
    }
    terms->row_begin = m->tables.row_begin;
    terms->row_columns = m->tables.row_columns;
    terms->mass_begin = m->tables.mass_begin;
    terms->mass_columns = m->tables.mass_columns;
}

static void take_work(struct room *room, struct fsm_machine *m, const struct fsm_sizes *s, int64_t stages)
{
    struct fsm_work *work = &m->work;
    int64_t n = s->n_q + s->n_u, integers;
    int64_t full = s->n_q + 2 * s->n_u + 1 + 2 * s->max_guards + s->n_rows;
    int64_t floats = fsm_arena_sizes(s, s->n_contacts, &integers);
    work->k = take_vector(room, (stages + 1) * n);
    work->y = take_vector(room, n);
    work->x_end = take_vector(room, n);
    work->x_mid = take_vector(room, n);
    work->full_end = take_vector(room, full);
    work->full_mid = take_vector(room, full);
    work->roots = take_vector(room, FSM_ROOT_ROOM);
    work->arena.floats = take_vector(room, floats);
    work->arena.integers = take_indices(room, integers);
    work->arena.top_count = WORDS(struct fsm_arena_top);
    work->arena.top = take(room, work->arena.top_count);
    work->addresses = take_indices(room, 1);
    work->wanted = take_codes(room, s->n_contacts);
    work->impulse = take_vector(room, s->n_rows);
    work->energy_count = WORDS(struct fsm_impact_energy);
    work->energy = take(room, work->energy_count);
    work->notes_count = WORDS(struct fsm_notes);
    work->notes = take(room, work->notes_count);
    work->u_before = take_vector(room, s->n_u);
    work->log = take_vector(room, FSM_LOG_LENGTH);
    work->implied = take_indices(room, s->n_contacts);
    work->c_after = take_vector(room, context_length(s));
    work->far = NULL;
    work->far_count = 0;
    work->near = take_indices(room, 0);
    work->is_far = take_codes(room, 0);
    work->centres = take_vector(room, 0);
    work->proof = take_vector(room, FSM_PROOF_ROOM(s));
    work->proof_numbers = take_indices(room, FSM_PROOF_NUMBERS(s));
    work->proof_needed = take_codes(room, s->max_values);
}

static void take_buffers(struct room *room, struct fsm_buffers *buffers, const struct fsm_sizes *s)
{
    int64_t row = 1 + 3 * (s->n_q + s->n_u) + context_length(s) - s->n_p;
    int64_t record = FSM_RECORD_GUARDS + FSM_MAX_FIRED * FSM_GUARD_WIDTH + s->n_rows + 2 * s->n_u + FSM_LOG_LENGTH;
    buffers->rows = take_matrix(room, FSM_MACHINE_ROWS, row);
    buffers->modes = take_indices(room, FSM_MACHINE_ROWS);
    buffers->transitions = take_matrix(room, FSM_MACHINE_TRANSITIONS, record);
    buffers->passages = take_matrix(room, FSM_MACHINE_PASSAGES, FSM_PASSAGE_ROWS + s->n_rows);
}

/* Inputs that are set from outside: one segment, linear in time. */
static void take_inputs(struct room *room, struct fsm_machine *m, const struct fsm_sizes *s)
{
    struct fsm_input_tables *held = &m->held;
    m->held_counts = (struct fsm_input_counts){.n_inputs = s->n_w, .n_parameters = s->n_p, .constant = 0};
    held->counts = &m->held_counts;
    held->counts_count = WORDS(struct fsm_input_counts);
    held->start = take_vector(room, 1);
    held->origin = take_vector(room, 1);
    held->pieces = (fsm_cube){take_numbers(room, 4 * s->n_w), 1, s->n_w, 4};
    held->next_hard = take_indices(room, 1);
    held->decides = take_codes(room, 1);
    held->kernels = (fsm_kernels){NULL, 0};
    held->kernel_start = take_indices(room, 1);
    held->kernel_inputs = (fsm_indices){NULL, 0};
    held->enclosure_code = held->kernel_enclosure = held->kernel_values = held->kernel_inputs;
    held->enclosure_numbers = held->jets = (fsm_vector){NULL, 0};
    held->out = take_vector(room, 4 * s->n_w);
    m->schedule = *m->model->schedule;
    m->schedule.out = held->out;
    m->schedule.jets = take_vector(room, m->model->schedule->jets.n);
    m->goals = take_numbers(room, s->n_w);
}

/* Lay a machine out in a block, or count the words of it. */
static void lay_out(struct room *room, struct fsm_machine *m, const struct fsm_model *model)
{
    const struct fsm_sizes *s = &m->sizes;
    m->sizes = *model->tables->sizes;
    m->tables = *model->tables;
    m->tables.sizes = &m->sizes;
    m->tables.transitions.at = take(room, s->n_transitions * FSM_TRANSITION_WIDTH);
    take_spare(room, m);
    take_state(room, m, s);
    take_spare_state(room, m);
    take_terms(room, m, s);
    take_work(room, m, s, model->method->counts->stages);
    take_buffers(room, &m->buffers, s);
    take_inputs(room, m, s);
    m->report = take_numbers(room, model->n_report);
    m->kept_start = take_numbers(room, s->n_q + s->n_u + s->n_contacts);
    m->stated = take_numbers(room, 2 * (s->n_q + s->n_u));
    m->options.numbers = &m->option_numbers;
    m->options.numbers_count = WORDS(struct fsm_option_numbers);
    m->options.counts = &m->option_counts;
    m->options.counts_count = WORDS(struct fsm_option_counts);
    m->options.atol = take_vector(room, s->n_q + s->n_u);
    take_phases(room, m, s);
    m->options.mask = (fsm_code_table){take(room, (s->n_q + s->n_u + 7) / 8), 1, s->n_q + s->n_u};
    take_phase_work(room, m, s);
}

FSM_API int64_t fsm_machine_bytes(const struct fsm_model *model)
{
    struct fsm_machine counted = {.model = model};
    struct room room = {NULL, FSM_MACHINE_HEAD};
    lay_out(&room, &counted, model);
    return room.used;
}

FSM_API struct fsm_machine *fsm_machine_create(const struct fsm_model *model, void *memory, int64_t bytes)
{
    if (memory == NULL || (uintptr_t)memory % sizeof(int64_t) != 0 || bytes < fsm_machine_bytes(model)) {
        return NULL;
    }
    struct fsm_machine *m = memory;
    struct room room = {memory, FSM_MACHINE_HEAD};
    *m = (struct fsm_machine){.model = model};
    lay_out(&room, m, model);
    for (int64_t i = 0; i < model->tables->sizes->n_transitions; i++) {
        for (int64_t k = 0; k < FSM_TRANSITION_WIDTH; k++) {
            AT(m->tables.transitions, i, k) = AT(model->tables->transitions, i, k);
        }
        AT(m->tables.transitions, i, FSM_TRANSITION_RESET) = (int64_t)(intptr_t)model->resets[i];
    }
    m->run = (struct fsm_run){&m->tables, &m->schedule, model->method, &m->options, &m->state, &m->work, &m->buffers};
    fsm_machine_restart(m);
    return m;
}

/* Set everything from here to the end of the block to zero; all of it is doubles and integers. */
static void clear_machine(struct fsm_machine *m)
{
    memset(m->state.x.at, 0, (size_t)((char *)m->options.mask.at - (char *)m->state.x.at));
}

FSM_API void fsm_machine_restart(struct fsm_machine *m)
{
    const struct fsm_model *model = m->model;
    struct fsm_state *state = &m->state;
    clear_machine(m);
    forget_spare(m);
    forget_phases(m);
    sign_context(m);
    for (int64_t i = 0; i < state->x.n; i++) {
        state->x.at[i] = model->x[i];
        m->options.atol.at[i] = model->atol[i];
        m->options.mask.at[i] = 1;
    }
    for (int64_t i = 0; i < state->c.n; i++) {
        state->c.at[i] = model->c[i];
    }
    state->clock->event_time = state->clock->window = -FSM_INFINITY;
    state->clock->pivot_alarm = m->tables.tolerances->pivot;
    state->rank->left_at = -FSM_INFINITY;
    state->rank->ahead = state->rank->behind = state->rank->passes_at = FSM_INFINITY;
    state->counters->mode = model->mode;
    state->counters->phase = FSM_PHASE_RESOLVING;
    state->counters->reason = FSM_REASON_START;
    state->counters->segment = model->segment;
    m->work.addresses.at[0] = (int64_t)(intptr_t)&m->terms;
    m->option_numbers = (struct fsm_option_numbers){
        .until = 0.0, .fixed_step = model->step, .max_step = FSM_INFINITY, .rtol = model->rtol};
    m->option_counts = (struct fsm_option_counts){
        .chunk = FSM_NEVER, .max_steps = FSM_NEVER, .max_instant = FSM_MACHINE_INSTANT, .max_work = FSM_NEVER};
    m->run.inputs = &m->schedule;
    m->holds = m->changed = m->jumped = false;
}

#include "fsm_start.c"

FSM_API void fsm_machine_listen(struct fsm_machine *m, struct fsm_listener listener)
{
    m->listener = listener;
}

/* List the user-defined transition of a record behind the guards that fired, where it waited for a contact; return how many
   are listed then. */
static int64_t list_transition(double *record)
{
    int64_t n = (int64_t)record[FSM_RECORD_FIRED], transition = (int64_t)record[FSM_RECORD_WRITTEN];
    double *guards = record + FSM_RECORD_GUARDS;
    for (int64_t i = 0; i < n; i++) {
        if ((int64_t)guards[i * FSM_GUARD_WIDTH] == FSM_EVENT_TRANSITION) {
            return n;
        }
    }
    if (transition < 0 || n == FSM_MAX_FIRED) {
        return n;
    }
    double *guard = guards + n * FSM_GUARD_WIDTH;
    guard[0] = FSM_EVENT_TRANSITION;
    guard[1] = (double)transition;
    guard[2] = guard[3] = guard[4] = 0.0;
    return n + 1;
}

/* Report what was recorded, and make room for what comes. */
static void report_records(struct fsm_machine *m)
{
    const struct fsm_sizes *s = m->tables.sizes;
    struct fsm_counters *counters = m->state.counters;
    for (int64_t i = 0; i < counters->rows; i++) {
        fsm_vector row = fsm_row(m->buffers.rows, i);
        if (m->listener.row != NULL) {
            m->listener.row(m->listener.data, row.at[0], row.at + 1, m->buffers.modes.at[i]);
        }
        follow_row(m, row.at, m->buffers.modes.at[i]);
    }
    for (int64_t i = 0; i < counters->transitions && m->listener.transition != NULL; i++) {
        double *record = fsm_row(m->buffers.transitions, i).at;
        const double *impulse = record + FSM_RECORD_GUARDS + FSM_MAX_FIRED * FSM_GUARD_WIDTH;
        struct fsm_transition transition = {.time = record[FSM_RECORD_TIME],
                                            .source = (int64_t)record[FSM_RECORD_SOURCE],
                                            .target = (int64_t)record[FSM_RECORD_TARGET],
                                            .reason = (enum fsm_reason)(int)record[FSM_RECORD_REASON],
                                            .n_fired = list_transition(record),
                                            .fired = record + FSM_RECORD_GUARDS,
                                            .impulse = impulse,
                                            .u_before = impulse + s->n_rows,
                                            .u_after = impulse + s->n_rows + s->n_u};
        m->listener.transition(m->listener.data, &transition);
    }
    counters->rows = counters->transitions = counters->passed = 0;
}

/* Let the inputs run to their goals until `until` (s), and evaluate with them; whether that is finite. */
static bool begin_advance(struct fsm_machine *m, double until)
{
    struct fsm_state *state = &m->state;
    double begin = state->clock->time, h = until - begin;
    if (m->holds) {
        const double *now = state->c.at + m->tables.sizes->n_p;
        m->held.start.at[0] = m->held.origin.at[0] = begin;
        m->held.next_hard.at[0] = 1;
        for (int64_t i = 0; i < m->tables.sizes->n_w; i++) {
            AT3(m->held.pieces, 0, i, 0) = now[i];
            AT3(m->held.pieces, 0, i, 1) = h > 0.0 ? (m->goals[i] - now[i]) / h : 0.0;
        }
        m->run.inputs = &m->held;
        state->counters->segment = 0;
    }
    if (state->counters->started == 0 || !(m->holds || m->changed)) {
        m->changed = m->jumped = false; // all is decided at the start
        return true;
    }
    fsm_write_inputs(m->run.inputs, begin, state->counters->segment, state->x, state->c);
    if (m->jumped && state->counters->phase == FSM_PHASE_STEPPING) {
        state->counters->phase = FSM_PHASE_RESOLVING;
        state->counters->reason = FSM_REASON_INPUT_JUMP;
        state->counters->fired = 0;
    }
    m->changed = m->jumped = false;
    return state->counters->phase != FSM_PHASE_STEPPING || fsm_evaluate_here(&m->run);
}

/* Keep the present chart, as no other was exported, as long as its pivot allows. */
static bool keeps_chart(struct fsm_machine *m)
{
    if (m->state.counters->phase == FSM_PHASE_RESOLVING) {
        return true; // it was asked for a better one where a transition leads
    }
    m->state.clock->pivot_alarm = 0.1 * m->state.clock->pivot;
    return m->state.clock->pivot > FSM_WORST_PIVOT;
}

/* Whether an event was located and is not resolved yet; a Zeno sequence ends later, at a time that is computed. */
static bool is_at_event(const struct fsm_machine *m)
{
    const struct fsm_counters *counters = m->state.counters;
    bool located = counters->reason != FSM_REASON_START && counters->reason != FSM_REASON_ZENO;
    return counters->phase == FSM_PHASE_RESOLVING && located;
}

/* Run to `until` (s), or to where an event is located if `stops`; pending events come first. */
static enum fsm_status run_machine(struct fsm_machine *m, double until, bool stops)
{
    if (!(until >= m->state.clock->time && until < FSM_INFINITY)) {
        return FSM_REFUSED;
    }
    m->option_numbers.until = until;
    if (!begin_advance(m, until)) {
        return FSM_NON_FINITE;
    }
    m->option_counts.chunk = stops ? 1 : FSM_NEVER;
    while (true) {
        bool stepped = m->state.counters->phase == FSM_PHASE_STEPPING;
        enum fsm_status status = fsm_advance(&m->run);
        report_records(m);
        if (status == FSM_PAUSED && stops && stepped && is_at_event(m)) {
            return FSM_PAUSED;
        }
        if (status == FSM_NEED_MODE && !add_mode(m)) {
            return FSM_MODE_NOT_LISTED;
        }
        if (status == FSM_NEED_CHART && !keeps_chart(m)) {
            return FSM_SINGULAR;
        }
        if (status > FSM_LAST_INTERNAL) {
            return status;
        }
    }
}

FSM_API enum fsm_status fsm_machine_advance(struct fsm_machine *m, double until)
{
    return run_machine(m, until, false);
}

FSM_API enum fsm_status fsm_machine_advance_to_event(struct fsm_machine *m, double until)
{
    return run_machine(m, until, true);
}

/* Set where an input runs to in the next call; false, and nothing is changed, where it cannot have this value. */
static bool set_goal(struct fsm_machine *m, int64_t input, double value)
{
    if (input < 0 || input >= m->tables.sizes->n_w || !fsm_is_finite(value)) {
        return false;
    }
    if (m->model->input_moves[input] == FSM_INPUT_SWITCHES && value != 0.0 && value != 1.0) {
        return false;
    }
    const double *now = m->state.c.at + m->tables.sizes->n_p;
    for (int64_t i = 0; i < m->tables.sizes->n_w && !m->holds; i++) {
        m->goals[i] = now[i];
    }
    m->holds = true;
    m->goals[input] = value;
    return true;
}

FSM_API bool fsm_machine_set_input(struct fsm_machine *m, int64_t input, double value)
{
    bool known = input >= 0 && input < m->tables.sizes->n_w;
    bool switches = known && m->model->input_moves[input] == FSM_INPUT_SWITCHES;
    return switches ? fsm_machine_hold_input(m, input, value) : set_goal(m, input, value);
}

FSM_API bool fsm_machine_hold_input(struct fsm_machine *m, int64_t input, double value)
{
    if (!set_goal(m, input, value)) {
        return false;
    }
    double *now = m->state.c.at + m->tables.sizes->n_p + input;
    if (m->model->input_moves[input] != FSM_INPUT_RUNS && *now != value) {
        *now = value;
        m->jumped = true;
    }
    return true;
}

/* What changes in the head of a machine. */
struct saved_head {
    struct fsm_option_numbers numbers;
    int64_t holds, changed, jumped, n_modes;
    uint64_t seal; // of the model and of all that is saved
};

#define FSM_SEAL_BEGIN  0xcbf29ce484222325u // Fowler, Noll and Vo: FNV-1a, by words
#define FSM_SEAL_FACTOR 0x100000001b3u

static uint64_t sealed(uint64_t seal, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        uint64_t word = 0;
        size_t part = n < sizeof word ? n : sizeof word;
        memcpy(&word, at, part);
        seal = (seal ^ word) * FSM_SEAL_FACTOR;
        at += part;
        n -= part;
    }
    return seal;
}

/* Return the seal of what was saved of a model: `head` with a seal of 0, then `n` bytes. */
static uint64_t seal_of_saved(const struct fsm_model *model, struct saved_head head, const char *block, size_t n)
{
    head.seal = 0;
    uint64_t seal = FSM_SEAL_BEGIN;
    for (const char *at = model->name; at != NULL && *at != 0; at++) {
        seal = sealed(seal, at, 1);
    }
    seal = sealed(seal, model->tables->sizes, sizeof *model->tables->sizes);
    seal = sealed(seal, &head, sizeof head);
    return sealed(seal, block, n);
}

/* Bytes of the block that change: from the state to the options, but the addresses of the terms and of the machine. */
static size_t changing_bytes(const struct fsm_machine *m)
{
    return (size_t)((const char *)m->options.mask.at - (const char *)m->state.x.at);
}

FSM_API int64_t fsm_machine_saved_bytes(const struct fsm_machine *m)
{
    return (int64_t)(sizeof(struct saved_head) + changing_bytes(m));
}

FSM_API void fsm_machine_save(const struct fsm_machine *m, void *bytes)
{
    struct saved_head head;
    memset(&head, 0, sizeof head);
    head.numbers = m->option_numbers;
    head.holds = m->holds;
    head.changed = m->changed;
    head.jumped = m->jumped;
    head.n_modes = m->sizes.n_modes;
    char *block = (char *)bytes + sizeof head;
    memcpy(block, m->state.x.at, changing_bytes(m));
    memset(block + ((const char *)m->work.addresses.at - (const char *)m->state.x.at), 0, sizeof(int64_t));
    memset(block + ((const char *)(m->state.c.at - ADDRESS) - (const char *)m->state.x.at), 0, ADDRESS * sizeof(double));
    head.seal = seal_of_saved(m->model, head, block, changing_bytes(m));
    memcpy(bytes, &head, sizeof head);
}

FSM_API bool fsm_machine_restore(struct fsm_machine *m, const void *bytes)
{
    struct saved_head head;
    memcpy(&head, bytes, sizeof head);
    const char *block = (const char *)bytes + sizeof head;
    if (head.seal != seal_of_saved(m->model, head, block, changing_bytes(m))) {
        return false;
    }
    memcpy(m->state.x.at, block, changing_bytes(m));
    m->work.addresses.at[0] = (int64_t)(intptr_t)&m->terms;
    sign_context(m);
    find_spare(m, head.n_modes);
    m->option_numbers = head.numbers;
    m->holds = head.holds != 0;
    m->changed = head.changed != 0;
    m->jumped = head.jumped != 0;
    m->run.inputs = m->holds ? &m->held : &m->schedule;
    return true;
}

/* Return how many contacts have coefficients that no model file may have, at the present state: restitutions from 0 to 1,
   kinetic friction from 0 to the static one. */
static int64_t impossible_laws(const struct fsm_machine *m)
{
    const struct fsm_terms *terms = &m->terms;
    int64_t count = 0;
    if (m->tables.terms.at[0] == NULL) {
        return 0;
    }
    m->tables.terms.at[0](m->state.clock->time, m->state.x.at, m->state.c.at, terms->whole.at);
    for (int64_t k = 0; k < m->tables.sizes->n_contacts; k++) {
        double e = terms->restitution.at[k], along = terms->tangential_restitution.at[k], kinetic = terms->kinetic_friction.at[k];
        bool friction = kinetic >= 0.0 && kinetic <= terms->static_friction.at[k];
        count += friction && e >= 0.0 && e <= 1.0 && along >= 0.0 && along <= 1.0 ? 0 : 1;
    }
    return count;
}

/* Assemble the start again from what the model states with the present parameters; false, and nothing is changed, where
   that is not possible. */
static bool restart_as_stated(struct fsm_machine *m)
{
    const struct fsm_model *model = m->model;
    memcpy(m->stated, model->x, (size_t)m->state.x.n * sizeof *m->stated);
    model->start_values(m->state.clock->time, m->state.x.at, m->state.c.at, m->stated + m->state.x.n);
    for (int64_t i = 0; i < m->state.x.n; i++) {
        if (model->start_stated[i] != 0) {
            m->stated[i] = m->stated[m->state.x.n + i];
        }
    }
    return fsm_machine_start(m, m->stated, model->start_stated);
}

FSM_API bool fsm_machine_set_parameter(struct fsm_machine *m, int64_t parameter, double value)
{
    const struct fsm_model *model = m->model;
    bool known = parameter >= 0 && parameter < m->tables.sizes->n_p && model->tunable[parameter] != 0;
    if (!known || !(value >= model->lowest[parameter] && value <= model->highest[parameter] && value < FSM_INFINITY)) {
        return false;
    }
    double before = m->state.c.at[parameter];
    int8_t start = model->start_reads == NULL ? FSM_START_FREE : model->start_reads[parameter];
    if (start == FSM_START_ALONE && m->state.counters->started != 0) {
        return false;
    }
    if (before != value) {
        int64_t impossible = impossible_laws(m);
        m->state.c.at[parameter] = value;
        bool begins = start != FSM_START_FREE && m->state.counters->started == 0;
        if (impossible_laws(m) > impossible || (begins && !restart_as_stated(m))) {
            m->state.c.at[parameter] = before;
            return false;
        }
        m->changed = m->jumped = true;
    }
    return true;
}

FSM_API double fsm_machine_time(const struct fsm_machine *m)
{
    return m->state.clock->time;
}

FSM_API bool fsm_machine_set_time(struct fsm_machine *m, double time)
{
    struct fsm_clock *clock = m->state.clock;
    struct fsm_rank *rank = m->state.rank;
    double later = time - clock->time;
    if (m->model->reads_time != 0 || !m->holds || !fsm_is_finite(time)) {
        return false;
    }
    clock->time = time;
    if (m->model->phases != NULL) {
        m->phase.row[0] += later;
    }
    clock->begin += later;
    clock->event_time += later;
    clock->window += later;
    rank->left_at += later;
    rank->passes_at += later;
    for (int64_t i = 0; i < FSM_RING_LENGTH; i++) {
        m->state.history.at[i * FSM_RING_WIDTH + FSM_RING_TIME] += later;
    }
    return true;
}

FSM_API const double *fsm_machine_state(const struct fsm_machine *m)
{
    return m->state.x.at;
}

FSM_API int64_t fsm_machine_mode(const struct fsm_machine *m)
{
    return m->state.counters->mode;
}

/* Return the place of a mode among the names of the model and, behind them, of modes embedded online; -1: it has none. */
static int64_t name_of_mode(const struct fsm_machine *m, int64_t mode)
{
    int64_t listed = m->model->tables->sizes->n_modes;
    if (mode < 0 || mode >= m->sizes.n_modes) {
        return -1;
    }
    size_t n = (size_t)m->sizes.n_contacts;
    for (int64_t k = 0; k < m->model->n_embedded && mode >= listed; k++) {
        if (memcmp(&AT(m->tables.mode_states, mode, 0), m->model->embedded_states + (size_t)k * n, n) == 0) {
            return listed + k;
        }
    }
    return mode < listed ? mode : -1;
}

FSM_API const char *fsm_machine_mode_name(const struct fsm_machine *m, int64_t mode)
{
    int64_t name = name_of_mode(m, mode), listed = m->model->tables->sizes->n_modes;
    return name < 0 ? "other" : name < listed ? m->model->mode_names[name] : m->model->embedded_names[name - listed];
}

FSM_API int64_t fsm_machine_mode_count(const struct fsm_machine *m)
{
    return m->sizes.n_modes;
}

FSM_API enum fsm_contact_state fsm_machine_mode_contact(const struct fsm_machine *m, int64_t mode, int64_t contact)
{
    return (enum fsm_contact_state)AT(m->tables.mode_states, mode, contact);
}

FSM_API enum fsm_contact_state fsm_machine_contact(const struct fsm_machine *m, int64_t contact)
{
    return fsm_machine_mode_contact(m, m->state.counters->mode, contact);
}

FSM_API enum fsm_contact_state fsm_machine_missing(const struct fsm_machine *m, int64_t contact)
{
    return (enum fsm_contact_state)m->work.wanted.at[contact];
}

/* Write the arguments of the outputs of connections, which are state, rates of the speeds and multipliers, and return them;
   behind them is the room of the outputs. */
static double *connection_arguments(struct fsm_machine *m)
{
    const struct fsm_sizes *s = m->tables.sizes;
    int64_t mode = m->state.counters->mode, n = s->n_q + s->n_u, guards = 2 * fsm_guard_count(&m->tables, mode);
    double *x = m->report, *full = x + n + s->n_u + s->n_rows + m->model->n_pins;
    m->tables.mode_full.at[mode](m->state.clock->time, m->state.x.at, m->state.c.at, full);
    for (int64_t i = 0; i < n; i++) {
        x[i] = m->state.x.at[i];
    }
    for (int64_t i = 0; i < s->n_u; i++) {
        x[n + i] = full[s->n_q + i];
    }
    for (int64_t i = 0; i < s->n_rows; i++) {
        x[n + s->n_u + i] = full[n + s->n_u + 1 + guards + i];
    }
    return x;
}

FSM_API double fsm_machine_output(struct fsm_machine *m, int64_t output)
{
    const struct fsm_model *model = m->model;
    double t = m->state.clock->time;
    const double *c = m->state.c.at;
    int64_t written = model->n_outputs - model->n_pins;
    if (output >= written) {
        double *x = connection_arguments(m), *out = x + m->state.x.n + m->tables.sizes->n_u + m->tables.sizes->n_rows;
        model->pins(t, x, c, out);
        return out[output - written];
    }
    model->report(t, m->state.x.at, c, m->report);
    return m->report[model->first_output + output];
}

FSM_API const double *fsm_machine_context(const struct fsm_machine *m)
{
    return m->state.c.at;
}

FSM_API int64_t fsm_machine_undecided(const struct fsm_machine *m, int64_t *event, int64_t *subject)
{
    const int64_t *noted = m->work.proof_numbers.at;
    if (event != NULL) {
        *event = noted[FSM_UNDECIDED_EVENT];
    }
    if (subject != NULL) {
        *subject = noted[FSM_UNDECIDED_SUBJECT];
    }
    return noted[FSM_UNDECIDED_STEPS];
}
