/* Evaluation of modes embedded online, and their guards. */

#include <string.h>

#include "elementary.h"
#include "online.h"

/* -- Guards of a mode embedded online: values from the terms and multipliers, slopes where the terms give them. */

#define FSM_SAME_MARGIN 1e-9 // of the largest force: margins of laws that differ by less are the same

static double guard_value(struct fsm_online_mode *o, const double *c, int64_t guard);
static double share_indeterminate_forces(struct fsm_online_mode *o, const double *c, double *least);
static double as_narrowest(struct fsm_online_mode *o, int64_t guard, double value, double margin, double least);
static double friction_bound(struct fsm_online_mode *o, int64_t k);
static double gap_to_face(struct fsm_online_mode *o, int64_t k);
static int64_t farthest(struct fsm_online_mode *o, int64_t k);
static double law_change(struct fsm_online_mode *o, int64_t guard, int64_t forces);

/* Write the values of the guards from `out[at]` on, of all or of those alone whose slope the terms do not give; forces and
   the state are in the workspace.

   Where rows are redundant the laws on forces are asked of those shared out by share_indeterminate_forces. */
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
        double least, margin = share_indeterminate_forces(o, c, &least);
        for (int64_t g = 0; g < count; g++) {
            if (fsm_is_law(o, g)) {
                out[at + g] = as_narrowest(o, g, guard_value(o, c, g), margin, least);
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
    if (what == FSM_ONLINE_HOLDING_LIMIT) {
        return w[chart[FSM_ONLINE_AT_STATIC] + k] + sign * w[chart[FSM_ONLINE_AT_MULTIPLIERS] + normal];
    }
    double bound = friction_bound(o, k);
    if (what == FSM_ONLINE_FRICTION_CIRCLE) {
        double first = w[chart[FSM_ONLINE_AT_MULTIPLIERS] + tangent],
               second = w[chart[FSM_ONLINE_AT_MULTIPLIERS] + tangent + 1];
        return bound * bound - first * first - second * second;
    }
    return bound + sign * w[chart[FSM_ONLINE_AT_MULTIPLIERS] + tangent];
}

/* Return the limit of the friction of contact `k` where it sticks. */
static double friction_bound(struct fsm_online_mode *o, int64_t k)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    double bound = w[chart[FSM_ONLINE_AT_STATIC] + k];
    if (AT(o->contact_rows, k, 0) >= 0) {
        double load = w[chart[FSM_ONLINE_AT_MULTIPLIERS] + AT(o->contact_rows, k, 0)];
        bound *= (o->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) ? fabs(load) : load;
    }
    return (o->contact_flags.at[k] & FSM_FLAG_LOADED) ? bound * fsm_online_load(o, k) : bound;
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

/* Write the rows of a law, its value and changes with the indeterminate multipliers, from `row` on; returns how many. */
static int64_t write_law(struct fsm_online_mode *o, const double *c, int64_t guard, int64_t row, fsm_matrix along,
                         fsm_vector slack)
{
    double *w = o->room.at;
    int64_t R = o->sizes->n_rows, at_open = o->chart.at[FSM_ONLINE_AT_OPEN] + o->chart.at[FSM_ONLINE_SHARED] * R;
    bool circle = o->guard_quantity.at[guard] == FSM_ONLINE_FRICTION_CIRCLE;
    int64_t tangent = AT(o->contact_rows, o->guard_subject.at[guard], 1);
    slack.at[row] = circle ? friction_bound(o, o->guard_subject.at[guard]) : guard_value(o, c, guard);
    for (int64_t d = 0; d < along.m; d++) {
        AT(along, row, d) = law_change(o, guard, at_open + d * R);
    }
    for (int64_t i = 0; circle && i < 2; i++) {
        slack.at[row + 1 + i] = w[o->chart.at[FSM_ONLINE_AT_MULTIPLIERS] + tangent + i];
        for (int64_t d = 0; d < along.m; d++) {
            AT(along, row + 1 + i, d) = w[at_open + d * R + tangent + i];
        }
    }
    return circle ? 3 : 1;
}

/* Choose the indeterminate multipliers so that the laws of the contacts are kept with the widest margin.

   The margin reaches zero where no shares are left that satisfy all contact laws, and the laws at their limits are then
   those that contacts can only keep together (docs/theory.md, "Online embedding").  Returns the margin, and how far from
   it one counts as the same, `least`: with cones of friction it is known to that, else exactly. */
static double share_indeterminate_forces(struct fsm_online_mode *o, const double *c, double *least)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t R = o->sizes->n_rows, shared = chart[FSM_ONLINE_SHARED];
    int64_t at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS], at_open = chart[FSM_ONLINE_AT_OPEN] + shared * R;
    int64_t count = chart[FSM_ONLINE_ACTIVE] - chart[FSM_ONLINE_RANK] - shared;
    int64_t laws = 0, cones = 0;
    double scale = 0.0;
    for (int64_t guard = 0; guard < o->guard_quantity.n; guard++) {
        laws += fsm_is_law(o, guard) ? 1 : 0;
        cones += o->guard_quantity.at[guard] == FSM_ONLINE_FRICTION_CIRCLE ? 1 : 0;
    }
    for (int64_t r = 0; r < R; r++) {
        scale = fsm_larger(scale, fabs(w[at_multipliers + r]));
    }
    *least = 0.0;
    if (laws == 0 || scale == 0.0) {
        return FSM_INFINITY;
    }
    fsm_mark before = fsm_arena_mark(&o->arena);
    fsm_matrix along = fsm_arena_matrix(&o->arena, laws + 2 * cones, count);
    fsm_vector slack = fsm_arena_vector(&o->arena, laws + 2 * cones), shares;
    fsm_indices cone = fsm_arena_indices(&o->arena, laws + 2 * cones);
    for (int64_t guard = 0, row = 0; guard < o->guard_quantity.n; guard++) {
        if (fsm_is_law(o, guard)) {
            cone.at[row] = o->guard_quantity.at[guard] == FSM_ONLINE_FRICTION_CIRCLE;
            row += write_law(o, c, guard, row, along, slack);
        }
    }
    double margin = fsm_widest_margin(&o->arena, along, slack, cone, scale, &shares);
    for (int64_t d = 0; d < count; d++) {
        for (int64_t r = 0; r < R; r++) {
            w[at_multipliers + r] += shares.at[d] * w[at_open + d * R + r];
        }
    }
    fsm_arena_release(&o->arena, before);
    *least = cones > 0 ? FSM_SAME_MARGIN * scale : 0.0;
    return margin;
}

/* Return the value of a guard on forces, that of the margin where they differ by no more than `least`.

   Laws that only fall together reach zero at once so, without the remainder of the search for the margin. */
static double as_narrowest(struct fsm_online_mode *o, int64_t guard, double value, double margin, double least)
{
    double size = 1.0;
    if (o->guard_quantity.at[guard] == FSM_ONLINE_FRICTION_CIRCLE) {
        int64_t tangent = o->chart.at[FSM_ONLINE_AT_MULTIPLIERS] + AT(o->contact_rows, o->guard_subject.at[guard], 1);
        size = friction_bound(o, o->guard_subject.at[guard]) +
               fsm_hypot(o->room.at[tangent], o->room.at[tangent + 1]);
    }
    return least > 0.0 && fabs(value - margin * size) <= least * size ? margin * size : value;
}

/* Whether a guard is a law that forces keep. */
FSM_LOCAL bool fsm_is_law(struct fsm_online_mode *o, int64_t guard)
{
    int64_t what = o->guard_quantity.at[guard];
    return what == FSM_ONLINE_NORMAL_FORCE || what == FSM_ONLINE_FRICTION_LIMIT || what == FSM_ONLINE_HOLDING_LIMIT ||
           what == FSM_ONLINE_FRICTION_CIRCLE;
}

/* Return how a law changes with the forces at `forces` in the workspace; of a circle how its bound does. */
static double law_change(struct fsm_online_mode *o, int64_t guard, int64_t forces)
{
    double *w = o->room.at;
    int64_t k = o->guard_subject.at[guard];
    int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
    int64_t what = o->guard_quantity.at[guard];
    if (what == FSM_ONLINE_NORMAL_FORCE || what == FSM_ONLINE_HOLDING_LIMIT) {
        return o->guard_sign.at[guard] * w[forces + normal];
    }
    double change = what == FSM_ONLINE_FRICTION_LIMIT ? o->guard_sign.at[guard] * w[forces + tangent] : 0.0;
    if (normal >= 0 && (o->contact_flags.at[k] & FSM_FLAG_RIGID) != 0 &&
        (o->contact_flags.at[k] & FSM_FLAG_TWO_SIDED) == 0) {
        change += w[o->chart.at[FSM_ONLINE_AT_STATIC] + k] * w[forces + normal];
    }
    return change;
}

/* -- Online evaluation of a mode: the routine behind all its kernels.

   Slopes of gaps, slip speeds and ends of faces are known exactly from the terms.  Forces and user-defined conditions
   would need derivatives of the terms; they are differenced centrally along the flow, which is right to about nine
   digits: an event is located by its value, and the slope only steers the search (docs/theory.md, "Online embedding"). */

#define FSM_PROBE 6e-6 // time, relative to that of the motion, over which forces are differenced
#define FSM_BENT  0.5  // part of the larger by which slopes before and after differ where a guard bends in between
#define FSM_JUMPS 1e4 // times one slope of a guard that another is where it jumps within the time differenced over

static void difference(struct fsm_online_mode *o, double t, const double *c, double *out, int64_t slopes);
static double probe_time(const struct fsm_online_mode *o, const double *out);

/* Write `x_dot` as the `rhs` kernel of the mode would. */
static void rhs(struct fsm_online_mode *o, double t, const double *x, const double *c, double *out)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_q_dot = chart[FSM_ONLINE_AT_Q_DOT], at_u_dot = chart[FSM_ONLINE_AT_U_DOT];
    fsm_accelerate(o, t, x, c, FSM_ONLINE_MOTION, false);
    int64_t n_q = o->sizes->n_q, U = o->sizes->n_u;
    for (int64_t i = 0; i < n_q; i++) {
        out[i] = w[at_q_dot + i];
    }
    for (int64_t i = 0; i < U; i++) {
        out[n_q + i] = w[at_u_dot + i];
    }
}

/* Accelerations, forces and all that guards look at; returns the smallest pivot of the reduced equations. */
static double work_out(struct fsm_online_mode *o, double t, const double *x, const double *c, bool judge)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    double least = fsm_accelerate(o, t, x, c, FSM_ONLINE_WATCHED, judge);
    if (judge && fsm_shares_count_now(o)) {
        fsm_online_choose_chart(o, t, x, c);
        least = fsm_accelerate(o, t, x, c, FSM_ONLINE_WATCHED, judge);
    }
    if (chart[FSM_ONLINE_RANK] == 0 && chart[FSM_ONLINE_PUSHES] == 0 && o->sizes->n_rows > 0) {
        o->programs.at[FSM_ONLINE_ROWS](t, w + chart[FSM_ONLINE_AT_X], c, w + chart[FSM_ONLINE_AT_A]);
    }
    fsm_online_multipliers(o);
    return least;
}

/* Whether the state (n,) is finite. */
static bool is_finite(const double *x, int64_t n)
{
    double total = 0.0;
    for (int64_t i = 0; i < n; i++) {
        total += fabs(x[i]);
    }
    return total < FSM_INFINITY;
}

/* Write what the `full` kernel of the mode would, see Tables; without slopes that take differences where `plain`.

   Where the pivot falls below the chart threshold another chart is chosen: below the floor, or far below the best that
   the chart has shown.  Errors of integration in independent speeds are divided by the pivot in the dependent ones. */
static void full(struct fsm_online_mode *o, double t, const double *x, const double *c, bool plain, double *out)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_q_dot = chart[FSM_ONLINE_AT_Q_DOT], at_x = chart[FSM_ONLINE_AT_X], at_u_dot = chart[FSM_ONLINE_AT_U_DOT],
            at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS];
    int64_t n_q = o->sizes->n_q, U = o->sizes->n_u, R = o->sizes->n_rows;
    int64_t n = n_q + U, n_g = o->guard_quantity.n;
    double pivot = fsm_row_pivots(o, work_out(o, t, x, c, true));
    if (!(pivot >= fsm_larger(o->limits->floor, o->limits->level))) {
        fsm_online_choose_chart(o, t, x, c);
        pivot = fsm_row_pivots(o, work_out(o, t, x, c, true));
    }
    if (!is_finite(x, n)) { // a trial that failed: what is tried next chooses again
        fsm_forget_chart(o);
        pivot = FSM_NAN;
    }
    if (o->limits->kept * pivot > o->limits->level) {
        o->limits->level = o->limits->kept * pivot;
    }
    for (int64_t i = 0; i < n_q; i++) {
        out[i] = w[at_q_dot + i];
    }
    for (int64_t i = 0; i < U; i++) {
        out[n_q + i] = w[at_u_dot + i];
        out[n + i] = w[at_x + n_q + i];
    }
    out[n + U] = pivot;
    int64_t values = n + U + 1;
    int64_t slopes = values + n_g;
    for (int64_t r = 0; r < R; r++) {
        out[slopes + n_g + r] = w[at_multipliers + r];
    }
    fsm_guard_values(o, c, out, values, true);
    bool differs = false;
    for (int64_t g = 0; g < n_g; g++) {
        differs = differs || !fsm_has_exact_slope(o, g);
        out[slopes + g] = fsm_has_exact_slope(o, g) ? fsm_exact_slope(o, c, g) : FSM_INFINITY;
    }
    if (differs && !plain) {
        difference(o, t, c, out, slopes);
    }
}

/* Return the slope at `here` of a guard from its values `time` (s) before and after.

   `shared`: its force is a share with the widest margin, which bends where another law becomes the narrowest.  With a
   bend within `time` the central difference is the slope of neither side; that of the straighter one is taken, as it is
   where a guard jumps on one side, as a condition of the time does. */
static double slope_between(double before, double here, double after, double time, bool shared)
{
    double back = (here - before) / time, ahead = (after - here) / time;
    double larger = fsm_larger(fabs(back), fabs(ahead)), smaller = fsm_smaller(fabs(back), fabs(ahead));
    if (larger > FSM_JUMPS * smaller && larger * time > fabs(here) / FSM_JUMPS) {
        return fabs(back) < fabs(ahead) ? back : ahead;
    }
    if (!shared || fabs(ahead - back) <= FSM_BENT * larger) {
        return (after - before) / (2.0 * time);
    }
    if (back * ahead <= 0.0) {
        return 0.0;
    }
    return fabs(back) < fabs(ahead) ? back : ahead;
}

/* Write the slopes that the terms do not give, by differences along the flow. */
static void difference(struct fsm_online_mode *o, double t, const double *c, double *out, int64_t slopes)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_x = chart[FSM_ONLINE_AT_X], at_probe = chart[FSM_ONLINE_AT_PROBE], at_c = chart[FSM_ONLINE_AT_PROBE_C],
            at_guards = chart[FSM_ONLINE_AT_GUARDS];
    int64_t n_g = o->guard_quantity.n, n = o->sizes->n_q + o->sizes->n_u;
    const struct fsm_sizes *s = o->sizes;
    int64_t n_p = s->n_p, n_w = s->n_w;
    int64_t third = n_p + 3 * n_w + s->n_contacts + s->n_memory;
    int64_t n_c = third + n_w;
    bool shares = chart[FSM_ONLINE_ACTIVE] > chart[FSM_ONLINE_RANK];
    double time = probe_time(o, out);
    for (int64_t i = 0; i < n; i++) {
        w[at_probe + i] = w[at_x + i];
    }
    for (int64_t i = 0; i < n_c; i++) {
        w[at_c + i] = c[i];
    }
    double *context = w + at_c;
    for (int64_t side = 0; side < 2; side++) {
        double along = side == 0 ? time : -time;
        for (int64_t i = 0; i < n; i++) {
            w[at_probe + i] += (side == 0 ? along : 2.0 * along) * out[i];
        }
        for (int64_t i = n_p; i < n_p + 2 * n_w; i++) { // inputs and their rates, at their rates
            context[i] = c[i] + along * c[i + n_w];
        }
        for (int64_t i = 0; i < n_w; i++) {
            context[n_p + 2 * n_w + i] = c[n_p + 2 * n_w + i] + along * c[third + i];
        }
        work_out(o, t + along, w + at_probe, context, false);
        fsm_guard_values(o, context, w, at_guards + side * n_g, false);
    }
    for (int64_t g = 0; g < n_g; g++) {
        if (!fsm_has_exact_slope(o, g)) {
            out[slopes + g] = slope_between(w[at_guards + n_g + g], out[slopes - n_g + g], w[at_guards + g], time,
                                            shares && fsm_is_law(o, g));
        }
    }
}

/* Return over what time (s) to difference, from how fast the state changes. */
static double probe_time(const struct fsm_online_mode *o, const double *out)
{
    const double *x = o->room.at + o->chart.at[FSM_ONLINE_AT_X];
    double fastest = 0.0;
    for (int64_t i = 0; i < o->state_unit.n; i++) {
        fastest = fsm_larger(fastest, fabs(out[i]) / (o->state_unit.at[i] + fabs(x[i])));
    }
    return FSM_PROBE / (1.0 / o->limits->time_scale + fastest);
}

/* -- Modes that share their arrays: they contain one chart, of the others the choices are kept. */

/* Return the choices of the chart of a mode from FSM_ONLINE_CHOSEN on; rows and speeds are behind them. */
FSM_LOCAL const int64_t *fsm_online_choices(const struct fsm_online_mode *o)
{
    return o->owner.n > 0 ? o->kept.at : o->chart.at + FSM_ONLINE_CHOSEN;
}

FSM_LOCAL bool fsm_rows_repeat(const struct fsm_tables *tables, int64_t mode)
{
    int64_t online = mode < tables->mode_online.n ? tables->mode_online.at[mode] : 0;
    if (online == 0) {
        return (tables->mode_flags.at[mode] & FSM_MODE_REPEATS) != 0;
    }
    const int64_t *chosen = fsm_online_choices((const struct fsm_online_mode *)(intptr_t)online);
    return chosen[0] != 0 &&
           chosen[FSM_ONLINE_ACTIVE - FSM_ONLINE_CHOSEN] > chosen[FSM_ONLINE_RANK - FSM_ONLINE_CHOSEN];
}

FSM_LOCAL bool fsm_knows_slope(const struct fsm_tables *tables, int64_t mode, int64_t j)
{
    return fsm_has_exact_slope((struct fsm_online_mode *)(intptr_t)tables->mode_online.at[mode], j);
}

/* Let a mode have no chart. */
FSM_LOCAL void fsm_forget_chart(struct fsm_online_mode *o)
{
    if (o->owner.n == 0 || o->owner.at[0] == (int64_t)(intptr_t)o) {
        o->chart.at[FSM_ONLINE_CHOSEN] = 0;
    }
    if (o->owner.n > 0) {
        o->kept.at[0] = 0;
    }
}

/* Keep what was chosen in the shared arrays. */
FSM_LOCAL void fsm_keep_chart(struct fsm_online_mode *o)
{
    if (o->owner.n == 0) {
        return;
    }
    const int64_t *chart = o->chart.at;
    int64_t *rows = o->kept.at + FSM_ONLINE_CHOICE_COUNT, active = chart[FSM_ONLINE_ACTIVE];
    memcpy(o->kept.at, chart + FSM_ONLINE_CHOSEN, FSM_ONLINE_CHOICE_COUNT * sizeof *chart);
    memcpy(rows, chart + FSM_ONLINE_LISTS, (size_t)active * sizeof *chart);
    memcpy(rows + active, chart + FSM_ONLINE_LISTS + 2 * o->sizes->n_rows, (size_t)o->sizes->n_u * sizeof *chart);
}

/* Bring a list into the order of a given one, and what goes with it (NULL: nothing); false where they differ. */
FSM_LOCAL bool fsm_reorder(int64_t *list, int64_t *with, const uint64_t *wanted, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k;
        while (at < n && (uint64_t)list[at] != wanted[k]) {
            at++;
        }
        if (at == n) {
            return false;
        }
        int64_t kept = list[k];
        list[k] = list[at];
        list[at] = kept;
        if (with != NULL) {
            kept = with[k];
            with[k] = with[at];
            with[at] = kept;
        }
    }
    return true;
}

/* Let the arrays that a mode shares with others be those of its chart. */
FSM_LOCAL void fsm_own_arrays(struct fsm_online_mode *o)
{
    if (o->owner.n == 0 || o->owner.at[0] == (int64_t)(intptr_t)o) {
        return;
    }
    int64_t *chart = o->chart.at, *lists = chart + FSM_ONLINE_LISTS;
    o->owner.at[0] = (int64_t)(intptr_t)o;
    if (o->kept.at[0] != 0) {
        const uint64_t *rows = (const uint64_t *)o->kept.at + FSM_ONLINE_CHOICE_COUNT;
        fsm_list_rows(o);
        fsm_reorder(lists, lists + o->sizes->n_rows, rows, chart[FSM_ONLINE_ACTIVE]);
        fsm_reorder(lists + 2 * o->sizes->n_rows, NULL, rows + chart[FSM_ONLINE_ACTIVE], o->sizes->n_u);
    }
    memcpy(chart + FSM_ONLINE_CHOSEN, o->kept.at, FSM_ONLINE_CHOICE_COUNT * sizeof *chart);
    if (o->kept.at[0] != 0) {
        fsm_list_nonzero(o);
    }
}

/* Do what a kernel of a mode embedded online does: FSM_ONLINE_RHS writes x_dot, FSM_ONLINE_FULL all that fsm_tables
   says, FSM_ONLINE_PLAIN that without slopes that take differences, FSM_ONLINE_SLOPES those, of what it has written for `x`
   with the dependent speeds in it.

   `t` (s), state `x` and context `c` in, `out` as the kernel would write it.  Returns 0. */
FSM_API int64_t fsm_online_evaluate(struct fsm_online_mode *o, int64_t what, double t, const double *x, const double *c,
                                    double *out)
{
    fsm_own_arrays(o);
    if (what == FSM_ONLINE_SLOPES) {
        memcpy(o->room.at + o->chart.at[FSM_ONLINE_AT_X], x, (size_t)(o->sizes->n_q + o->sizes->n_u) * sizeof *x);
        difference(o, t, c, out, o->sizes->n_q + 2 * o->sizes->n_u + 1 + o->guard_quantity.n);
        return 0;
    }
    if (o->chart.at[FSM_ONLINE_CHOSEN] == 0) {
        fsm_online_choose_chart(o, t, x, c);
    }
    if (what == FSM_ONLINE_RHS) {
        rhs(o, t, x, c, out);
    } else {
        full(o, t, x, c, what == FSM_ONLINE_PLAIN, out);
    }
    return 0;
}
