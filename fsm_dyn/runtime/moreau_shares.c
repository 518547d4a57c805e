/* Shares of redundant contacts in a step of time stepping, where the motion depends on them (docs/theory.md, "Shares that
   the motion depends on"): sweeps find some, those of equal springs are without a part in the null space of the response. */

#include "elementary.h"
#include "time_stepping.h"

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

/* Whether contacts that slide, each with its own direction or friction, take part in the null space (n, k). */
static bool friction_differs(const struct fsm_time_step *step, const struct held_in_step *held, fsm_matrix null_space)
{
    double first = -1.0;
    for (int64_t i = 0; i < held->rows.n; i++) {
        int64_t k = held->slides.at[i];
        bool takes_part = false;
        for (int64_t a = 0; a < null_space.m; a++) {
            takes_part = takes_part || fabs(AT(null_space, i, a)) > FSM_STEP_TAKES_PART;
        }
        if (k < 0 || !takes_part) {
            continue;
        }
        double friction = step->terms->kinetic_friction.at[k];
        if ((step->tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) != 0 || (first >= 0.0 && friction != first)) {
            return true;
        }
        first = friction;
    }
    return false;
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

/* Write what equal springs would bear of the impulses of the rows held, `shared` (n,); false where the motion does not depend
   on it. */
static bool find_shares(const struct fsm_time_step *step, fsm_matrix K, const struct held_in_step *held,
                        fsm_vector impulse, fsm_vector shared)
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
    if (!friction_differs(step, held, null_space)) {
        return false;
    }
    fsm_minimum_norm(step->arena, shared, null_space, unit);
    return true;
}

/* Take the row out that bears nothing and would have to pull most; returns whether there is one. */
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
    bool depends = sliding > 1 && find_shares(step, K, &held, impulse, shared);
    while (depends && remove_pulling(&held, impulse, shared)) {
        depends = find_shares(step, K, &held, impulse, shared);
    }
    if (depends) {
        change = move_to_shares(K, &held, shared, speed, impulse);
    }
    fsm_arena_release(step->arena, top);
    return change;
}
