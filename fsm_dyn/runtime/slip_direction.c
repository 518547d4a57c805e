/* Slip directions in space, kept as an angle in the tangent plane (docs/theory.md, "Friction in space"). */

#include "contacts.h"

#define FSM_SLIP_DIRECTION_CLEAR 1e-7 // m/s: below this a slip at its end or beginning has no direction to go by
#define FSM_SLIP_DIRECTION_SAME  1e-9 // rad

/* Return the angle of a vector in (0, 2π]; the one kept where it is as good as that. */
FSM_LOCAL double fsm_angle_of(double first, double second, double kept)
{
    double angle = atan2(second, first);
    if (angle <= 0.0) {
        angle += 2.0 * FSM_PI;
    }
    return (kept > 0.0 && fabs(angle - kept) <= FSM_SLIP_DIRECTION_SAME) ? kept : angle;
}

/* Let the slip directions kept in `c` follow the slips in a mode with the flag `TURNS`; whether any turned. */
FSM_LOCAL bool fsm_update_slip_directions(struct fsm_work *work, const struct fsm_tables *tables, double t,
                                          fsm_vector x, fsm_vector c, int64_t mode)
{
    struct fsm_sizes *sizes = tables->sizes;
    int64_t n_contacts = sizes->n_contacts;
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    int64_t at = fsm_sigma_at(sizes);
    bool turned = false;
    fsm_vector u = fsm_vector_part(x, sizes->n_q, sizes->n_q + sizes->n_u);
    for (int64_t k = 0; k < n_contacts; k++) {
        if ((tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) == 0 ||
            AT(tables->mode_states, mode, k) != FSM_CONTACT_SLIDING) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 1);
        double first = fsm_row_speed(terms, row, u), second = fsm_row_speed(terms, row + 1, u);
        if (hypot(first, second) > FSM_SLIP_DIRECTION_CLEAR) {
            double angle = fsm_angle_of(first, second, c.at[at + k]);
            turned = turned || angle != c.at[at + k];
            c.at[at + k] = angle;
        }
    }
    return turned;
}
