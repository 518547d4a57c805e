/* Arena: arrays of an event time as views into one block that the caller allocated.

   Matrix sizes of a transition depend on the number of active contacts.  Memory is released by resetting a mark.  If
   the block is too small, that is recorded, arrays handed out afterwards are invalid, and the caller repeats the work
   with a larger block. */

#ifndef FSM_ARENA_H
#define FSM_ARENA_H

#include "types.h"

/* Extent of an arena. */
struct fsm_arena_top {
    int64_t floats;   // handed out
    int64_t integers; // handed out
    int64_t most_floats;
    int64_t most_integers;
    int64_t overflown; // 1: more was asked for than there is
    int64_t solved;    // combinations of contact states solved so far
    int64_t decision;  // where among the integers a decision is kept, counted from 1; 0: none
};

struct fsm_arena {
    fsm_vector floats;
    fsm_indices integers;
    struct fsm_arena_top *top;
    int64_t top_count;
};

typedef struct {
    int64_t floats, integers;
} fsm_mark;

/* What fsm_arena_release needs to take back everything handed out from now on. */
static inline fsm_mark fsm_arena_mark(const struct fsm_arena *arena)
{
    return (fsm_mark){arena->top->floats, arena->top->integers};
}

static inline void fsm_arena_release(struct fsm_arena *arena, fsm_mark at)
{
    arena->top->floats = at.floats;
    arena->top->integers = at.integers;
}

static inline void fsm_arena_clear(struct fsm_arena *arena)
{
    fsm_arena_release(arena, (fsm_mark){0, 0});
}

/* Where `count` entries begin; beyond the block they begin at its start, and that is noted. */
static inline int64_t fsm_arena_room(struct fsm_arena *arena, int64_t *used, int64_t *most, int64_t count,
                                     int64_t there)
{
    int64_t begin = *used;
    arena->top->decision = 0; // what is handed out may lie where it was kept
    if (begin + count > there) {
        arena->top->overflown = 1;
        begin = 0;
    }
    *used = begin + count;
    *most = fsm_most(*most, begin + count);
    return begin;
}

/* Hand out `n` floats, all zero. */
static inline fsm_vector fsm_arena_vector(struct fsm_arena *arena, int64_t n)
{
    int64_t begin = fsm_arena_room(arena, &arena->top->floats, &arena->top->most_floats, n, arena->floats.n);
    fsm_vector view = {arena->floats.at + begin, n};
    for (int64_t i = 0; i < n; i++) {
        view.at[i] = 0.0;
    }
    return view;
}

static inline fsm_matrix fsm_arena_matrix(struct fsm_arena *arena, int64_t n, int64_t m)
{
    return fsm_as_matrix(fsm_arena_vector(arena, n * m), n, m);
}

/* Hand out `n` integers, all zero. */
static inline fsm_indices fsm_arena_indices(struct fsm_arena *arena, int64_t n)
{
    int64_t begin = fsm_arena_room(arena, &arena->top->integers, &arena->top->most_integers, n, arena->integers.n);
    fsm_indices view = {arena->integers.at + begin, n};
    for (int64_t i = 0; i < n; i++) {
        view.at[i] = 0;
    }
    return view;
}

static inline fsm_index_table fsm_arena_index_table(struct fsm_arena *arena, int64_t n, int64_t m)
{
    fsm_indices view = fsm_arena_indices(arena, n * m);
    return (fsm_index_table){view.at, n, m};
}

static inline fsm_vector fsm_arena_copy(struct fsm_arena *arena, fsm_vector values)
{
    fsm_vector view = fsm_arena_vector(arena, values.n);
    fsm_put(view, values);
    return view;
}

#endif
