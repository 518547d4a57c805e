/* Loops faster than 2 kHz, without the interpreter: ticks from deadline to deadline, drivers with compiled reading and
   writing. */

#include "pacing.h"
#include "elementary.h"

/* -- The paced loop without the interpreter, for drivers with compiled reading and writing: faster than 2 kHz.

   A tick sleeps until its deadline, reads, advances, writes and counts; the loop returns to its caller where attention
   is needed, and is called again.  The sleep needs Linux; elsewhere the caller runs the loop. */

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

/* -- Reading and writing of the driver `udp`, for loops faster than 2 kHz.

   Datagrams are those of fsm_dyn/devices/udp.py, on a connected socket, so that only those of the peer arrive.
   A header is read as two integers and a float, in the memory layout of a little-endian machine. */

#define FSM_UDP_NANOSECOND 1e-9 // in seconds

#ifdef FSM_HAS_PACING

#include "atomic.h"
#include <sys/socket.h>

#define HEADER_LENGTH  24 // bytes
#define FIRST_WORD     (((int64_t)1 << 48) - 1)
#define LOW            (((int64_t)1 << 32) - 1)
#define VERSION_BITS   ((int64_t)0xff << 32)
#define SILENCE        1000000000LL // ns without a sample after which sequence numbers begin anew

FSM_API int64_t fsm_udp_read(void *data, double *sample);
FSM_API int64_t fsm_udp_write(void *data, const double *force);

/* Return why a datagram is no valid sample, -1 if it is one. */
static int64_t refused(const struct fsm_udp_link *link, int64_t length)
{
    int64_t n = link->position.n, first = link->words.at[0];
    int64_t wrong = (first ^ link->numbers->sample) & FIRST_WORD;
    if (length < HEADER_LENGTH) {
        return FSM_DROPPED_SIZE;
    }
    if ((wrong & LOW) != 0) {
        return FSM_DROPPED_MAGIC;
    }
    if ((wrong & VERSION_BITS) != 0) {
        return FSM_DROPPED_VERSION;
    }
    if (wrong != 0) {
        return FSM_DROPPED_AXES;
    }
    int64_t count = ((first >> 48) & FSM_HAS_VELOCITY) != 0 ? 2 * n : n;
    if ((length - HEADER_LENGTH) % 8 != 0) {
        return FSM_DROPPED_SIZE;
    }
    for (int64_t i = 0; i < (length - HEADER_LENGTH) / 8 + 1; i++) { // the time first
        if (!fsm_is_finite(link->floats.at[2 + i])) {
            return FSM_DROPPED_NUMBER;
        }
    }
    return length == HEADER_LENGTH + 8 * count ? -1 : FSM_DROPPED_SIZE;
}

/* Take the datagram of `length` bytes in `words`: the latest sample, or one to drop and count. */
static void take(struct fsm_udp_link *link, int64_t length)
{
    struct fsm_udp_numbers *numbers = link->numbers;
    int64_t n = link->position.n, reason = refused(link, length);
    int64_t sequence = link->words.at[1] & LOW, now = fsm_monotonic();
    double time = link->floats.at[2];
    bool anew = now - numbers->heard > SILENCE;
    if (reason < 0 && !anew) {
        int64_t ahead = (sequence - numbers->sequence) & LOW;
        if (ahead == 0 || ahead >= (int64_t)1 << 31 || time <= link->times.at[0]) {
            reason = FSM_DROPPED_OLD;
        }
    }
    if (reason >= 0) {
        link->dropped.at[reason]++;
        return;
    }
    bool measured = ((link->words.at[0] >> 48) & FSM_HAS_VELOCITY) != 0, known = numbers->before != 0 && !anew;
    double step = time - link->times.at[0], part = -fsm_expm1(-link->times.at[1] * step);
    for (int64_t i = 0; i < n; i++) {
        double x = link->floats.at[3 + i];
        if (measured) {
            link->velocity.at[i] = link->floats.at[3 + n + i];
        } else if (known) {
            link->velocity.at[i] += part * ((x - link->position.at[i]) / step - link->velocity.at[i]);
        } else {
            link->velocity.at[i] = 0.0;
        }
        link->position.at[i] = x;
    }
    numbers->before = measured ? 0 : 1;
    numbers->sequence = sequence;
    numbers->buttons = (link->words.at[1] >> 32) & LOW;
    numbers->heard = now;
    link->times.at[0] = time;
}

/* Receive all datagrams; write the latest sample: positions, velocities, sequence number, buttons, time. */
FSM_API int64_t fsm_udp_read(void *data, double *sample)
{
    struct fsm_udp_link *link = data;
    struct fsm_udp_numbers *numbers = link->numbers;
    for (int64_t k = 0; k < FSM_MOST_DATAGRAMS; k++) {
        int64_t length = recv((int)numbers->descriptor, link->words.at, (size_t)numbers->longest, MSG_DONTWAIT);
        if (length < 0) { // nothing, or the peer has ended, which becomes a stall
            break;
        }
        take(link, length);
    }
    int64_t n = link->position.n;
    for (int64_t i = 0; i < n; i++) {
        sample[i] = link->position.at[i];
        sample[n + i] = link->velocity.at[i];
    }
    sample[2 * n] = (double)numbers->sequence;
    sample[2 * n + 1] = (double)numbers->buttons;
    sample[2 * n + 2] = link->times.at[0];
    return 0;
}

/* Send a force (N or N m per axis) with the sequence number that it answers; one that cannot be sent is counted as dropped. */
FSM_API int64_t fsm_udp_write(void *data, const double *force)
{
    struct fsm_udp_link *link = data;
    struct fsm_udp_numbers *numbers = link->numbers;
    int64_t n = link->position.n, flags = FSM_ACQUIRE(link->header->phase) == FSM_LIVE_RUNNING ? FSM_FORCE_RUNNING : 0;
    if (FSM_ACQUIRE(link->header->fault) != FSM_FAULT_NONE) {
        flags |= FSM_FORCE_FAULT;
    }
    numbers->sent = (numbers->sent + 1) & LOW;
    link->words.at[0] = numbers->force | flags << 48;
    link->words.at[1] = numbers->sent | numbers->sequence << 32;
    link->floats.at[2] = (double)fsm_monotonic() * FSM_UDP_NANOSECOND;
    for (int64_t i = 0; i < n; i++) {
        link->floats.at[3 + i] = force[i];
    }
    size_t length = (size_t)(HEADER_LENGTH + 8 * n);
    if (send((int)numbers->descriptor, link->words.at, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        link->dropped.at[FSM_DROPPED_NOT_SENT]++;
    }
    return 0;
}

#endif

/* -- A hand that follows sines, read and written like a device: an example of a driver for fast loops. */

#ifdef FSM_HAS_PACING

FSM_API int64_t fsm_hand_read(void *data, double *sample);
FSM_API int64_t fsm_hand_write(void *data, const double *force);

/* Move the hand by one period and tell where it is. */
FSM_API int64_t fsm_hand_read(void *data, double *sample)
{
    struct fsm_hand *hand = data;
    struct fsm_hand_numbers *numbers = hand->numbers;
    int64_t n = hand->position.n;
    double t = numbers->readings * numbers->period;
    double gentle = fsm_smaller(t / numbers->gentle, 1.0);
    numbers->readings += 1.0;
    for (int64_t i = 0; i < n; i++) {
        double target = 0.0, rate = 0.0;
        for (int64_t k = 0; k < hand->motion.n; k++) {
            if (AT(hand->motion, k, 0) == (double)i) {
                double amplitude = AT(hand->motion, k, 1), frequency = AT(hand->motion, k, 2);
                double phase = AT(hand->motion, k, 3);
                target += gentle * amplitude * fsm_sin(frequency * t + phase);
                rate += gentle * amplitude * frequency * fsm_cos(frequency * t + phase);
            }
        }
        double pull =
            numbers->stiffness * (target - hand->position.at[i]) + numbers->damping * (rate - hand->velocity.at[i]);
        hand->velocity.at[i] += numbers->period * (pull + hand->force.at[i]) / numbers->mass;
        hand->position.at[i] += numbers->period * hand->velocity.at[i];
        sample[i] = hand->position.at[i];
        sample[n + i] = hand->velocity.at[i];
    }
    sample[2 * n] = numbers->readings;
    sample[2 * n + 1] = 0.0;
    sample[2 * n + 2] = t;
    return 0;
}

/* Let the force act on the hand until the next reading. */
FSM_API int64_t fsm_hand_write(void *data, const double *force)
{
    struct fsm_hand *hand = data;
    for (int64_t i = 0; i < hand->force.n; i++) {
        hand->force.at[i] = force[i];
    }
    return 0;
}

#endif
