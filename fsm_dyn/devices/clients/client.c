/* See client.h. */
#define _POSIX_C_SOURCE 200809L
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

double fsm_client_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int fsm_client_open(fsm_client *client, unsigned axes, const char *address, uint16_t port) {
    struct sockaddr_in driver = {0};
    driver.sin_family = AF_INET;
    driver.sin_port = htons(port);
    memset(client, 0, sizeof *client);
    client->line = -1;
    if (axes < 1 || axes > FSM_MOST_AXES || inet_pton(AF_INET, address, &driver.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    fsm_device_init(&client->device, axes);
    client->line = socket(AF_INET, SOCK_DGRAM, 0);
    if (client->line < 0) return -1;
    /* connected: datagrams of other senders do not reach this program */
    if (connect(client->line, (struct sockaddr *)&driver, sizeof driver) != 0 ||
        fcntl(client->line, F_SETFL, O_NONBLOCK) != 0 || fcntl(client->line, F_SETFD, FD_CLOEXEC) != 0) {
        int why = errno;
        fsm_client_close(client);
        errno = why;
        return -1;
    }
    return 0;
}

/* Take all forces received; the refusal of a sample sent before (no receiver) is reported here by the system. */
static void receive(fsm_client *client, double now) {
    unsigned char bytes[FSM_LONGEST + 1]; /* one more, so that a longer datagram is none */
    for (;;) {
        ssize_t length = recv(client->line, bytes, sizeof bytes, 0);
        if (length < 0 && errno != ECONNREFUSED) return;
        if (length < 0) {
            client->unsent++;
            continue;
        }
        client->received += (unsigned long)fsm_device_take(&client->device, now, bytes, (size_t)length);
    }
}

const double *fsm_client_exchange(fsm_client *client, const double *position, const double *velocity,
                                  uint32_t buttons) {
    unsigned char bytes[FSM_LONGEST];
    double now = fsm_client_time();
    receive(client, now);
    size_t length = fsm_device_sample(&client->device, now, position, velocity, buttons, bytes);
    if (send(client->line, bytes, length, 0) < 0) client->unsent++;
    return fsm_device_force(&client->device, now);
}

const double *fsm_client_follow(fsm_client *client, const double *position, const double *hand_force,
                                uint32_t buttons) {
    return fsm_client_exchange(client, position, hand_force, buttons); /* the same bytes with another meaning */
}

void fsm_client_close(fsm_client *client) {
    if (client->line >= 0) close(client->line);
    client->line = -1;
}
