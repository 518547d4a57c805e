/* The datagrams that a device program and fsm_dyn's driver `udp` exchange, and the watchdog a program is to have.
 *
 * C99, no memory from the heap, no sockets: those are the program's. Time is in seconds, of any steady clock. Bytes are
 * put together one by one, so that neither the order of bytes nor the alignment of the machine matters. Every axis is in
 * m, m/s and N, or in rad, rad/s and N m.
 *
 *     fsm_device device;
 *     fsm_device_init(&device, 3);
 *     every millisecond:
 *         size_t length = fsm_device_sample(&device, now, position, velocity, buttons, bytes);   and send them
 *         while there is a datagram: fsm_device_take(&device, now, datagram, its_length);
 *         show fsm_device_force(&device, now)[i] on axis i
 *
 * fsm_device_force() is zero before the first force, after a flag 4 of the driver, and where nothing was received for
 * FSM_WATCHDOG: call it at least that often, also when nothing comes.
 */
#ifndef FSM_UDP_DEVICE_H
#define FSM_UDP_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FSM_PORT 10317
#define FSM_VERSION 1
#define FSM_MOST_AXES 6
#define FSM_HEADER 24
#define FSM_LONGEST (FSM_HEADER + 8 * 2 * FSM_MOST_AXES)
#define FSM_WATCHDOG 0.02 /* s */

#define FSM_HAS_VELOCITY 1 /* flag of a sample */
#define FSM_RUNNING 1      /* flags of a force */
#define FSM_FAULT 2
#define FSM_LET_GO 4

typedef struct {
    unsigned axes;
    uint32_t sequence; /* of the sample sent last */
    uint32_t answered; /* of the force taken last */
    unsigned flags;    /* that came with it */
    int shown;         /* whether a force is to be shown */
    double heard;      /* when it came */
    double force[FSM_MOST_AXES];
    unsigned long dropped; /* datagrams that were none, or old */
} fsm_device;

static inline void fsm_put(unsigned char *at, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) at[i] = (unsigned char)(value >> (8 * i));
}

static inline uint64_t fsm_get(const unsigned char *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static inline void fsm_put_double(unsigned char *at, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    fsm_put(at, bits, 8);
}

static inline double fsm_get_double(const unsigned char *at) {
    uint64_t bits = fsm_get(at, 8);
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline int fsm_is_finite(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return (bits >> 52 & 0x7ff) != 0x7ff; /* works with -ffinite-math-only too */
}

static inline void fsm_device_init(fsm_device *device, unsigned axes) {
    memset(device, 0, sizeof *device);
    device->axes = axes <= FSM_MOST_AXES ? axes : FSM_MOST_AXES;
}

/* Write a sample to `bytes`, of FSM_LONGEST; velocity may be NULL: the driver then estimates it. Return its length. */
static inline size_t fsm_device_sample(fsm_device *device, double now, const double *position, const double *velocity,
                                       uint32_t buttons, unsigned char *bytes) {
    unsigned n = device->axes;
    memcpy(bytes, "FSMS", 4);
    bytes[4] = FSM_VERSION;
    bytes[5] = (unsigned char)n;
    fsm_put(bytes + 6, velocity ? FSM_HAS_VELOCITY : 0, 2);
    fsm_put(bytes + 8, ++device->sequence, 4);
    fsm_put(bytes + 12, buttons, 4);
    fsm_put_double(bytes + 16, now);
    for (unsigned i = 0; i < n; i++) fsm_put_double(bytes + FSM_HEADER + 8 * i, position[i]);
    if (velocity) {
        for (unsigned i = 0; i < n; i++) fsm_put_double(bytes + FSM_HEADER + 8 * (n + i), velocity[i]);
    }
    return FSM_HEADER + 8 * (size_t)n * (velocity ? 2 : 1);
}

/* Take a datagram of the driver; return 1 if it was one, and new, else 0. */
static inline int fsm_device_take(fsm_device *device, double now, const unsigned char *bytes, size_t length) {
    double force[FSM_MOST_AXES] = {0};
    int good = length == FSM_HEADER + 8 * (size_t)device->axes && memcmp(bytes, "FSMF", 4) == 0 &&
               bytes[4] == FSM_VERSION && bytes[5] == device->axes;
    for (unsigned i = 0; good && i < device->axes; i++) {
        force[i] = fsm_get_double(bytes + FSM_HEADER + 8 * i);
        good = fsm_is_finite(force[i]);
    }
    if (good) {
        unsigned flags = (unsigned)fsm_get(bytes + 6, 2);
        uint32_t sequence = (uint32_t)fsm_get(bytes + 8, 4), ahead = sequence - device->answered;
        int silent = !device->shown || now - device->heard >= FSM_WATCHDOG; /* then any number will do */
        if (flags & FSM_LET_GO) {
            device->shown = 0;
            device->flags = flags;
            return 1;
        }
        if (silent || (ahead > 0 && ahead < 0x80000000u)) {
            memcpy(device->force, force, sizeof force);
            device->answered = sequence;
            device->flags = flags;
            device->heard = now;
            device->shown = 1;
            return 1;
        }
    }
    device->dropped++;
    return 0;
}

/* Return the force to be shown now, one number per axis. */
static inline const double *fsm_device_force(fsm_device *device, double now) {
    static const double none[FSM_MOST_AXES] = {0};
    if (now - device->heard >= FSM_WATCHDOG) device->shown = 0;
    return device->shown ? device->force : none;
}

#endif
