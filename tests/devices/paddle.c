/* A paddle on a lever, written from the tables of docs/how_to/protocols.md alone: no code of the project is in it.
 *
 *     paddle PORT SECONDS
 *
 * Seconds count from the first force that comes; the hand presses after one of them.
 * The handle, 50 g on an arm of 80 mm, turns by an angle of which an encoder measures, of 16384 counts a turn; a hand of 60 N/m
 * and 2 N s/m wants to be 50 mm below.  Signals: SIGUSR1, no more samples; SIGUSR2, bytes at random in their place; SIGHUP,
 * the hand is gone.  At the end: largest force (N), time from the signal to the last force other than zero (ms), the
 * largest force 60 ms after the signal (N) and the largest kinetic energy after it (mJ). */
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t heard;

static void hear(int number) { heard = number; }

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int count, char **words)
{
    if (count < 3) {
        return 2;
    }
    int line = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in host = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(words[1]))};
    host.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (line < 0 || connect(line, (struct sockaddr *)&host, sizeof host) != 0) {
        return 2;
    }
    fcntl(line, F_SETFL, O_NONBLOCK);
    signal(SIGUSR1, hear);
    signal(SIGUSR2, hear);
    signal(SIGHUP, hear);
    const double arm = 0.08, mass = 0.05, turn = 6.283185307179586;
    double angle = 0.0, rate = 0.0, force = 0.0, largest = 0.0, later = 0.0, energy = 0.0;
    double begun = now(), before = begun, at = 0.0, last_force = 0.0;
    uint32_t sequence = 0;
    int answered = 0;
    while (now() - begun < atof(words[2])) {
        double t = now(), step = fmin(t - before, 5e-3);
        begun = answered ? begun : t; /* its time begins with the first answer */
        double target = t - begun > 1.0 ? -0.05 : 0.0;
        before = t;
        if (heard != 0 && at == 0.0) {
            at = t;
        }
        double held = heard == SIGHUP ? 0.0 : 1.0;
        for (int i = 0; i < 20; i++) { /* steps of the lever, far shorter than its swings */
            double place = arm * sin(angle), speed = arm * cos(angle) * rate;
            double hand = held * (60.0 * (target - place) - 2.0 * speed);
            double torque = arm * cos(angle) * (hand + force - 0.2 * speed);
            rate += step / 20.0 * torque / (mass * arm * arm);
            angle += step / 20.0 * rate;
        }
        unsigned char data[64];
        ssize_t size;
        while ((size = recv(line, data, sizeof data, 0)) > 0) {
            uint16_t flags;
            if (size == 32 && memcmp(data, "FSMF", 4) == 0 && data[4] == 1 && data[5] == 1) {
                answered = 1;
                memcpy(&flags, data + 6, 2);
                memcpy(&force, data + 24, 8);
                force = (flags & 1) != 0 && (flags & 4) == 0 ? force : 0.0;
            }
        }
        largest = fmax(largest, fabs(force));
        if (at > 0.0) {
            last_force = force != 0.0 ? t - at : last_force;
            later = t - at > 0.06 ? fmax(later, fabs(force)) : later;
            energy = fmax(energy, 0.5 * mass * arm * arm * rate * rate);
        }
        if (heard != SIGUSR1) {
            double counts = floor(angle / turn * 16384.0 + 0.5), place = arm * sin(counts * turn / 16384.0);
            memcpy(data, "FSMS\1\1\0\0", 8);
            sequence++;
            memcpy(data + 8, &sequence, 4);
            memset(data + 12, 0, 4);
            memcpy(data + 16, &t, 8);
            memcpy(data + 24, &place, 8);
            for (int i = 0; heard == SIGUSR2 && i < 32; i++) {
                data[i] = (unsigned char)rand();
            }
            send(line, data, 32, 0);
        }
        usleep(800);
    }
    printf("%.4f %.2f %.4f %.4f\n", largest, 1e3 * last_force, later, 1e3 * energy);
    close(line);
    return 0;
}
