/* Example of a program whose device is stiff, measures the force of the hand, and follows the motion of a port.
 *
 *     cc -O2 -o udp_follower udp_follower.c client.c -lm
 *     ./udp_follower 2 10 &
 *     fsm-dyn device virtual_wall --driver udp --option kind=admittance --option axes=2 --set m='2 kg'
 *
 * Arguments: axes (2), seconds (10), port (10317), address (127.0.0.1). Each axis integrates the velocity commanded, and
 * its position loop follows without delay; a hand pulls it along a slow sine. For a device of yours replace what stands
 * between the two lines of dashes.
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
    double position[FSM_MOST_AXES] = {0}, hand_force[FSM_MOST_AXES] = {0}, fastest = 0.0, went = 0.0;
    double began = fsm_client_time(), before = began;
    for (double now = began; !ending && now - began < lasts; now = fsm_client_time()) {
        const double *velocity = fsm_client_follow(&client, position, hand_force, 0);
        /* ---- the device: read the force of the hand, and follow ---------------------------------------------- */
        for (unsigned i = 0; i < axes; i++) {
            double target = 0.03 * sin(2.0 * 3.14159265358979 * 0.5 * (now - began));
            position[i] += (now - before) * velocity[i];
            hand_force[i] = 100.0 * (target - position[i]) - 10.0 * velocity[i];
            fastest = fmax(fastest, fabs(velocity[i]));
            went = fmax(went, fabs(position[i]));
        }
        before = now;
        /* ----------------------------------------------------------------------------------------------------- */
        struct timespec rest = {0, (long)(PERIOD * 1e9)};
        nanosleep(&rest, NULL);
    }
    printf(
        "velocities %lu, removed %d, dropped %lu, unsent %lu, largest %.4f m/s, went %.4f m, follows at the end %d\n",
        client.received, (client.device.flags & FSM_LET_GO) != 0, client.device.dropped, client.unsent, fastest, went,
        client.device.shown);
    fsm_client_close(&client);
    return 0;
}
