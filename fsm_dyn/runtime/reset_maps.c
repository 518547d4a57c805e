/* Reset maps of user-defined transitions, and transitions that change no motion (docs/theory.md, "Conditions"). */

#include "contacts.h"

/* Apply the assignments of a user-defined reset, all at once from the values before. */
FSM_LOCAL void fsm_apply_reset(const struct fsm_resolution *r, int64_t address)
{
    int64_t n_x = r->state.n, n_memory = r->tables->sizes->n_memory, memory = fsm_memory_at(r->tables->sizes);
    fsm_vector after = fsm_arena_vector(r->arena, n_x + n_memory);
    ((fsm_kernel)(intptr_t)address)(r->t, r->state.at, r->context.at, after.at);
    for (int64_t i = 0; i < n_x; i++) {
        r->state.at[i] = after.at[i];
    }
    for (int64_t i = 0; i < n_memory; i++) {
        r->context.at[memory + i] = after.at[n_x + i];
    }
}

/* Whether a user-defined transition is all that happens, and asks for no contact state. */
FSM_LOCAL bool fsm_only_observes(const struct fsm_resolution *r, const struct fsm_instant *instant)
{
    bool alone = instant->reason == FSM_REASON_EVENT && r->transition >= 0 && !fsm_any_event(r->event);
    for (int64_t k = 0; k < r->before.n; k++) {
        alone = alone && r->outcome->wanted.at[k] == r->before.at[k];
    }
    return alone;
}

/* Whether the reset map of the user-defined transition, which is applied, leaves state and terms as they are.

   Where it does contact states are not selected again: what a model counts must not change how it moves.  Else nothing is
   changed here. */
FSM_LOCAL bool fsm_changes_no_motion(const struct fsm_resolution *r, fsm_vector x, fsm_vector c)
{
    int64_t address = AT(r->tables->transitions, r->transition, FSM_TRANSITION_RESET);
    if (address == 0) {
        return true;
    }
    fsm_mark top = fsm_arena_mark(r->arena);
    fsm_vector whole = fsm_arena_copy(r->arena, r->terms->whole);
    fsm_apply_reset(r, address);
    r->tables->terms.at[0](r->t, r->state.at, r->context.at, r->terms->whole.at);
    bool same = true;
    for (int64_t i = 0; i < x.n; i++) {
        same = same && r->state.at[i] == x.at[i];
    }
    for (int64_t i = 0; i < whole.n; i++) {
        same = same && r->terms->whole.at[i] == whole.at[i];
    }
    if (!same) {
        fsm_put(r->state, x);
        fsm_put(r->context, c);
        r->tables->terms.at[0](r->t, r->state.at, r->context.at, r->terms->whole.at);
    }
    fsm_arena_release(r->arena, top);
    return same;
}
