/* The functions of Force Dimension's library that bindings and driver call, on an emulated device.
 *
 * The signatures are those that the public binding forcedimension-core declares; nothing here is the maker's. */
#include "mailbox.h"

#include <stdio.h>
#include <time.h>

static mailbox *device;
static const char *reason = "no error";

static int failed(const char *why) {
    reason = why;
    return -1;
}

static int absent(void) { return !device || !device->powered; }

void dhdGetSDKVersion(int *major, int *minor, int *release, int *revision) {
    const mailbox *found = open_mailbox(); /* the device need not be open; a test's process is short */
    *major = found && found->version ? (int)(found->version >> 16) : 3;
    *minor = found && found->version ? (int)(found->version & 0xffff) : 16;
    *release = *revision = 0;
}

const char *dhdErrorGetLastStr(void) { return reason; }
int dhdErrorGetLast(void) { return 0; }

int dhdOpen(void) {
    device = open_mailbox();
    return absent() ? failed("no device found") : 0;
}

int dhdOpenSerial(int serial) { return serial == 7 ? dhdOpen() : failed("no device of this number"); }
int drdOpen(void) { return dhdOpen(); }
int dhdEnableExpertMode(void) { return 0; }

int dhdGetStatus(int *status, signed char id) {
    (void)id;
    if (absent()) return failed("device not ready");
    for (int i = 0; i < 16; i++) status[i] = 0;
    status[0] = status[1] = 1;
    status[3] = (int)device->uncalibrated;
    status[9] = (int)device->error;
    return 0;
}

int dhdSetWatchdog(unsigned char duration, signed char id) {
    (void)id;
    if (absent() || !device->has_watchdog) return failed("not available on this device");
    device->watchdog = duration;
    return 0;
}

int dhdGetWatchdog(unsigned char *duration, signed char id) {
    (void)id;
    if (absent() || !device->has_watchdog) return failed("not available on this device");
    *duration = (unsigned char)device->watchdog;
    return 0;
}

int dhdEnableForce(unsigned char on, signed char id) {
    (void)id;
    if (absent()) return failed("device not ready");
    device->enabled = on;
    return 0;
}

int dhdGetPosition(double *x, double *y, double *z, signed char id) {
    double position[3], velocity[3];
    uint64_t buttons;
    (void)id;
    if (absent()) return failed("communication error");
    copy_sample(device, position, velocity, &buttons);
    *x = position[0];
    *y = position[1];
    *z = position[2];
    return 0;
}

int dhdGetLinearVelocity(double *x, double *y, double *z, signed char id) {
    double position[3], velocity[3];
    uint64_t buttons;
    (void)id;
    if (absent()) return failed("communication error");
    copy_sample(device, position, velocity, &buttons);
    *x = velocity[0];
    *y = velocity[1];
    *z = velocity[2];
    return 0;
}

double dhdGetMaxForce(signed char id) {
    (void)id;
    return absent() ? -1.0 : 12.0;
}

unsigned dhdGetButtonMask(signed char id) {
    (void)id;
    return absent() ? 0u : (unsigned)device->buttons;
}

int dhdSetForce(double x, double y, double z, signed char id) {
    double force[3] = {x, y, z};
    (void)id;
    if (absent()) return failed("communication error");
    send_force(device, force);
    return x * x + y * y + z * z > 144.0 ? 2 : 0; /* a motor of 12 N */
}

double dhdGetTime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int dhdClose(signed char id) {
    (void)id;
    if (!device) return failed("not open");
    munmap(device, sizeof *device);
    device = NULL;
    return 0;
}

int drdClose(signed char id) { return dhdClose(id); }
