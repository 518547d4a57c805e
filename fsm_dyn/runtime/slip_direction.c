/* Slip directions in space, kept as an angle in the tangent plane (docs/theory.md, "Friction in space"). */

#include "elementary.h"
#include "contacts.h"

#define FSM_ANGLE_SAME 1e-9 // rad

/* Return the angle of a vector in (0, 2π]; `present`, if it is one, where the two differ by rounding. */
FSM_LOCAL double fsm_angle_of(double first, double second, double present)
{
    double angle = fsm_atan2(second, first);
    if (angle <= 0.0) {
        angle += 2.0 * FSM_PI;
    }
    return (present > 0.0 && fabs(angle - present) <= FSM_ANGLE_SAME) ? present : angle;
}

/* Update the slip directions in `c` (n_c,) in a mode with the flag FSM_MODE_TURNS; return whether any changed.

   `t` (s), `x` (n_q + n_u,): the state.  The arena and the unconstrained terms of `work` are overwritten. */
FSM_LOCAL bool fsm_update_slip_directions(struct fsm_work *work, const struct fsm_tables *tables, double t,
                                          fsm_vector x, fsm_vector c, int64_t mode)
{
    const struct fsm_sizes *sizes = tables->sizes;
    const struct fsm_terms *terms = fsm_terms_of(work);
    fsm_arena_clear(&work->arena);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    fsm_vector u = fsm_vector_part(x, sizes->n_q, sizes->n_q + sizes->n_u);
    fsm_vector sigma = fsm_vector_from(c, fsm_sigma_at(sizes));
    bool changed = false;
    for (int64_t k = 0; k < sizes->n_contacts; k++) {
        if ((tables->contact_flags.at[k] & FSM_FLAG_IN_SPACE) == 0 ||
            AT(tables->mode_states, mode, k) != FSM_CONTACT_SLIDING) {
            continue;
        }
        int64_t row = AT(tables->contact_rows, k, 1);
        double first = fsm_row_speed(terms, row, u), second = fsm_row_speed(terms, row + 1, u);
        if (fsm_hypot(first, second) > tables->tolerances->slip) {
            double angle = fsm_angle_of(first, second, sigma.at[k]);
            changed = changed || angle != sigma.at[k];
            sigma.at[k] = angle;
        }
    }
    return changed;
}
