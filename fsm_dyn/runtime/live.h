/* Live sessions: one tick from the device's sample to its force, and its publication to other processes. */

#ifndef FSM_LIVE_H
#define FSM_LIVE_H

#include "stepping.h"
#include "tick.h"

#define FSM_NANOSECOND 1e-9 // s

/* tick_samples.c */
FSM_LOCAL void fsm_fail(struct fsm_tick *tick, int64_t fault);
FSM_LOCAL void fsm_take_sample(struct fsm_tick *tick);
FSM_LOCAL int64_t fsm_release_ticks(const struct fsm_tick *tick);
FSM_LOCAL int64_t fsm_ticks_without_sample(const struct fsm_tick *tick);

/* tick_inputs.c */
FSM_LOCAL void fsm_ramp_engagement(struct fsm_tick *tick);
FSM_LOCAL void fsm_next_inputs(struct fsm_tick *tick, double h);
FSM_LOCAL void fsm_write_pieces(const struct fsm_tick *tick, double begin, double end);
FSM_LOCAL void fsm_follow_schedule(struct fsm_tick *tick, double begin, double end);
FSM_LOCAL bool fsm_tick_switches(const struct fsm_tick *tick);
FSM_LOCAL bool fsm_is_disengaged(const struct fsm_tick *tick);
FSM_LOCAL void fsm_take_over(struct fsm_tick *tick);
FSM_LOCAL void fsm_report_ports(struct fsm_tick *tick);
FSM_LOCAL void fsm_show(struct fsm_tick *tick, bool shown);
FSM_LOCAL double fsm_time_behind(const struct fsm_tick *tick);
FSM_LOCAL double fsm_fastest_port(const struct fsm_tick *tick, int64_t axis);
FSM_LOCAL bool fsm_is_of(const struct fsm_tick *tick, int64_t axis, int64_t part, int64_t turns);
FSM_LOCAL int64_t fsm_part_count(const struct fsm_tick *tick);

/* tick_step.c */
FSM_LOCAL void fsm_watch_energy(struct fsm_tick *tick);
FSM_LOCAL void fsm_leave_checkpoint(const struct fsm_tick *tick);
FSM_LOCAL int64_t fsm_bin_of(int64_t value);
FSM_LOCAL int64_t fsm_beat(struct fsm_ring *ring, struct fsm_tick_counts *counts, int64_t since);
FSM_LOCAL void fsm_look_at_owner(struct fsm_ring *ring, struct fsm_tick_counts *counts, int64_t since);
FSM_LOCAL bool fsm_was_zeroed(struct fsm_ring *ring, struct fsm_tick_counts *counts);
FSM_LOCAL void fsm_publish(struct fsm_tick *tick);
FSM_LOCAL void fsm_put_records(struct fsm_tick *tick);
FSM_API int64_t fsm_move(struct fsm_tick *tick, bool shown);
FSM_API int64_t fsm_live_tick(struct fsm_tick *tick, int64_t sequence, int64_t buttons, int64_t wall, int64_t lateness,
                              int64_t duration, int64_t spent);
FSM_API void fsm_release_device(struct fsm_tick *tick, int64_t reason);
FSM_API int64_t fsm_finish_tick(struct fsm_tick *tick, bool again);

#endif
