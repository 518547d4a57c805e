/* Shares of redundant contacts in a step of time stepping. */

#include "time_stepping.h"
#include "elementary.h"

/* -- Shares of redundant contacts in a step of time stepping, where the motion depends on them (docs/theory.md, "Shares that
   the motion depends on"): sweeps find some, those of equal springs are without a part in the null space of the response. */

#define FSM_STEP_SHARE_RANK 1e-9  // a pivot below this fraction of the first is zero
#define FSM_STEP_TAKES_PART 1e-9  // entry of a null vector above which a row takes part in it
#define FSM_STILL_SLIP      1e-9  // part of the fastest speed below which a contact sticks

/* What holds in a step: the rows, and per row the contact that slides there under its normal impulse or -1. */
struct held_in_step {
    fsm_indices rows;
    fsm_indices slides;
    fsm_indices one_sided; // 1: the impulse of the row is not negative
};

static void append_row(struct held_in_step *held, int64_t row, int64_t slides, bool one_sided)
{
    held->rows.at[held->rows.n] = row;
    held->slides.at[held->rows.n] = slides;
    held->one_sided.at[held->rows.n++] = one_sided;
}

/* List the normals of contacts that stay closed, and the tangents of those that stick. */
static struct held_in_step list_held_in_step(const struct fsm_time_step *step, const struct fsm_active_rows *active,
                                             double fastest, fsm_vector speed)
{
    int64_t n = speed.n;
    struct held_in_step held = {fsm_indices_first(fsm_arena_indices(step->arena, n), 0),
                                fsm_arena_indices(step->arena, n), fsm_arena_indices(step->arena, n)};
    for (int64_t k = 0; k < active->normal.n; k++) {
        int64_t a = active->normal.at[k], b = active->tangent.at[k], flags = step->tables->contact_flags.at[k];
        if (a < 0 || fabs(speed.at[a]) > FSM_STILL_SLIP * fastest * step->tables->row_unit.at[active->rows.at[a]]) {
            continue;
        }
        bool spatial = (flags & FSM_FLAG_IN_SPACE) != 0, slides = false;
        if (b >= 0) {
            double unit = step->tables->row_unit.at[active->rows.at[b]];
            double slip = spatial ? fsm_hypot(speed.at[b], speed.at[b + 1]) : fabs(speed.at[b]);
            slides = slip > FSM_STILL_SLIP * fastest * unit && step->terms->kinetic_friction.at[k] > 0.0;
        }
        append_row(&held, a, slides ? k : -1, (flags & FSM_FLAG_TWO_SIDED) == 0);
        for (int64_t i = 0; b >= 0 && !slides && i < (spatial ? 2 : 1); i++) {
            append_row(&held, b + i, -1, false);
        }
    }
    return held;
}

/* Whether friction of the contacts that slide changes speeds if vector `a` of the null space (n, k) is added to what they
   carry; directions of slip in space turn with it.

   Equal friction of surfaces that run apart does, though no friction differs in size. */
static bool friction_differs(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_matrix K,
                             const struct held_in_step *held, fsm_vector speed, fsm_matrix null_space, int64_t a)
{
    fsm_mark top = fsm_arena_mark(step->arena);
    fsm_vector change = fsm_arena_vector(step->arena, speed.n);
    double largest = 0.0, remainder = 0.0;
    for (int64_t s = 0; s < speed.n; s++) {
        change.at[s] = 0.0;
    }
    for (int64_t i = 0; i < held->rows.n; i++) {
        int64_t k = held->slides.at[i];
        double part = AT(null_space, i, a);
        if (k < 0 || fabs(part) <= FSM_STEP_TAKES_PART) {
            continue;
        }
        if ((step->tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) != 0) {
            fsm_arena_release(step->arena, top);
            return true;
        }
        int64_t row = active->tangent.at[k];
        double friction = part * step->terms->kinetic_friction.at[k] * (speed.at[row] < 0.0 ? -1.0 : 1.0);
        for (int64_t s = 0; s < speed.n; s++) {
            change.at[s] += friction * AT(K, s, row);
            largest = fsm_larger(largest, fabs(friction * AT(K, s, row)));
        }
    }
    for (int64_t s = 0; s < speed.n; s++) {
        remainder = fsm_larger(remainder, fabs(change.at[s]));
    }
    fsm_arena_release(step->arena, top);
    return remainder > FSM_STEP_TAKES_PART * largest;
}

/* Change impulses towards the shares of equal springs, as far as normal impulses stay positive, and the speeds with them;
   returns the change as a fraction of the largest impulse. */
static double move_to_shares(fsm_matrix K, const struct held_in_step *held, fsm_vector shared, fsm_vector speed,
                             fsm_vector impulse)
{
    double part = 1.0, change = 0.0, largest = FSM_TINIEST;
    for (int64_t i = 0; i < held->rows.n; i++) {
        double before = impulse.at[held->rows.at[i]], after = shared.at[i];
        change = fsm_larger(change, fabs(after - before));
        largest = fsm_larger(largest, fabs(before));
        if (held->one_sided.at[i] && after < 0.0) {
            part = fsm_smaller(part, before / (before - after));
        }
    }
    for (int64_t i = 0; i < held->rows.n; i++) {
        int64_t row = held->rows.at[i];
        double moved = part * (shared.at[i] - impulse.at[row]);
        impulse.at[row] += moved;
        for (int64_t s = 0; s < speed.n; s++) {
            speed.at[s] += AT(K, s, row) * moved;
        }
    }
    return part * change / largest;
}

/* Write what equal springs would carry of the impulses of the rows held, `shared` (n,); false where the motion does not depend
   on it. */
static bool find_shares(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_matrix K,
                        const struct held_in_step *held, fsm_vector speed, fsm_vector impulse, fsm_vector shared)
{
    int64_t n = held->rows.n;
    fsm_matrix response = fsm_arena_matrix(step->arena, n, n);
    fsm_vector unit = fsm_arena_vector(step->arena, n);
    for (int64_t i = 0; i < n; i++) {
        shared.at[i] = impulse.at[held->rows.at[i]];
        unit.at[i] = 1.0;
        for (int64_t j = 0; j < n; j++) {
            AT(response, i, j) = AT(K, held->rows.at[i], held->rows.at[j]);
        }
    }
    struct fsm_lu lu = fsm_factor(step->arena, response, FSM_STEP_SHARE_RANK);
    fsm_matrix null_space = fsm_null_space(step->arena, &lu);
    bool differs = false;
    for (int64_t a = 0; a < null_space.m && !differs; a++) {
        differs = friction_differs(step, active, K, held, speed, null_space, a);
    }
    if (!differs) {
        return false;
    }
    fsm_minimum_norm(step->arena, shared, null_space, unit);
    return true;
}

/* Take the row out that carries nothing and would have to pull most; returns whether there is one. */
static bool remove_pulling(struct held_in_step *held, fsm_vector impulse, fsm_vector shared)
{
    int64_t worst = -1;
    for (int64_t i = 0; i < held->rows.n; i++) {
        if (held->one_sided.at[i] && impulse.at[held->rows.at[i]] == 0.0 && shared.at[i] < 0.0 &&
            (worst < 0 || shared.at[i] < shared.at[worst])) {
            worst = i;
        }
    }
    if (worst < 0) {
        return false;
    }
    held->rows.n--;
    for (int64_t i = worst; i < held->rows.n; i++) {
        held->rows.at[i] = held->rows.at[i + 1];
        held->slides.at[i] = held->slides.at[i + 1];
        held->one_sided.at[i] = held->one_sided.at[i + 1];
    }
    return true;
}

/* Share out the impulses of a step as equal springs would, where the motion depends on it; returns the change as a fraction
   of the largest impulse. */
FSM_LOCAL double fsm_share_impulses(const struct fsm_time_step *step, const struct fsm_active_rows *active,
                                    fsm_matrix K, double fastest, fsm_vector speed, fsm_vector impulse)
{
    fsm_mark top = fsm_arena_mark(step->arena);
    struct held_in_step held = list_held_in_step(step, active, fastest, speed);
    fsm_vector shared = fsm_arena_vector(step->arena, held.rows.n);
    int64_t sliding = 0;
    double change = 0.0;
    for (int64_t i = 0; i < held.rows.n; i++) {
        sliding += held.slides.at[i] >= 0;
    }
    bool depends = sliding > 1 && find_shares(step, active, K, &held, speed, impulse, shared);
    while (depends && remove_pulling(&held, impulse, shared)) {
        depends = find_shares(step, active, K, &held, speed, impulse, shared);
    }
    if (depends) {
        change = move_to_shares(K, &held, shared, speed, impulse);
    }
    fsm_arena_release(step->arena, top);
    return change;
}

/* -- What rests stays at rest if any impulses within the laws hold it (docs/theory.md, "Time stepping").

   Where contacts share friction, sticking and sliding can both satisfy all laws of a step, and the sweeps, which begin
   without impulses, may end in either.  The motion stays as it was, as at an event of a force. */

#define FSM_HOLDS 1e-9 // part of the fastest speed that impulses which hold contacts may leave

/* Whether row `r` of the step rests where the step begins. */
static bool row_rests(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t r, double fastest)
{
    int64_t row = active->rows.at[r];
    double speed = fsm_row_speed(step->terms, row, step->u);
    return fabs(speed) <= FSM_STILL_SLIP * fastest * step->tables->row_unit.at[row];
}

/* Whether a contact takes part: at rest where the step begins, one-sided, its friction in proportion to its own impulse. */
static bool may_stick_on(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k, double fastest)
{
    const int64_t other = FSM_FLAG_TWO_SIDED | FSM_FLAG_COMPLIANT | FSM_FLAG_SWITCHED | FSM_FLAG_FRICTION_ONLY |
                          FSM_FLAG_FORCE_LIMIT | FSM_FLAG_LOADED;
    int64_t flags = step->tables->contact_flags.at[k], a = active->normal.at[k], b = active->tangent.at[k];
    return a >= 0 && (flags & other) == 0 && row_rests(step, active, a, fastest) &&
           (b < 0 || (row_rests(step, active, b, fastest) &&
                      ((flags & FSM_FLAG_IN_SPACE) == 0 || row_rests(step, active, b + 1, fastest))));
}

/* Place of the last tangent row of contact `k`, or of its normal row. */
static int64_t last_row(const struct fsm_time_step *step, const struct fsm_active_rows *active, int64_t k)
{
    int64_t b = active->tangent.at[k];
    return b < 0 ? active->normal.at[k] : (step->tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) != 0 ? b + 1 : b;
}

/* List the contacts of islands in which every contact may stick on. */
static fsm_indices list_stuck(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_matrix K,
                              double fastest)
{
    int64_t n = K.n, count = active->normal.n;
    fsm_indices owner = fsm_arena_indices(step->arena, n), free = fsm_arena_indices(step->arena, count);
    for (int64_t k = 0; k < count; k++) {
        free.at[k] = !may_stick_on(step, active, k, fastest);
        for (int64_t i = 0; i < 2; i++) {
            int64_t r = i == 0 ? active->normal.at[k] : active->tangent.at[k];
            for (int64_t last = i == 0 ? r : last_row(step, active, k); r >= 0 && r <= last; r++) {
                owner.at[r] = k;
            }
        }
    }
    for (bool spreads = true; spreads;) {
        spreads = false;
        for (int64_t r = 0; r < n; r++) {
            for (int64_t s = 0; s < n && free.at[owner.at[r]]; s++) {
                if (!free.at[owner.at[s]] && AT(K, r, s) != 0.0) {
                    free.at[owner.at[s]] = spreads = true;
                }
            }
        }
    }
    fsm_indices stuck = fsm_indices_first(fsm_arena_indices(step->arena, count), 0);
    for (int64_t k = 0; k < count; k++) {
        if (!free.at[k]) {
            stuck.at[stuck.n++] = k;
        }
    }
    return stuck;
}

/* Append a law on impulses: `factor` times that of row `a`, plus `sign` times that of row `b`. */
static void append_law(fsm_matrix basis, fsm_vector y, double factor, int64_t a, double sign, int64_t b, fsm_matrix *along,
                       fsm_vector slack)
{
    int64_t row = along->n++;
    slack.at[row] = factor * y.at[a] + (b >= 0 ? sign * y.at[b] : 0.0);
    for (int64_t i = 0; i < basis.m; i++) {
        AT(*along, row, i) = factor * AT(basis, a, i) + (b >= 0 ? sign * AT(basis, b, i) : 0.0);
    }
}

/* Move impulses `y` (m,) of contacts `stuck` along `basis` to the widest margin of their laws; false where none satisfies all.

   `place` (n,): of a row of the step among those of `y`. */
static bool within_laws(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_indices stuck,
                        fsm_indices place, fsm_matrix basis, fsm_vector y)
{
    int64_t most = 4 * stuck.n;
    fsm_matrix along = fsm_matrix_first(fsm_arena_matrix(step->arena, most, basis.m), 0);
    fsm_vector slack = fsm_arena_vector(step->arena, most), shares;
    fsm_indices cone = fsm_arena_indices(step->arena, most);
    double scale = FSM_TINIEST;
    for (int64_t i = 0; i < y.n; i++) {
        scale = fsm_larger(scale, fabs(y.at[i]));
    }
    for (int64_t i = 0; i < stuck.n; i++) {
        int64_t k = stuck.at[i], a = place.at[active->normal.at[k]], flags = step->tables->contact_flags.at[k];
        append_law(basis, y, 1.0, a, 0.0, -1, &along, slack);
        if (active->tangent.at[k] < 0 || (flags & FSM_FLAG_STICKS_ALWAYS) != 0) {
            continue;
        }
        int64_t b = place.at[active->tangent.at[k]];
        double ratio = step->terms->static_friction.at[k];
        if ((flags & FSM_FLAG_IN_SPACE) == 0) {
            append_law(basis, y, ratio, a, 1.0, b, &along, slack);
            append_law(basis, y, ratio, a, -1.0, b, &along, slack);
            continue;
        }
        cone.at[along.n] = 1;
        append_law(basis, y, ratio, a, 0.0, -1, &along, slack);
        append_law(basis, y, 0.0, a, 1.0, b, &along, slack);
        append_law(basis, y, 0.0, a, 1.0, b + 1, &along, slack);
    }
    slack = fsm_vector_first(slack, along.n);
    if (fsm_widest_margin(step->arena, along, slack, fsm_indices_first(cone, along.n), scale, &shares) < 0.0) {
        return false;
    }
    for (int64_t i = 0; i < y.n; i++) {
        for (int64_t a = 0; a < basis.m; a++) {
            y.at[i] += AT(basis, i, a) * shares.at[a];
        }
    }
    return true;
}

/* Find impulses that hold redundant contacts which rest where the step begins, if there are any within the laws.

   Where `solved` and nothing slips, nothing is looked for.  `before` (n,): speeds without impulses of contacts; `speed`,
   `impulse` (n,): those after are written, where true. */
FSM_LOCAL bool fsm_stick_on(const struct fsm_time_step *step, const struct fsm_active_rows *active, fsm_matrix K,
                            fsm_vector before, double fastest, bool solved, fsm_vector speed, fsm_vector impulse)
{
    fsm_mark top = fsm_arena_mark(step->arena);
    fsm_indices stuck = list_stuck(step, active, K, fastest), place = fsm_arena_indices(step->arena, K.n);
    fsm_indices rows = fsm_indices_first(fsm_arena_indices(step->arena, K.n), 0);
    bool moves = !solved;
    for (int64_t i = 0; i < stuck.n; i++) {
        for (int64_t part = 0; part < 2; part++) {
            int64_t r = part == 0 ? active->normal.at[stuck.at[i]] : active->tangent.at[stuck.at[i]];
            for (int64_t last = part == 0 ? r : last_row(step, active, stuck.at[i]); r >= 0 && r <= last; r++) {
                place.at[r] = rows.n;
                rows.at[rows.n++] = r;
                moves = moves || fabs(speed.at[r]) > FSM_STILL_SLIP * fastest;
            }
        }
    }
    fsm_matrix response = fsm_arena_matrix(step->arena, moves ? rows.n : 0, moves ? rows.n : 0);
    fsm_vector y = fsm_arena_vector(step->arena, response.n), right = fsm_arena_vector(step->arena, response.n);
    for (int64_t i = 0; i < response.n; i++) {
        right.at[i] = -before.at[rows.at[i]];
        for (int64_t j = 0; j < response.n; j++) {
            AT(response, i, j) = AT(K, rows.at[i], rows.at[j]);
        }
    }
    struct fsm_lu lu = fsm_factor(step->arena, response, FSM_STEP_SHARE_RANK);
    bool holds = moves && lu.rank < response.n && fsm_solve(&lu, right, y) <= FSM_HOLDS * fastest;
    holds = holds && within_laws(step, active, stuck, place, fsm_null_space(step->arena, &lu), y);
    for (int64_t i = 0; holds && i < rows.n; i++) {
        double change = y.at[i] - impulse.at[rows.at[i]];
        impulse.at[rows.at[i]] = y.at[i];
        for (int64_t s = 0; s < speed.n; s++) {
            speed.at[s] += AT(K, s, rows.at[i]) * change;
        }
    }
    fsm_arena_release(step->arena, top);
    return holds;
}
