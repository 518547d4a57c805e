/* Reading and writing of the driver `udp`, for loops faster than 2 kHz.

   Datagrams are those of fsm_dyn/devices/udp.py, on a connected socket, so that only those of the peer arrive.
   A header is read as two integers and a float, in the memory layout of a little-endian machine. */

#include "elementary.h"
#include "pacing.h"

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
