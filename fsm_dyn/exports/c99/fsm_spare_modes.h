/* Modes that were not exported and are embedded online where a machine meets them. */

#ifndef FSM_SPARE_MODES_H
#define FSM_SPARE_MODES_H

#include "runtime/online.h"

#ifndef FSM_SPARE_MOST
#define FSM_SPARE_MOST 64 // modes, at most; 256 by -DFSM_SPARE_MOST=256
#endif

/* The own arrays of every mode in struct fsm_online_mode, by their lengths (words); `states` are of one byte each. */
enum fsm_spare_array {
    FSM_SPARE_CHART,
    FSM_SPARE_HELD_BEGIN,
    FSM_SPARE_HELD_BEHIND,
    FSM_SPARE_HELD_REST,
    FSM_SPARE_HELD_COLUMNS,
    FSM_SPARE_BELOW_BEGIN,
    FSM_SPARE_BELOW_ROWS,
    FSM_SPARE_TIED_BEGIN,
    FSM_SPARE_TIED_COLUMNS,
    FSM_SPARE_MOVED_BEGIN,
    FSM_SPARE_MOVED_COLUMNS,
    FSM_SPARE_REDUCED_BEGIN,
    FSM_SPARE_REDUCED_BEHIND,
    FSM_SPARE_REDUCED_COLUMNS,
    FSM_SPARE_PLACE,
    FSM_SPARE_EXTENT,
    FSM_SPARE_ROOM,
    FSM_SPARE_FLOATS,
    FSM_SPARE_INTEGERS,
    FSM_SPARE_ARRAYS,
};

/* A guard that a mode has because of the state of one contact. */
struct fsm_spare_guard {
    int64_t event, subject; // as in struct fsm_tables
    double direction, unit;
    int64_t quantity; // enum fsm_guard_quantity
    double sign;
    int64_t first_open, n_open; // of `corners`: contacts that are open in modes with this guard
    int64_t enclosure;          // the value that encloses it, of the first program in the tables; -1: none does
};

/* What such modes are made of; constant.  States of contacts are counted through: state s of contact k is
   `state_begin[k] + s`. */
struct fsm_spare_parts {
    int64_t most; // modes
    const fsm_kernel *programs; // rows, motion, watched
    const int64_t *state_begin; // (n_contacts + 1,)
    const int64_t *flags;       // of every state: bits of enum fsm_mode_flag
    int64_t flags_of_all;
    // Of every state, and last of the user-defined transitions, where their guards begin.
    const int64_t *guard_begin;
    const struct fsm_spare_guard *guards;
    const int64_t *corners;
    double follows; // slip speed from which friction in space follows the slip, in the mechanism's own units
    const int64_t *lengths; // (FSM_SPARE_ARRAYS,)
    const int64_t *places;  // (FSM_ONLINE_PLACES,): begin of a chart
};

#endif
