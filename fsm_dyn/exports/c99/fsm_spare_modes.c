/* The spare modes of a machine: their memory, and making one of the contact states that were reached.

   Included by fsm_machine.c.  A kernel of the runtime has no argument for the mode that it stands for, so each spare mode
   has its own kernels, which find the machine by the address before its context. */

/* Evaluate spare mode `k` of the machine to which a context belongs. */
#if defined(__GNUC__)
__attribute__((noinline)) // one copy for all
#endif
static void
evaluate_spare(int64_t k, enum fsm_online_kernel what, double t, const double *x, const double *c, double *out)
{
    struct fsm_machine *m;
    memcpy(&m, c - ADDRESS, sizeof m);
    fsm_online_evaluate(&m->spare.modes[k], (int64_t)what, t, x, c, out);
}

#define SPARE(k)                                                                                                       \
    static void spare_rhs_##k(double t, const double *x, const double *c, double *out)                                 \
    {                                                                                                                  \
        evaluate_spare(k, FSM_ONLINE_RHS, t, x, c, out);                                                               \
    }                                                                                                                  \
    static void spare_full_##k(double t, const double *x, const double *c, double *out)                                \
    {                                                                                                                  \
        evaluate_spare(k, FSM_ONLINE_FULL, t, x, c, out);                                                              \
    }
#define EACH_OF_8(what, begin)                                                                                         \
    what(begin##0) what(begin##1) what(begin##2) what(begin##3) what(begin##4) what(begin##5) what(begin##6)           \
        what(begin##7)
#define EACH_OF_64(what, begin)                                                                                        \
    EACH_OF_8(what, begin##0) EACH_OF_8(what, begin##1) EACH_OF_8(what, begin##2) EACH_OF_8(what, begin##3)            \
    EACH_OF_8(what, begin##4) EACH_OF_8(what, begin##5) EACH_OF_8(what, begin##6) EACH_OF_8(what, begin##7)
#if FSM_SPARE_MOST <= 64
#define EACH(what) EACH_OF_64(what, 00) // numbered in octal
#else
#define EACH(what) EACH_OF_64(what, 00) EACH_OF_64(what, 01) EACH_OF_64(what, 02) EACH_OF_64(what, 03)
#endif
#define RHS_OF(k)  spare_rhs_##k,
#define FULL_OF(k) spare_full_##k,

EACH(SPARE)

static const fsm_kernel SPARE_RHS[FSM_SPARE_MOST] = {EACH(RHS_OF)};
static const fsm_kernel SPARE_FULL[FSM_SPARE_MOST] = {EACH(FULL_OF)};

/* Number of the first guard of a spare mode in the tables of the model. */
static int64_t listed_guards(const struct fsm_model *model)
{
    return model->tables->mode_guard_start.at[model->tables->sizes->n_modes];
}

static fsm_kernels take_kernels(struct room *room, fsm_kernels listed, const fsm_kernel *spare, int64_t more)
{
    fsm_kernels kernels = {take(room, listed.n + more), listed.n + more};
    for (int64_t i = 0; kernels.at != NULL && i < kernels.n; i++) {
        kernels.at[i] = i < listed.n ? listed.at[i] : spare[i - listed.n];
    }
    return kernels;
}

/* Lay out what does not change while a machine runs: kernels, and the structures of the modes. */
static void take_spare(struct room *room, struct fsm_machine *m)
{
    const struct fsm_tables *listed = m->model->tables;
    if (m->model->spare == NULL) {
        return;
    }
    int64_t more = m->model->spare->most;
    m->tables.mode_rhs = take_kernels(room, listed->mode_rhs, SPARE_RHS, more);
    m->tables.mode_full = take_kernels(room, listed->mode_full, SPARE_FULL, more);
    m->spare.modes = take(room, (more * (int64_t)sizeof(struct fsm_online_mode) + 7) / 8);
}

/* Lay out the workspace of a spare mode. */
static void take_mode(struct room *room, struct fsm_machine *m, struct fsm_online_mode *o)
{
    const struct fsm_spare_parts *parts = m->model->spare;
    const int64_t *lengths = parts->lengths;
    const struct fsm_tables *tables = &m->tables;
    int64_t most = m->sizes.max_guards;
    *o = (struct fsm_online_mode){
        .sizes = &m->sizes,
        .sizes_count = tables->sizes_count,
        .programs = {(fsm_kernel *)parts->programs, 3},
        .row_role = tables->row_role,
        .contact_flags = tables->contact_flags,
        .contact_rows = tables->contact_rows,
        .contact_outline = tables->contact_outline,
        .row_begin = tables->row_begin,
        .row_columns = tables->row_columns,
        .mass_begin = tables->mass_begin,
        .mass_columns = tables->mass_columns,
        .state_unit = tables->state_unit,
        .row_unit = tables->row_unit,
        .states = take_codes(room, m->sizes.n_contacts),
        .guard_quantity = take_indices(room, most),
        .guard_subject = take_indices(room, most),
        .guard_sign = take_vector(room, most),
        .limits_count = WORDS(struct fsm_online_limits),
    };
    o->limits = take(room, o->limits_count);
    fsm_indices *arrays[] = {
        &o->chart,       &o->held_begin,    &o->held_behind,     &o->held_rest,     &o->held_columns,
        &o->below_begin, &o->below_rows,    &o->tied_begin,      &o->tied_columns,  &o->moved_begin,
        &o->moved_columns, &o->reduced_begin, &o->reduced_behind, &o->reduced_columns, &o->place, &o->extent};
    for (int64_t i = 0; i < FSM_SPARE_ROOM; i++) {
        *arrays[i] = take_indices(room, lengths[i]);
    }
    o->room = take_vector(room, lengths[FSM_SPARE_ROOM]);
    o->arena.floats = take_vector(room, lengths[FSM_SPARE_FLOATS]);
    o->arena.integers = take_indices(room, lengths[FSM_SPARE_INTEGERS]);
    o->arena.top_count = WORDS(struct fsm_arena_top);
    o->arena.top = take(room, o->arena.top_count);
}

/* Lay out what changes: the tables by mode and by guard, with room behind the listed modes, and the workspaces. */
static void take_spare_state(struct room *room, struct fsm_machine *m)
{
    struct fsm_tables *tables = &m->tables;
    if (m->model->spare == NULL) {
        return;
    }
    int64_t more = m->model->spare->most, modes = tables->mode_flags.n + more;
    int64_t guards = listed_guards(m->model) + more * m->sizes.max_guards;
    fsm_code_table states = tables->mode_states, leaves = tables->transition_leaves;
    tables->mode_states = (fsm_code_table){take(room, (modes * states.m + 7) / 8), modes, states.m};
    tables->mode_flags = take_indices(room, modes);
    tables->mode_group = take_indices(room, modes);
    tables->mode_allowance = take_indices(room, modes);
    tables->mode_guard_start = take_indices(room, modes + 1);
    tables->guard_event = take_indices(room, guards);
    tables->guard_contact = take_indices(room, guards);
    tables->guard_direction = take_vector(room, guards);
    tables->guard_unit = take_vector(room, guards);
    tables->mode_enclosure = take_indices(room, modes);
    tables->enclosure_room = take_indices(room, modes);
    tables->guard_enclosure = take_indices(room, guards);
    tables->transition_leaves = (fsm_code_table){take(room, (leaves.n * modes + 7) / 8), leaves.n, modes};
    m->spare.guards = take(room, guards);
    struct fsm_online_mode counted;
    for (int64_t k = 0; k < more; k++) {
        take_mode(room, m, m->spare.modes == NULL ? &counted : &m->spare.modes[k]);
    }
}

/* Set how many modes there are. */
static void set_mode_count(struct fsm_machine *m, int64_t count)
{
    m->sizes.n_modes = m->tables.mode_states.n = count;
}

/* Let the tables have the listed modes alone. */
static void forget_spare(struct fsm_machine *m)
{
    const struct fsm_tables *listed = m->model->tables;
    struct fsm_tables *tables = &m->tables;
    int64_t modes = listed->sizes->n_modes;
    set_mode_count(m, modes);
    if (m->model->spare == NULL) {
        return;
    }
    memcpy(tables->mode_states.at, listed->mode_states.at, (size_t)(modes * listed->mode_states.m));
    fsm_put_indices(tables->mode_flags, listed->mode_flags);
    fsm_put_indices(tables->mode_group, listed->mode_group);
    fsm_put_indices(tables->mode_allowance, listed->mode_allowance);
    fsm_put_indices(tables->mode_guard_start, listed->mode_guard_start);
    fsm_put_indices(tables->guard_event, listed->guard_event);
    fsm_put_indices(tables->guard_contact, listed->guard_contact);
    fsm_put(tables->guard_direction, listed->guard_direction);
    fsm_put(tables->guard_unit, listed->guard_unit);
    fsm_put_indices(tables->mode_enclosure, listed->mode_enclosure);
    fsm_put_indices(tables->enclosure_room, listed->enclosure_room);
    fsm_put_indices(tables->guard_enclosure, listed->guard_enclosure);
    for (int64_t i = 0; i < listed->transition_leaves.n; i++) {
        for (int64_t k = 0; k < tables->transition_leaves.m; k++) {
            AT(tables->transition_leaves, i, k) = k < modes ? AT(listed->transition_leaves, i, k) : 1;
        }
    }
}

/* Whether all contacts that a guard asks for are open. */
static bool has_guard(const struct fsm_spare_parts *parts, const struct fsm_spare_guard *guard, const int8_t *states)
{
    bool open = true;
    for (int64_t i = 0; i < guard->n_open; i++) {
        open = open && states[parts->corners[guard->first_open + i]] == FSM_CONTACT_FREE;
    }
    return open;
}

/* Append the guards of one state of a contact, or those of all transitions, to a mode. */
static void add_guards(struct fsm_machine *m, struct fsm_online_mode *o, int64_t state, int64_t first)
{
    const struct fsm_spare_parts *parts = m->model->spare;
    struct fsm_tables *tables = &m->tables;
    for (int64_t i = parts->guard_begin[state]; i < parts->guard_begin[state + 1]; i++) {
        const struct fsm_spare_guard *guard = &parts->guards[i];
        if (!has_guard(parts, guard, o->states.at)) {
            continue;
        }
        int64_t own = o->guard_quantity.n++, number = first + own;
        o->guard_quantity.at[own] = guard->quantity;
        o->guard_subject.at[own] = guard->subject;
        o->guard_sign.at[own] = guard->sign;
        tables->guard_event.at[number] = guard->event;
        tables->guard_contact.at[number] = guard->subject;
        tables->guard_direction.at[number] = guard->direction;
        tables->guard_unit.at[number] = guard->unit;
        tables->guard_enclosure.at[number] = guard->enclosure;
        m->spare.guards[number] = i;
    }
    o->guard_subject.n = o->guard_sign.n = o->guard_quantity.n;
}

/* What the tolerances say of charts, see context.limits_of in fsm_dyn/online. */
static void set_limits(const struct fsm_machine *m, struct fsm_online_mode *o)
{
    const struct fsm_tolerances *tolerances = m->tables.tolerances;
    *o->limits = (struct fsm_online_limits){
        .floor = tolerances->pivot,
        .kept = 1.0 / tolerances->hysteresis,
        .follows = m->model->spare->follows * tolerances->length_scale / tolerances->time_scale,
        .redundancy = tolerances->redundancy,
        .length_scale = tolerances->length_scale,
        .time_scale = tolerances->time_scale,
    };
}

/* Whether rows of a new mode are redundant where it is reached; leaves it without a chart. */
static bool is_redundant(const struct fsm_machine *m, struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    fsm_online_choose_chart(o, m->state.clock->time, m->state.x.at, m->state.c.at);
    bool redundant = chart[FSM_ONLINE_ACTIVE] > chart[FSM_ONLINE_RANK];
    chart[FSM_ONLINE_CHOSEN] = chart[FSM_ONLINE_CHOICES] = 0;
    o->limits->level = 0.0;
    return redundant;
}

/* Make a mode of the contact states that were reached; false where there is no room for it. */
static bool add_mode(struct fsm_machine *m)
{
    const struct fsm_spare_parts *parts = m->model->spare;
    int64_t number = m->sizes.n_modes, n = m->sizes.n_contacts;
    if (parts == NULL || number >= m->tables.mode_flags.n) {
        return false;
    }
    struct fsm_online_mode *o = &m->spare.modes[number - m->model->tables->sizes->n_modes];
    int64_t first = m->tables.mode_guard_start.at[number], flags = parts->flags_of_all;
    o->guard_quantity.n = 0;
    memcpy(o->states.at, m->work.wanted.at, (size_t)n);
    for (int64_t k = 0; k < n; k++) {
        int64_t state = parts->state_begin[k] + o->states.at[k];
        AT(m->tables.mode_states, number, k) = o->states.at[k];
        flags |= parts->flags[state];
        add_guards(m, o, state, first);
    }
    add_guards(m, o, parts->state_begin[n], first);
    set_limits(m, o);
    memcpy(o->chart.at, parts->places, FSM_ONLINE_PLACES * sizeof *parts->places);
    m->tables.mode_flags.at[number] = flags | (is_redundant(m, o) ? FSM_MODE_REPEATS : 0);
    m->tables.mode_group.at[number] = number;
    m->tables.mode_allowance.at[number] = FSM_NEVER;
    m->tables.mode_enclosure.at[number] = m->tables.enclosure_code.n > 0 ? 0 : -1; // the program of all such modes
    m->tables.enclosure_room.at[number] = 0;
    m->tables.mode_guard_start.at[number + 1] = first + o->guard_quantity.n;
    set_mode_count(m, number + 1);
    return true;
}

/* Let there be so many modes again, whose tables were copied in. */
static void find_spare(struct fsm_machine *m, int64_t count)
{
    set_mode_count(m, count);
    for (int64_t number = m->model->tables->sizes->n_modes; number < m->sizes.n_modes; number++) {
        struct fsm_online_mode *o = &m->spare.modes[number - m->model->tables->sizes->n_modes];
        o->guard_quantity.n = o->guard_subject.n = o->guard_sign.n = fsm_guard_count(&m->tables, number);
    }
}
