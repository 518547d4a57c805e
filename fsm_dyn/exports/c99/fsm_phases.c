/* The phase of a machine: conditions judged in every step it records, their changes located between the rows. */

#define FSM_PHASE_PARTS  8  // of a step, at whose ends comparisons are judged
#define FSM_PHASE_HALVES 60 // of a part, at most, to locate a change
#define FSM_PHASE_CHANGES 64 // in a part, at most

/* Length of a recorded row. */
static int64_t phase_row_length(const struct fsm_sizes *s)
{
    return 1 + 3 * (s->n_q + s->n_u) + context_length(s) - s->n_p;
}

/* What a machine knows of its phases, saved with its state. */
static void take_phases(struct room *room, struct fsm_machine *m, const struct fsm_sizes *s)
{
    const struct fsm_phases *phases = m->model->phases;
    if (phases == NULL) {
        return;
    }
    m->phase.row = take_numbers(room, phase_row_length(s));
    m->phase.counts = take(room, FSM_PHASE_COUNTS);
    m->phase.truth = take(room, (2 * phases->count + 7) / 8);
}

/* Room to evaluate their conditions, of which nothing is kept. */
static void take_phase_work(struct room *room, struct fsm_machine *m, const struct fsm_sizes *s)
{
    const struct fsm_phases *phases = m->model->phases;
    if (phases == NULL) {
        return;
    }
    int64_t n = s->n_q + s->n_u;
    m->phase.x = take_numbers(room, n + s->n_u + s->n_rows);
    m->phase.c = take_numbers(room, ADDRESS + context_length(s));
    m->phase.c = m->phase.c == NULL ? NULL : m->phase.c + ADDRESS;
    m->phase.full = take_numbers(room, n + s->n_u + 1 + 2 * s->max_guards + s->n_rows);
    m->phase.margins = take_numbers(room, phases->n_compared);
    m->phase.now = take(room, (phases->n_compared + 7) / 8);
    m->phase.then = take(room, (phases->n_compared + 7) / 8);
    m->phase.found = take(room, (2 * phases->count + 7) / 8);
    if (m->phase.c != NULL) {
        memcpy(m->phase.c - ADDRESS, &m, sizeof m);
    }
}

static void forget_phases(struct fsm_machine *m)
{
    if (m->model->phases != NULL) {
        m->phase.counts[FSM_PHASE_NOW] = -1;
    }
}

/* Judge the comparisons at the state in `x` and the context in `c`. */
static void judge_comparisons(struct fsm_machine *m, double time, int64_t mode, int8_t *truth)
{
    const struct fsm_phases *phases = m->model->phases;
    const struct fsm_sizes *s = m->tables.sizes;
    int64_t n = s->n_q + s->n_u;
    if (phases->n_compared == 0) {
        return;
    }
    if (phases->reads_forces != 0) {
        m->tables.mode_full.at[mode](time, m->phase.x, m->phase.c, m->phase.full);
        const double *multipliers = m->phase.full + n + s->n_u + 1 + 2 * fsm_guard_count(&m->tables, mode);
        for (int64_t i = 0; i < s->n_u; i++) {
            m->phase.x[n + i] = m->phase.full[s->n_q + i];
        }
        for (int64_t i = 0; i < s->n_rows; i++) {
            m->phase.x[n + s->n_u + i] = multipliers[i];
        }
    }
    phases->margins(time, m->phase.x, m->phase.c, m->phase.margins);
    for (int64_t i = 0; i < phases->n_compared; i++) {
        truth[i] = phases->strict[i] != 0 ? m->phase.margins[i] > 0.0 : m->phase.margins[i] >= 0.0;
    }
}

/* Let `x` and `c` be those a part `s` of the way from a recorded row to the next one: the quartic of the states; cubics
   of the inputs, or lines where they are set from outside. */
static void move_between(struct fsm_machine *m, const double *row, const double *next, double s)
{
    const struct fsm_sizes *sizes = m->tables.sizes;
    int64_t n = sizes->n_q + sizes->n_u, n_w = sizes->n_w;
    double h = next[0] - row[0], r = 1.0 - s;
    const double *held = row + 1 + 3 * n, *held_next = next + 1 + 3 * n;
    for (int64_t i = 0; i < n; i++) {
        double x0 = row[1 + i], d0 = row[1 + n + i], x1 = next[1 + i], d1 = next[1 + n + i];
        double cubic = r * r * ((1.0 + 2.0 * s) * x0 + s * h * d0) + s * s * ((1.0 + 2.0 * r) * x1 - r * h * d1);
        double middle = 0.5 * (x0 + x1) + 0.125 * h * (d0 - d1);
        m->phase.x[i] = cubic + 16.0 * (s * r) * (s * r) * (next[1 + 2 * n + i] - middle);
    }
    double *c = m->phase.c;
    memcpy(c, m->state.c.at, (size_t)sizes->n_p * sizeof *c);
    memcpy(c + sizes->n_p, held, (size_t)(context_length(sizes) - sizes->n_p) * sizeof *c);
    for (int64_t i = 0; i < n_w; i++) {
        double w0 = held[i], w1 = held_next[i], line = h > 0.0 ? (w1 - w0) / h : 0.0;
        double d0 = m->holds ? line : held[n_w + i], d1 = m->holds ? line : held_next[n_w + i];
        c[sizes->n_p + i] = r * r * ((1.0 + 2.0 * s) * w0 + s * h * d0) + s * s * ((1.0 + 2.0 * r) * w1 - r * h * d1);
        c[sizes->n_p + n_w + i] = d0 + s * (6.0 * r * (line - d0) + (3.0 * s - 2.0) * (d1 - d0));
    }
}

/* Whether a condition on contact states is true in a mode. */
static bool is_in_state(const struct fsm_machine *m, const int64_t *condition, int64_t mode)
{
    int64_t fitting = 0, n = condition[2];
    for (int64_t i = 0; i < n; i++) {
        fitting += AT(m->tables.mode_states, mode, condition[3 + 2 * i]) == condition[4 + 2 * i] ? 1 : 0;
    }
    bool holds = condition[1] != 0 ? fitting > 0 : fitting == n;
    return holds != (condition[0] != 0);
}

/* Whether one of the conjunctions from here on is true; `at` is set behind them. */
static bool one_holds(const struct fsm_machine *m, const int64_t **at, int64_t mode, const int8_t *truth)
{
    const struct fsm_phases *phases = m->model->phases;
    bool one = false;
    for (int64_t left = *(*at)++; left > 0; left--) {
        bool all = true;
        for (int64_t conditions = *(*at)++; conditions > 0; conditions--) {
            int64_t k = *(*at)++;
            all = all && (k < phases->n_compared ? truth[k] != 0
                                                 : is_in_state(m, phases->states + phases->begin[k - phases->n_compared], mode));
        }
        one = one || all;
    }
    return one;
}

/* Return the phase that applies after `before`, and which phases could begin and end, shape (2, count); where these are
   those of the last decision it is `before`. */
static int64_t phase_after(const struct fsm_machine *m, int64_t before, int64_t mode, const int8_t *truth, int8_t *found)
{
    const struct fsm_phases *phases = m->model->phases;
    const int64_t *at = phases->rules;
    int64_t chosen = -1;
    for (int64_t i = 0; i < phases->count; i++) {
        int64_t n_after = *at++;
        bool follows = n_after == 0 || i == before;
        for (int64_t k = 0; k < n_after; k++) {
            follows = *at++ == before || follows;
        }
        found[i] = one_holds(m, &at, mode, truth);
        bool ends = *at > 0;
        found[phases->count + i] = one_holds(m, &at, mode, truth);
        bool applies = ends && i == before ? found[phases->count + i] == 0 : found[i] != 0;
        chosen = chosen < 0 && applies && follows ? i : chosen;
    }
    bool same = m->phase.counts[FSM_PHASE_BEGUN] != 0 && memcmp(found, m->phase.truth, (size_t)(2 * phases->count)) == 0;
    return same ? before : chosen;
}

/* Decide the phase from `time` (s) on. */
static void decide_phase(struct fsm_machine *m, double time, int64_t mode, const int8_t *truth)
{
    int64_t before = m->phase.counts[FSM_PHASE_NOW];
    int64_t now = phase_after(m, before, mode, truth, m->phase.found);
    bool begins = now != before || m->phase.counts[FSM_PHASE_BEGUN] == 0;
    memcpy(m->phase.truth, m->phase.found, (size_t)(2 * m->model->phases->count));
    m->phase.counts[FSM_PHASE_BEGUN] = 1;
    m->phase.counts[FSM_PHASE_NOW] = now;
    if (begins && m->listener.phase != NULL) {
        m->listener.phase(m->listener.data, time, now);
    }
}

/* Judge the comparisons a part `s` of the way between two rows. */
static void judge_between(struct fsm_machine *m, const double *row, const double *next, double s, int64_t mode, int8_t *truth)
{
    move_between(m, row, next, s);
    judge_comparisons(m, row[0] + s * (next[0] - row[0]), mode, truth);
}

/* Follow the phases through a step. */
static void follow_step(struct fsm_machine *m, const double *row, const double *next, int64_t mode)
{
    size_t n = (size_t)m->model->phases->n_compared;
    int8_t *now = m->phase.now, *then = m->phase.then;
    judge_between(m, row, next, 0.0, mode, now);
    decide_phase(m, row[0], mode, now);
    double s = 0.0;
    for (int64_t part = 1; n > 0 && part <= FSM_PHASE_PARTS; part++) {
        double end = (double)part / FSM_PHASE_PARTS;
        judge_between(m, row, next, end, mode, then);
        for (int64_t change = 0; memcmp(now, then, n) != 0 && change < FSM_PHASE_CHANGES; change++) {
            double low = s, high = end;
            for (int64_t i = 0; i < FSM_PHASE_HALVES; i++) {
                double middle = 0.5 * (low + high);
                if (!(middle > low && middle < high)) {
                    break;
                }
                judge_between(m, row, next, middle, mode, then);
                if (memcmp(now, then, n) == 0) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            judge_between(m, row, next, high, mode, now);
            double time = row[0] + high * (next[0] - row[0]);
            if (time < next[0]) {
                decide_phase(m, time, mode, now);
            }
            s = high;
            judge_between(m, row, next, end, mode, then);
        }
        s = end;
        memcpy(now, then, n);
    }
}

/* Follow the phases to a recorded row. */
static void follow_row(struct fsm_machine *m, const double *next, int64_t mode)
{
    if (m->model->phases == NULL) {
        return;
    }
    if (m->phase.counts[FSM_PHASE_ROW_MODE] > 0 && next[0] > m->phase.row[0]) {
        follow_step(m, m->phase.row, next, m->phase.counts[FSM_PHASE_ROW_MODE] - 1);
    }
    memcpy(m->phase.row, next, (size_t)phase_row_length(m->tables.sizes) * sizeof *next);
    m->phase.counts[FSM_PHASE_ROW_MODE] = mode + 1;
}

/* Judge the comparisons at the present state. */
static void judge_here(struct fsm_machine *m)
{
    memcpy(m->phase.x, m->state.x.at, (size_t)m->state.x.n * sizeof *m->phase.x);
    memcpy(m->phase.c, m->state.c.at, (size_t)m->state.c.n * sizeof *m->phase.c);
    judge_comparisons(m, m->state.clock->time, m->state.counters->mode, m->phase.now);
}

FSM_API int64_t fsm_machine_phase(struct fsm_machine *m)
{
    if (m->model->phases == NULL) {
        return -1;
    }
    judge_here(m);
    return phase_after(m, m->phase.counts[FSM_PHASE_NOW], m->state.counters->mode, m->phase.now, m->phase.found);
}

FSM_API const char *fsm_machine_phase_name(const struct fsm_machine *m, int64_t phase)
{
    return m->model->phases != NULL && phase >= 0 && phase < m->model->phases->count ? m->model->phase_names[phase] : "none";
}
