/* A start at other coordinates and speeds than the model's own.

   Included by fsm_machine.c.  What is not given follows from the rows of the mode of the start, by least moves of the
   speeds, scaled by the roots of inertias. */

#define FSM_START_MOVES   40
#define FSM_START_SETTLED 1e-13 // a move shorter than this part of the coordinates is the last

/* Write the scales of the speeds, zero where a given value would change: those of a given coordinate, or given speeds. */
static void free_scales(const struct fsm_machine *m, const struct fsm_terms *terms, const int8_t *given, bool speeds,
                        fsm_vector scale)
{
    const struct fsm_sizes *s = m->tables.sizes;
    fsm_column_scales(terms, scale);
    for (int64_t j = 0; j < s->n_u; j++) {
        bool fixed = speeds && given[s->n_q + j] != 0;
        for (int64_t i = 0; i < s->n_q && !speeds; i++) {
            fixed = fixed || (given[i] != 0 && AT(terms->W, i, j) != 0.0);
        }
        scale.at[j] = fixed ? 0.0 : scale.at[j];
    }
}

/* Return how far the rows are from being satisfied, over their tolerances; write what is missing of each. */
static double missing(const struct fsm_machine *m, const struct fsm_terms *terms, fsm_indices rows, bool speeds,
                      fsm_vector right)
{
    const struct fsm_sizes *s = m->tables.sizes;
    fsm_vector u = fsm_vector_part(m->state.x, s->n_q, s->n_q + s->n_u);
    double worst = 0.0;
    for (int64_t k = 0; k < rows.n; k++) {
        int64_t r = rows.at[k];
        right.at[k] = speeds ? -fsm_row_speed(terms, r, u) : -terms->residual.at[r];
        double tolerance = speeds ? fsm_speed_tolerance(&m->tables, r) : fsm_gap_tolerance(&m->tables, r);
        worst = fsm_larger(worst, fabs(right.at[k]) / tolerance);
    }
    return worst;
}

/* Satisfy the rows of the mode, on coordinates or on speeds; false where no values near these do. */
static bool satisfy(struct fsm_machine *m, const int8_t *given, bool speeds)
{
    const struct fsm_tables *tables = &m->tables;
    const struct fsm_sizes *s = tables->sizes;
    struct fsm_arena *arena = &m->work.arena;
    fsm_vector x = m->state.x;
    fsm_arena_clear(arena);
    const struct fsm_terms *terms = fsm_terms_of(&m->work);
    fsm_indices rows = fsm_rows_held(arena, tables, m->state.counters->mode, !speeds);
    fsm_vector scale = fsm_arena_vector(arena, s->n_u), right = fsm_arena_vector(arena, rows.n),
               move = fsm_arena_vector(arena, s->n_u);
    fsm_matrix B = fsm_arena_matrix(arena, rows.n, s->n_u), L = fsm_arena_matrix(arena, rows.n, rows.n);
    fsm_indices order = fsm_arena_indices(arena, rows.n);
    for (int64_t pass = 0; pass < FSM_START_MOVES && rows.n > 0; pass++) {
        tables->terms.at[0](m->state.clock->time, x.at, m->state.c.at, terms->whole.at);
        missing(m, terms, rows, speeds, right);
        free_scales(m, terms, given, speeds, scale);
        fsm_fill_scaled(terms, rows, scale, fsm_rank_sizes(m->state.rank, s->n_rows), B);
        fsm_mark top = fsm_arena_mark(arena);
        int64_t rank = fsm_orthogonalise(arena, B, order, L, tables->tolerances->redundancy);
        fsm_arena_release(arena, top);
        fsm_least_move(B, order, L, rank, right, move);
        double largest = 0.0;
        for (int64_t i = speeds ? s->n_q : 0; i < (speeds ? x.n : s->n_q); i++) {
            double step = speeds ? scale.at[i - s->n_q] * move.at[i - s->n_q] : 0.0;
            for (int64_t j = 0; j < s->n_u && !speeds; j++) {
                step += AT(terms->W, i, j) * scale.at[j] * move.at[j];
            }
            x.at[i] += step;
            largest = fsm_larger(largest, fabs(step) / (tables->state_unit.at[i] + fabs(x.at[i])));
        }
        if (!(largest > FSM_START_SETTLED)) {
            break;
        }
    }
    fsm_normalise_quaternions(tables, x);
    tables->terms.at[0](m->state.clock->time, x.at, m->state.c.at, terms->whole.at);
    return missing(m, terms, rows, speeds, right) <= 1.0;
}

/* Let the machine be in the mode with the contact states that are wanted; false where there is no room for it. */
static bool enter_wanted(struct fsm_machine *m)
{
    m->state.counters->mode = fsm_find_mode(&m->tables, m->work.wanted, m->state.counters->mode);
    if (m->state.counters->mode < 0) {
        m->state.counters->mode = m->sizes.n_modes;
        return add_mode(m);
    }
    return true;
}

/* Decide by their slip which contacts slide that are never open, and which compliant ones are compressed; the others close
   when the start is resolved. */
static void deduce_states(struct fsm_machine *m)
{
    const struct fsm_sizes *s = m->tables.sizes;
    const struct fsm_terms *terms = fsm_terms_of(&m->work);
    fsm_vector u = fsm_vector_part(m->state.x, s->n_q, s->n_q + s->n_u);
    for (int64_t k = 0; k < s->n_contacts; k++) {
        int64_t flags = m->tables.contact_flags.at[k], normal = AT(m->tables.contact_rows, k, 0);
        int64_t tangent = AT(m->tables.contact_rows, k, 1);
        bool pressed = (flags & FSM_FLAG_COMPLIANT) != 0 && (flags & FSM_FLAG_LIMITED) == 0 &&
                       terms->residual.at[normal] < -fsm_gap_tolerance(&m->tables, normal) && terms->elastic.at[k] > 0.0;
        if (m->model->start_fixed[k] == 0 && (m->work.wanted.at[k] != FSM_CONTACT_FREE || pressed)) {
            bool slides = tangent >= 0 && (flags & FSM_FLAG_STICKS_ALWAYS) == 0 &&
                          fsm_slip_speed(&m->tables, terms, k, u) > fsm_slip_tolerance(&m->tables, k);
            m->work.wanted.at[k] = (int8_t)(slides ? FSM_CONTACT_SLIDING : FSM_CONTACT_HELD);
        }
        if (m->work.wanted.at[k] >= FSM_CONTACT_SLIDING && tangent >= 0) {
            double slip = fsm_row_speed(terms, tangent, u), *sigma = m->state.c.at + fsm_sigma_at(s) + k;
            bool in_space = (flags & FSM_FLAG_IN_SPACE) != 0;
            *sigma = in_space ? fsm_angle_of(slip, fsm_row_speed(terms, tangent + 1, u), 0.0) : slip < 0.0 ? -1.0 : 1.0;
        }
    }
}

static bool assemble_start(struct fsm_machine *m, const int8_t *given)
{
    memcpy(m->work.wanted.at, m->model->start_states, (size_t)m->tables.sizes->n_contacts);
    if (!enter_wanted(m) || !satisfy(m, given, false) || !satisfy(m, given, true)) {
        return false;
    }
    memcpy(m->work.wanted.at, m->model->start_states, (size_t)m->tables.sizes->n_contacts);
    deduce_states(m);
    return enter_wanted(m);
}

FSM_API bool fsm_machine_start(struct fsm_machine *m, const double *x, const int8_t *given)
{
    const struct fsm_counters *counters = m->state.counters;
    if (counters->started != 0 || counters->phase != FSM_PHASE_RESOLVING || m->model->start_states == NULL) {
        return false;
    }
    for (int64_t i = 0; i < m->state.x.n; i++) {
        if (!(fabs(x[i]) < FSM_INFINITY)) {
            return false;
        }
    }
    double *sigma = m->state.c.at + fsm_sigma_at(m->tables.sizes), *kept = m->kept_start;
    size_t states = (size_t)m->state.x.n, contacts = (size_t)m->tables.sizes->n_contacts;
    int64_t mode = counters->mode;
    memcpy(kept, m->state.x.at, states * sizeof *kept);
    memcpy(kept + states, sigma, contacts * sizeof *kept);
    memcpy(m->state.x.at, x, states * sizeof *x);
    fsm_normalise_quaternions(&m->tables, m->state.x);
    if (!assemble_start(m, given)) {
        memcpy(m->state.x.at, kept, states * sizeof *kept);
        memcpy(sigma, kept + states, contacts * sizeof *kept);
        m->state.counters->mode = mode;
        return false;
    }
    return true;
}
