/* Multipliers of a mode embedded online, and the indeterminate multipliers where its rows are redundant. */

#include "online.h"

static void determinate_forces(struct fsm_online_mode *o, int64_t k);
static void indeterminate_forces(struct fsm_online_mode *o, int64_t at, int64_t width);
static void minimum_norm_multipliers(struct fsm_online_mode *o);
static int64_t hidden_row(struct fsm_online_mode *o, int64_t k);
static void subtract_component(double *w, int64_t at, int64_t along, int64_t n);

/* Write λ of every row, from the dependent rows: `G_Dᵀ λ = (M u̇ - f)_D`. */
FSM_LOCAL void fsm_online_multipliers(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_M = chart[FSM_ONLINE_AT_M], at_hidden_M = chart[FSM_ONLINE_AT_HIDDEN_M];
    int64_t at_hidden_f = chart[FSM_ONLINE_AT_HIDDEN_F], at_hidden_A = chart[FSM_ONLINE_AT_HIDDEN_A];
    int64_t at_P = chart[FSM_ONLINE_AT_P], at_H = chart[FSM_ONLINE_AT_H], at_force = chart[FSM_ONLINE_AT_FORCE],
            at_g = chart[FSM_ONLINE_AT_G];
    int64_t at_u_dot = chart[FSM_ONLINE_AT_U_DOT], at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS];
    const struct fsm_sizes *s = o->sizes;
    int64_t U = s->n_u, R = s->n_rows, K = s->n_k, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    int64_t at = at_P, width = U + 2;
    if (chart[FSM_ONLINE_SLIDES] == 1) {
        at = at_H;
        width = U;
    }
    for (int64_t r = 0; r < R; r++) {
        w[at_multipliers + r] = 0.0;
    }
    for (int64_t k = 0; k < rank; k++) {
        int64_t i = chart[columns + k];
        w[at_g + k] = -w[at_force + i];
        for (int64_t e = o->mass_begin.at[i]; e < o->mass_begin.at[i + 1]; e++) {
            int64_t j = o->mass_columns.at[e];
            w[at_g + k] += w[at_M + i * U + j] * w[at_u_dot + j];
        }
    }
    fsm_solve_transposed(o, w + at, width, w + at_g);
    for (int64_t k = 0; k < rank; k++) {
        w[at_multipliers + chart[FSM_ONLINE_LISTS + k]] = w[at_g + k];
    }
    fsm_share_multipliers(o);
    for (int64_t b = 0; b < chart[FSM_ONLINE_BUSY]; b++) {
        determinate_forces(o, chart[columns + U + b]);
    }
    if (chart[FSM_ONLINE_ACTIVE] > rank + chart[FSM_ONLINE_SHARED]) {
        indeterminate_forces(o, at, width);
        minimum_norm_multipliers(o);
    }
    for (int64_t k = 0; k < K; k++) {
        double total = -w[at_hidden_f + k];
        for (int64_t j = 0; j < U; j++) {
            total += w[at_hidden_M + k * U + j] * w[at_u_dot + j];
        }
        for (int64_t r = 0; r < R; r++) {
            if (o->row_role.at[r] != FSM_ROLE_KINEMATIC) {
                total -= w[at_hidden_A + r * K + k] * w[at_multipliers + r];
            }
        }
        w[at_multipliers + hidden_row(o, k)] = total;
    }
}

/* Solve with the transpose of the eliminated rows, in place. */
FSM_LOCAL void fsm_solve_transposed(const struct fsm_online_mode *o, const double *rows, int64_t width, double *right)
{
    int64_t rank = o->chart.at[FSM_ONLINE_RANK];
    for (int64_t m = 0; m < rank; m++) {
        right[m] *= rows[m * width + m];
        for (int64_t e = o->held_behind.at[m]; e < o->held_rest.at[m]; e++) {
            int64_t k = o->held_columns.at[e];
            right[k] -= rows[m * width + k] * right[m];
        }
    }
    for (int64_t k = rank - 1; k >= 0; k--) {
        for (int64_t e = o->below_begin.at[k]; e < o->below_begin.at[k + 1]; e++) {
            int64_t i = o->below_rows.at[e];
            right[k] -= rows[i * width + k] * right[i];
        }
    }
}

/* Write, for every row left out but those that share the load, the forces on all rows that together do nothing. */
static void indeterminate_forces(struct fsm_online_mode *o, int64_t at, int64_t width)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_A = chart[FSM_ONLINE_AT_A], at_g = chart[FSM_ONLINE_AT_G], at_open = chart[FSM_ONLINE_AT_OPEN];
    int64_t U = o->sizes->n_u, R = o->sizes->n_rows, rank = chart[FSM_ONLINE_RANK];
    int64_t columns = FSM_ONLINE_LISTS + 2 * R;
    int64_t tangent;
    for (int64_t d = chart[FSM_ONLINE_SHARED]; d < chart[FSM_ONLINE_ACTIVE] - rank; d++) {
        int64_t row = chart[FSM_ONLINE_LISTS + rank + d], contact = chart[FSM_ONLINE_LISTS + R + rank + d];
        for (int64_t k = 0; k < rank; k++) {
            int64_t j = chart[columns + k];
            w[at_g + k] = w[at_A + row * U + j];
            int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
            for (int64_t i = 0; i < tangents; i++) {
                tangent = AT(o->contact_rows, contact, 1) + i;
                w[at_g + k] -= fsm_friction_ratio(o, contact, i) * w[at_A + tangent * U + j];
            }
        }
        fsm_solve_transposed(o, w + at, width, w + at_g);
        int64_t vector = at_open + d * R;
        for (int64_t r = 0; r < R; r++) {
            w[vector + r] = 0.0;
        }
        w[vector + row] = 1.0;
        for (int64_t k = 0; k < rank; k++) {
            w[vector + chart[FSM_ONLINE_LISTS + k]] = -w[at_g + k];
        }
        for (int64_t k = 0; k < chart[FSM_ONLINE_ACTIVE]; k++) {
            contact = chart[FSM_ONLINE_LISTS + R + k];
            int64_t tangents = contact >= 0 ? fsm_tangent_count(o, contact) : 0;
            for (int64_t i = 0; i < tangents; i++) {
                tangent = AT(o->contact_rows, contact, 1) + i;
                w[vector + tangent] = -fsm_friction_ratio(o, contact, i) * w[vector + chart[FSM_ONLINE_LISTS + k]];
            }
        }
    }
}

/* Make the indeterminate multipliers orthogonal and take their part out of the multipliers, which leaves the least
   norm. */
static void minimum_norm_multipliers(struct fsm_online_mode *o)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS], at_open = chart[FSM_ONLINE_AT_OPEN];
    int64_t R = o->sizes->n_rows;
    for (int64_t d = chart[FSM_ONLINE_SHARED]; d < chart[FSM_ONLINE_ACTIVE] - chart[FSM_ONLINE_RANK]; d++) {
        int64_t vector = at_open + d * R;
        for (int64_t other = chart[FSM_ONLINE_SHARED]; other < d; other++) {
            subtract_component(w, vector, at_open + other * R, R);
        }
        subtract_component(w, at_multipliers, vector, R);
    }
}

static void subtract_component(double *w, int64_t at, int64_t along, int64_t n)
{
    double product = 0.0, square = 0.0;
    for (int64_t r = 0; r < n; r++) {
        product += w[at + r] * w[along + r];
        square += w[along + r] * w[along + r];
    }
    for (int64_t r = 0; r < n; r++) {
        w[at + r] -= product / square * w[along + r];
    }
}

/* Enter the forces of one contact that follow from its state: friction while it slides, a compressed pad. */
static void determinate_forces(struct fsm_online_mode *o, int64_t k)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    int64_t at_elastic = chart[FSM_ONLINE_AT_ELASTIC], at_multipliers = chart[FSM_ONLINE_AT_MULTIPLIERS];
    int64_t code = o->states.at[k], flags = o->contact_flags.at[k];
    int64_t normal = AT(o->contact_rows, k, 0), tangent = AT(o->contact_rows, k, 1);
    double load = 1.0;
    if ((flags & FSM_FLAG_COMPLIANT) != 0) {
        w[at_multipliers + normal] = w[at_elastic + k];
        load = w[at_elastic + k];
    } else if ((flags & FSM_FLAG_RIGID) != 0) {
        load = w[at_multipliers + normal];
    }
    int64_t tangents = code >= FSM_CONTACT_SLIDING ? fsm_tangent_count(o, k) : 0;
    for (int64_t i = 0; i < tangents; i++) {
        w[at_multipliers + tangent + i] = -fsm_friction_ratio(o, k, i) * load;
    }
}

/* Return the row number of the k-th row eliminated by the choice of speeds. */
static int64_t hidden_row(struct fsm_online_mode *o, int64_t k)
{
    for (int64_t r = 0; r < o->sizes->n_rows; r++) {
        if (o->row_role.at[r] == FSM_ROLE_KINEMATIC) {
            if (k == 0) {
                return r;
            }
            k--;
        }
    }
    return -1;
}
