/* Redundant constraint rows that have become inconsistent.

   The rows left out of an elimination are satisfied by the others as long as they are consistent.  Inputs and time can
   change that, as with two belts under one plank; then no motion satisfies all rows, and contacts must change their
   state (docs/theory.md, "Inconsistent constraint rows"). */

#include "stepping.h"

/* Return the largest speed along the active rows of contacts of a mode with FSM_MODE_REPEATS, over the speed tolerance.

   `x`: state at `t` (s). */
FSM_LOCAL double fsm_constraint_violation_speed(const struct fsm_run *run, double t, fsm_vector x)
{
    const struct fsm_tables *tables = run->tables;
    struct fsm_work *work = run->work;
    fsm_vector c = run->state->c;
    int64_t mode = run->state->counters->mode;
    fsm_arena_clear(&work->arena);
    const struct fsm_terms *terms = fsm_terms_of(work);
    tables->terms.at[0](t, x.at, c.at, terms->whole.at);
    int64_t n_q = tables->sizes->n_q;
    fsm_vector u = fsm_vector_part(x, n_q, n_q + tables->sizes->n_u);
    double worst = 0.0;
    for (int64_t k = 0; k < tables->sizes->n_contacts; k++) {
        int64_t code = AT(tables->mode_states, mode, k), flags = tables->contact_flags.at[k];
        if (code == FSM_CONTACT_FREE || (flags & FSM_FLAG_SWITCHED) != 0) {
            continue;
        }
        if ((flags & FSM_FLAG_RIGID) != 0) {
            int64_t row = AT(tables->contact_rows, k, 0);
            worst = fsm_larger(worst, fabs(fsm_row_speed(terms, row, u)) / fsm_speed_tolerance(tables, row));
        }
        if (code == FSM_CONTACT_HELD && AT(tables->contact_rows, k, 1) >= 0) {
            worst = fsm_larger(worst, fsm_slip_speed(tables, terms, k, u) / fsm_slip_tolerance(tables, k));
        }
    }
    return worst;
}
