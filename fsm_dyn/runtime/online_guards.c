/* Guards of a mode embedded online: values from the terms and multipliers, slopes where the terms give them. */

#include "online.h"

static double guard_value(struct fsm_online_mode *o, const double *c, int64_t guard);
static void share_indeterminate_forces(struct fsm_online_mode *o, const double *c);
static double gap_to_face(struct fsm_online_mode *o, int64_t k);
static int64_t farthest(struct fsm_online_mode *o, int64_t k);
static double law_change(struct fsm_online_mode *o, int64_t guard, int64_t forces);

/* Write the values of the guards from `out[at]` on, of all or of those alone whose slope the terms do not give; forces and
   the state are in the workspace.

   Where rows are redundant the circle of friction in space is asked of the forces of smallest norm, and the
   other laws of forces shared out by share_indeterminate_forces. */
FSM_LOCAL void fsm_guard_values(struct fsm_online_mode *o, const double *c, double *out, int64_t at, bool all)
{
    int64_t *chart = o->chart.at;
    int64_t count = o->guard_quantity.n;
    for (int64_t g = 0; g < count; g++) {
        if (all || !fsm_has_exact_slope(o, g)) {
            out[at + g] = guard_value(o, c, g);
        }
    }
    if (chart[FSM_ONLINE_ACTIVE] > chart[FSM_ONLINE_RANK] + chart[FSM_ONLINE_SHARED]) {
        share_indeterminate_forces(o, c);
        for (int64_t g = 0; g < count; g++) {
            if (fsm_is_law(o, g)) {
                out[at + g] = guard_value(o, c, g);
            }
        }
    }
}

/* Return the value of one guard. */
static double guard_value(struct fsm_online_mode *o, const double *c, int64_t guard)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t what = o->guard_quantity.at[guard];
    int64_t k = o->guard_subject.at[guard];
    double sign = o->guard_sign.at[guard];
    if (what == FSM_ONLINE_CONDITION) {
        return sign * w[chart[FSM_ONLINE_AT_WHEN] + k];
    }
    if (what == FSM_ONLINE_REACH) {
        return w[chart[FSM_ONLINE_AT_REACH] + k];
    }
    if (what == FSM_ONLINE_FIRMNESS) {
        return w[chart[FSM_ONLINE_AT_FIRM] + k];
    }
    int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
    if (what == FSM_ONLINE_GAP) {
        return sign * w[chart[FSM_ONLINE_AT_RESIDUAL] + normal];
    }
    if (what == FSM_ONLINE_LARGEST_GAP) {
        return gap_to_face(o, farthest(o, k));
    }
    if (what == FSM_ONLINE_MEETING) {
        double firm = o->limits->length_scale * w[chart[FSM_ONLINE_AT_FIRM] + k];
        return fsm_larger(w[chart[FSM_ONLINE_AT_RESIDUAL] + normal], -firm);
    }
    if (what == FSM_ONLINE_NORMAL_FORCE) {
        return sign * w[chart[FSM_ONLINE_AT_MULTIPLIERS] + normal];
    }
    if (what == FSM_ONLINE_SLIP) {
        return fsm_slip_along(o, c, k, chart[FSM_ONLINE_AT_X] + o->sizes->n_q, chart[FSM_ONLINE_AT_B]);
    }
    if (what == FSM_ONLINE_SPEED) {
        return fsm_product_with_row(o, normal, chart[FSM_ONLINE_AT_X] + o->sizes->n_q, chart[FSM_ONLINE_AT_B]);
    }
    double bound = w[chart[FSM_ONLINE_AT_STATIC] + k];
    if (what == FSM_ONLINE_HOLDING_LIMIT) {
        return bound + sign * w[chart[FSM_ONLINE_AT_MULTIPLIERS] + normal];
    }
    if (normal >= 0) {
        double load = w[chart[FSM_ONLINE_AT_MULTIPLIERS] + normal];
        bound *= (o->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) ? fabs(load) : load;
    }
    if (o->contact_flags.at[k] & FSM_FLAG_LOADED) {
        bound *= fsm_online_load(o, k);
    }
    if (what == FSM_ONLINE_FRICTION_CIRCLE) {
        double first = w[chart[FSM_ONLINE_AT_MULTIPLIERS] + tangent],
               second = w[chart[FSM_ONLINE_AT_MULTIPLIERS] + tangent + 1];
        return bound * bound - first * first - second * second;
    }
    return bound + sign * w[chart[FSM_ONLINE_AT_MULTIPLIERS] + tangent];
}

/* Return which face of the outline of contact `k`, the first of it, its corner is farthest from. */
static int64_t farthest(struct fsm_online_mode *o, int64_t k)
{
    int64_t best = k;
    double largest = gap_to_face(o, k);
    int64_t end = fsm_least(k + o->chart.at[FSM_ONLINE_SPAN] + 1, o->contact_outline.n);
    for (int64_t j = k + 1; j < end; j++) {
        if (o->contact_outline.at[j] == o->contact_outline.at[k]) {
            double gap = gap_to_face(o, j);
            if (gap > largest) {
                best = j;
                largest = gap;
            }
        }
    }
    return best;
}

/* Return the gap to one of several faces, a little less where a neighbour of the corner lies behind it. */
static double gap_to_face(struct fsm_online_mode *o, int64_t k)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    return w[chart[FSM_ONLINE_AT_RESIDUAL] + AT(o->contact_rows, k, 0)] +
           FSM_SET_BACK * fsm_smaller(w[chart[FSM_ONLINE_AT_ASPECT] + k], 0.0);
}

/* Whether the terms give a guard's slope. */
FSM_LOCAL bool fsm_has_exact_slope(struct fsm_online_mode *o, int64_t guard)
{
    int64_t what = o->guard_quantity.at[guard];
    return what == FSM_ONLINE_GAP || what == FSM_ONLINE_LARGEST_GAP || what == FSM_ONLINE_REACH ||
           what == FSM_ONLINE_SLIP || what == FSM_ONLINE_SPEED;
}

/* Return the slope of a guard that the terms give themselves. */
FSM_LOCAL double fsm_exact_slope(struct fsm_online_mode *o, const double *c, int64_t guard)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t what = o->guard_quantity.at[guard], k = o->guard_subject.at[guard];
    if (what == FSM_ONLINE_REACH) {
        return w[chart[FSM_ONLINE_AT_REACH_RATE] + k];
    }
    if (what == FSM_ONLINE_GAP || what == FSM_ONLINE_LARGEST_GAP) {
        int64_t face = what == FSM_ONLINE_LARGEST_GAP ? farthest(o, k) : k;
        double speed = fsm_product_with_row(o, AT(o->contact_rows, face, 0), chart[FSM_ONLINE_AT_X] + o->sizes->n_q,
                                            chart[FSM_ONLINE_AT_B]);
        return o->guard_sign.at[guard] * speed;
    }
    if (what == FSM_ONLINE_SPEED) {
        return fsm_product_with_row(o, AT(o->contact_rows, k, 0), chart[FSM_ONLINE_AT_U_DOT],
                                    chart[FSM_ONLINE_AT_GAMMA]);
    }
    return fsm_slip_along(o, c, k, chart[FSM_ONLINE_AT_U_DOT], chart[FSM_ONLINE_AT_GAMMA]);
}

/* Choose the indeterminate multipliers so that the laws of the contacts are kept with the widest margin.

   The margin reaches zero where no shares are left that satisfy all contact laws, and the laws at their limits are then
   those that contacts can only keep together (docs/theory.md, "Online embedding"). */
static void share_indeterminate_forces(struct fsm_online_mode *o, const double *c)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t R = o->sizes->n_rows, shared = chart[FSM_ONLINE_SHARED];
    int64_t at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS], at_open = chart[FSM_ONLINE_AT_OPEN] + shared * R;
    int64_t count = chart[FSM_ONLINE_ACTIVE] - chart[FSM_ONLINE_RANK] - shared;
    int64_t laws = 0;
    double scale = 0.0;
    for (int64_t guard = 0; guard < o->guard_quantity.n; guard++) {
        laws += fsm_is_law(o, guard) ? 1 : 0;
    }
    for (int64_t r = 0; r < R; r++) {
        scale = fsm_larger(scale, fabs(w[at_multipliers + r]));
    }
    if (laws == 0 || scale == 0.0) {
        return;
    }
    fsm_mark before = fsm_arena_mark(&o->arena);
    fsm_matrix along = fsm_arena_matrix(&o->arena, laws, count);
    fsm_vector slack = fsm_arena_vector(&o->arena, laws);
    int64_t law = 0;
    for (int64_t guard = 0; guard < o->guard_quantity.n; guard++) {
        if (!fsm_is_law(o, guard)) {
            continue;
        }
        slack.at[law] = guard_value(o, c, guard);
        for (int64_t d = 0; d < count; d++) {
            AT(along, law, d) = law_change(o, guard, at_open + d * R);
        }
        law++;
    }
    fsm_vector shares;
    fsm_maximise_margin(&o->arena, along, slack, scale, &shares);
    for (int64_t d = 0; d < count; d++) {
        for (int64_t r = 0; r < R; r++) {
            w[at_multipliers + r] += shares.at[d] * w[at_open + d * R + r];
        }
    }
    fsm_arena_release(&o->arena, before);
}

/* Whether a guard is a law that forces keep. */
FSM_LOCAL bool fsm_is_law(struct fsm_online_mode *o, int64_t guard)
{
    int64_t what = o->guard_quantity.at[guard];
    return what == FSM_ONLINE_NORMAL_FORCE || what == FSM_ONLINE_FRICTION_LIMIT || what == FSM_ONLINE_HOLDING_LIMIT;
}

/* Return how a law changes with the forces at `forces` in the workspace. */
static double law_change(struct fsm_online_mode *o, int64_t guard, int64_t forces)
{
    double *w = o->room.at;
    int64_t k = o->guard_subject.at[guard];
    int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
    if (o->guard_quantity.at[guard] != FSM_ONLINE_FRICTION_LIMIT) {
        return o->guard_sign.at[guard] * w[forces + normal];
    }
    double change = o->guard_sign.at[guard] * w[forces + tangent];
    if (normal >= 0 && (o->contact_flags.at[k] & FSM_FLAG_RIGID) != 0 &&
        (o->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0) {
        change += w[o->chart.at[FSM_ONLINE_AT_STATIC] + k] * w[forces + normal];
    }
    return change;
}
