/* Example of a program that holds a mechanism: a simulated device coupled to a port through fsm_dyn's driver `udp`.
 *
 *     cc -O2 -o udp_device udp_device.c client.c -lm
 *     ./udp_device 2 10 &
 *     fsm-dyn device virtual_wall --driver udp --option axes=2
 *
 * Arguments: axes (2), seconds (10), port (10317), address (127.0.0.1). Each axis is a mass of 0.2 kg drawn by a hand
 * along a slow sine. For a device of yours replace what stands between the two lines of dashes.
 */
#define _POSIX_C_SOURCE 200809L
#include "client.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD 1e-3 /* s */

static volatile sig_atomic_t ending;

static void end(int number) {
    (void)number;
    ending = 1;
}

int main(int count, char **arguments) {
    unsigned axes = count > 1 ? (unsigned)atoi(arguments[1]) : 2;
    double lasts = count > 2 ? atof(arguments[2]) : 10.0;
    uint16_t port = (uint16_t)(count > 3 ? atoi(arguments[3]) : FSM_PORT);
    fsm_client client;
    if (fsm_client_open(&client, axes, count > 4 ? arguments[4] : "127.0.0.1", port) != 0) {
        perror("fsm_client_open");
        return 2;
    }
    signal(SIGINT, end);
    signal(SIGTERM, end);
    double position[FSM_MOST_AXES] = {0}, velocity[FSM_MOST_AXES] = {0}, largest = 0.0, began = fsm_client_time();
    for (double now = began; !ending && now - began < lasts; now = fsm_client_time()) {
        const double *force = fsm_client_exchange(&client, position, velocity, 0);
        /* ---- the device: show the force on it, and read it -------------------------------------------------- */
        for (unsigned i = 0; i < axes; i++) {
            double target = 0.03 * sin(2.0 * 3.14159265358979 * 0.5 * (now - began) + i);
            double hand = 300.0 * (target - position[i]) - 10.0 * velocity[i];
            velocity[i] += PERIOD * (hand + force[i]) / 0.2;
            position[i] += PERIOD * velocity[i];
            largest = fmax(largest, fabs(force[i]));
        }
        /* ----------------------------------------------------------------------------------------------------- */
        struct timespec rest = {0, (long)(PERIOD * 1e9)};
        nanosleep(&rest, NULL);
    }
    printf("forces %lu, removed %d, dropped %lu, unsent %lu, largest %.3f N, shown at the end %d\n", client.received,
           (client.device.flags & FSM_LET_GO) != 0, client.device.dropped, client.unsent, largest, client.device.shown);
    fsm_client_close(&client);
    return 0;
}
