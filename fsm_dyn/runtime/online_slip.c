/* Slip of the contacts of a mode embedded online, and the friction forces against it.

   In the plane the slip direction is a sign of the discrete state.  In space it follows the slip, and is the one kept in
   the discrete state where there is hardly any (docs/theory.md, "Friction in space"); either way its components stand in
   the workspace at `AT_WAY` while a state is worked on. */

#include "elementary.h"
#include "online.h"

/* Return a row times the vector of speeds or accelerations at `vector`, plus its entry of `constant`. */
FSM_LOCAL double fsm_product_with_row(struct fsm_online_mode *o, int64_t row, int64_t vector, int64_t constant)
{
    double *w = o->room.at;
    int64_t U = o->sizes->n_u;
    int64_t at = o->chart.at[FSM_ONLINE_AT_A] + row * U;
    double total = w[constant + row];
    for (int64_t e = o->row_begin.at[row]; e < o->row_begin.at[row + 1]; e++) {
        int64_t j = o->row_columns.at[e];
        total += w[at + j] * w[vector + j];
    }
    return total;
}

/* Return how many rows a contact slips along: none, one, or in space two. */
FSM_LOCAL int64_t fsm_tangent_count(struct fsm_online_mode *o, int64_t k)
{
    if (AT(o->contact_rows, k, 1) < 0) {
        return 0;
    }
    return (o->contact_flags.at[k] & FSM_FLAG_IN_SPACE) ? 2 : 1;
}

/* Return the slip of a contact along the direction kept in the discrete state; or its rate, of accelerations. */
FSM_LOCAL double fsm_slip_along(struct fsm_online_mode *o, const double *c, int64_t k, int64_t vector, int64_t constant)
{
    const struct fsm_sizes *s = o->sizes;
    int64_t row = AT(o->contact_rows, k, 1);
    double sigma = c[fsm_sigma_at(s) + k];
    double first = fsm_product_with_row(o, row, vector, constant);
    if (fsm_tangent_count(o, k) == 1) {
        return sigma * first;
    }
    return fsm_cos(sigma) * first + fsm_sin(sigma) * fsm_product_with_row(o, row + 1, vector, constant);
}

/* Write the slip directions of all sliding contacts, at the state `AT_X` whose rows are in the workspace. */
FSM_LOCAL void fsm_online_slip_directions(struct fsm_online_mode *o, const double *c)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    const struct fsm_sizes *s = o->sizes;
    for (int64_t b = 0; b < chart[FSM_ONLINE_BUSY]; b++) {
        int64_t k = chart[FSM_ONLINE_LISTS + 2 * s->n_rows + s->n_u + b];
        int64_t count = fsm_tangent_count(o, k);
        if (o->states.at[k] < FSM_CONTACT_SLIDING || count == 0) {
            continue;
        }
        int64_t at = chart[FSM_ONLINE_AT_WAY] + 2 * k;
        double sigma = c[fsm_sigma_at(s) + k];
        w[at] = sigma;
        if (count == 2) {
            int64_t speeds = chart[FSM_ONLINE_AT_X] + s->n_q, row = AT(o->contact_rows, k, 1);
            double first = fsm_product_with_row(o, row, speeds, chart[FSM_ONLINE_AT_B]);
            double second = fsm_product_with_row(o, row + 1, speeds, chart[FSM_ONLINE_AT_B]);
            w[at] = fsm_cos(sigma);
            w[at + 1] = fsm_sin(sigma);
            if (w[at] * first + w[at + 1] * second > o->limits->follows) {
                double speed = sqrt(first * first + second * second);
                w[at] = first / speed;
                w[at + 1] = second / speed;
            }
        }
    }
}

/* Return the friction of a sliding contact per unit of normal force, along tangent row `i` of it; signed. */
FSM_LOCAL double fsm_friction_ratio(struct fsm_online_mode *o, int64_t k, int64_t i)
{
    int64_t *chart = o->chart.at;
    double *w = o->room.at;
    double ratio = w[chart[FSM_ONLINE_AT_KINETIC] + k] * w[chart[FSM_ONLINE_AT_WAY] + 2 * k + i];
    return o->states.at[k] == FSM_CONTACT_SLIDING_UNDER ? -ratio : ratio;
}
