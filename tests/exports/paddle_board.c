/* A board in simulated time: a handle of 50 g in a hand that is a spring, and a host on standard input and output.

   argv: target of the hand (m), ticks, tick at which the host is heard. */

#include "paddle.h"

#include <stdio.h>
#include <stdlib.h>

static double x, v, shown, target;
static long ticks, most, hears;

uint32_t board_time(void)
{
    return (uint32_t)(1000 * ticks);
}

double board_position(void)
{
    return x;
}

void board_show(double force)
{
    shown = force;
}

int board_receive(void)
{
    return ticks < hears ? -1 : getchar();
}

void board_send(const uint8_t *bytes, size_t length)
{
    fwrite(bytes, 1, length, stdout);
}

void board_wait(double seconds)
{
    for (int i = 0; i < 100; i++) {
        v += (60.0 * (target - x) - 2.0 * v + shown) / 0.05 * seconds / 100.0;
        x += v * seconds / 100.0;
    }
    ticks++;
}

bool board_goes_on(void)
{
    return ticks < most;
}

int main(int argc, char **argv)
{
    hapkit_board board = {.radius = 80000, .resolution = 20000, .most = 5000000, .watchdog = 20000};
    if (argc != 4) {
        return 2;
    }
    target = atof(argv[1]);
    most = atol(argv[2]);
    hears = atol(argv[3]);
    enum fsm_status status = paddle_run(&board);
    fprintf(stderr, "%.12g %.12g %d\n", x, v, (int)(board.let_go && shown == 0.0));
    return status == FSM_DONE ? 0 : 1;
}
