/* Chart of an active set: its independent rows, and the dependent speeds.

   Asked when a mode is first evaluated in a run and when its pivot falls below the chart threshold.  Rows are scaled by
   `diag(M)^-1/2` and normalised, so that the answer does not depend on units.  Rank and rows by pivoted
   orthogonalisation (QR); dependent speeds by a pivoted QR of the columns, of rows held and rows of forces at once,
   because both are divided by; their order by complete pivoting (docs/theory.md, "Online embedding"). */

#include "online.h"

#define FSM_HOLDS_NOTHING 1e-13 // a row this much smaller than the largest holds nothing

static void sort_rest(int64_t *chart, int64_t columns, int64_t first, int64_t last);

/* List the rows that a mode holds, constraints first, and mark the normals of sliding contacts. */
FSM_LOCAL void fsm_list_rows(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    int64_t R = o->sizes->n_rows;
    int64_t count = 0;
    chart[FSM_ONLINE_SLIDES] = 0;
    chart[FSM_ONLINE_PUSHES] = 0;
    chart[FSM_ONLINE_BUSY] = 0;
    chart[FSM_ONLINE_SPAN] = 0;
    chart[FSM_ONLINE_SHARED] = 0;
    for (int64_t r = 0; r < R; r++) {
        if (o->row_role.at[r] == FSM_ROLE_ALWAYS || o->row_role.at[r] == FSM_ROLE_ALWAYS_POSITION) {
            chart[FSM_ONLINE_LISTS + count] = r;
            chart[FSM_ONLINE_LISTS + R + count] = -1;
            count++;
        }
    }
    for (int64_t k = 0; k < o->sizes->n_contacts; k++) {
        int64_t code = o->states.at[k], flags = o->contact_flags.at[k], outline = o->contact_outline.at[k];
        if (outline >= 0) {
            chart[FSM_ONLINE_SPAN] = fsm_most(chart[FSM_ONLINE_SPAN], k - outline);
        }
        if (code == FSM_CONTACT_FREE) {
            continue;
        }
        int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
        chart[FSM_ONLINE_LISTS + 2 * R + o->sizes->n_u + chart[FSM_ONLINE_BUSY]] = k;
        chart[FSM_ONLINE_BUSY]++;
        if ((flags & FSM_FLAG_FRICTION_ONLY) != 0 || (flags & FSM_FLAG_COMPLIANT) != 0) {
            chart[FSM_ONLINE_PUSHES] = 1;
        }
        if (normal >= 0 && (flags & FSM_FLAG_COMPLIANT) == 0) {
            bool slides = code >= FSM_CONTACT_SLIDING && tangent >= 0;
            chart[FSM_ONLINE_LISTS + count] = normal;
            chart[FSM_ONLINE_LISTS + R + count] = slides ? k : -1;
            if (slides) {
                chart[FSM_ONLINE_SLIDES] = 1;
            }
            count++;
        }
        int64_t tangents = code == FSM_CONTACT_HELD ? fsm_tangent_count(o, k) : 0;
        for (int64_t i = 0; i < tangents; i++) {
            chart[FSM_ONLINE_LISTS + count] = tangent + i;
            chart[FSM_ONLINE_LISTS + R + count] = -1;
            count++;
        }
    }
    chart[FSM_ONLINE_ACTIVE] = count;
    chart[FSM_ONLINE_RANK] = count;
    for (int64_t j = 0; j < o->sizes->n_u; j++) {
        chart[FSM_ONLINE_LISTS + 2 * R + j] = j;
    }
}

/* Scale rows to unit length; rows that vanish beside the others become zero. */
static void normalise(double *w, int64_t at, int64_t count, int64_t U)
{
    double largest = 0.0;
    for (int64_t k = 0; k < count; k++) {
        largest = fsm_larger(largest, fsm_square_of(w, at + k * U, U, 1));
    }
    for (int64_t k = 0; k < count; k++) {
        double norm = fsm_square_of(w, at + k * U, U, 1);
        double factor = norm > FSM_HOLDS_NOTHING * FSM_HOLDS_NOTHING * largest ? 1.0 / sqrt(norm) : 0.0;
        for (int64_t j = 0; j < U; j++) {
            w[at + k * U + j] *= factor;
        }
    }
}

/* Write Gᵀ of the first rows listed as fsm_force_rows does, all entries of each. */
static void full_force_rows(struct fsm_online_mode *o, int64_t count, int64_t out)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], U = o->sizes->n_u, R = o->sizes->n_rows;
    const int64_t *speeds = chart + FSM_ONLINE_LISTS + 2 * R;
    for (int64_t k = 0; k < count; k++) {
        int64_t row = chart[FSM_ONLINE_LISTS + k], contact = chart[FSM_ONLINE_LISTS + R + k];
        for (int64_t j = 0; j < U; j++) {
            w[out + k * U + j] = w[at_A + row * U + speeds[j]];
        }
        int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
        for (int64_t i = 0; i < tangents; i++) {
            int64_t tangent = AT(o->contact_rows, contact, 1) + i;
            double ratio = fsm_friction_ratio(o, contact, i);
            for (int64_t j = 0; j < U; j++) {
                w[out + k * U + j] -= ratio * w[at_A + tangent * U + speeds[j]];
            }
        }
    }
}

/* Write the first rows listed, and the rows of their forces, scaled and normalised. */
static void scaled_rows(struct fsm_online_mode *o, int64_t count, int64_t A, int64_t H)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_M = chart[FSM_ONLINE_AT_M];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows;
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    full_force_rows(o, count, H);
    for (int64_t k = 0; k < count; k++) {
        int64_t row = at_A + chart[FSM_ONLINE_LISTS + k] * U;
        for (int64_t j = 0; j < U; j++) {
            double inertia = w[at_M + chart[columns + j] * (U + 1)];
            double scale = inertia > 0.0 ? 1.0 / sqrt(inertia) : 1.0;
            w[A + k * U + j] = w[row + chart[columns + j]] * scale;
            w[H + k * U + j] *= scale;
        }
    }
    normalise(w, A, count, U);
    normalise(w, H, count, U);
}

/* Write all rows listed as scaled_rows does, each by how much there is of it. */
static void weighted_rows(struct fsm_online_mode *o, int64_t A, int64_t H)
{
    int64_t count = o->chart.at[FSM_ONLINE_ACTIVE], U = o->sizes->n_u;
    scaled_rows(o, count, A, H);
    for (int64_t k = 0; k < count; k++) {
        double part = fsm_part_of_row(o, o->chart.at[FSM_ONLINE_LISTS + k]);
        for (int64_t j = 0; j < U; j++) {
            o->room.at[A + k * U + j] *= part;
        }
    }
}

/* Choose the chart of a mode at a state; it holds until the mode is left or its pivot falls below the chart threshold.
   */
FSM_LOCAL void fsm_online_choose_chart(struct fsm_online_mode *o, double t, const double *x, const double *c)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_q_dot = chart[FSM_ONLINE_AT_Q_DOT], at_x = chart[FSM_ONLINE_AT_X],
            at_H = chart[FSM_ONLINE_AT_H];
    int64_t at_Q = chart[FSM_ONLINE_AT_Q];
    int64_t n_q = o->sizes->n_q, U = o->sizes->n_u, R = o->sizes->n_rows;
    chart[FSM_ONLINE_CHOSEN] = 1;
    chart[FSM_ONLINE_CHOICES]++;
    o->limits->level = 0.0;
    fsm_list_rows(o);
    if (chart[FSM_ONLINE_ACTIVE] == 0) {
        fsm_list_nonzero(o);
        return;
    }
    for (int64_t i = 0; i < n_q + U; i++) {
        w[at_x + i] = x[i];
    }
    o->programs.at[FSM_ONLINE_ROWS](t, w + at_x, c, w + at_A);
    o->programs.at[FSM_ONLINE_MOTION](t, w + at_x, c, w + at_q_dot);
    fsm_online_slip_directions(o, c);
    scaled_rows(o, chart[FSM_ONLINE_ACTIVE], at_Q, at_H);
    fsm_choose_rows(o, at_Q);
    if (chart[FSM_ONLINE_RANK] < chart[FSM_ONLINE_ACTIVE]) { // of those that may be kept, not one that vanishes
        fsm_list_rows(o);
        weighted_rows(o, at_Q, at_H);
        fsm_choose_rows(o, at_Q);
    }
    scaled_rows(o, chart[FSM_ONLINE_RANK], at_Q, at_H);
    fsm_choose_columns(o, at_Q, at_H);
    scaled_rows(o, chart[FSM_ONLINE_RANK], at_Q, at_H);
    fsm_order_chart(o, at_Q, at_H);
    sort_rest(chart, FSM_ONLINE_LISTS + 2 * R, chart[FSM_ONLINE_RANK], U);
    fsm_list_nonzero(o);
    if (chart[FSM_ONLINE_SLIDES] == 1 && 0 < chart[FSM_ONLINE_RANK] &&
        chart[FSM_ONLINE_RANK] < chart[FSM_ONLINE_ACTIVE]) {
        fsm_eliminate_held_rows(o, t, x, c);
        fsm_find_shared_rows(o);
        fsm_list_nonzero(o);
    }
}

/* Put the independent speeds in the order of the model. */
static void sort_rest(int64_t *chart, int64_t columns, int64_t first, int64_t last)
{
    for (int64_t i = first + 1; i < last; i++) {
        for (int64_t j = i; j > first; j--) {
            if (chart[columns + j - 1] <= chart[columns + j]) {
                break;
            }
            fsm_swap_indices(chart, columns + j - 1, columns + j);
        }
    }
}
