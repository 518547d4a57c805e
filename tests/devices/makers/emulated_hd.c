/* The functions of OpenHaptics that bindings and driver call, on an emulated device; its scheduler runs at 1 kHz.
 *
 * The signatures and numbers are those of the public binding pyOpenHaptics, and of the maker's published reference for
 * hdMakeCurrentDevice, hdCheckCalibration, hdDisable and hdUnschedule; nothing here is the maker's. */
#include "mailbox.h"

#include <pthread.h>
#include <time.h>

#define HANDLE 3u

typedef struct {
    unsigned code;
    int internal;
    unsigned device;
} error_info;

typedef unsigned (*callback)(void *);

static mailbox *device;
static unsigned error;
static callback scheduled;
static void *argument;
static volatile int running;
static pthread_t thread;
static double force[3];

unsigned hdInitDevice(const char *name) {
    device = open_mailbox();
    if (!device || !device->powered || strcmp(name, "Default Device") != 0) {
        error = 0x0302;
        return 0xffffffffu;
    }
    return HANDLE;
}

void hdMakeCurrentDevice(unsigned handle) { (void)handle; }
unsigned hdGetCurrentDevice(void) { return HANDLE; }
void hdEnable(unsigned what) { device->enabled = what == 0x4000; }
unsigned hdCheckCalibration(void) { return device->uncalibrated ? 0x5002u : 0x5000u; }

void hdDisable(unsigned what) {
    if (what == 0x4000) device->enabled = 0;
}

const char *hdGetString(unsigned what) { return what == 0x2503 ? "emulated" : "emulated Touch"; }

error_info hdGetError(void) {
    error_info found = {error, 0, HANDLE};
    error = 0;
    return found;
}

static void *run(void *unused) {
    const struct timespec period = {0, 1000000};
    const struct sched_param urgent = {.sched_priority = 70}; // the maker's scheduler is a real-time thread, where permitted
    (void)unused;
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &urgent);
    while (running) {
        if (scheduled && !scheduled(argument)) scheduled = NULL;
        nanosleep(&period, NULL);
    }
    return NULL;
}

unsigned hdScheduleAsynchronous(callback function, void *data, unsigned short priority) {
    (void)priority;
    argument = data;
    scheduled = function;
    return 1;
}

void hdUnschedule(unsigned handle) {
    (void)handle;
    scheduled = NULL;
}

void hdStartScheduler(void) {
    running = 1;
    if (pthread_create(&thread, NULL, run, NULL) != 0) error = 0x0304;
}

void hdStopScheduler(void) {
    running = 0;
    pthread_join(thread, NULL);
}

void hdBeginFrame(unsigned handle) { (void)handle; }

void hdEndFrame(unsigned handle) {
    (void)handle;
    send_force(device, force);
    error = device->powered ? (unsigned)device->error : 0x0302;
}

void hdGetDoublev(unsigned what, double *values) {
    double position[3], velocity[3];
    uint64_t buttons;
    copy_sample(device, position, velocity, &buttons);
    if (what == 0x2604) {
        values[0] = 0.88;
    } else if (what == 0x2603) {
        values[0] = 3.3;
    } else if (what == 0x2605) {
        for (int i = 0; i < 3; i++) values[i] = 0.1 * (i + 1);
    } else if (what == 0x2052) { /* a transform, column after column: translation in its last four numbers */
        for (int i = 0; i < 16; i++) values[i] = i % 5 == 0;
        for (int i = 0; i < 3; i++) values[12 + i] = 1e3 * position[i];
    } else if (what == 0x2050 || what == 0x2051) {
        for (int i = 0; i < 3; i++) values[i] = 1e3 * (what == 0x2050 ? position : velocity)[i];
    } else {
        error = 0x0100;
    }
}

void hdGetIntegerv(unsigned what, int *values) {
    if (what == 0x2000) *values = (int)device->buttons;
    else error = 0x0100;
}

void hdSetDoublev(unsigned what, const double *values) {
    if (what == 0x2700) memcpy(force, values, sizeof force);
    else error = 0x0100;
}

void hdDisableDevice(unsigned handle) {
    const double none[3] = {0};
    (void)handle;
    send_force(device, none);
    munmap(device, sizeof *device);
    device = NULL;
}
