/* Memory that an emulated library of a maker shares with the program of an emulated device (device_program.py).
 *
 * Each half has one writer, which makes its counter odd while it writes. The file is named by FSM_EMULATED_DEVICE. */
#ifndef FSM_MAILBOX_H
#define FSM_MAILBOX_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    uint64_t samples; /* written by the device, like all up to `error` */
    double position[3], velocity[3];
    uint64_t buttons, powered, has_watchdog, uncalibrated, version, error;
    uint64_t forces; /* written by the library, like all that follows */
    double force[3];
    uint64_t enabled, watchdog; /* of 125 us */
} mailbox;

static mailbox *open_mailbox(void) {
    const char *name = getenv("FSM_EMULATED_DEVICE");
    int file = name ? open(name, O_RDWR) : -1;
    if (file < 0) return NULL;
    void *memory = mmap(NULL, sizeof(mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static void copy_sample(const volatile mailbox *from, double position[3], double velocity[3], uint64_t *buttons) {
    uint64_t before, after;
    do {
        before = from->samples;
        __sync_synchronize();
        for (int i = 0; i < 3; i++) {
            position[i] = from->position[i];
            velocity[i] = from->velocity[i];
        }
        *buttons = from->buttons;
        __sync_synchronize();
        after = from->samples;
    } while (before != after || before % 2);
}

static void send_force(volatile mailbox *to, const double force[3]) {
    to->forces++;
    __sync_synchronize();
    for (int i = 0; i < 3; i++) to->force[i] = force[i];
    __sync_synchronize();
    to->forces++;
}
#endif
