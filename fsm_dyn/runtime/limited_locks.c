/* Locks with a force limit (docs/theory.md, "Locks with a limit").

   Within its limit such a lock is a bilateral row; at the limit its guard fires and it is released, until a transition
   engages it again.  Impulses come of forces beyond any limit: an impact is resolved without the locks that were engaged
   before it, and those whose rows it moved are released. */

#include "contacts.h"

/* Whether a user-defined transition asks for this state of contact `k` now. */
static bool is_asked(const struct fsm_resolution *r, int64_t k, int8_t state)
{
    return r->transition >= 0 && AT(r->tables->transition_states, r->transition, k) == state;
}

/* Whether contact `k` is such a lock, engaged before this instant, that nothing but an impact changes now. */
static bool holds_on(const struct fsm_resolution *r, int64_t k)
{
    return (r->tables->contact_flags.at[k] & FSM_FLAG_FORCE_LIMIT) != 0 && r->before.at[k] == FSM_CONTACT_HELD &&
           r->event.at[k] != FSM_EVENT_OPENS && !is_asked(r, k, FSM_CONTACT_FREE) && !is_asked(r, k, FSM_CONTACT_HELD);
}

/* Release the locks whose force has reached its limit, unless a transition engages them again. */
FSM_LOCAL void fsm_release_overloaded_locks(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        if ((r->tables->contact_flags.at[k] & FSM_FLAG_FORCE_LIMIT) != 0 && r->event.at[k] == FSM_EVENT_OPENS &&
            !is_asked(r, k, FSM_CONTACT_HELD)) {
            r->outcome->wanted.at[k] = FSM_CONTACT_FREE;
        }
    }
}

/* Leave the locks with a limit that were engaged before out of an impact. */
FSM_LOCAL void fsm_suspend_limited_locks(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        if (holds_on(r, k)) {
            r->outcome->wanted.at[k] = FSM_CONTACT_FREE;
        }
    }
}

/* Engage those again after it whose rows it did not move. */
FSM_LOCAL void fsm_resume_limited_locks(const struct fsm_resolution *r)
{
    for (int64_t k = 0; k < r->event.n; k++) {
        int64_t row = AT(r->tables->contact_rows, k, 0);
        if (holds_on(r, k) && fabs(fsm_row_speed(r->terms, row, r->u)) <= r->tables->tolerances->speed) {
            r->outcome->wanted.at[k] = FSM_CONTACT_HELD;
        }
    }
}
