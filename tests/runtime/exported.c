/* The runtime with all its functions visible, and those that are inline as functions, for tests. */

#define FSM_ALL_VISIBLE
#include "fsm_runtime.c"

FSM_API fsm_vector test_arena_vector(struct fsm_arena *arena, int64_t n) { return fsm_arena_vector(arena, n); }

FSM_API fsm_indices test_arena_indices(struct fsm_arena *arena, int64_t n) { return fsm_arena_indices(arena, n); }

FSM_API void test_arena_release(struct fsm_arena *arena, int64_t floats, int64_t integers)
{
    fsm_arena_release(arena, (fsm_mark){floats, integers});
}
