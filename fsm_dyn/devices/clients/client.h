/* A device loop of another program coupled to a mechanism: socket and clock around the datagrams of udp_device.h.
 *
 * C99 and POSIX, no dependency, no memory from the heap, no thread: compile client.c with the program, C or C++. Every
 * call returns at once. In a loop of about 1 kHz, that of the device's library or the program's own:
 *
 *     fsm_client client;
 *     if (fsm_client_open(&client, 3, "127.0.0.1", FSM_PORT) != 0) { errno is the reason }
 *     each time:
 *         read the device
 *         const double *force = fsm_client_exchange(&client, position, velocity, buttons);
 *         show force[0] to force[2]
 *     fsm_client_close(&client);
 *
 * A device that is stiff itself, measures the force of the hand and follows (the driver's option kind=admittance), calls
 * fsm_client_follow in its place.
 *
 * The force is zero before the first one is received, after FSM_WATCHDOG without any, and when the model's side removes
 * it; `client.device.flags` has FSM_RUNNING and FSM_FAULT. One thread may use a client at a time.
 */
#ifndef FSM_CLIENT_H
#define FSM_CLIENT_H

#include "udp_device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    fsm_device device;      /* datagrams and watchdog */
    int line;               /* the socket; -1 when closed */
    unsigned long unsent;   /* samples that could not be sent: no receiver, or a full buffer */
    unsigned long received; /* forces */
} fsm_client;

/* Seconds of the monotonic clock. */
double fsm_client_time(void);

/* Open a client for a device of 1 to FSM_MOST_AXES axes; return 0, or -1 with errno set (EINVAL: axes or address). */
int fsm_client_open(fsm_client *client, unsigned axes, const char *address, uint16_t port);

/* Send a sample, m and m/s (rad and rad/s); velocity may be NULL: the driver then estimates it. Return the force to be
 * shown until the next call, N or N m per axis. */
const double *fsm_client_exchange(fsm_client *client, const double *position, const double *velocity, uint32_t buttons);

/* Send position (m, rad) and measured force of the hand (N, N m) of a device that follows; return the velocity to follow
 * until the next call, m/s or rad/s per axis, zero where a force would be: the device then stands still. */
const double *fsm_client_follow(fsm_client *client, const double *position, const double *hand_force, uint32_t buttons);

/* Close the socket; may be called again. */
void fsm_client_close(fsm_client *client);

#ifdef __cplusplus
}
#endif
#endif
