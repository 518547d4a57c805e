/* The paced loop without the interpreter, for drivers with compiled reading and writing: faster than 2 kHz.

   A tick sleeps until its deadline, reads, advances, writes and counts; the loop returns to its caller where attention
   is needed, and is called again.  The sleep needs Linux; elsewhere the caller runs the loop. */

#include "pacing.h"

#ifdef FSM_HAS_PACING

#include "atomic.h"
#include <time.h>

#define SECOND  1000000000LL // ns
#define UNPACED 64           // ticks between returns to the caller

static int64_t clock_time(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

/* The monotonic clock's time, ns. */
FSM_LOCAL int64_t fsm_monotonic(void)
{
    return clock_time(CLOCK_MONOTONIC);
}

/* Sleep until a time of the monotonic clock (ns); return the time then. */
static int64_t sleep_until(int64_t deadline)
{
    int64_t now = fsm_monotonic();
    while (now < deadline) {
        struct timespec until = {(time_t)(deadline / SECOND), (long)(deadline % SECOND)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        now = fsm_monotonic();
    }
    return now;
}

/* Measure the duration of the tick and set the next deadline; lost time is not made up for. */
FSM_API void fsm_end_tick(struct fsm_pace *pace)
{
    struct fsm_pace_numbers *n = pace->numbers;
    n->cpu_time = clock_time(CLOCK_THREAD_CPUTIME_ID) - n->cpu_time_at_start;
    int64_t done = fsm_monotonic();
    n->execution_time = done - n->wakeup;
    n->deadline += n->period;
    n->overrun = 0;
    if (n->period != 0 && done > n->deadline) {
        n->overrun = done - n->deadline;
        n->deadline = done;
    }
}

/* Run ticks until the caller is needed; return the reason (FSM_BACK_...). */
FSM_API int64_t fsm_run_ticks(struct fsm_tick *tick, struct fsm_pace *pace)
{
    struct fsm_live_header *header = tick->places->ring->header;
    struct fsm_pace_numbers *n = pace->numbers;
    struct fsm_tick_counts *counts = tick->counts;
    int64_t axes = tick->device.n; // positions and velocities
    while (true) {
        if ((counts->ticks >= n->end_check_from || FSM_ACQUIRE(header->stop_requested) != 0) && n->must_run == 0) {
            return FSM_BACK_CHECK_END;
        }
        n->wakeup = n->period != 0 ? sleep_until(n->deadline) : fsm_monotonic();
        if (n->period == 0) {
            n->deadline = n->wakeup;
        }
        n->cpu_time_at_start = clock_time(CLOCK_THREAD_CPUTIME_ID);
        if (FSM_ACQUIRE(header->commands) != n->commands_read) {
            return FSM_BACK_COMMANDS_ARRIVED;
        }
        if (counts->pending_commands != 0 && (tick->numbers->engagement == 0.0 || counts->phase != FSM_LIVE_RUNNING)) {
            return FSM_BACK_COMMAND_PENDING;
        }
        n->must_run = 0;
        if (n->read(n->data, pace->sample.at) != 0) {
            return FSM_BACK_READ_FAILED;
        }
        for (int64_t i = 0; i < axes; i++) {
            tick->device.at[i] = pace->sample.at[i];
        }
        int64_t sequence = (int64_t)pace->sample.at[axes], buttons = (int64_t)pace->sample.at[axes + 1];
        tick->numbers->sample_time = pace->sample.at[axes + 2];
        int64_t found = fsm_live_tick(tick, sequence, buttons, n->wakeup - n->start, n->wakeup - n->deadline,
                                      n->execution_time, n->cpu_time);
        if (found == FSM_TICK_SUPPLY_NEEDED) {
            return FSM_BACK_SUPPLY_NEEDED;
        }
        if (FSM_ACQUIRE(header->zero_force_packets) != counts->zero_force_packets) {
            // the watchdog process has sent a safe packet: no old force is shown
            for (int64_t i = 0; i < tick->force.n; i++) {
                tick->force.at[i] = 0.0;
            }
        }
        if (n->write(n->data, tick->force.at) != 0) {
            return FSM_BACK_WRITE_FAILED;
        }
        fsm_end_tick(pace);
        if (found != 0 || n->overrun != 0) {
            return FSM_BACK_ATTENTION_NEEDED;
        }
        if (n->period == 0 && counts->ticks % UNPACED == 0) {
            return FSM_BACK_RECORDER_CHECK;
        }
    }
}

/* Increase `beats` every `interval` ns until `ends` is set: the heartbeat of an owner. */
FSM_API void fsm_beat_on(int64_t *beats, const int64_t *ends, int64_t interval)
{
    struct timespec wait = {(time_t)(interval / SECOND), (long)(interval % SECOND)};
    while (FSM_ACQUIRE(*ends) == 0) {
        FSM_RELEASE(*beats, *beats + 1);
        clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
    }
}

#endif
