/* Example of a device program: a simulated device coupled to a port through fsm_dyn's driver `udp`.
 *
 *     cc -O2 -o udp_device udp_device.c -lm
 *     ./udp_device 2 10 &
 *     fsm-dyn device virtual_wall --driver udp --option axes=2
 *
 * Arguments: axes (2), seconds (10), port (10317), address (127.0.0.1). Each axis is a mass of 0.2 kg drawn by a hand
 * along a slow sine. For a device of yours replace what stands between the two lines of dashes.
 */
#define _POSIX_C_SOURCE 200809L
#include "udp_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PERIOD 1e-3 /* s */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int count, char **arguments) {
    unsigned axes = count > 1 ? (unsigned)atoi(arguments[1]) : 2;
    double lasts = count > 2 ? atof(arguments[2]) : 10.0;
    struct sockaddr_in driver = {0};
    driver.sin_family = AF_INET;
    driver.sin_port = htons((uint16_t)(count > 3 ? atoi(arguments[3]) : FSM_PORT));
    if (inet_pton(AF_INET, count > 4 ? arguments[4] : "127.0.0.1", &driver.sin_addr) != 1) {
        fprintf(stderr, "%s is no address\n", arguments[4]);
        return 2;
    }
    int line = socket(AF_INET, SOCK_DGRAM, 0);
    /* connected: nobody else's datagrams reach this program */
    if (line < 0 || connect(line, (struct sockaddr *)&driver, sizeof driver) != 0) {
        perror("socket");
        return 1;
    }
    fcntl(line, F_SETFL, O_NONBLOCK);

    fsm_device device;
    fsm_device_init(&device, axes);
    axes = device.axes;
    double position[FSM_MOST_AXES] = {0}, velocity[FSM_MOST_AXES] = {0}, largest = 0.0, began = seconds();
    unsigned long forces = 0, let_go = 0;
    for (double now = began; now - began < lasts; now = seconds()) {
        unsigned char bytes[FSM_LONGEST];
        ssize_t length;
        while ((length = recv(line, bytes, sizeof bytes, 0)) > 0) {
            if (fsm_device_take(&device, now, bytes, (size_t)length)) {
                forces++;
                let_go += (device.flags & FSM_LET_GO) != 0;
            }
        }
        const double *force = fsm_device_force(&device, now);
        /* ---- the device: read it, and show the force on it ------------------------------------------------- */
        for (unsigned i = 0; i < axes; i++) {
            double target = 0.03 * sin(2.0 * 3.14159265358979 * 0.5 * (now - began) + i);
            double hand = 300.0 * (target - position[i]) - 10.0 * velocity[i];
            velocity[i] += PERIOD * (hand + force[i]) / 0.2;
            position[i] += PERIOD * velocity[i];
            largest = fmax(largest, fabs(force[i]));
        }
        /* ----------------------------------------------------------------------------------------------------- */
        size_t written = fsm_device_sample(&device, now, position, velocity, 0, bytes);
        if (send(line, bytes, written, 0) < 0) { /* nobody listens at the moment */
        }
        struct timespec rest = {0, (long)(PERIOD * 1e9)};
        nanosleep(&rest, NULL);
    }
    printf("forces %lu, let go %lu, dropped %lu, largest %.3f N, shown at the end %d\n", forces, let_go, device.dropped,
           largest, device.shown);
    close(line);
    return 0;
}
