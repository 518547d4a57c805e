/* What fsm_dyn/devices/clients/udp_device.h makes of a sequence of events on its input, for a test to compare.
 *
 * Lines: "take TIME HEX" prints whether the datagram was taken; "force TIME" prints flags and forces; "sample TIME N
 * numbers" prints the datagram in hex, without velocities where N is the number of axes. */
#include "udp_device.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    fsm_device device;
    char word[8], hex[4096];
    double now;
    fsm_device_init(&device, count > 1 ? (unsigned)atoi(arguments[1]) : 2);
    while (scanf("%7s %lf", word, &now) == 2) {
        unsigned char bytes[2048];
        if (word[0] == 't') {
            size_t length = 0;
            if (scanf("%4095s", hex) != 1) return 1;
            for (char *at = hex; at[0] != '-' && at[0] && at[1]; at += 2, length++) {
                unsigned byte;
                if (sscanf(at, "%2x", &byte) != 1) return 1;
                bytes[length] = (unsigned char)byte;
            }
            printf("%d\n", fsm_device_take(&device, now, bytes, length));
        } else if (word[0] == 'f') {
            const double *force = fsm_device_force(&device, now);
            for (unsigned i = 0; i < device.axes; i++) printf("%.17g ", force[i]);
            printf("\n");
        } else {
            double numbers[2 * FSM_MOST_AXES] = {0};
            unsigned given = 0;
            if (scanf("%u", &given) != 1 || given > 2 * FSM_MOST_AXES) return 1;
            for (unsigned i = 0; i < given; i++) {
                if (scanf("%lf", numbers + i) != 1) return 1;
            }
            size_t length = fsm_device_sample(&device, now, numbers,
                                              given > device.axes ? numbers + device.axes : NULL, 5, bytes);
            for (size_t i = 0; i < length; i++) printf("%02x", bytes[i]);
            printf("\n");
        }
    }
    return 0;
}
